import { Buffer } from 'node:buffer'
import type { Readable } from 'node:stream'
import type { BackendAnswer, UpstreamResponse } from '../../base/contracts/calls/backend.ts'
import type { Json, UpstreamAnswer, UpstreamBody } from '../../base/contracts/calls/module.ts'
import {
  AUDIT_HEADER,
  connectionNames,
  foldName,
  HOP_BY_HOP,
} from '../../base/http/head/end-to-end-headers.ts'
import { parseJsonInSlices } from '../../base/http/body/json.ts'
import { BytesInPieces, readableOf } from '../../base/http/body/pieces.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { type ResponseHeaders, upstreamFault } from '../../gateway/backends/forward/response/response.ts'
import { accountedStream } from './stream.ts'

/** How much of answers may be read for one call, and how much was, in bytes. */
export interface ReadBudget {
  readonly limit: number
  used: number
}

/** Makes the answer that the client would get of a response without a module. */
type PassOn = (response: UpstreamResponse) => BackendAnswer | Promise<BackendAnswer>

/** As of an answer that the gateway converts; but numbers are JavaScript's. */
const LIMITS = { depth: 200, nodes: 1_000_000, converts: true }

/** Stands for the body of an upstream's answer. Returned by a module, it passes byte for byte; nobody can make one. */
export class ReceivedBody implements UpstreamBody {
  readonly kind = 'upstream'
  readonly contentType: string | undefined
  readonly length: number | undefined
  readonly #response: UpstreamResponse
  readonly #passOn: PassOn
  readonly #budget: ReadBudget
  #use: 'whole' | 'streamed' | 'passed' | undefined
  #whole: Promise<Buffer> | undefined

  constructor(response: UpstreamResponse, passOn: PassOn, budget: ReadBudget) {
    const { 'content-type': type, 'content-length': length } = response.headers
    this.contentType = type
    this.length = Buffer.isBuffer(response.body)
      ? response.body.length
      : length === undefined
        ? length
        : Number(length)
    this.#response = response
    this.#passOn = passOn
    this.#budget = budget
  }

  get isPassed(): boolean {
    return this.#use === 'passed'
  }

  /** All of it; once it was read, it is kept. */
  whole(): Promise<Buffer> {
    if (this.#use === 'streamed') return Promise.reject(alreadyStreamed())
    this.#use ??= 'whole'
    return (this.#whole ??= readWhole(this.#response, this.#budget))
  }

  stream(): Readable {
    if (this.#use !== undefined) throw alreadyStreamed()
    this.#use = 'streamed'
    const { body } = this.#response
    return accountedStream(Buffer.isBuffer(body) ? new BytesInPieces(body) : body)
  }

  /** With what a module says of status and headers (by lower-case name), or as they came. */
  async pass(status?: number, headers?: ResponseHeaders): Promise<BackendAnswer> {
    if (this.#use === 'streamed' || this.#use === 'passed') throw alreadyStreamed()
    const { statusCode, headers: came } = this.#response
    const body = this.#whole === undefined ? this.#response.body : await this.#whole
    this.#use = 'passed'
    return this.#passOn({
      statusCode: status ?? statusCode,
      headers: headers === undefined ? came : { ...incoming(headers), ...ofBody(came) },
      body,
    })
  }
}

const alreadyStreamed = (): Fault =>
  new Fault('upstream_broken', { detail: 'the module used the body of an upstream’s answer twice' })

type Incoming = UpstreamResponse['headers']

const incoming = (headers: ResponseHeaders): Incoming =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      name === 'set-cookie' ? [value].flat() : [value].flat().join(', '),
    ]),
  )

/** Headers about the bytes, which are the upstream's. */
const OF_BODY: ReadonlySet<string> = new Set(['content-type', 'content-length', 'content-encoding'])

const ofBody = (came: Incoming): Incoming =>
  Object.fromEntries(Object.entries(came).filter(([name]) => OF_BODY.has(name)))

async function readWhole({ body }: UpstreamResponse, budget: ReadBudget): Promise<Buffer> {
  const pieces: Buffer[] = []
  try {
    for await (const piece of Buffer.isBuffer(body) ? [body] : readableOf(body)) {
      budget.used += (piece as Buffer).length
      if (budget.used > budget.limit) throw tooLarge(budget)
      pieces.push(piece as Buffer)
    }
  } catch (thrown) {
    throw upstreamFault(thrown)
  }
  return pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces)
}

const tooLarge = ({ limit }: ReadBudget): Fault =>
  new Fault('answer_too_large', { detail: `a module read more than ${limit} bytes of answers for one call` })

export class ReceivedAnswer implements UpstreamAnswer {
  readonly status: number
  readonly headers: ResponseHeaders
  readonly body: ReceivedBody
  readonly #coding: string

  constructor(response: UpstreamResponse, passOn: PassOn, budget: ReadBudget) {
    this.status = response.statusCode
    this.headers = endToEnd(response.headers)
    this.body = new ReceivedBody(response, passOn, budget)
    this.#coding = response.headers['content-encoding']?.toLowerCase() ?? 'identity'
  }

  async json(): Promise<Json> {
    const bytes = await this.#decoded()
    if (bytes.length === 0) return null
    try {
      return (await parseJsonInSlices(bytes, LIMITS)) as Json
    } catch (cause) {
      throw new Fault('upstream_broken', { detail: 'the upstream answered what is no JSON', cause })
    }
  }

  async text(): Promise<string> {
    return (await this.#decoded()).toString('utf8')
  }

  /** A copy: the bytes may pass on as well. */
  async bytes(): Promise<Uint8Array> {
    return new Uint8Array(await this.body.whole())
  }

  stream(): Readable {
    return this.body.stream()
  }

  /** No coding was asked for. */
  #decoded(): Promise<Buffer> {
    if (this.#coding === 'identity') return this.body.whole()
    throw new Fault('upstream_broken', { detail: 'the upstream answered with a Content-Encoding' })
  }
}

/** Whether a header belongs to the connection, or to the audit trail. */
const isTheServices = (name: string): boolean => HOP_BY_HOP.has(name) || name === AUDIT_HEADER

function endToEnd(headers: Incoming): ResponseHeaders {
  const named = connectionNames(headers.connection)
  const kept = Object.create(null) as ResponseHeaders
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !isTheServices(name) && !named.has(foldName(name))) kept[name] = value
  return kept
}
