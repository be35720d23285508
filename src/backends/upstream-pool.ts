import { isIP } from 'node:net'
import type { Readable } from 'node:stream'
import type { ConnectionOptions } from 'node:tls'
import { buildConnector, Pool } from 'undici'
import { Fault } from '../kernel/faults.ts'
import type { UpstreamAddress } from './upstream-address.ts'
import { UpstreamReader } from './upstream-reader.ts'
import type { UpstreamCallback } from './upstream-reader.ts'

/** Milliseconds. */
export interface UpstreamTimeouts {
  readonly connect: number
  /** From the request on the wire to the response's head. */
  readonly firstByte: number
  /** Between two pieces of a body. */
  readonly idle: number
}

export interface PoolRules {
  readonly timeouts: UpstreamTimeouts
  readonly maxConnections: number
  readonly tls: UpstreamTls
}

/** PEM files, and whom to expect. */
export interface UpstreamTls extends Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername'> {
  /** Where true, nothing proves that the upstream is who it should be. */
  readonly unverified?: boolean
}

export interface UpstreamRequest {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string | undefined>
  readonly body: Buffer | Readable | null
  /** See UpstreamReader. */
  readonly eager: boolean
  /** Over a connection that was not used before, for the attempt after one that failed. */
  readonly fresh: boolean
}

/** Of the connections that may stand, so many may stand for second attempts. */
const FRESH_SHARE = 1 / 8

/**
 * Keep-alive connections to one target of an upstream. Undici is imported here only. Its traps:
 * - a response that only the connection's end delimits counts as whole when the connection was reset (T5.2): it lets
 *   ECONNRESET pass for such bodies (a quirk of macOS), so that the code is changed before it looks;
 * - a request that waits for a free connection has no timeout at all: it gets the first byte's (T5.4);
 * - TLS is verified by default, but an environment variable could switch that off: said explicitly;
 * - it takes the name that a certificate must bear from the Host header: the target's is put in its place;
 * - HTTP/2 is on by default, and with it one connection for everything: off;
 * - an upstream that closes kept connections just as they are used fails any number of attempts in a row, if each takes
 *   another kept one (T5.1): `fresh` ones go over connections that nobody keeps;
 * - any number of 1xx counts as an answer that has begun: the reader bounds them; a 100 that nobody asked for counts as
 *   a broken connection;
 * - GET is retried by nobody, pipelining is 1: one call per connection at a time (T2.4).
 */
export class UpstreamPool {
  readonly #pool: Pool
  readonly #address: UpstreamAddress
  readonly #rules: PoolRules
  /** Made when it is needed first. */
  #fresh: Pool | undefined
  #inFlight = 0

  constructor(address: UpstreamAddress, rules: PoolRules) {
    this.#address = address
    this.#rules = rules
    this.#pool = openPool(address, rules, { connections: rules.maxConnections, pipelining: 1 })
  }

  get inFlight(): number {
    return this.#inFlight
  }

  /** Sends; the callback is called exactly once. Answers the reader, by which the call can be cancelled. */
  send(request: UpstreamRequest, callback: UpstreamCallback): UpstreamReader {
    const { method, path, headers, body, eager, fresh } = request
    const reader = new UpstreamReader(eager, this.#rules.timeouts.firstByte, callback)
    this.#inFlight++
    const mayQueue = fresh || this.#inFlight > this.#rules.maxConnections
    const queued = mayQueue ? this.#limitQueueing(reader) : undefined
    reader.onFinished(() => {
      this.#inFlight--
      clearTimeout(queued)
    })
    const pool = fresh ? (this.#fresh ??= this.#openFresh()) : this.#pool
    pool.dispatch({ method, path, headers, body }, reader)
    return reader
  }

  /** Without pipelining undici keeps no connection. */
  #openFresh(): Pool {
    const connections = Math.ceil(this.#rules.maxConnections * FRESH_SHARE)
    return openPool(this.#address, this.#rules, { connections, pipelining: 0 })
  }

  #limitQueueing(reader: UpstreamReader): NodeJS.Timeout {
    return setTimeout(() => {
      const detail = 'no connection to the upstream came free in time'
      if (!reader.started) reader.cancel(new Fault('upstream_timeout', { detail }))
    }, this.#rules.timeouts.firstByte)
  }

  /** Waits for nobody: whoever still reads is cut. Drain first. */
  async close(): Promise<void> {
    await Promise.all([this.#pool.destroy(), this.#fresh?.destroy()])
  }
}

const openPool = (
  { origin, socketPath }: UpstreamAddress,
  { timeouts, tls: { unverified = false, ...tls } }: PoolRules,
  size: { readonly connections: number; readonly pipelining: 0 | 1 },
): Pool =>
  new Pool(origin, {
    ...size,
    connect: carefully(
      buildConnector({
        ...tls,
        rejectUnauthorized: !unverified,
        allowH2: false,
        timeout: timeouts.connect,
        socketPath: socketPath ?? null,
      }),
      tls.servername ?? serverName(origin),
    ),
    allowH2: false,
    headersTimeout: timeouts.firstByte,
    bodyTimeout: timeouts.idle,
    keepAliveTimeout: 4_000,
  })

type Connector = ReturnType<typeof buildConnector>

/** Empty for an address (RFC 6066 §3): its certificate then has to bear the address. */
function serverName(origin: string): string {
  const { hostname } = new URL(origin)
  return isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? hostname : ''
}

const carefully =
  (connect: Connector, servername: string): Connector =>
  (options, callback) => {
    connect({ ...options, servername }, (...[error, socket]) => {
      socket?.prependListener('error', (failure: NodeJS.ErrnoException) => {
        if (failure.code === 'ECONNRESET') failure.code = 'UPSTREAM_RESET'
      })
      if (error) callback(error, null)
      else callback(null, socket)
    })
  }
