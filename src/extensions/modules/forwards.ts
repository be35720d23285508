import { AsyncLocalStorage } from 'node:async_hooks'
import { onAccountOf } from '../../base/config/modules/blame.ts'
import type { Call, UpstreamResponse } from '../../base/contracts/calls/backend.ts'
import type { OutgoingRequest } from '../../base/contracts/calls/module.ts'
import { isSafe } from '../../base/http/head/head.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import type { HttpBackend } from '../../gateway/backends/forward/http.ts'
import type { AnsweringModule } from './answering.ts'
import type { Question } from './question.ts'
import { type ReadBudget, ReceivedAnswer } from './received-answer.ts'
import {
  type ChangeRules,
  checkChanges,
  closeStreamOf,
  type PreparedRequest,
  prepareRequest,
} from './request.ts'
import { broken } from './stream.ts'

/** Requests that a module may send for one call, and how many of them at once. */
const MOST_FORWARDS = 20
const MOST_AT_ONCE = 8

/** The context of connections: they serve other calls later, and must not be bound to the one that opened them. */
const outside = AsyncLocalStorage.snapshot()

interface ForwardsParts {
  readonly sender: HttpBackend
  readonly question: Question
  readonly rules: ChangeRules
}

/** The requests that a module sends for one call (C8.9): bounded, and ended with the call. */
export class Forwards {
  /** The request that is sent if the module changes nothing. */
  readonly #base: Call
  readonly #parts: ForwardsParts
  readonly #budget: ReadBudget
  readonly #open = new Set<OpenForward>()
  readonly #waiting: (() => void)[] = []
  #sent = 0
  #atOnce = 0
  #bodySent = false
  #ended = false

  constructor(call: Call, sees: AnsweringModule['sees'], parts: ForwardsParts) {
    this.#base = baseOf(call, sees)
    this.#parts = parts
    this.#budget = { limit: parts.rules.limit, used: 0 }
    parts.question.signal.addEventListener('abort', () => this.#end(() => true), { once: true })
  }

  /** Whether the client's body is sent as JSON. */
  get sendsJson(): boolean {
    const { sender } = this.#parts
    return (sender.bodyUse?.recipe?.format ?? sender.format) === 'json'
  }

  /** The request that is sent if the module changes nothing, as it sees it. */
  unchanged(): OutgoingRequest {
    return this.#outgoing(prepareRequest(this.#base, this.#parts.sender))
  }

  #outgoing({ call, path, query }: PreparedRequest): OutgoingRequest {
    const { sender, rules } = this.#parts
    const { method, body } = call
    const [target] = sender.targets.all
    return {
      method,
      path,
      query,
      target: `${target?.address.basePath ?? ''}${path}${query}`,
      host: sender.host ?? (sender.targets.all.length === 1 ? target?.address.host : undefined),
      body: body.kind === 'bytes' ? body.bytes : undefined,
      contentType: body.kind === 'bytes' || body.kind === 'stream' ? body.contentType : undefined,
      with: async (changes) =>
        this.#outgoing(prepareRequest(this.#base, sender, await checkChanges(changes, rules))),
    }
  }

  /**
   * Rejects with the upstream's fault, or `upstream_broken` for changes that cannot be sent or a request too many; on the
   * module's account: what it does not handle is its own, and never the end of the process.
   */
  forward(changes: unknown): Promise<ReceivedAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<ReceivedAnswer>()
    const fail = (thrown: unknown): void => {
      // It was cancelled with its call: nobody waits for it any more.
      if (this.#ended && toFault(thrown).code === 'client_gone') promise.catch(() => undefined)
      onAccountOf(this.#parts.question, () => {
        closeStreamOf(changes)
        reject(thrown)
      })
    }
    outside(() => this.#send(changes)).then(resolve, fail)
    return promise
  }

  async #send(given: unknown): Promise<ReceivedAnswer> {
    if (this.#ended) throw isOver()
    if (++this.#sent > MOST_FORWARDS) throw broken(`sent more than ${MOST_FORWARDS} requests for one call`)
    const { sender, rules } = this.#parts
    const prepared = prepareRequest(this.#base, sender, await checkChanges(given, rules))
    await this.#intend(prepared.call)
    while (this.#atOnce >= MOST_AT_ONCE) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#atOnce += 1
    try {
      return await this.#sendNow(prepared)
    } finally {
      this.#atOnce -= 1
      this.#waiting.shift()?.()
    }
  }

  /** A request that may change something is sent only when its intent is in the audit trail (C12.1.3). */
  #intend({ method }: Call): Promise<void> | undefined {
    if (isSafe(method)) return undefined
    if (this.#ended) throw isOver()
    return this.#base.record?.beforeChange(method)
  }

  async #sendNow(prepared: PreparedRequest): Promise<ReceivedAnswer> {
    if (this.#ended) throw isOver()
    this.#sendBody(prepared.call)
    const { sender } = this.#parts
    const open: OpenForward = { answer: undefined, listeners: [] }
    this.#open.add(open)
    try {
      const call: Call = { ...prepared.call, onCancel: (listener) => void open.listeners.push(listener) }
      const { response, source } = await sender.send(call, prepared)
      const passOn = (as: UpstreamResponse) => sender.answerOf(call, as, source)
      return (open.answer = new ReceivedAnswer(response, passOn, this.#budget))
    } catch (thrown) {
      this.#open.delete(open)
      throw thrown
    }
  }

  /** The fault of a call: that the last request changed nothing says nothing of those before it. */
  afterOthers(thrown: unknown): unknown {
    if (this.#sent < 2 || !(thrown instanceof Fault)) return thrown
    return new Fault(thrown.code, { ...thrown.facts, unchanged: false })
  }

  #sendBody({ body }: Call): void {
    if (body.kind !== 'stream') return
    const isClients = this.#base.body.kind === 'stream' && this.#base.body.stream === body.stream
    if (isClients && this.#bodySent) throw broken('sent the client’s body, which streams, a second time')
    this.#bodySent ||= isClients
  }

  /**
   * The module takes the client's body itself, which cannot be sent as it came from now on.
   * @throws Fault upstream_broken if it was sent, or a part of it: the rest would look like the whole, or never come
   */
  takeBody(): void {
    if (this.#bodySent) throw broken('took the client’s body, which was sent already')
    this.#bodySent = true
  }

  /** Nothing more is sent. The module's answer is a stream, which may be made of answers that are still read. */
  close(): void {
    this.#ended = true
  }

  /** The call is answered, and its stream is over. Answers that were not passed on are let go, and nothing more is sent. */
  end(): void {
    this.#end((open) => open.answer?.body.isPassed !== true)
  }

  #end(which: (open: OpenForward) => boolean): void {
    this.#ended = true
    outside(() => {
      for (const open of this.#open)
        if (which(open)) {
          this.#open.delete(open)
          for (const cancel of open.listeners) cancel()
        }
    })
  }

  /** Whether an upstream's answer had this entity tag, which is of other bytes than a module makes. */
  cameWith(etag: unknown): boolean {
    return [...this.#open].some(({ answer }) => answer?.headers['etag'] === etag)
  }
}

const isOver = (): Fault => broken('sent a request for a call that was over')

/** A request that was sent, until its answer is let go. */
interface OpenForward {
  answer: ReceivedAnswer | undefined
  /** Called when the request is cancelled. */
  readonly listeners: (() => void)[]
}

/** Headers about the upstream's own bytes, which a module that sees the answer need not pass on. */
const OF_BYTES: ReadonlySet<string> = new Set(['accept-encoding', 'range', 'if-range'])
/** Headers about one representation, where an answer may be made of several. */
const OF_ONE: ReadonlySet<string> = new Set([...OF_BYTES, 'if-none-match', 'if-modified-since'])

/** The call as it is sent upstream if a module changes nothing: a module that sees the answer gets it whole. */
function baseOf(call: Call, sees: AnsweringModule['sees']): Call {
  if (sees === 'no answer') return call
  const method = call.method === 'HEAD' ? 'GET' : call.method
  const left = sees === 'all answers' && method === 'GET' ? OF_ONE : OF_BYTES
  const headers = Object.fromEntries(Object.entries(call.headers).filter(([name]) => !left.has(name)))
  return { ...call, headers, method }
}
