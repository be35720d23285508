import { AsyncLocalStorage } from 'node:async_hooks'
import type { Call, UpstreamResponse } from '../../base/contracts/calls/backend.ts'
import { isSafe } from '../../base/http/head/head.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { ForwardingBackend, ResponseSource } from '../../gateway/backends/forward/forwarding.ts'
import type { HttpBackend } from '../../gateway/backends/forward/http.ts'
import type { Question } from './module.ts'
import { broken } from './stream.ts'
import { type ReadBudget, ReceivedAnswer } from './received-answer.ts'
import { type ChangeRules, checkChanges, type PreparedRequest, prepareRequest } from './request.ts'

/** Requests that a module may send for one call, and how many of them at once. */
const MOST_FORWARDS = 20
const MOST_AT_ONCE = 8

/** The context of connections: they serve other calls later, and must not be bound to the one that opened them. */
const outside = AsyncLocalStorage.snapshot()

/** The requests that a module sends for one call (C8.9): bounded, and ended with the call. */
export class Forwards {
  readonly #call: Call
  readonly #sender: HttpBackend
  readonly #rules: ChangeRules
  readonly #budget: ReadBudget
  readonly #open = new Set<OpenForward>()
  readonly #waiting: (() => void)[] = []
  #sent = 0
  #atOnce = 0
  #bodySent = false
  #ended = false

  constructor(call: Call, sender: HttpBackend, { signal }: Pick<Question, 'signal'>, rules: ChangeRules) {
    this.#call = call
    this.#sender = sender
    this.#rules = rules
    this.#budget = { limit: rules.limit, used: 0 }
    signal.addEventListener('abort', () => this.#end(() => true), { once: true })
  }

  /** Rejects with the upstream's fault, or `upstream_broken` for changes that cannot be sent or a request too many. */
  send(given: unknown): Promise<ReceivedAnswer> {
    return outside(async () => {
      if (++this.#sent > MOST_FORWARDS) throw broken(`sent more than ${MOST_FORWARDS} requests for one call`)
      const changes = await checkChanges(given, this.#rules)
      const prepared = prepareRequest(this.#call, this.#sender, changes)
      await this.#intend(prepared)
      await this.#turn()
      try {
        return await this.#sendNow(prepared)
      } finally {
        this.#atOnce -= 1
        this.#waiting.shift()?.()
      }
    })
  }

  /** What may change something is sent only when its intent is in the audit trail (C12.1.3). */
  #intend({ method }: PreparedRequest): Promise<void> | undefined {
    if (isSafe(method)) return undefined
    if (this.#ended) throw isOver()
    return this.#call.record?.beforeChange(method)
  }

  async #turn(): Promise<void> {
    while (this.#atOnce >= MOST_AT_ONCE) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#atOnce += 1
  }

  async #sendNow(prepared: PreparedRequest): Promise<ReceivedAnswer> {
    if (this.#ended) throw isOver()
    this.#takeBody(prepared)
    const open = new OpenForward()
    this.#open.add(open)
    try {
      const call: Call = { ...prepared.call, onCancel: (listener) => open.onCancel(listener) }
      const { response, source } = await this.#sender.send(call, sentAs(this.#sender, prepared))
      const passOn = (as: UpstreamResponse) => this.#sender.answerOf(call, as, source)
      open.answer = new ReceivedAnswer(response, passOn, this.#budget)
      return open.answer
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

  get isOver(): boolean {
    return this.#ended
  }

  #takeBody({ call: { body } }: PreparedRequest): void {
    if (body.kind !== 'stream') return
    const isClients = this.#call.body.kind === 'stream' && this.#call.body.stream === body.stream
    if (isClients && this.#bodySent) throw broken('sent the client’s body, which streams, a second time')
    this.#bodySent ||= isClients
  }

  /** The client's body was taken by the module itself, and cannot be sent as it came. */
  bodyTaken(): void {
    this.#bodySent = true
  }

  /** The call is answered. What was not passed on is let go, and nothing more is sent. */
  end(): void {
    this.#end((open) => open.answer?.body.isPassed !== true)
  }

  #end(which: (open: OpenForward) => boolean): void {
    this.#ended = true
    outside(() => {
      for (const open of this.#open)
        if (which(open)) {
          this.#open.delete(open)
          open.cancel()
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
class OpenForward {
  answer: ReceivedAnswer | undefined
  readonly #listeners: (() => void)[] = []

  onCancel(listener: () => void): void {
    this.#listeners.push(listener)
  }

  cancel(): void {
    for (const listener of this.#listeners) listener()
  }
}

interface Received {
  readonly response: UpstreamResponse
  readonly source: ResponseSource
}

/** The response itself, unread. */
const sentAs = (
  sender: HttpBackend,
  { method, path, query, retries, redirects }: PreparedRequest,
): ForwardingBackend<Received> => ({
  host: sender.host,
  conceals: sender.conceals,
  targets: sender.targets,
  timeouts: sender.timeouts,
  redirects,
  retries,
  methodOf: () => method,
  pathOf: () => path + query,
  answerOf: (_call, response, source) => ({ response, source }),
})
