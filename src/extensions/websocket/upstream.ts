import { Buffer } from 'node:buffer'
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Agent } from 'node:https'
import { isIP, type Socket } from 'node:net'
import { createProxyServer } from 'http-proxy-3'
import type { Tunnel } from '../../base/contracts/calls/backend.ts'
import { readBody } from '../../base/http/body/read-body.ts'
import { timerMs } from '../../base/kernel/clock.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import { SHORT_BODY_LIMIT } from '../../gateway/upstream/reader.ts'
import type { UpstreamTimeouts } from '../../gateway/upstream/request.ts'
import type { UpstreamAddress, UpstreamTls } from '../../gateway/upstream/socket.ts'
import { upstreamFault } from '../../gateway/backends/forward/response/response.ts'

/**
 * http-proxy-3, for websockets: it opens the connection to the upstream and passes the bytes both ways. Imported here
 * only. Its traps, each pinned by a test:
 * - it reads method, path and headers off the client's request, folds `..` in the path (T1.1), drops a bare `?`, and
 *   forwards what `Connection` names: it is given a request of our own making, and the checked target is written over
 *   its path;
 * - an answer other than 101 is relayed raw, banner and all, and any error on the way ends the process (T2.1):
 *   its listeners for answers and errors are replaced before anything can come;
 * - the upstream's headers of a 101 go to the client as they are: they are replaced before it writes them;
 * - an error of the client's socket ends the process, unless somebody listens to the proxy's own errors;
 * - options for TLS are written to, and would carry one call's headers into the next: made anew for each;
 * - its plain forwarding turns a chunked DELETE or OPTIONS into two upstream requests (T2.4), and is not used at all:
 *   plain calls of a `stream` backend go the way of the `http` backend's.
 */
export interface Handshake {
  /** Canonical, with the base path of the upstream. */
  readonly path: string
  readonly headers: Record<string, string>
  /** Makes the headers of the client's 101 from the upstream's; an error that it throws refuses the upgrade. */
  readonly switched: (headers: IncomingHttpHeaders) => Record<string, string | string[]>
  /** Called just before the first byte is passed. */
  readonly opened: (upstream: Socket) => Tunnel
}

interface WebsocketUpstreamRules {
  readonly target: UpstreamAddress
  readonly timeouts: UpstreamTimeouts
  readonly tls: UpstreamTls
}

/** The tunnel, the client's 101 being sent; or the upstream's answer that was no 101. */
export type HandshakeOutcome =
  | { readonly kind: 'open'; readonly tunnel: Tunnel }
  | {
      readonly kind: 'answer'
      readonly statusCode: number
      readonly headers: IncomingHttpHeaders
      readonly body: Buffer
    }

type Settle = {
  readonly resolve: (outcome: HandshakeOutcome) => void
  readonly reject: (error: unknown) => void
  /** Before the client's bytes are passed: who looks at them must not take them. */
  readonly stopWatching: () => void
}

/**
 * Makes the handshake with an upstream on behalf of the client at `socket`. Rejects with the connection's error, the
 * fault of `switched`, or Fault `client_gone`, `upstream_timeout`; then nothing was written to the client.
 */
export async function openWebsocket(
  handshake: Handshake,
  socket: Socket,
  head: Buffer,
  rules: WebsocketUpstreamRules,
): Promise<HandshakeOutcome> {
  const { promise, resolve, reject } = Promise.withResolvers<HandshakeOutcome>()
  const request = send(handshake, socket, head, rules)
  const late = setTimeout(
    () => reject(new Fault('upstream_timeout', { detail: 'no answer to the handshake' })),
    timerMs(rules.timeouts.connect + rules.timeouts.firstByte),
  )
  const stopWatching = onLeaving(socket, () =>
    reject(new Fault('client_gone', { detail: 'the client left during the handshake' })),
  )
  take(request, handshake, { resolve, reject, stopWatching })
  try {
    return await promise
  } catch (error) {
    request.destroy()
    throw error
  } finally {
    clearTimeout(late)
    stopWatching()
  }
}

/**
 * Calls the listener if the client ends its side, as node's server does of a call. Nobody reads the socket yet, and so
 * an end must be looked for; of a client that sends frames before the 101 only the connection's end is noticed.
 */
function onLeaving(socket: Socket, left: () => void): () => void {
  const look = (): void => {
    const early = socket.read() as Buffer | null
    if (early !== null) socket.unshift(early)
  }
  socket.once('readable', look).once('end', left).once('close', left)
  if (socket.destroyed) left()
  return () => socket.off('readable', look).off('end', left).off('close', left)
}

/** As much of a client's request as the proxy looks at, and nothing of the client's. */
const ownRequest = ({ path, headers }: Handshake): IncomingMessage =>
  ({
    method: 'GET',
    url: path,
    headers,
    httpVersion: '1.1',
    httpVersionMajor: 1,
  }) as unknown as IncomingMessage

function send(
  handshake: Handshake,
  socket: Socket,
  head: Buffer,
  { target, timeouts, tls }: WebsocketUpstreamRules,
): ClientRequest {
  const sent: { request?: ClientRequest } = {}
  const url = new URL(target.origin)
  const proxy = createProxyServer({
    target: target.socketPath === undefined ? url : unixTarget(target.socketPath),
    toProxy: true,
    prependPath: false,
    xfwd: false,
    secure: true,
    connectTimeout: timeouts.connect,
    ...(url.protocol === 'https:' && { agent: tlsAgent(tls, url.hostname) }),
  })
  proxy.on('error', () => undefined)
  proxy.once('proxyReqWs', (request) => {
    request.path = handshake.path
    sent.request = request
  })
  proxy.ws(ownRequest(handshake), socket, head)
  if (sent.request === undefined) throw new Fault('internal', { detail: 'http-proxy-3 sent nothing' })
  return sent.request
}

const unixTarget = (socketPath: string) => ({ protocol: 'http:', host: 'localhost', port: 80, socketPath })

/** For one connection. Left alone node takes the name that the certificate must bear from the Host header. */
function tlsAgent({ unverified = false, ...tls }: UpstreamTls, hostname: string): Agent {
  return new Agent({
    ...tls,
    rejectUnauthorized: !unverified,
    servername: tls.servername ?? (isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? hostname : ''),
  })
}

type Relay = (response: IncomingMessage, upstream: Socket, head: Buffer) => void

/** Puts our listeners in the place of the proxy's, but for the one that passes the bytes: that one is called by ours. */
function take(
  request: ClientRequest,
  { switched, opened }: Handshake,
  { resolve, reject, stopWatching }: Settle,
): void {
  const [relay] = request.listeners('upgrade') as Relay[]
  request.removeAllListeners('upgrade').removeAllListeners('response').removeAllListeners('error')
  request.on('error', reject)
  request.once('response', (response: IncomingMessage) => {
    readAnswer(response).then(resolve, reject)
  })
  request.once('upgrade', (response: IncomingMessage, upstream: Socket, head: Buffer) => {
    stopWatching()
    upstream.on('error', () => undefined)
    try {
      response.headers = switched(response.headers)
      relay?.call(request, response, upstream, head)
      resolve({ kind: 'open', tunnel: opened(upstream) })
    } catch (error) {
      upstream.destroy()
      reject(error)
    }
  })
}

/** An answer with as much of its body as may hold an envelope; its connection is given up. */
async function readAnswer(response: IncomingMessage): Promise<HandshakeOutcome> {
  const { statusCode = 0, headers } = response
  try {
    return { kind: 'answer', statusCode, headers, body: await readBody(response, SHORT_BODY_LIMIT) }
  } catch (thrown) {
    const { code, facts } = toFault(thrown)
    // readBody takes the sender of a body for a client. Here it is the upstream that closed its connection (C8.4).
    if (code === 'client_gone') throw upstreamFault(facts.cause)
    return { kind: 'answer', statusCode, headers, body: Buffer.alloc(0) }
  } finally {
    response.destroy()
  }
}
