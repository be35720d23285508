import type { Buffer } from 'node:buffer'
import { lookup, type LookupAddress } from 'node:dns'
import { type ClientRequest, type IncomingMessage, request as requestByHttp } from 'node:http'
import { request as requestByHttps } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { readBody } from '../../../base/http/body/read-body.ts'
import { compileReachable } from '../../../base/http/head/special-addresses.ts'
import { isFetchable, isLoopback } from '../../../base/kernel/listen-address.ts'

/** A request to an address that the record of a client names, and that its owner may have chosen. */
export interface OutboundRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** The body of a POST. Without it the request is a GET. */
  readonly body?: string
  /** The largest body of an answer, in bytes. Absent: the body is not read. */
  readonly largest?: number
  /** 5 s for the whole request if absent. */
  readonly signal?: AbortSignal
}

export interface OutboundAnswer {
  readonly status: number
  /** Empty if it was not wanted. */
  readonly body: Buffer | undefined
}

/**
 * Sends a request, and follows no redirect: a 3xx is an answer. Rejects with OutboundRefused if the service must not
 * connect there; with RangeError if the answer is too large, or breaks off; with another Error if there is no answer in
 * time.
 */
export type OutboundClient = (request: OutboundRequest) => Promise<OutboundAnswer>

/** The message says what an operator can do. It names no address, because the one who chose the name could then scan. */
export class OutboundRefused extends Error {
  override readonly name = 'OutboundRefused'
}

type Resolve = (
  host: string,
  done: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void

interface OutboundParts {
  /** Addresses and CIDR networks that are called though they are not public: `server.outbound.allow`. */
  readonly allow: readonly string[]
  /** `{auth_url}`. On loopback the service is tried out, and a loopback address that is written out is called too. */
  readonly authUrl: string
  /** All addresses of a host name; the machine's resolver if absent. */
  readonly resolve?: Resolve
}

/** How long a request may take, in milliseconds. */
const TIMEOUT = 5_000

const systemResolve: Resolve = (host, done) => lookup(host, { all: true, order: 'verbatim' }, done)

/**
 * The client for addresses of clients. The writer of a client's record, or the owner of the name in it, must not make this
 * service call a machine that only this service can reach: so the address that a connection goes to is judged, not the
 * name, and each request resolves the name once and makes a connection of its own.
 *
 * @throws RangeError if an entry of `allow` is neither an address nor a network
 */
export function createOutboundClient({ allow, authUrl, resolve }: OutboundParts): OutboundClient {
  const isReachable = compileReachable(allow)
  const lookupReachable = reachableOnly(resolve ?? systemResolve, isReachable)
  const trusted = isLoopback(hostOf(new URL(authUrl)))
  const isCallable = (address: string): boolean => (trusted && isLoopback(address)) || isReachable(address)
  return async (request) => {
    const url = new URL(request.url)
    if (!isFetchable(request.url)) throw new OutboundRefused('it is neither https nor on loopback')
    // For an address that is written out nothing is resolved.
    const host = hostOf(url)
    if (isIP(host) !== 0 && !isCallable(host)) throw new OutboundRefused(NOT_PUBLIC)
    return exchange(url, request, lookupReachable)
  }
}

const NOT_PUBLIC =
  'it is at no public address; if it should be called, list its network in server.outbound.allow'

/** Without the brackets of IPv6. */
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

/** A look-up as node makes it for a connection, which then goes to no other address than one of the answer. */
const reachableOnly =
  (resolve: Resolve, isReachable: (address: string) => boolean): LookupFunction =>
  (host, { all }, done) =>
    resolve(host, (error, addresses) => {
      const reachable = addresses.filter(({ address }) => isReachable(address))
      const [first] = reachable
      if (error !== null) done(error, '')
      else if (first === undefined) done(new OutboundRefused(NOT_PUBLIC), '')
      else if (all === true) done(null, reachable)
      else done(null, first.address, first.family)
    })

async function exchange(
  url: URL,
  { body, headers, largest, signal = AbortSignal.timeout(TIMEOUT) }: OutboundRequest,
  lookupReachable: LookupFunction,
): Promise<OutboundAnswer> {
  const send = url.protocol === 'https:' ? requestByHttps : requestByHttp
  const request = send(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers,
    lookup: lookupReachable,
    signal,
    // A connection that is kept was judged for another request.
    agent: false,
  })
  try {
    const response = await responseOf(request, body)
    const status = response.statusCode ?? 0
    return { status, body: largest === undefined ? undefined : await bodyOf(response, largest) }
  } finally {
    request.destroy()
  }
}

const responseOf = (request: ClientRequest, body: string | undefined): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    // Node closes a connection that changes its protocol (101), and says no more: the caller would wait for ever.
    request.once('close', () => reject(new Error('the connection was closed without an answer')))
    // An error of the connection after the answer is told by the body.
    request.on('error', reject).once('response', resolve).end(body)
  })

async function bodyOf(response: IncomingMessage, largest: number): Promise<Buffer> {
  // Without a listener an error after the last byte wanted would end the process.
  response.on('error', () => undefined)
  try {
    return await readBody(response, largest)
  } catch (cause) {
    throw new RangeError('the answer is too large, or broke off', { cause })
  }
}
