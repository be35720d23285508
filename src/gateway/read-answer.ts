import type { BackendBody } from '../contracts/backend.ts'
import type { Format } from '../http/accept.ts'
import { successEnvelope } from '../http/envelope.ts'
import { readBody } from '../http/read-body.ts'
import type { ItemNames } from '../http/xml-write.ts'
import { Fault, toFault } from '../kernel/faults.ts'
import { type Conversions, isSmall, type OnGone } from './conversion/conversions.ts'
import { broken, convertAnswer, dataOf, type AnswerTask, type Speech } from './conversion/tasks.ts'

export interface EnvelopeRules {
  /** The backend that answered. */
  readonly backend: Speech & { readonly name: string }
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
  speech: { format: backend.format, payload: backend.payload, xml: backend.xml, data: backend.data },
  to,
  items,
  limit,
})

/** Whether XML is read or written. */
const isOfXml = ({ speech, to }: AnswerTask): boolean => speech.format === 'xml' || to === 'xml'

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
