import type { Readable } from 'node:stream'
import type { BackendAnswer, BackendError } from '../../contracts/backend.ts'
import { errorsOf } from '../../http/envelope.ts'
import { type JsonValue, parseJson } from '../../http/json.ts'
import { decodeXml } from '../../http/plain-xml/decode.ts'
import { doctypeOf } from '../../http/plain-xml/prolog.ts'
import { BODY_LIMITS, type PlainXmlRules } from '../../http/plain-xml/rules.ts'
import { readPlainXml } from '../../http/plain-xml/to-json.ts'
import { readBody } from '../../http/read-body.ts'
import { ENVELOPE_SCHEMA, readXml } from '../../http/xml-read.ts'
import { after, type Clock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/faults.ts'
import type { UpstreamAddress } from '../../upstream/socket.ts'
import { type TellsAddress, withoutAddresses } from './error-text.ts'
import { type OwnErrors, problemErrors, readOwnErrors } from './own-errors.ts'
import type { RedirectRules } from './redirects.ts'
import { isOfFormat, statusFault, type StatusVerdict, verdictOfStatus } from './response.ts'
import { compileTellsAddress } from './upstream-names.ts'

type Format = 'json' | 'xml'

/** What a refusal's answer depends on, besides its status (C8.4, C8.8). */
export interface RefusalRules {
  readonly format: Format
  readonly targets: readonly UpstreamAddress[]
  readonly host: string | undefined
  /** Where answers may come from as well. */
  readonly redirects: RedirectRules | undefined
  /** Where the upstream's own 4xx tell their errors; undefined: in envelopes only. */
  readonly errors: OwnErrors | 'problem' | undefined
  /** Statuses that stand for the upstream's own 4xx; undefined: none. */
  readonly errorStatus: ReadonlyMap<number, number> | undefined
}

/** An upstream's answer that is no success. */
export interface UpstreamRefusal {
  readonly statusCode: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: Buffer | Readable
}

/** Bytes of a refusal that are read. */
const LONGEST = 64 * 1024
/** Milliseconds for which the rest of a refusal that comes slowly is waited for. */
const PATIENCE = 5000

/** RFC 9457 appendix B. */
const PROBLEM: Readonly<Record<Format, OwnErrors>> = {
  json: problemErrors([]),
  xml: problemErrors(['problem']),
}

type Parsers = Readonly<Record<Format, (bytes: Buffer, contentType: string | undefined) => JsonValue>>

const ENVELOPE_PARSERS: Parsers = {
  json: (bytes) => parseJson(bytes),
  xml: (bytes) => readXml(bytes, ENVELOPE_SCHEMA),
}

/** XML of any kind, by the names of its elements without prefixes. */
const ANY_XML: PlainXmlRules = {
  root: undefined,
  attributes: {},
  stripNamespaces: true,
  paths: { type: undefined, isArray: false, children: new Map() },
}

const OWN_PARSERS: Parsers = {
  json: (bytes) => parseJson(bytes),
  xml: (bytes, contentType) => {
    const document = decodeXml(bytes, contentType)
    if (doctypeOf(document.text) === 'subset') throw new Fault('body_malformed')
    return readPlainXml(document, BODY_LIMITS, ANY_XML)
  },
}

/** Makes the answers to an upstream's refusals. */
export class Refusals {
  readonly #rules: RefusalRules
  readonly #clock: Clock
  readonly #errors: OwnErrors | undefined
  readonly #tellsAddress: TellsAddress

  constructor(rules: RefusalRules, clock: Clock) {
    this.#rules = rules
    this.#clock = clock
    this.#errors = rules.errors === 'problem' ? PROBLEM[rules.format] : rules.errors
    this.#tellsAddress = compileTellsAddress(rules.targets, rules.host, rules.redirects?.origins)
  }

  /**
   * What the client gets of a refusal (C8.4, C8.8): the upstream's own errors where its verdict lets them pass and they
   * can be read. A promise only where the rest of its body is waited for.
   * @param stopped why a redirect was not followed, for the log
   * @throws Fault that of the verdict, where there are none
   */
  answer(
    given: StatusVerdict,
    refusal: UpstreamRefusal,
    stopped?: string,
  ): BackendAnswer | Promise<BackendAnswer> {
    const { statusCode, headers, body } = refusal
    const told = this.#rules.errorStatus?.get(statusCode)
    const verdict = told === undefined ? given : verdictOfStatus(told)
    const fault = statusFault(verdict, { given: statusCode, told, stopped }, headers, this.#clock.now())
    const isRead = verdict.kind === 'errors' && this.#isReadable(refusal)
    const contentType = contentTypeOf(headers)
    if (Buffer.isBuffer(body)) return this.#tell(isRead ? body : undefined, contentType, fault)
    if (!isRead) {
      body.destroy()
      throw fault
    }
    return readSlow(body).then((bytes) => this.#tell(bytes, contentType, fault))
  }

  #isReadable({ headers, body }: UpstreamRefusal): boolean {
    // Envelopes are taken from whole bodies of any type.
    if (this.#errors === undefined) return Buffer.isBuffer(body)
    const { 'content-encoding': coding = 'identity', 'content-length': length } = headers
    return (
      String(coding).toLowerCase() === 'identity' &&
      isOfFormat(contentTypeOf(headers), this.#rules.format) &&
      !(Number(length) > LONGEST)
    )
  }

  #tell(bytes: Buffer | undefined, contentType: string | undefined, fault: Fault): BackendAnswer {
    const isEmpty = bytes === undefined || bytes.length === 0
    const errors = isEmpty ? undefined : this.#errorsIn(bytes, contentType, fault)
    if (errors === undefined) throw fault
    return {
      status: fault.status,
      headers: errorHeaders(fault),
      body: { kind: 'errors', errors: withoutAddresses(errors, this.#tellsAddress, fault.row.text) },
    }
  }

  #errorsIn(
    bytes: Buffer,
    contentType: string | undefined,
    { row }: Fault,
  ): readonly BackendError[] | undefined {
    const { format } = this.#rules
    try {
      return this.#errors === undefined
        ? errorsOf(ENVELOPE_PARSERS[format](bytes, contentType))
        : readOwnErrors(OWN_PARSERS[format](bytes, contentType), this.#errors, row)
    } catch {
      return undefined
    }
  }
}

const contentTypeOf = ({ 'content-type': type }: UpstreamRefusal['headers']): string | undefined =>
  type === undefined ? undefined : String(type)

/** The whole of a body that comes slowly; undefined if it is too long, breaks off, or does not end in time. */
async function readSlow(body: Readable): Promise<Buffer | undefined> {
  const cancel = after(PATIENCE, () => body.destroy())
  try {
    return await readBody(body, LONGEST)
  } catch {
    return undefined
  } finally {
    cancel()
    body.destroy()
  }
}

/** What a client needs beside the upstream's own errors. */
const errorHeaders = ({ facts }: Fault): Record<string, string> => ({
  ...(facts.retryAfter !== undefined && { 'retry-after': String(facts.retryAfter) }),
  ...(facts.allow && { allow: facts.allow.join(', ') }),
  ...(facts.contentRange !== undefined && { 'content-range': facts.contentRange }),
})
