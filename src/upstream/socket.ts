import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls, TLSSocket, type ConnectionOptions } from 'node:tls'

/** PEM files, and whom to expect. */
export interface UpstreamTls extends Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername'> {
  /** Where true, nothing proves that the upstream is who it should be. */
  readonly unverified?: boolean
}

/** What arrives: `bytes` up to `end` are the socket's, and hold until the function returns. Answers whether to go on reading. */
export type Receive = (end: number, bytes: Uint8Array) => boolean

/**
 * Everything that arrives is read into this, whichever socket it comes from: node reads and hands over in one go, and
 * who keeps a piece copies it. A buffer of its own for each read would cost more than reading.
 */
const ARRIVED = Buffer.allocUnsafeSlow(64 * 1024)

/** Milliseconds of silence after which the kernel asks whether the other side is still there. */
const PROBING = 60_000

/**
 * A socket to an upstream, on its way. With TLS it may be written to from `secureConnect` on and not before: only then
 * is it known who listens. HTTP/1.1 only; the certificate has to bear the target's name, or its address, whatever the
 * Host header says; verified whatever the environment says.
 */
export function openSocket(
  { origin, socketPath }: UpstreamAddress,
  { unverified = false, ...tls }: UpstreamTls,
  callback: Receive,
): { readonly socket: Socket; readonly ready: 'connect' | 'secureConnect' } {
  const onread = { buffer: ARRIVED, callback }
  const common = { onread, noDelay: true, keepAlive: true, keepAliveInitialDelay: PROBING }
  if (socketPath !== undefined) return { socket: connect({ ...common, path: socketPath }), ready: 'connect' }
  const { protocol, hostname, port } = new URL(origin)
  const host = hostname.replace(/^\[|\]$/g, '')
  if (protocol === 'http:')
    return { socket: connect({ ...common, host, port: Number(port || 80) }), ready: 'connect' }
  const socket = connectTls({
    ...common,
    ...tls,
    host,
    port: Number(port || 443),
    // Empty for an address (RFC 6066 §3): its certificate then has to bear the address.
    servername: tls.servername ?? (isIP(host) === 0 ? host : ''),
    rejectUnauthorized: !unverified,
    ALPNProtocols: ['http/1.1'],
  })
  return { socket, ready: 'secureConnect' }
}

/**
 * Closes a connection over which everything was said. Where the kernel can, by a reset: whoever ends a connection first
 * otherwise keeps its port for a minute, and some 500 a second, such as answers to HEAD or of 304, would use them up.
 */
export function forget(socket: Socket): void {
  const isTcp = socket.remoteFamily !== undefined && !(socket instanceof TLSSocket)
  if (isTcp && !socket.readableEnded) socket.resetAndDestroy()
  else socket.destroy()
}

/** Where an upstream is listening. */
export interface UpstreamAddress {
  /** As it was configured: for the log. */
  readonly name: string
  /** Scheme, host and port; of a unix socket a stand-in. */
  readonly origin: string
  /** Put before the path of every request: empty, or with a leading and no trailing slash. */
  readonly basePath: string
  /** Path of a unix socket. */
  readonly socketPath: string | undefined
  /** What its Host header says unless configured otherwise. */
  readonly host: string
}

/** For the schema: an http or https URL, or `unix:` and an absolute path. */
export const UPSTREAM_PATTERN = '^(https?://[^\\s/@#?]+(/[^\\s#]*)?(\\?[^\\s#]*)?|unix:/[^\\s:]+)$'

/** What could be read in more than one way stands in no path that calls are sent to (T1.6). */
const AMBIGUOUS = /[\\;%]|\/\/|\/\.{1,2}(?:\/|$)/

/** Undefined if it is no address that calls can be sent to without a doubt: a query, escapes or dots in its path. */
export function parseUpstreamAddress(text: string): UpstreamAddress | undefined {
  if (text.startsWith('unix:')) {
    const socketPath = text.slice('unix:'.length)
    return { name: text, origin: 'http://localhost', basePath: '', socketPath, host: 'localhost' }
  }
  const url = URL.parse(text)
  const path = /^https?:\/\/[^/?#]*([^?#]*)/.exec(text)?.[1] ?? ''
  if (url === null || url.search !== '' || AMBIGUOUS.test(path)) return undefined
  const { origin, host } = url
  return {
    name: text,
    origin,
    host,
    socketPath: undefined,
    basePath: url.pathname.replace(/(?<!\/)\/+$/, ''),
  }
}
