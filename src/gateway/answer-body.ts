import { Buffer, isAscii, isUtf8 } from 'node:buffer'
import { Transform, type TransformCallback } from 'node:stream'
import type { BackendBody } from '../contracts/backend.ts'
import type { Format } from '../http/accept.ts'
import { isEnvelope, type PayloadShape, shapeOf, successEnvelope, TEXT_AROUND } from '../http/envelope.ts'
import { JsonScan, NotJson } from '../http/json-scan.ts'
import type { JsonValue } from '../http/json.ts'
import { readBody } from '../http/read-body.ts'
import type { ItemNames } from '../http/xml/write.ts'
import { Fault, toFault } from '../kernel/faults.ts'
import { type Conversions, isSmall, type OnGone } from './conversion/conversions.ts'
import { type AnswerTask, broken, convertAnswer, dataOf, type AnswerFormat } from './conversion/tasks.ts'

const notJson = (detail: string, cause?: unknown): Fault => new Fault('upstream_broken', { detail, cause })

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const

/**
 * Blanks take the place of a byte order mark. JSON must not begin with one (RFC 8259 §8.1), but many senders write it. The
 * length stays, and a body becomes the same bytes whether it comes at once or in pieces: its tag may be strong (C8.6).
 */
export const withoutBom = (bytes: Buffer): Buffer =>
  BYTE_ORDER_MARK.every((byte, at) => bytes[at] === byte)
    ? Buffer.concat([BLANK_MARK, bytes.subarray(BYTE_ORDER_MARK.length)])
    : bytes

const BLANK = 0x20
const BLANK_MARK = Buffer.alloc(BYTE_ORDER_MARK.length, BLANK)

/** The value of a whole body. @throws Fault `upstream_broken` unless it is JSON in UTF-8 */
function parseWhole(bytes: Buffer, text: string | undefined): JsonValue {
  if (text === undefined && !isUtf8(bytes)) throw notJson('the upstream answered JSON that is not UTF-8')
  try {
    return JSON.parse(text ?? bytes.toString()) as JsonValue
  } catch (cause) {
    throw notJson('the upstream answered JSON that does not parse', cause)
  }
}

/** Verifies JSON that arrives in pieces, and puts blanks in place of its byte order mark, which may be cut too. */
class PassingJson {
  readonly #scan: JsonScan
  #bom = 0

  /** @param envelope whether the JSON must be an envelope */
  constructor(envelope: boolean) {
    this.#scan = new JsonScan(envelope)
  }

  /** @returns the bytes to pass on @throws Fault `upstream_broken` as soon as they cannot be JSON */
  pass(chunk: Buffer): Buffer {
    const bytes = this.#bom < BYTE_ORDER_MARK.length ? this.#afterBom(chunk) : chunk
    this.#check(() => this.#scan.write(bytes))
    return bytes
  }

  /** @throws Fault `upstream_broken` if the document is not complete */
  end(): void {
    this.#check(() => this.#scan.end())
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

  #check(step: () => void): void {
    try {
      step()
    } catch (thrown) {
      if (thrown instanceof NotJson)
        throw notJson(`the upstream streamed JSON that is none: ${thrown.message}`)
      throw thrown
    }
  }
}

/** Verifies an upstream's own envelope that is whole. @throws Fault `upstream_broken` if it is none (C8.4) */
export function verifyEnvelope(bytes: Buffer, text: string | undefined): void {
  if (!isEnvelope(parseWhole(bytes, text)))
    throw notJson('the upstream answered something else than an envelope')
}

/**
 * Verifies an upstream's own envelope that streams through. If it is none, the stream breaks with Fault
 * `upstream_broken`, so that the client's connection is cut (C8.4).
 * @param declared whether the client was sent a Content-Length. Then the last byte is held back until all is verified,
 *   since an answer of that length would look whole.
 */
export function envelopeStream(declared: boolean): Transform {
  const json = new PassingJson(true)
  let held: Buffer | undefined
  const give = (chunk: Buffer): Buffer => {
    const bytes = json.pass(chunk)
    if (!declared) return bytes
    const given = Buffer.concat([held ?? NOTHING, bytes])
    held = given.subarray(-1)
    return given.subarray(0, -1)
  }
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      attempt(done, () => give(chunk))
    },
    flush(done) {
      attempt(done, () => (json.end(), held))
    },
  })
}

/** Hands the result of a step to a stream, or the fault that the step throws. */
function attempt(done: TransformCallback, step: () => Buffer | undefined): void {
  let given: Buffer | undefined
  try {
    given = step()
  } catch (thrown) {
    done(thrown as Error)
    return
  }
  done(null, given?.length === 0 ? undefined : given)
}

interface Wrapping {
  readonly before: Buffer
  readonly after: Buffer
  /** Whether the payload itself is left out. */
  readonly empty: boolean
}

const wrappingOf = (shape: PayloadShape): Wrapping => {
  const [before, after] = TEXT_AROUND[shape]
  return { before: Buffer.from(before), after: Buffer.from(after), empty: shape === 'null' }
}

const WRAPPINGS: Readonly<Record<PayloadShape, Wrapping>> = {
  object: wrappingOf('object'),
  array: wrappingOf('array'),
  scalar: wrappingOf('scalar'),
  null: wrappingOf('null'),
}
const EMPTY_ENVELOPE = Buffer.from(TEXT_AROUND.null.join(''))

/**
 * Wraps a whole bare JSON payload into an envelope without changing its bytes (C8.6), but for blanks before it. It is
 * parsed, so that broken JSON of an upstream is never sent as ours. ASCII is answered as text: the text that was parsed
 * is used, without a copy.
 * @throws Fault `upstream_broken`
 */
export function wrapJson(bytes: Buffer): Buffer | string {
  const payload = withoutBom(bytes)
  const text = asciiOf(payload)
  const value = parseWhole(payload, text)
  if (value === null) return EMPTY_ENVELOPE
  const shape = shapeOf(value)
  const [textBefore, textAfter] = TEXT_AROUND[shape]
  if (text !== undefined) return `${textBefore}${text.trimStart()}${textAfter}`
  const { before, after } = WRAPPINGS[shape]
  return Buffer.concat([before, payload.subarray(payload.findIndex(isNoBlank)), after])
}

/** The text of the bytes; undefined if they are not all ASCII. */
export const asciiOf = (bytes: Buffer): string | undefined =>
  isAscii(bytes) ? bytes.toString('latin1') : undefined

const BLANKS: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d])
const isNoBlank = (byte: number): boolean => !BLANKS.has(byte)
const FIRST_BYTES: ReadonlyMap<number, Wrapping> = new Map([
  [0x7b, WRAPPINGS.object],
  [0x5b, WRAPPINGS.array],
  [0x6e, WRAPPINGS.null],
])

/**
 * `wrapJson` for a stream, in constant memory: the first byte distinguishes objects, arrays and null. If it is no JSON,
 * the stream breaks with Fault `upstream_broken` before the end of the envelope is sent (C8.4).
 */
export function wrapJsonStream(): Transform {
  const json = new PassingJson(false)
  let chosen: Wrapping | undefined
  let empty = true
  const give = (chunk: Buffer): Buffer => {
    empty &&= chunk.length === 0
    const bytes = json.pass(chunk)
    if (chosen) return chosen.empty ? NOTHING : bytes
    const first = bytes.findIndex(isNoBlank)
    if (first === -1) return NOTHING
    chosen = FIRST_BYTES.get(bytes[first] ?? 0) ?? WRAPPINGS.scalar
    return chosen.empty ? chosen.before : Buffer.concat([chosen.before, bytes.subarray(first)])
  }
  const end = (): Buffer => {
    if (empty) return EMPTY_ENVELOPE
    json.end()
    return (chosen ?? WRAPPINGS.scalar).after
  }
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      attempt(done, () => give(chunk))
    },
    flush(done) {
      attempt(done, end)
    },
  })
}

const NOTHING = Buffer.alloc(0)

interface EnvelopeRules {
  readonly backend: AnswerFormat & { readonly name: string }
  readonly to: Format
  readonly items: ItemNames
  /** Bytes of an answer that may be held. */
  readonly limit: number
}

const NONE = Buffer.alloc(0)

/**
 * The envelope of a success that must be converted, or that is a value (C8.6). A small one is converted at once, a large
 * one on another thread (T4.7).
 * @throws Fault `answer_too_large`, `answer_unconvertible`, `answer_unmappable`, `conversion_busy`, `client_gone`;
 *   `upstream_broken` for what does not parse, or is no envelope where one was promised
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
  const bytes = body.kind === 'bytes' ? body.bytes : NONE
  if (bytes.length > limit) throw tooLarge(limit)
  const task = taskOf(bytes, body.kind === 'bytes' ? body.contentType : undefined, rules)
  return isSmall(bytes, isOfXml(task)) ? convertAnswer(task) : convertLarge(task, rules, conversions, onGone)
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

const isOfXml = ({ answerFormat, to }: AnswerTask): boolean => answerFormat.format === 'xml' || to === 'xml'

async function convertLarge(
  task: AnswerTask,
  { backend }: EnvelopeRules,
  conversions: Conversions,
  onGone: OnGone,
): Promise<Uint8Array> {
  const leave = await conversions.enter(backend.name, onGone)
  try {
    return await conversions.run(task)
  } finally {
    leave()
  }
}

/** The stream is not read before there is a slot, so that backpressure holds the upstream. */
async function convertStream(
  { stream, contentType }: Extract<BackendBody, { kind: 'stream' }>,
  rules: EnvelopeRules,
  conversions: Conversions,
  onGone: OnGone,
): Promise<Uint8Array> {
  let leave: (() => void) | undefined
  try {
    leave = await conversions.enter(rules.backend.name, onGone)
    const task = taskOf(await readStream(stream, rules.limit), contentType, rules)
    return await (isSmall(task.bytes, isOfXml(task)) ? convertAnswer(task) : conversions.run(task))
  } finally {
    leave?.()
    stream.destroy()
  }
}

async function readStream(
  stream: Extract<BackendBody, { kind: 'stream' }>['stream'],
  limit: number,
): Promise<Buffer> {
  try {
    return await readBody(stream, limit)
  } catch (thrown) {
    const { code, facts } = toFault(thrown)
    // readBody takes the sender of a body for a client. Here it is the upstream that closed its connection (C8.4).
    if (code === 'client_gone') throw new Fault('upstream_unreachable', { cause: facts.cause })
    throw code === 'body_too_large' ? tooLarge(limit) : broken(thrown)
  }
}

const tooLarge = (limit: number): Fault =>
  new Fault('answer_too_large', { detail: `an answer to be converted is larger than ${limit} bytes` })
