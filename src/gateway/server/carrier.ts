import { Buffer } from 'node:buffer'
import replyFrom, { type FastifyReplyFromHooks, type FastifyReplyFromOptions } from '@fastify/reply-from'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type {
  Carrier,
  Forwarding,
  UpstreamCallback,
  UpstreamResponse,
} from '../../base/contracts/calls/backend.ts'
import { Fault } from '../../base/kernel/faults.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set while reply-from works for this request. */
    carrier: ReplyCarrier | null
  }
}

/**
 * Carries a forwarding by `reply.from` of @fastify/reply-from, on the reply of the request that it belongs to. The bytes
 * that go upstream are made and sent by the forwarding. Traps of reply-from, each pinned by a test:
 *
 * - its `new URL` rewrites bytes (`'`, `{}`), folds `\` and refuses `...`: its source is a constant, and the checked path
 *   stays with the forwarding, as do headers and body, which it would copy and frame anew;
 * - left alone it retries an upstream's 503 ten times: `retryDelay` decides every time;
 * - it copies the upstream's headers to the reply, hop-by-hop ones included: `rewriteHeaders` gives it none;
 * - its own client does not verify TLS: the sender (`undici`) is ours;
 * - it answers errors with the address in the body: `onError` takes the cause;
 * - after `reply.hijack()` it makes one attempt and calls no hook: nobody hijacks before the answer is written;
 * - when the client is gone it destroys the answer's body and calls no hook: such an answer is a failure before it sees
 *   it, and anything else that it does not report is a failure too;
 * - for a status that cannot be sent it calls `onError` and then `onResponse`: only the first one counts.
 */
export class ReplyCarrier implements Carrier {
  readonly #reply: FastifyReply
  /** The forwarding, until it was given an answer or a failure. */
  #forwarding: Forwarding | undefined
  /** True if `retryDelay` has asked for another attempt. */
  #isRetrying = false

  constructor(reply: FastifyReply) {
    this.#reply = reply
  }

  /** The answer is written without Fastify from now on. Not before a forwarding has ended: see above. */
  takeReply(): void {
    this.#reply.hijack()
  }

  carry(forwarding: Forwarding): void {
    this.#forwarding = forwarding
    this.#reply.request.carrier = this
    try {
      this.#reply.from(SOURCE, HOOKS)
    } catch (error) {
      this.failed(asError(error))
    }
  }

  /** One attempt, as reply-from asks for it. */
  send(callback: UpstreamCallback): void {
    try {
      this.#forwarding?.send((error, response) => this.#report(callback, error, response))
    } catch (error) {
      this.#report(callback, asError(error))
    }
  }

  #report(callback: UpstreamCallback, error: Error | null, response?: UpstreamResponse): void {
    if (response !== undefined && this.#reply.raw.destroyed) {
      discard(response)
      callback(clientGone(response.statusCode))
    } else callback(error, response)
    if (this.#isRetrying) this.#isRetrying = false
    else if (this.#forwarding !== undefined) this.failed(error ?? clientGone())
  }

  retryDelay(error: Error | null, attempt: number): number | null {
    const delay = this.#reply.sent ? null : (this.#forwarding?.retryDelay(error, attempt) ?? null)
    this.#isRetrying = delay !== null
    return delay
  }

  answered(response: UpstreamResponse): void {
    const forwarding = this.#take()
    if (forwarding === undefined) discard(response)
    else forwarding.answered(response)
  }

  failed(error: Error): void {
    this.#take()?.failed(error)
  }

  #take(): Forwarding | undefined {
    const forwarding = this.#forwarding
    this.#forwarding = undefined
    return forwarding
  }
}

const discard = ({ body }: UpstreamResponse): void => {
  if (!Buffer.isBuffer(body)) body.cancel()
}

const clientGone = (upstream?: number): Fault =>
  new Fault('client_gone', {
    detail: 'the client left before it could be answered',
    ...(upstream !== undefined && { upstream }),
  })

const asError = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error('an attempt failed', { cause: thrown })

/** Nothing is sent there: reply-from parses it, and keeps the URL for all calls, because it is always the same. */
const SOURCE = 'http://upstream/'
const NO_HEADERS = {}
/** How a carrier reaches the sender: reply-from copies headers, symbols included, and passes on nothing else. */
const CARRIER = Symbol('carrier')

interface Tagged {
  readonly [CARRIER]: ReplyCarrier | null
}

/** The hooks as they are called. reply-from's own types say that the sender's request is the client's. */
interface Hooks extends Pick<FastifyReplyFromHooks, 'rewriteRequestHeaders' | 'rewriteHeaders' | 'onError'> {
  readonly retryDelay: (attempt: {
    readonly req: { readonly headers: Tagged }
    readonly err: Error | null
    readonly attempt: number
  }) => number | null
  readonly onResponse: (
    request: FastifyReply['request'],
    reply: FastifyReply,
    response: Omit<UpstreamResponse, 'body'> & { readonly stream: UpstreamResponse['body'] },
  ) => void
}

const OWN_HOOKS: Hooks = {
  rewriteRequestHeaders: ({ carrier }) => ({ [CARRIER]: carrier }),
  rewriteHeaders: () => NO_HEADERS,
  retryDelay: ({ req, err, attempt }) => req.headers[CARRIER]?.retryDelay(err, attempt) ?? null,
  onResponse: ({ carrier }, _reply, { statusCode, headers, stream }) =>
    carrier?.answered({ statusCode, headers, body: stream }),
  onError: ({ request }, { error }) => request.carrier?.failed(causeOf(error)),
}
const HOOKS = OWN_HOOKS as unknown as FastifyReplyFromHooks

/** reply-from wraps the sender's error. An error without a cause is its own, about an answer that cannot be sent. */
const causeOf = (error: Error): Error =>
  error.cause instanceof Error ? error.cause : new Fault('upstream_broken', { cause: error })

const SENDER = {
  request: ({ headers }: { readonly headers: Tagged }, callback: UpstreamCallback): void =>
    headers[CARRIER]?.send(callback),
}

/** Registers reply-from. To be called before `app.listen`: afterwards Fastify takes no plugins. */
export function carryByReplyFrom(app: FastifyInstance): void {
  app.decorateRequest('carrier', null)
  app.register(replyFrom, {
    disableRequestLogging: true,
    undici: SENDER as unknown as NonNullable<FastifyReplyFromOptions['undici']>,
  })
}
