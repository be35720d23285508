/** The lines of `manifest.jsonl` (C12.4.4): each signs the heads of all writers, and the line before it. */
import { hash, type KeyObject } from 'node:crypto'
import { isJsonObject, type JsonValue } from '../../http/json.ts'
import { type AuditKeys, isSignedBy } from '../keys.ts'

export const MANIFEST_FILE = 'manifest.jsonl'

/** A writer that may write from this line on (C12.4.4). */
export interface AnnouncedName {
  readonly writer: string
  /** Of the file that announced it, if one did before this line. */
  readonly hash?: string | undefined
}

/** The last record of a writer that a line vouches for. */
export interface SignedHead {
  readonly writer: string
  /** 0 for a writer that was announced, and has told no record yet. */
  readonly seq: number
  /** Of that record. */
  readonly hash: string
  /** It was read from the disk: its process had ended before it could tell its head. */
  readonly found?: true
}

/** A segment that retention has removed. */
export interface RemovedSegment {
  readonly writer: string
  readonly number: number
  /** The `seq` and the hash of its last record. */
  readonly seq: number
  readonly hash: string
}

export interface ManifestNews {
  /** ISO 8601, UTC, milliseconds. */
  readonly time: string
  readonly heads: readonly SignedHead[]
  readonly removed?: readonly RemovedSegment[] | undefined
  /** Absent in lines of versions that announced nobody. */
  readonly announced?: readonly AnnouncedName[] | undefined
}

export interface ManifestLine extends ManifestNews {
  /** 1, 2, … */
  readonly n: number
  /** The hash of the line before; empty in the first. */
  readonly before: string
  /** SHA-256 of the line up to `before`, base64url. */
  readonly hash: string
  /** Ed25519, of the hash, base64url. */
  readonly signature: string
}

const VERSION = 1
const LINE = /^(\{"v":1,.*),"hash":"([A-Za-z0-9_-]{43})","signature":"([A-Za-z0-9_-]{86})"\}$/

/** Makes the line behind another. Its text is a whole line, with its end. */
export function makeManifestLine(
  { time, heads, removed, announced }: ManifestNews,
  last: Pick<ManifestLine, 'n' | 'hash'> | undefined,
  { sign }: AuditKeys,
): { readonly line: ManifestLine; readonly text: string } {
  const { n, hash: before } = last ?? { n: 0, hash: '' }
  const more = { ...(removed && { removed }), ...(announced && { announced }) }
  const members = { n: n + 1, time, heads, ...more, before }
  const signed = JSON.stringify({ v: VERSION, ...members })
  const lineHash = hash('sha256', signed, 'base64url')
  const proof = { hash: lineHash, signature: sign(lineHash) }
  return {
    line: { ...members, ...proof },
    text: `${signed.slice(0, -1)},"hash":"${proof.hash}","signature":"${proof.signature}"}\n`,
  }
}

/** Reads a line without its end; undefined if it is none, or its hash is not its own. Does not check the signature. */
export function readManifestLine(text: string): ManifestLine | undefined {
  const [, members, lineHash, signature] = LINE.exec(text) ?? []
  if (members === undefined || lineHash === undefined || signature === undefined) return undefined
  const signed = `${members}}`
  if (hash('sha256', signed, 'base64url') !== lineHash) return undefined
  const line = parsed(signed)
  if (!isWhole(line)) return undefined
  return { ...(line as unknown as Omit<ManifestLine, 'hash' | 'signature'>), hash: lineHash, signature }
}

/** The hash is no secret: anybody can make a line that has its own, with anything in it. */
function parsed(signed: string): JsonValue | undefined {
  try {
    return JSON.parse(signed) as JsonValue
  } catch {
    return undefined
  }
}

function isWhole(value: JsonValue | undefined): boolean {
  if (!isJsonObject(value)) return false
  const { n, time, before, heads, removed = [], announced = [] } = value
  return (
    Number.isSafeInteger(n) &&
    typeof time === 'string' &&
    typeof before === 'string' &&
    [heads, removed].every((list) => Array.isArray(list) && list.every(isPlace)) &&
    Array.isArray(announced) &&
    announced.every((each) => isJsonObject(each) && typeof each['writer'] === 'string')
  )
}

const isPlace = (value: JsonValue): boolean =>
  isJsonObject(value) &&
  typeof value['writer'] === 'string' &&
  Number.isSafeInteger(value['seq']) &&
  typeof value['hash'] === 'string'

/** Whether the hash of a line, or of an anchor, was signed with this key. */
export const isSignedLine = (
  { hash: lineHash, signature }: Pick<ManifestLine, 'hash' | 'signature'>,
  key: KeyObject,
): boolean => isSignedBy(lineHash, signature, key)
