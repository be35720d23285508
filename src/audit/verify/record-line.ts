/** Reads what the verification needs of a record's line (C12.2.1, C12.4.1), without parsing the rest. */
import { hash } from 'node:crypto'

/** Bytes of `,"hash":"…"}`. */
const HASH_MEMBER = ',"hash":"'.length + 43 + '"}'.length
const HASH_START = ',"hash":"'
const TIME = 'YYYY-MM-DDTHH:MM:SS.sssZ'.length
const HASH_BYTES = 43

export interface RecordLine {
  readonly writer: string
  readonly seq: number
  /** ISO 8601. */
  readonly time: string
  readonly event: string
  readonly hash: string
  /** The line, of which each character is a byte. */
  readonly text: string
}

const START = '{"v":1,"writer":"'
const SEQ_START = '","seq":'

/** Reads a line; undefined if it is no record. */
export function readRecordLine(text: string): RecordLine | undefined {
  const tail = text.length - HASH_MEMBER
  if (!text.startsWith(START) || !text.startsWith(HASH_START, tail) || !text.endsWith('"}')) return undefined
  const writerEnd = text.indexOf('"', START.length)
  const seqEnd = text.indexOf(',', writerEnd + SEQ_START.length)
  const seq = Number(text.slice(writerEnd + SEQ_START.length, seqEnd))
  const timeStart = seqEnd + ',"time":"'.length
  const eventStart = timeStart + TIME + '","event":"'.length
  const eventEnd = text.indexOf('"', eventStart)
  if (!text.startsWith(SEQ_START, writerEnd)) return undefined
  if (!Number.isSafeInteger(seq) || !text.startsWith('","event":"', timeStart + TIME)) return undefined
  return {
    writer: text.slice(START.length, writerEnd),
    seq,
    time: text.slice(timeStart, timeStart + TIME),
    event: text.slice(eventStart, eventEnd),
    hash: text.slice(tail + HASH_START.length, tail + HASH_START.length + HASH_BYTES),
    text,
  }
}

/** What the hash of a record is made of. */
export class ChainHasher {
  #scratch = Buffer.allocUnsafe(64 * 1024)

  /** The hash that a line should have, behind a record with the hash `before`. */
  hashOf(before: string, bytes: Buffer, start: number, end: number): string {
    const length = end - start - HASH_MEMBER
    const needed = before.length + length + 1
    if (needed > this.#scratch.length) this.#scratch = Buffer.allocUnsafe(2 * needed)
    const scratch = this.#scratch
    let at = scratch.write(before, 0, 'latin1')
    at += bytes.copy(scratch, at, start, start + length)
    scratch[at] = 0x7d
    return hash('sha256', scratch.subarray(0, at + 1), 'base64url')
  }
}
