import { createHash } from 'node:crypto'
import { fitsWeakly, readTagCondition } from './entity-tag.ts'
import type { Head } from './head.ts'

/** A document that is made once, when a configuration is loaded, and answered as it is from then on. */
export interface ReadyDocument {
  readonly body: Buffer
  /** Of a 200. With `ETag`. */
  readonly headers: Readonly<Record<string, string>>
  /** Of a 304 (RFC 9110 §15.4.5): those of `headers` that say how long it may be kept, and which version it is. */
  readonly unchangedHeaders: Readonly<Record<string, string>>
  /** The entity tag, with its quotes. */
  readonly tag: string
}

export interface ReadyAnswer {
  readonly status: 200 | 304
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | undefined
}

const KEPT_IN_304: ReadonlySet<string> = new Set(['ETag', 'Cache-Control', 'Vary'])

/** @param headers without `ETag`, which is made from the bytes: the same bytes have the same tag in every process */
export function readyDocument(body: Buffer, headers: Readonly<Record<string, string>>): ReadyDocument {
  const tag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
  const all = { ...headers, ETag: tag }
  const kept = Object.entries(all).filter(([name]) => KEPT_IN_304.has(name))
  return { body, headers: all, unchangedHeaders: Object.fromEntries(kept), tag }
}

/** 304 if the client has this version (RFC 9110 §13.1.2), else the document. For GET and HEAD. */
export const answerReady = (document: ReadyDocument, { headers }: Pick<Head, 'headers'>): ReadyAnswer =>
  isKnown(headers['if-none-match'], document.tag)
    ? { status: 304, headers: document.unchangedHeaders, body: undefined }
    : { status: 200, headers: document.headers, body: document.body }

/** A header that cannot be read states no condition: the document is answered. */
function isKnown(ifNoneMatch: string | undefined, tag: string): boolean {
  const condition = ifNoneMatch === undefined ? undefined : readTagCondition(ifNoneMatch)
  return condition !== undefined && fitsWeakly(condition, tag.slice(1, -1))
}
