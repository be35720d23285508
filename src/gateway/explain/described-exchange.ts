import { Buffer } from 'node:buffer'
import { type IncomingHttpHeaders, METHODS } from 'node:http'
import { Readable } from 'node:stream'
import type { Carrier } from '../../base/contracts/calls/backend.ts'
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import type { DescribedCall } from '../../base/contracts/calls/explanation.ts'
import { clientOrigin, type TrustedProxies } from '../../base/http/head/addresses.ts'
import type { Head } from '../../base/http/head/head.ts'
import { isHeaderValue, isToken } from '../../base/http/head/header-text.ts'
import { type HeadRules, readRequestTarget } from '../../base/http/head/request-target.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { newRequestId } from '../../base/kernel/ids.ts'

/** What reading a call depends on: the same as at the public listener. */
export interface CallReading extends HeadRules {
  readonly trustedProxies: TrustedProxies | undefined
  readonly scheme: 'http' | 'https'
  /** The Host of calls that name none. */
  readonly host: string
}

/** The refusals ahead of the decision are added when the client's address is known. */
interface DescribedExchange extends Exchange {
  refusal: Fault | undefined
}

const LOOPBACK = '127.0.0.1'

/** A described call as the decision reads it. Nothing is sent for it. @param startedAt Clock.monotonic() */
export function describedExchange(
  call: DescribedCall,
  reading: CallReading,
  startedAt: number,
): DescribedExchange {
  const rawHeaders = headerLines(call, reading.host)
  const head: Head = {
    method: call.method,
    rawTarget: call.path,
    httpVersion: '1.1',
    rawHeaders,
    headers: joinLines(rawHeaders),
    remoteAddress: call.from ?? LOOPBACK,
  }
  const origin = clientOrigin(head, reading.trustedProxies)
  return {
    id: newRequestId(),
    head,
    target: isReadable(head) ? readRequestTarget(head, reading) : new Fault('unreadable_request'),
    get body() {
      return Readable.from(call.body.length === 0 ? [] : [Buffer.from(call.body)])
    },
    clientAddress: origin.address,
    scheme: origin.scheme ?? reading.scheme,
    startedAt,
    refusal: undefined,
    hold: () => false,
    onGone: () => undefined,
    onEnd: () => undefined,
    carrier: NO_CARRIER,
  }
}

/** No backend is asked, so nothing is ever carried. */
const NO_CARRIER: Carrier = {
  carry: (forwarding) =>
    forwarding.failed(new Fault('internal', { detail: 'a call that is only explained was to be sent' })),
}

function headerLines({ headers, body, token }: DescribedCall, host: string): readonly string[] {
  const has = (wanted: string): boolean => headers.some(([name]) => name.toLowerCase() === wanted)
  const length = body.length > 0 && !has('content-length') && !has('transfer-encoding')
  return [
    ...(has('host') ? [] : ['Host', host]),
    ...headers.flat(),
    ...(token === undefined ? [] : ['Authorization', `Bearer ${token}`]),
    ...(length ? ['Content-Length', String(body.length)] : []),
  ]
}

/** Whether the parser would make a request of it. A call that it cannot read reaches no check (C2.3). */
const isReadable = ({ method, rawTarget, rawHeaders }: Head): boolean =>
  METHODS.includes(method) &&
  /^[\x21-\x7e]+$/.test(rawTarget) &&
  rawHeaders.every((text, at) => (at % 2 === 0 ? isToken(text) : isHeaderValue(text)))

/**
 * Node keeps the first line of these headers; it joins all lines of most others. Those that decide something are in
 * checkHead.
 */
const FIRST_ONLY: ReadonlySet<string> = new Set([
  ...['age', 'authorization', 'content-length', 'content-type', 'etag', 'expires', 'from', 'host'],
  ...['if-modified-since', 'if-unmodified-since', 'last-modified', 'location', 'max-forwards'],
  ...['proxy-authorization', 'referer', 'retry-after', 'server', 'user-agent'],
])

/** Header lines by lower-case name, as node joins them. */
function joinLines(rawHeaders: readonly string[]): IncomingHttpHeaders {
  const joined: Record<string, string> = Object.create(null) as Record<string, string>
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase()
    const value = rawHeaders[at + 1] ?? ''
    const before = joined[name]
    if (before === undefined) joined[name] = value
    else if (!FIRST_ONLY.has(name)) joined[name] = `${before}${name === 'cookie' ? '; ' : ', '}${value}`
  }
  return joined
}
