import { upstreamFault } from '../backends/upstream-errors.ts'
import type { BackendBody, BackendFormat } from '../contracts/backend.ts'
import { isEnvelope, wrapPayload } from '../http/envelope.ts'
import type { JsonObject, JsonValue } from '../http/json-value.ts'
import { parseJson } from '../http/json.ts'
import { readBody } from '../http/read-body.ts'
import { ENVELOPE_SCHEMA, readXml } from '../http/xml-read.ts'
import { Fault, toFault } from '../kernel/faults.ts'

/** What a backend answers: its format, and whether its successes are envelopes already. */
export interface Speech {
  readonly format: BackendFormat
  readonly payload: 'bare' | 'envelope'
}

/** An upstream is trusted more than a client, but not with our stack: bounds beside that on its bytes. */
const LIMITS = { depth: 200, nodes: 1_000_000, references: 1_000_000 }

/**
 * The `Data` of a successful answer that has to be converted, or was a value from the start (C8.6).
 * @param limit bytes of a stream that are held
 * @throws Fault `answer_too_large`; `upstream_broken` for what does not parse, or is no envelope where one was promised
 */
export async function readAnswer(body: BackendBody, speech: Speech, limit: number): Promise<JsonObject> {
  const value = body.kind === 'value' ? body.value : parse(await readBytes(body, limit), speech, limit)
  if (speech.payload === 'bare' || value === null) return wrapPayload(value)
  if (isEnvelope(value)) return value.Data
  throw new Fault('upstream_broken', { detail: 'the upstream answered something else than an envelope' })
}

async function readBytes(body: BackendBody, limit: number): Promise<Buffer> {
  if (body.kind === 'bytes') {
    if (body.bytes.length > limit) throw tooLarge(limit)
    return body.bytes
  }
  if (body.kind !== 'stream') return Buffer.alloc(0)
  try {
    return await readBody(body.stream, limit)
  } catch (thrown) {
    body.stream.destroy()
    const { code, facts } = toFault(thrown)
    // Whoever reads a body takes its sender for a client; here it is the upstream that left (C8.4).
    if (code === 'client_gone') throw upstreamFault(facts.cause)
    if (code !== 'body_too_large') throw broken(thrown)
    throw tooLarge(limit)
  }
}

const tooLarge = (limit: number): Fault =>
  new Fault('answer_too_large', { detail: `an answer to be converted is larger than ${limit} bytes` })

function parse(bytes: Buffer, { format, payload }: Speech, limit: number): JsonValue {
  if (bytes.length === 0) return null
  try {
    if (format !== 'xml') return parseJson(bytes, LIMITS)
    return readXml(bytes, payload === 'envelope' ? ENVELOPE_SCHEMA : undefined, {
      ...LIMITS,
      bytes: limit,
    })
  } catch (thrown) {
    throw broken(thrown)
  }
}

/** Faults of our parsers speak of a request; here it is the upstream that was wrong. */
function broken(thrown: unknown): Fault {
  const { code, facts } = toFault(thrown)
  return new Fault('upstream_broken', {
    cause: thrown,
    detail: `the upstream's answer cannot be converted: ${code} ${facts.say ?? ''}`,
  })
}
