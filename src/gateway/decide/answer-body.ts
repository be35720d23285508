import { Buffer } from 'node:buffer'
import type {
  AnswerFormat,
  BackendBody,
  ErrorSearch,
  FoundError,
} from '../../base/contracts/calls/backend.ts'
import type { WrappedBytes } from '../../base/contracts/calls/exchange.ts'
import type { Format } from '../../base/http/head/accept.ts'
import { type PayloadShape, successEnvelope, TEXT_AROUND } from '../../base/http/envelope.ts'
import { isWhiteSpace, OPEN_LIST, OPEN_OBJECT, LOWER_N, SPACE } from '../../base/http/body/json-bytes.ts'
import {
  BYTE_ORDER_MARK,
  checkJson,
  hasByteOrderMark,
  JsonCheck,
  NotJson,
} from '../../base/http/body/json-check.ts'
import { type PieceSource, readableOf, type Stage } from '../../base/http/body/pieces.ts'
import { readBody } from '../../base/http/body/read-body.ts'
import type { ItemNames } from '../../base/http/xml/key-sequences.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import type { Conversions, OnGone, Sharer } from '../conversion/conversions.ts'
import { type AnswerTask, cannotConvert, convertAtOnce, dataOf, searchAnswer } from '../conversion/answers.ts'
import { isSmall } from '../conversion/at-once.ts'

const notJson = (detail: string): Fault => new Fault('upstream_broken', { detail })

/**
 * Puts blanks in place of a byte order mark. The length stays the same, and a body becomes the same bytes whether it comes at
 * once or in pieces: its tag may be strong (C8.6).
 */
export const withoutBom = (bytes: Buffer): Buffer =>
  hasByteOrderMark(bytes) ? Buffer.concat([BLANK_MARK, bytes.subarray(BYTE_ORDER_MARK.length)]) : bytes

const BLANK_MARK = Buffer.alloc(BYTE_ORDER_MARK.length, SPACE)

/** Verifies JSON that arrives in pieces, and puts blanks in place of its byte order mark, which may be cut too. */
class PassingJson {
  readonly #check: JsonCheck
  #bom = 0

  /** @param envelope whether the JSON must be an envelope */
  constructor(envelope: boolean) {
    this.#check = new JsonCheck(envelope)
  }

  /** @returns the bytes to pass on @throws Fault `upstream_broken` as soon as they cannot be JSON */
  pass(chunk: Buffer): Buffer {
    const bytes = this.#bom < BYTE_ORDER_MARK.length ? this.#afterBom(chunk) : chunk
    verify(() => this.#check.write(bytes))
    return bytes
  }

  /** @throws Fault `upstream_broken` if the document is not complete */
  end(): void {
    verify(() => this.#check.end())
  }

  /** Blanks the mark. @throws Fault `upstream_broken` for half a mark: no JSON begins so */
  #afterBom(chunk: Buffer): Buffer {
    let at = 0
    while (at < chunk.length && chunk[at] === BYTE_ORDER_MARK[this.#bom]) {
      at++
      this.#bom++
    }
    const blanked = at === 0 ? chunk : Buffer.concat([BLANK_MARK.subarray(0, at), chunk.subarray(at)])
    if (at === chunk.length && this.#bom < BYTE_ORDER_MARK.length) return blanked
    if (this.#bom > 0 && this.#bom < BYTE_ORDER_MARK.length)
      throw notJson('the upstream answered half a byte order mark')
    this.#bom = BYTE_ORDER_MARK.length
    return blanked
  }
}

function verify(check: () => void): void {
  try {
    check()
  } catch (thrown) {
    if (thrown instanceof NotJson) throw notJson(`the upstream answered JSON that is none: ${thrown.message}`)
    throw thrown
  }
}

/** Verifies an upstream's own envelope that is whole. @throws Fault `upstream_broken` if it is none (C8.4) */
export const verifyEnvelope = (bytes: Buffer): void => verify(() => checkJson(bytes, true))

/**
 * Verifies an upstream's own envelope that comes in pieces. If it is none, the body breaks with Fault `upstream_broken`,
 * so that the client's connection is cut (C8.4).
 * @param declared the Content-Length that the client was sent. Then the last byte is held back until all is verified, because
 *   an answer of that length would look whole.
 */
export function envelopeStage(declared = Infinity): Stage {
  const json = new PassingJson(true)
  let left = declared
  let last: Buffer | undefined
  const give = (chunk: Buffer): Buffer => {
    const bytes = json.pass(chunk)
    left -= bytes.length
    if (left > 0) return bytes
    if (left < 0) throw notJson('the upstream answered more than the length that it declared')
    last = bytes.subarray(-1)
    return bytes.subarray(0, -1)
  }
  return {
    piece: give,
    end: () => {
      json.end()
      return last
    },
  }
}

interface Wrapping {
  readonly before: string
  readonly after: string
  /** Whether the payload itself is left out. */
  readonly empty: boolean
}

const wrappingOf = (shape: PayloadShape): Wrapping => {
  const [before, after] = TEXT_AROUND[shape]
  return { before, after, empty: shape === 'null' }
}

const SCALAR = wrappingOf('scalar')
const EMPTY_ENVELOPE = TEXT_AROUND.null.join('')

/**
 * Wraps a whole bare JSON payload into an envelope without changing its bytes (C8.6), except for blanks before it. It is
 * verified, so that broken JSON of an upstream is never sent as ours.
 * @throws Fault `upstream_broken`
 */
export function wrapJson(bytes: Buffer): WrappedBytes | string {
  const payload = withoutBom(bytes)
  verify(() => checkJson(payload))
  let first = 0
  while (isWhiteSpace(payload[first] ?? 0)) first += 1
  const { before, after, empty } = FIRST_BYTES.get(payload[first] ?? 0) ?? SCALAR
  return empty ? EMPTY_ENVELOPE : { before, bytes: first === 0 ? payload : payload.subarray(first), after }
}

const FIRST_BYTES: ReadonlyMap<number, Wrapping> = new Map([
  [OPEN_OBJECT, wrappingOf('object')],
  [OPEN_LIST, wrappingOf('array')],
  [LOWER_N, wrappingOf('null')],
])

/**
 * `wrapJson` in pieces, in constant memory: the first byte distinguishes objects, arrays and null. If it is no JSON, the
 * body breaks with Fault `upstream_broken` before the end of the envelope is sent (C8.4).
 */
export function wrapStage(): Stage {
  const json = new PassingJson(false)
  let chosen: Wrapping | undefined
  let empty = true
  const give = (chunk: Buffer): Buffer => {
    empty &&= chunk.length === 0
    const bytes = json.pass(chunk)
    if (chosen) return chosen.empty ? NOTHING : bytes
    const first = bytes.findIndex((byte) => !isWhiteSpace(byte))
    if (first === -1) return NOTHING
    chosen = FIRST_BYTES.get(bytes[first] ?? 0) ?? SCALAR
    const before = Buffer.from(chosen.before)
    return chosen.empty ? before : Buffer.concat([before, bytes.subarray(first)])
  }
  const end = (): Buffer => {
    if (empty) return Buffer.from(EMPTY_ENVELOPE)
    json.end()
    return Buffer.from((chosen ?? SCALAR).after)
  }
  return { piece: give, end }
}

const NOTHING = Buffer.alloc(0)

interface EnvelopeRules {
  readonly backend: AnswerFormat
  readonly to: Format
  readonly items: ItemNames
  /** The most bytes of an answer that may be held. */
  readonly limit: number
  /** The client whose call it is; undefined if it is not known. */
  readonly client: string | undefined
}

const sharerOf = ({ backend: { name }, client }: EnvelopeRules): Sharer => ({ owner: name, client })

/**
 * The envelope of a success that must be converted, or that is a value (C8.6). A small one is converted at once, a large
 * one on another thread (T4.7).
 * @throws Fault `answer_too_large`, `answer_unconvertible`, `answer_unmappable`, `conversion_busy`, `client_gone`;
 *   `upstream_broken` for an answer that does not parse, or is not the envelope that was promised
 */
export function envelopeOf(
  body: BackendBody,
  rules: EnvelopeRules,
  conversions: Conversions,
  onGone: OnGone,
): Uint8Array | Promise<Uint8Array> {
  const { backend, to, items, limit } = rules
  if (body.kind === 'value') return successEnvelope(to, dataOf(body.value, backend), items)
  if (body.kind === 'stream') return convertStream(body, rules, conversions, onGone)
  const bytes = body.kind === 'bytes' ? body.bytes : NOTHING
  if (bytes.length > limit) throw tooLarge(limit)
  const task = taskOf(bytes, body.kind === 'bytes' ? body.contentType : undefined, rules)
  const converted = convertAtOnce(task)
  if (converted !== undefined) return converted
  const sharer = sharerOf(rules)
  return conversions.withSlot(sharer, onGone, () => conversions.run(task, sharer))
}

const taskOf = (
  bytes: Buffer,
  contentType: string | undefined,
  { backend, to, items, limit }: EnvelopeRules,
): AnswerTask => ({
  kind: 'answer',
  bytes,
  contentType,
  answerFormat: { format: backend.format, payload: backend.payload, xml: backend.xml, data: backend.data },
  to,
  items,
  limit,
})

/** The body is not read before there is a slot, so that backpressure holds the upstream. */
function convertStream(
  body: Extract<BackendBody, { kind: 'stream' }>,
  rules: EnvelopeRules,
  conversions: Conversions,
  onGone: OnGone,
): Promise<Uint8Array> {
  const sharer = sharerOf(rules)
  return held(body, sharer, conversions, onGone, async () => {
    const task = taskOf(await readPieces(body.pieces, rules.limit), body.contentType, rules)
    return convertAtOnce(task) ?? conversions.run(task, sharer)
  })
}

/** A success that was searched, and so is whole. */
interface Searched {
  readonly bytes: Buffer
  /** Undefined: it is a success. */
  readonly found: readonly FoundError[] | undefined
}

/**
 * Looks for errors in a success (C8.8): in a small one at once, in a large one on another thread.
 * @throws Fault as `envelopeOf`
 */
export function searchBody(
  body: Extract<BackendBody, { kind: 'bytes' | 'stream' }>,
  { places, format }: ErrorSearch,
  { limit, sharer }: { readonly limit: number; readonly sharer: Sharer },
  conversions: Conversions,
  onGone: OnGone,
): Searched | Promise<Searched> {
  const { contentType } = body
  const taskOfBytes = (bytes: Buffer) => ({ kind: 'search', bytes, contentType, places, format }) as const
  const isAtOnce = (bytes: Buffer): boolean => isSmall(bytes, format)
  if (body.kind === 'bytes' && body.bytes.length > limit) throw tooLarge(limit)
  if (body.kind === 'bytes' && isAtOnce(body.bytes))
    return { bytes: body.bytes, found: searchAnswer(taskOfBytes(body.bytes)) }
  return held(body, sharer, conversions, onGone, async () => {
    const bytes = body.kind === 'bytes' ? body.bytes : await readPieces(body.pieces, limit)
    if (isAtOnce(bytes)) return { bytes, found: searchAnswer(taskOfBytes(bytes)) }
    const found = await conversions.run(taskOfBytes(bytes), sharer)
    return { bytes, found: (JSON.parse(found.toString()) as Searched['found'] | null) ?? undefined }
  })
}

/** With a slot of the conversions. The body is let go in any case. */
async function held<T>(
  body: BackendBody,
  sharer: Sharer,
  conversions: Conversions,
  onGone: OnGone,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await conversions.withSlot(sharer, onGone, work)
  } finally {
    if (body.kind === 'stream') body.pieces.cancel()
  }
}

async function readPieces(pieces: PieceSource, limit: number): Promise<Buffer> {
  try {
    return await readBody(readableOf(pieces), limit)
  } catch (thrown) {
    const { code, facts } = toFault(thrown)
    // readBody takes the sender of a body for a client. Here it is the upstream that closed its connection (C8.4).
    if (code === 'client_gone') throw new Fault('upstream_unreachable', { cause: facts.cause })
    throw code === 'body_too_large' ? tooLarge(limit) : cannotConvert(thrown)
  }
}

export const tooLarge = (limit: number): Fault =>
  new Fault('answer_too_large', { detail: `an answer to be converted is larger than ${limit} bytes` })
