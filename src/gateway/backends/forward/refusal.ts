import { Buffer } from 'node:buffer'
import type { BackendAnswer, BackendError, FoundError } from '../../../base/contracts/calls/backend.ts'
import { errorsOf } from '../../../base/http/envelope.ts'
import { type JsonValue, parseJson } from '../../../base/http/body/json.ts'
import { type PieceSource, readableOf } from '../../../base/http/body/pieces.ts'
import { printable, readBody } from '../../../base/http/body/read-body.ts'
import { ENVELOPE_SCHEMA, readXml } from '../../../base/http/xml/read.ts'
import { after, type Clock } from '../../../base/kernel/clock.ts'
import { Fault } from '../../../base/kernel/faults.ts'
import { formatOf } from './response/answer-types.ts'
import {
  cleanCode,
  errorsIn,
  errorsWherePresent,
  matchingCode,
  type OwnErrors,
  parseAny,
  PROBLEM,
  searchedPlaces,
  UNUSABLE_CODE,
} from './response/own-errors.ts'
import { statusFault, type StatusVerdict, verdictOfStatus } from './response/response.ts'
import type { HttpBackendRules } from './rules.ts'
import { compileHoldsAddress, type HoldsAddress } from './target/upstream-addresses.ts'

type Format = 'json' | 'xml'

/**
 * Decide how a refusal is answered, besides its status (C8.4, C8.8). `redirects` is among them because their origins are
 * addresses of the upstream too, which no client is told.
 */
type RefusalRules = Pick<
  HttpBackendRules,
  'format' | 'types' | 'targets' | 'host' | 'conceals' | 'redirects' | 'errors' | 'errorStatus'
>

export interface UpstreamRefusal {
  readonly statusCode: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: Buffer | PieceSource
}

/** The most bytes of a refusal that are read. */
const LONGEST = 64 * 1024
/** How long the rest of a refusal that comes slowly is waited for, in milliseconds. */
const PATIENCE = 5000

const ENVELOPE_PARSERS: Readonly<Record<Format, (bytes: Buffer) => JsonValue>> = {
  json: (bytes) => parseJson(bytes),
  xml: (bytes) => readXml(bytes, ENVELOPE_SCHEMA),
}

/** The one 5xx that may tell of an error as a 200 does (C8.8). */
const SERVER_ERROR = 500

export class Refusals {
  readonly #rules: RefusalRules
  readonly #clock: Clock
  readonly #holdsAddress: HoldsAddress

  constructor(rules: RefusalRules, clock: Clock) {
    this.#rules = rules
    this.#clock = clock
    this.#holdsAddress = compileHoldsAddress(rules.targets, rules.host, rules.redirects?.origins)
  }

  /**
   * The client's answer to a refusal (C8.4, C8.8): the upstream's own errors where its verdict lets them pass and they
   * can be read. A promise only where the rest of its body is waited for.
   * @param stopped why a redirect was not followed, for the log
   * @throws Fault the verdict's, where there are no errors of the upstream
   */
  answer(
    given: StatusVerdict,
    refusal: UpstreamRefusal,
    stopped?: string,
  ): BackendAnswer | Promise<BackendAnswer> {
    const { statusCode, headers, body } = refusal
    const replaced = this.#rules.errorStatus?.get(statusCode)
    const verdict = replaced === undefined ? given : verdictOfStatus(replaced)
    const shown = this.#rules.conceals === true ? { ...headers, location: undefined } : headers
    const fault = statusFault(verdict, { given: statusCode, replaced, stopped }, shown, this.#clock.now())
    const isRead = (verdict.kind === 'errors' || this.#mayTell(statusCode)) && this.#isReadable(refusal)
    if (Buffer.isBuffer(body)) return this.#answerWith(isRead ? body : undefined, refusal, fault)
    if (!isRead) {
      body.cancel()
      throw fault
    }
    return readSlow(body).then((bytes) => this.#answerWith(bytes, refusal, fault))
  }

  /** The client's answer to a 200 in which errors were found (C8.8). @throws Fault where it is told none of them */
  answerFound(found: readonly FoundError[], { statusCode, headers }: UpstreamHead): BackendAnswer {
    const fault = new Fault('upstream_broken', {
      detail: `the upstream answered ${statusCode} with an error${codesOf(found)}`,
    })
    return this.#answerOwn(found, { statusCode, headers }, fault)
  }

  #mayTell(status: number): boolean {
    return status === SERVER_ERROR && searchedPlaces(this.#rules.errors) !== undefined
  }

  #isReadable({ headers, body }: UpstreamRefusal): boolean {
    // Envelopes are taken from whole bodies of any type.
    if (this.#rules.errors === undefined) return Buffer.isBuffer(body)
    const { 'content-encoding': coding = 'identity', 'content-length': length } = headers
    return (
      String(coding).toLowerCase() === 'identity' &&
      formatOf(contentTypeOf(headers), this.#rules) !== undefined &&
      !(Number(length) > LONGEST)
    )
  }

  #answerWith(bytes: Buffer | undefined, refusal: UpstreamHead, fault: Fault): BackendAnswer {
    if (bytes === undefined || bytes.length === 0) throw fault
    if (this.#rules.errors === undefined) return this.#told(this.#inEnvelope(bytes, fault), fault)
    const found = this.#errorsIn(bytes, refusal)
    if (found === undefined) throw fault
    return this.#answerOwn(found, refusal, fault)
  }

  /** @throws Fault where the client is not told the errors */
  #answerOwn(
    found: readonly FoundError[],
    { statusCode, headers }: UpstreamHead,
    given: Fault,
  ): BackendAnswer {
    const { statuses, codeOf } = this.#ownErrors(headers)
    const known = found.map(({ code }) => (code === undefined ? undefined : matchingCode(code, statuses)))
    const status = statusOf(known, statuses)
    const isRefusal = statusCode >= 400 && statusCode < SERVER_ERROR
    if (found.length === 0 || (!isRefusal && known.includes(undefined))) throw given
    const fault =
      status === undefined
        ? given
        : statusFault(
            verdictOfStatus(status),
            { given: statusCode, replaced: status },
            headers,
            this.#clock.now(),
          )
    if (fault.status >= SERVER_ERROR) throw fault
    const errors = found.flatMap(({ code, message }, at): readonly BackendError[] => {
      const own = code === undefined || codeOf === undefined ? code : codeOf(code)
      if (own === undefined && message === undefined) return []
      const named = known[at] ?? own
      return [
        {
          code: named === undefined ? fault.row.wire : cleanCode(named),
          message: message ?? fault.row.text,
        },
      ]
    })
    return this.#told(errors, fault, isRefusal ? undefined : statusCode)
  }

  /** @param failed the upstream's status, if it does not say that the error is the client's */
  #told(errors: readonly BackendError[], fault: Fault, failed?: number): BackendAnswer {
    if (errors.length === 0) throw fault
    return {
      status: fault.status,
      headers: errorHeaders(fault),
      body: {
        kind: 'errors',
        errors: withoutAddresses(errors, this.#holdsAddress, fault.row.text),
        upstreamStatus: failed,
      },
    }
  }

  #inEnvelope(bytes: Buffer, fault: Fault): readonly BackendError[] {
    try {
      return errorsOf(ENVELOPE_PARSERS[this.#rules.format](bytes)) ?? []
    } catch {
      throw fault
    }
  }

  #errorsIn(bytes: Buffer, { statusCode, headers }: UpstreamHead): readonly FoundError[] | undefined {
    const format = this.#formatOf(headers)
    const places = this.#ownErrors(headers)
    try {
      const document = parseAny(bytes, format, contentTypeOf(headers), 'refusal')
      return statusCode === SERVER_ERROR
        ? errorsWherePresent(document, places, format)
        : errorsIn(document, places, format)
    } catch {
      return undefined
    }
  }

  #formatOf(headers: UpstreamRefusal['headers']): Format {
    return formatOf(contentTypeOf(headers), this.#rules) ?? this.#rules.format
  }

  #ownErrors(headers: UpstreamRefusal['headers']): OwnErrors {
    const { errors } = this.#rules
    return errors === undefined || errors === 'problem' ? PROBLEM[this.#formatOf(headers)] : errors
  }
}

type UpstreamHead = Pick<UpstreamRefusal, 'statusCode' | 'headers'>

/** The status of the first code, unless one of the codes stands for a status that tells nothing. */
function statusOf(
  codes: readonly (string | undefined)[],
  statuses: ReadonlyMap<string, number>,
): number | undefined {
  const all = codes.flatMap((code) => (code === undefined ? [] : [statuses.get(code) ?? SERVER_ERROR]))
  return all.find((status) => status >= SERVER_ERROR) ?? all[0]
}

/** The code of the first error, for the log. */
function codesOf(found: readonly FoundError[]): string {
  const [first] = found.flatMap(({ code }) => (code === undefined ? [] : [printable(code)]))
  return first === undefined ? '' : ` of the code ${first}`
}

const contentTypeOf = ({ 'content-type': type }: UpstreamRefusal['headers']): string | undefined =>
  type === undefined ? undefined : String(type)

/** The whole of a body that comes slowly; undefined if it is too long, breaks off, or does not end in time. */
async function readSlow(body: PieceSource): Promise<Buffer | undefined> {
  const stream = readableOf(body)
  const cancel = after(PATIENCE, () => stream.destroy())
  try {
    return await readBody(stream, LONGEST)
  } catch {
    return undefined
  } finally {
    cancel()
    stream.destroy()
  }
}

const errorHeaders = ({ facts }: Fault): Record<string, string> => ({
  ...(facts.retryAfter !== undefined && { 'retry-after': String(facts.retryAfter) }),
  ...(facts.allow && { allow: facts.allow.join(', ') }),
  ...(facts.contentRange !== undefined && { 'content-range': facts.contentRange }),
})

/** Replaces each text that holds an address of the upstream by the words of the table (C8.8). */
const withoutAddresses = (
  errors: readonly BackendError[],
  holdsAddress: HoldsAddress,
  text: string,
): readonly BackendError[] =>
  errors.map(({ code, message }) => ({
    code: holdsAddress(code) ? UNUSABLE_CODE : code,
    message: holdsAddress(message) ? text : message,
  }))
