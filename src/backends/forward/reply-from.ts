import replyFrom from '@fastify/reply-from'
import type { FastifyReplyFromOptions } from '@fastify/reply-from'
import type { UpstreamCallback, UpstreamResponse } from '../../upstream/reader.ts'

/**
 * @fastify/reply-from, driven without a Fastify server: a backend answers a call and never touches the client's reply,
 * so reply-from gets a reply of our own, to which nothing is ever written. Imported here only. Its traps, each pinned
 * by a test:
 * - its `new URL` rewrites bytes (`'`, `{}`), folds `\`, and refuses `...`: its source is a constant, which its cache
 *   then holds alone; the judged path stays with the forwarding (T1.1, T1.6), and so do headers and body, which it would
 *   copy, and frame anew;
 * - left alone it retries an upstream's 503 ten times (T5.1): `retryDelay` decides every time;
 * - it copies the upstream's headers to the reply, hop-by-hop ones included: `rewriteHeaders` gives it none;
 * - its own client has TLS unverified: `undici` is ours;
 * - errors become answers with the address in the body: `onError` hands back the cause.
 */
export interface Forwarding {
  /** Sends one attempt. */
  send(callback: UpstreamCallback): void
  /** Milliseconds until another attempt, or null for none (C8.5). */
  retryDelay(error: Error | null, attempt: number): number | null
  /** Called once, unless `failed` is. */
  answered(response: UpstreamResponse): void
  /** With the sender's own error. */
  failed(error: Error): void
}

/** How a forwarding reaches the sender through reply-from: it copies headers, symbols included, and knows no other way. */
const FORWARDING = Symbol('forwarding')

interface Tagged {
  readonly [FORWARDING]: Forwarding
}

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

/** As much of a Fastify request as reply-from looks at. */
class PrivateRequest {
  readonly raw = RAW
  readonly log = SILENT
  readonly body = undefined
  readonly headers: Tagged

  constructor(forwarding: Forwarding) {
    this.headers = { [FORWARDING]: forwarding }
  }
}

/** As much of a Fastify reply as reply-from looks at. */
class PrivateReply {
  readonly sent = false
  readonly forwarding: Forwarding
  readonly request: PrivateRequest

  constructor(forwarding: Forwarding) {
    this.forwarding = forwarding
    this.request = new PrivateRequest(forwarding)
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
  readonly rewriteRequestHeaders: (request: PrivateRequest) => object
  readonly rewriteHeaders: () => object
  readonly retryDelay: (attempt: FailedAttempt) => number | null
  readonly onResponse: (request: PrivateRequest, reply: PrivateReply, response: ReplyFromResponse) => void
  readonly onError: (reply: PrivateReply, failure: { readonly error: Error }) => void
}

interface FailedAttempt {
  readonly req: { readonly headers: Tagged }
  readonly err: Error | null
  readonly attempt: number
}

type ReplyFromResponse = Omit<UpstreamResponse, 'body'> & { readonly stream: UpstreamResponse['body'] }
type From = (this: PrivateReply, source: string, hooks: Hooks) => unknown

const NO_HEADERS = {}

const HOOKS: Hooks = {
  rewriteRequestHeaders: ({ headers }) => headers,
  rewriteHeaders: () => NO_HEADERS,
  retryDelay: ({ req, err, attempt }) => req.headers[FORWARDING].retryDelay(err, attempt),
  onResponse: (_request, { forwarding }, { statusCode, headers, stream }) =>
    forwarding.answered({ statusCode, headers, body: stream }),
  // What it passes is its own error; ours is the cause.
  onError: ({ forwarding }, { error }) =>
    forwarding.failed(error.cause instanceof Error ? error.cause : error),
}

const from = decoratedFrom({
  disableRequestLogging: true,
  undici: {
    request: ({ headers }: { readonly headers: Tagged }, callback: UpstreamCallback): void =>
      headers[FORWARDING].send(callback),
  } as unknown as NonNullable<FastifyReplyFromOptions['undici']>,
})

/** Has reply-from carry a call: attempt after attempt, until the forwarding is told of an answer or a failure. */
export function forward(forwarding: Forwarding): void {
  from.call(new PrivateReply(forwarding), SOURCE, HOOKS)
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
