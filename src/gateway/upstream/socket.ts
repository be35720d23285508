import { Buffer } from 'node:buffer'
import { connect, isIP, type Socket } from 'node:net'
import {
  connect as connectTls,
  type ConnectionOptions,
  createSecureContext,
  type SecureContext,
  TLSSocket,
} from 'node:tls'
import { type Clock, systemClock } from '../../base/kernel/clock.ts'

export interface UpstreamAddress {
  /** The address as it was configured: for the log. */
  readonly name: string
  /** Scheme, host and port; `http://localhost` for a unix socket. */
  readonly origin: string
  /** Put before the path of every request: empty, or with a leading and no trailing slash. */
  readonly basePath: string
  readonly socketPath: string | undefined
  /** The Host header, unless another is configured. */
  readonly host: string
}

/** For the schema: an http or https URL, or `unix:` and an absolute path. */
export const UPSTREAM_PATTERN = '^(https?://[^\\s/@#?]+(/[^\\s#]*)?(\\?[^\\s#]*)?|unix:/[^\\s:]+)$'

/** Parts of a path that two servers could read differently (T1.6). */
const AMBIGUOUS = /[\\;%]|\/\/|\/\.{1,2}(?:\/|$)/

/** Undefined for an address with a query, or with escapes or dot segments in its path. */
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

export const isTls = ({ origin }: UpstreamAddress): boolean => origin.startsWith('https:')

/** PEM texts, and the name that the upstream's certificate must bear. */
export interface UpstreamTls extends Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername'> {
  /** Where true, the certificate is not verified. */
  readonly unverified?: boolean
}

/** Takes `bytes` up to `end`, which are overwritten after the call. @returns whether to go on reading */
type Receive = (end: number, bytes: Uint8Array) => boolean

interface OpenedSocket {
  readonly socket: Socket
  /** The event from which on the socket may be written to: with TLS, only then the upstream is verified. */
  readonly ready: 'connect' | 'secureConnect'
}

/** @throws what node throws at once: for a path or a key that cannot be used */
export type OpenSocket = (receive: Receive) => OpenedSocket

/**
 * All sockets read into this one buffer: node reads and calls `Receive` in one go, and a receiver that keeps a piece copies
 * it. A buffer for each read would cost more than the read.
 */
const RECEIVED = Buffer.allocUnsafeSlow(64 * 1024)

/** After how long a silence the kernel probes whether the other side is still there, in milliseconds. */
const KEEPALIVE_DELAY = 60_000

const socketOptions = (callback: Receive) => ({
  onread: { buffer: RECEIVED, callback },
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: KEEPALIVE_DELAY,
})

/** For sockets to one target, with one TLS configuration: they share the TLS context and its session. */
export function socketOpener(
  address: UpstreamAddress,
  tls: UpstreamTls,
  clock: Clock = systemClock,
): OpenSocket {
  const { socketPath: path } = address
  if (path !== undefined)
    return (receive) => ({ socket: connect({ ...socketOptions(receive), path }), ready: 'connect' })
  const url = new URL(address.origin)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (isTls(address)) return tlsOpener(host, Number(url.port || 443), tls, clock)
  const port = Number(url.port || 80)
  return (receive) => ({ socket: connect({ ...socketOptions(receive), host, port }), ready: 'connect' })
}

/**
 * HTTP/1.1 only. The certificate must bear the target's name or address, whatever the Host header says. It is verified
 * whatever the environment says.
 */
function tlsOpener(host: string, port: number, tls: UpstreamTls, clock: Clock): OpenSocket {
  const { unverified = false, servername, ...files } = tls
  const session = new TlsSession(clock)
  let secureContext: SecureContext | undefined
  return (receive) => {
    secureContext ??= createSecureContext(files)
    const resumed = session.current
    const socket = connectTls({
      ...socketOptions(receive),
      secureContext,
      ...(resumed && { session: resumed }),
      host,
      port,
      // Empty for an address (RFC 6066 §3): its certificate then has to bear the address.
      servername: servername ?? (isIP(host) === 0 ? host : ''),
      rejectUnauthorized: !unverified,
      ALPNProtocols: ['http/1.1'],
    })
    session.keepFrom(socket)
    return { socket, ready: 'secureConnect' }
  }
}

/** How long after a full handshake its session may be resumed, in milliseconds. */
const SESSION_LIFETIME = 10 * 60_000

/**
 * The TLS session that was established last, to be resumed by the next connection (RFC 8446 §2.2, RFC 5077). A resumed
 * handshake checks no certificate. Therefore a session is used for one target and one TLS configuration only, and no
 * longer than ten minutes after the handshake that checked the certificate, or than that certificate is valid.
 */
class TlsSession {
  readonly #clock: Clock
  #session: Buffer | undefined
  /** When the session expires, in monotonic milliseconds. */
  #expires = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get current(): Buffer | undefined {
    return this.#clock.monotonic() < this.#expires ? this.#session : undefined
  }

  /** Keeps the sessions that a socket gets. Forgets the session that it resumes if the handshake fails. */
  keepFrom(socket: TLSSocket): void {
    const resumed = this.#session
    let expires = this.#expires
    let isSecure = false
    const forgetUnlessSecure = (): void => {
      if (!isSecure && this.#session === resumed) this.#session = undefined
    }
    socket
      .once('secureConnect', () => {
        isSecure = true
        if (!socket.isSessionReused()) expires = this.#expiryOf(socket)
      })
      .on('session', (session: Buffer) => {
        this.#session = session
        this.#expires = expires
      })
      // Both: a socket that we give up has no error, and `close` comes after the next call has begun.
      .once('error', forgetUnlessSecure)
      .once('close', forgetUnlessSecure)
  }

  #expiryOf(socket: TLSSocket): number {
    const valid = Date.parse(socket.getPeerCertificate().valid_to) - this.#clock.now()
    return this.#clock.monotonic() + Math.min(SESSION_LIFETIME, valid)
  }
}

/**
 * Closes a connection whose answer is whole. TCP connections are reset where nothing can be lost by it: the side that closes
 * a connection first keeps its port for a minute, and 500 a second, for example after answers to HEAD, would use them up.
 */
export function discardSocket(socket: Socket): void {
  const isTcp = socket.remoteFamily !== undefined && !(socket instanceof TLSSocket)
  if (isTcp && !socket.readableEnded) socket.resetAndDestroy()
  else socket.destroy()
}
