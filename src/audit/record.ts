/** The lines of the audit trail: one record is one line of JSON (C12.2). */
import { hash, randomBytes } from 'node:crypto'
import { type AuditEntry, MOST_REASON } from '../contracts/audit.ts'
import { cleanLine } from '../kernel/clean-text.ts'

/** What the trail adds to an entry. */
export interface Stamp {
  /** The name of the process's trail. */
  readonly writer: string
  /** 1, 2, … for each writer. */
  readonly seq: number
  /** Milliseconds since the epoch. */
  readonly time: number
}

/** A personal value as it is kept in the file beside (C12.2.3). */
export interface PersonalValue {
  readonly seq: number
  /** Where it belongs in the record: `actor.address`. */
  readonly name: string
  /** 128 random bits, base64url. */
  readonly salt: string
  readonly value: string
}

export interface PreparedRecord {
  readonly seq: number
  /** The line without its hash: a whole JSON object, without a line end. */
  readonly text: string
  readonly personal: readonly PersonalValue[]
}

const VERSION = 1
/** Bytes in UTF-8 of one text. */
export const MOST_TEXT = 256
const SALT_BYTES = 16

/** Makes the line of an entry, with the members in the order of C12.2.1. */
export function prepareRecord(entry: AuditEntry, { writer, seq, time }: Stamp): PreparedRecord {
  const { event, outcome, reason, requestId, traceId, intent, actor, on, grant, call, change, why } = entry
  const personal = saltAll(seq, entry.personal)
  const line = {
    ...{ v: VERSION, writer, seq, time: new Date(time).toISOString() },
    ...{ event, outcome, reason, requestId, traceId, intent, actor, on, grant, call, change },
    why: why === undefined ? undefined : cutText(why, MOST_REASON),
    personal: hashesOf(personal),
  }
  return { seq, text: cleanLine(JSON.stringify(line, cutLongTexts)), personal }
}

/** The hash of a record: of the hash before it, and of its line without the hash (C12.4.1). base64url. */
export const chainHash = (before: string, text: string): string => hash('sha256', before + text, 'base64url')

/** The whole line, with its line end. */
export const lineOf = (text: string, recordHash: string): string =>
  `${text.slice(0, -1)},"hash":"${recordHash}"}\n`

/** Of a personal value: of the bytes of its salt, then its text. base64url. */
export const personalHash = (salt: string, value: string): string =>
  hash('sha256', Buffer.concat([Buffer.from(salt, 'base64url'), Buffer.from(value)]), 'base64url')

function saltAll(seq: number, values: AuditEntry['personal'] = {}): readonly PersonalValue[] {
  const salted: PersonalValue[] = []
  for (const [name, value] of Object.entries(values))
    if (value !== undefined) salted.push({ seq, name, salt: newSalt(), value: cutText(value, MOST_TEXT) })
  return salted
}

const newSalt = (): string => randomBytes(SALT_BYTES).toString('base64url')

const hashesOf = (personal: readonly PersonalValue[]): Readonly<Record<string, string>> | undefined =>
  personal.length === 0
    ? undefined
    : Object.fromEntries(personal.map(({ name, salt, value }) => [name, personalHash(salt, value)]))

/** `why` is cut by itself. */
const cutLongTexts = (key: string, value: unknown): unknown =>
  typeof value === 'string' && key !== 'why' ? cutText(value, MOST_TEXT) : value

/** Cuts a text at a whole character. `…` says that it was cut. */
function cutText(text: string, most: number): string {
  if (text.length * 3 <= most || Buffer.byteLength(text) <= most) return text
  const room = most - Buffer.byteLength('…')
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(room))
  return `${text.slice(0, read)}…`
}
