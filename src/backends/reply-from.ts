import replyFrom from '@fastify/reply-from'
import type { FastifyReplyFromOptions } from '@fastify/reply-from'
import type { Readable } from 'node:stream'
import type { UpstreamCallback, UpstreamResponse } from './upstream-reader.ts'

/**
 * @fastify/reply-from, driven without a Fastify server: a backend answers a call and never touches the client's reply,
 * so reply-from gets a reply of our own, to which nothing is ever written. Imported here only. Its traps, each pinned
 * by a test:
 * - its `new URL` rewrites bytes (`'`, `{}`), folds `\`, and refuses `...`: its source is a constant, which its cache
 *   then holds alone; the judged path travels beside the headers to `send` (T1.1, T1.6);
 * - left alone it retries an upstream's 503 ten times (T5.1): `retryDelay` decides every time;
 * - it copies the upstream's headers to the reply, hop-by-hop ones included: `rewriteHeaders` gives it none;
 * - its own client has TLS unverified: `undici` is ours;
 * - errors become answers with the address in the body: `onError` hands back the cause.
 */
export interface Forwarding {
  readonly method: string
  readonly headers: Record<string, string | undefined>
  readonly body: Buffer | Readable | undefined
  /** Milliseconds until another attempt, or null for none (C8.5). */
  retryDelay(error: Error | null, attempt: number): number | null
}

/** Sends one attempt. `headers` are the forwarding's, as reply-from leaves them. */
export type Send<F extends Forwarding> = (
  forwarding: F,
  headers: Record<string, string | undefined>,
  callback: UpstreamCallback,
) => void

/** How a forwarding reaches `send` through reply-from: it copies headers, symbols included, and knows no other way. */
const FORWARDING = Symbol('forwarding')

type Tagged<F> = Record<string, string | undefined> & { [FORWARDING]?: F }

const SOURCE = 'http://upstream/'
/** The request that reply-from sees: nothing of it is used, and nothing of the client's is in it. */
const RAW = Object.freeze({
  method: 'GET',
  url: '/',
  headers: {},
  httpVersionMajor: 1,
  complete: true,
  aborted: false,
})
const SILENT = { info: () => undefined, warn: () => undefined }

/** As much of a Fastify reply as reply-from looks at. */
class PrivateReply<F extends Forwarding> {
  readonly sent = false
  readonly request: { readonly raw: typeof RAW; readonly log: typeof SILENT; readonly body: F['body'] }
  readonly resolve: (response: UpstreamResponse) => void
  readonly reject: (error: Error) => void

  constructor(forwarding: F, resolve: (response: UpstreamResponse) => void, reject: (error: Error) => void) {
    this.request = { raw: RAW, log: SILENT, body: forwarding.body }
    this.resolve = resolve
    this.reject = reject
  }

  header(): this {
    return this
  }

  code(): this {
    return this
  }
}

/** What reply-from hands back; its own types speak of a server's request and reply. */
interface Hooks {
  readonly method: string
  readonly rewriteRequestHeaders: () => object
  readonly rewriteHeaders: () => object
  readonly retryDelay: (details: { readonly err: Error | null; readonly attempt: number }) => number | null
  readonly onResponse: (request: unknown, reply: Settling, response: ReplyFromResponse) => void
  readonly onError: (reply: Settling, failure: { readonly error: Error }) => void
}

type Settling = Pick<PrivateReply<Forwarding>, 'resolve' | 'reject'>
type ReplyFromResponse = Omit<UpstreamResponse, 'body'> & { readonly stream: UpstreamResponse['body'] }
type From = (this: Settling, source: string, hooks: Hooks) => unknown

const NO_HEADERS = {}

function hooksOf(forwarding: Forwarding): Hooks {
  const headers: Tagged<Forwarding> = forwarding.headers
  headers[FORWARDING] = forwarding
  return {
    method: forwarding.method,
    rewriteRequestHeaders: () => headers,
    rewriteHeaders: () => NO_HEADERS,
    retryDelay: ({ err, attempt }) => forwarding.retryDelay(err, attempt),
    onResponse: (_request, reply, { statusCode, headers: received, stream }) =>
      reply.resolve({ statusCode, headers: received, body: stream }),
    // What it passes is its own error; ours is the cause.
    onError: (reply, { error }) => reply.reject(error.cause instanceof Error ? error.cause : error),
  }
}

/** Binds reply-from to a way of sending. The function forwards one call; it rejects with the sender's own error. */
export function forwarder<F extends Forwarding>(send: Send<F>): (forwarding: F) => Promise<UpstreamResponse> {
  const request = ({ headers }: { headers: Tagged<F> }, callback: UpstreamCallback): void => {
    const forwarding = headers[FORWARDING]
    if (forwarding === undefined) {
      callback(new Error('reply-from lost the forwarding'))
      return
    }
    send(forwarding, headers, callback)
  }
  const from = decoratedFrom({
    disableRequestLogging: true,
    undici: { request } as unknown as NonNullable<FastifyReplyFromOptions['undici']>,
  })
  return (forwarding) =>
    new Promise((resolve, reject) => {
      from.call(new PrivateReply(forwarding, resolve, reject), SOURCE, hooksOf(forwarding))
    })
}

/** Registers the plugin on as much of a server as it asks for, and takes the one function that it adds. */
function decoratedFrom(options: FastifyReplyFromOptions): From {
  const found: { from?: From } = {}
  const host = {
    decorateReply: (_name: string, from: From) => {
      found.from = from
    },
    addHook: () => undefined,
    onClose: () => undefined,
  }
  replyFrom(host as unknown as Parameters<typeof replyFrom>[0], options, (error) => {
    if (error) throw error
  })
  if (found.from === undefined) throw new Error('reply-from decorated nothing')
  return found.from
}
