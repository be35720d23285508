/** Reads the facts of a record's line (C12.2.1, C12.4.1) without parsing the rest. */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import type { TrailRecord } from '../../../base/contracts/records/audit-query.ts'
import { hasCode } from '../../../base/kernel/thrown.ts'
import type { ChainHead } from './record.ts'

/** The members that every line begins with, in this order. Nothing that a client sent is there. */
export interface LineHead {
  readonly writer: string
  readonly seq: number
  /** ISO 8601. */
  readonly time: string
  readonly event: string
  readonly outcome: string
  /** The intent that the record belongs to. */
  readonly intent: number | undefined
}

/** The most bytes that these members take. */
export const HEAD_BYTES = 768

const HEAD =
  /^\{"v":1,"writer":"([^"]*)","seq":(\d+),"time":"([^"]*)","event":"([^"]*)","outcome":"([a-z]*)"(?:,"(?:reason|requestId|traceId)":"[^"]*")*(?:,"intent":(\d+))?/

/** Undefined if a text is not the beginning of a record. */
export function readHead(text: string): LineHead | undefined {
  const found = HEAD.exec(text)
  if (found === null) return undefined
  const [, writer = '', seq, time = '', event = '', outcome = '', intent] = found
  const number = Number(seq)
  if (!Number.isSafeInteger(number)) return undefined
  return {
    writer,
    seq: number,
    time,
    event,
    outcome,
    intent: intent === undefined ? undefined : Number(intent),
  }
}

const HASH_START = ',"hash":"'
const HASH_BYTES = 43
/** The length of `,"hash":"…"}` in bytes. */
const HASH_MEMBER = HASH_START.length + HASH_BYTES + '"}'.length

/** A whole line. */
export interface RecordLine extends LineHead {
  readonly hash: string
  /** The line; each character is a byte. */
  readonly text: string
}

/** Undefined if the line is no record. */
export function readRecordLine(text: string): RecordLine | undefined {
  const tail = text.length - HASH_MEMBER
  if (!text.startsWith(HASH_START, tail) || !text.endsWith('"}')) return undefined
  const head = readHead(text)
  const start = tail + HASH_START.length
  return head && { ...head, hash: text.slice(start, start + HASH_BYTES), text }
}

let scratch = Buffer.allocUnsafe(64 * 1024)

/** The hash that the line should have, behind a record with the hash `before`. */
export function chainedHash(before: string, bytes: Buffer, start: number, end: number): string {
  const length = end - start - HASH_MEMBER
  const needed = before.length + length + 1
  if (needed > scratch.length) scratch = Buffer.allocUnsafe(2 * needed)
  let at = scratch.write(before, 0, 'latin1')
  at += bytes.copy(scratch, at, start, start + length)
  scratch[at] = 0x7d
  return hash('sha256', scratch.subarray(0, at + 1), 'base64url')
}

/** The facts that the first record of a segment has. */
export interface Opening {
  /** ISO 8601. */
  readonly time: string
  /** The last record before it that counts; undefined in the first segment of a trail. */
  readonly before: ChainHead | undefined
}

/** Bytes that the first record of a segment takes at most. */
const FIRST_LINE = 4096
const BEFORE = /[{,]"before":\{"writer":"[^"]*","seq":(\d+),"hash":"([A-Za-z0-9_-]{43})"\}/

/** Undefined if the segment does not begin with a record, or is gone. Throws the system's error. */
export function readOpening(path: string): Opening | undefined {
  const text = firstLine(path)
  const record = readRecordLine(text)
  if (record === undefined) return undefined
  const { time, event } = record
  const [, seq, before] = (event === 'writer.opened' && BEFORE.exec(text)) || []
  return { time, before: before === undefined ? undefined : { seq: Number(seq), hash: before } }
}

function firstLine(path: string): string {
  const buffer = Buffer.alloc(FIRST_LINE)
  let file: number | undefined
  try {
    file = openSync(path, 'r')
    return buffer.toString('latin1', 0, readSync(file, buffer)).split('\n', 1)[0] ?? ''
  } catch (thrown) {
    if (hasCode(thrown, 'ENOENT')) return ''
    throw thrown
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** Parses a line, each character of which is a byte, as JSON. Undefined if it is no JSON: then it was changed. */
export function parseBytes(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'latin1').toString('utf8')) as unknown
  } catch {
    return undefined
  }
}

/** Whom the record of a line is about, and whom it is of: the redaction of one of them erases its personal values (C12.2.3). */
export function subjectsOf(text: string): {
  readonly about: string | undefined
  readonly all: readonly string[]
} {
  const { actor, on } = (parseBytes(text) ?? {}) as Partial<Pick<TrailRecord, 'actor' | 'on'>>
  const user = on?.kind === 'user' ? on.id : undefined
  const all = [actor?.subject, on?.subject, user].filter((each) => each !== undefined)
  return { about: on?.subject, all: [...new Set(all)] }
}
