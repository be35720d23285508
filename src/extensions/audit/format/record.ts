/** The lines of the audit trail: one record is one line of JSON (C12.2). */
import { Buffer } from 'node:buffer'
import { hash, randomFillSync } from 'node:crypto'
import {
  type AuditActor,
  type AuditCall,
  type AuditEntry,
  type AuditGrant,
  type AuditObject,
  MOST_REASON,
} from '../../../base/contracts/records/audit.ts'
import { cleanLine, quoteClean } from '../../../base/kernel/clean-text.ts'

/** How a record is put behind the others. */
export interface PutOptions {
  /** Whether it is to be synced at once. */
  readonly awaited: boolean
  /** Whether nobody needs to know when it is written, only when it is durable. */
  readonly onlyDurable?: boolean
  /** The time of the record, in milliseconds since the epoch. */
  readonly time: number
  /** How many bytes may wait to be durable with this record. */
  readonly most: number
  /** Whether it is an intent, whose outcome follows. */
  readonly opens?: boolean
  /** The `seq` of the intent that it settles; 0 if it settles none. */
  readonly settles?: number
}

/** A record before it has its place in the chain. The thread of the trail adds its number and its hash. */
export interface PreparedRecord {
  /** The members after `seq`, as JSON, with the brace that closes the record: `"time":…}`. */
  readonly members: string
  /** Its lines of the `.personal.jsonl` file (C12.2.3), each without its `seq`: `"name":…}`. */
  readonly personal: readonly string[]
}

/** The most bytes of one text, in UTF-8. */
export const MOST_TEXT = 256
/** The most UTF-16 units of `change` as JSON. Of a longer one only the length is kept. */
export const MOST_CHANGE = 32 * 1024
/** The most personal values of one record. */
export const MOST_PERSONAL = 64

/** Every member, in the order of the record: one that is missing here is an error of the compiler. */
type Members<T> = Readonly<Record<keyof Required<T>, true>>

const ACTOR = membersOf<AuditActor>({
  kind: true,
  subject: true,
  client: true,
  operator: true,
  claimed: true,
  via: true,
})
const OBJECT = membersOf<AuditObject>({
  business: true,
  fund: true,
  area: true,
  action: true,
  method: true,
  kind: true,
  id: true,
  family: true,
  subject: true,
  client: true,
})
const GRANT = membersOf<AuditGrant>({ grant: true, scope: true, target: true, method: true, jkt: true })
const CALL = membersOf<AuditCall>({
  version: true,
  status: true,
  upstreamStatus: true,
  ms: true,
  type: true,
  bytes: true,
  body: true,
  wouldRefuse: true,
})

/**
 * Makes the line of an entry, with the members in the order of C12.2.1. Texts are cut, and cleaned of control characters
 * and credentials (T2.7), one by one.
 * @param time milliseconds since the epoch
 */
export function prepareRecord(entry: AuditEntry, time: number): PreparedRecord {
  const { event, outcome, intent, actor, on, grant, call, change, why, personal } = entry
  let members = `"time":"${isoTime(time)}","event":"${event}","outcome":"${outcome}"`
  members += textMember('reason', entry.reason)
  members += textMember('requestId', entry.requestId)
  members += textMember('traceId', entry.traceId)
  if (intent !== undefined) members += `,"intent":${intent}`
  members += `,"actor":${objectOf(actor, ACTOR)}`
  if (on !== undefined) members += `,"on":${objectOf(on, OBJECT)}`
  if (grant !== undefined) members += `,"grant":${objectOf(grant, GRANT)}`
  if (call !== undefined) members += `,"call":${objectOf(call, CALL)}`
  if (change !== undefined) members += `,"change":${changeOf(change)}`
  members += textMember('why', why, MOST_REASON)
  if (personal === undefined) return { members: `${members}}`, personal: NONE }
  const { hashes, lines } = saltAll(personal)
  return {
    members: lines.length === 0 ? `${members}}` : `${members},"personal":{${hashes}}}`,
    personal: lines,
  }
}

const NONE: readonly string[] = []

/**
 * The hash of a personal value: of the bytes of its salt, then its text. base64url; empty for a value that no service
 * has written.
 */
export function personalHash(salt: string, value: string): string {
  if (salt.length > LONGEST_SALT || value.length > scratch.length / 4) return ''
  const end = scratch.write(salt, 'base64url')
  return hash('sha256', scratch.subarray(0, end + scratch.write(value, end)), 'base64url')
}

type MemberTable = readonly (readonly [name: string, prefix: string])[]

function membersOf<T>(members: Members<T>): MemberTable {
  return Object.keys(members).map((name) => [name, `"${name}":`])
}

function objectOf(value: object, members: MemberTable): string {
  let text = '{'
  for (const [name, prefix] of members) {
    const member = (value as Readonly<Record<string, unknown>>)[name]
    if (member === undefined) continue
    if (text.length > 1) text += ','
    text += prefix + (typeof member === 'string' ? quote(member) : JSON.stringify(member))
  }
  return `${text}}`
}

const textMember = (name: string, value: string | undefined, most = MOST_TEXT): string =>
  value === undefined ? '' : `,"${name}":${quoteClean(cutText(value, most))}`

const quote = (text: string): string => quoteClean(cutText(text, MOST_TEXT))

function changeOf(change: object): string {
  const text = cleanLine(JSON.stringify(change, cutLongTexts))
  return text.length <= MOST_CHANGE ? text : `{"omitted":${text.length}}`
}

const cutLongTexts = (_: string, value: unknown): unknown =>
  typeof value === 'string' ? cutText(value, MOST_TEXT) : value

/** Cuts a text at a whole character. `…` says that it was cut. */
function cutText(text: string, most: number): string {
  if (text.length * 3 <= most || Buffer.byteLength(text) <= most) return text
  const room = most - Buffer.byteLength('…')
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(room))
  return `${text.slice(0, read)}…`
}

let second = Number.NaN
let untilSecond = ''

/** As `toISOString`, which takes half a microsecond: most records are of the same second as the one before. */
export function isoTime(time: number): string {
  const whole = Math.floor(time / 1000)
  if (whole !== second) {
    second = whole
    untilSecond = new Date(whole * 1000).toISOString().slice(0, -'000Z'.length)
  }
  return `${untilSecond}${String(Math.floor(time - whole * 1000)).padStart(3, '0')}Z`
}

const SALT_BYTES = 16
/** Random bytes that are drawn at once: a call for each salt takes 1.7 µs. */
const salts = Buffer.alloc(256 * SALT_BYTES)
let salted = salts.length

function newSalt(): Buffer {
  if (salted === salts.length) {
    randomFillSync(salts)
    salted = 0
  }
  salted += SALT_BYTES
  return salts.subarray(salted - SALT_BYTES, salted)
}

/** Characters of a salt in base64url, and some more. */
const LONGEST_SALT = 64
/** The buffer that is hashed: a salt and its text, of at most four bytes a character. */
const scratch = Buffer.alloc(16 * 1024)

/** As `personalHash`, of the text that a reader finds: the one that was cut and cleaned. */
function hashSalted(salt: Buffer, quoted: string): string {
  const kept = quoted.includes('\\') ? (JSON.parse(quoted) as string) : quoted.slice(1, -1)
  const end = salt.copy(scratch) + scratch.write(kept, SALT_BYTES)
  return hash('sha256', scratch.subarray(0, end), 'base64url')
}

/** The hashes as members of `personal`, and the lines of the `.personal.jsonl` file. */
function saltAll(values: NonNullable<AuditEntry['personal']>): { hashes: string; lines: readonly string[] } {
  let hashes = ''
  const lines: string[] = []
  for (const name of Object.keys(values)) {
    const value = values[name]
    if (value === undefined || lines.length === MOST_PERSONAL) continue
    const [named, quoted] = [quote(name), quote(value)]
    // Names that differed before they were cut and cleaned: with one hash for both, the other value would look changed.
    if (hashes.includes(`,${named}:`)) continue
    const salt = newSalt()
    hashes += `,${named}:"${hashSalted(salt, quoted)}"`
    lines.push(`"name":${named},"salt":"${salt.toString('base64url')}","value":${quoted}}`)
  }
  return { hashes: hashes.slice(1), lines }
}

/** A record of a chain; `hash`, base64url, is empty before the first. */
export interface ChainHead {
  readonly seq: number
  readonly hash: string
}
