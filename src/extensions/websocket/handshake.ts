/** The handshake of a websocket (RFC 6455 §4): which requests are one, what the upstream is sent, what the client gets. */
import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Call, UpgradeHead } from '../../base/contracts/calls/backend.ts'
import { headersOf, type HeaderText } from '../../base/http/head/header-text.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { ResponseHeaders } from '../../gateway/backends/forward/response/response.ts'

const KEY = 'sec-websocket-key'
/** RFC 6455 §4.2.1: 16 bytes in base64. */
const KEY_TEXT = /^[A-Za-z0-9+/]{22}==$/
/** Browsers say `keep-alive, Upgrade`. Any other name would take a header of the handshake away (T2.1). */
const CONNECTION = /^(?:keep-alive, *)?upgrade(?:, *keep-alive)?$/i

/** Whether a request is a complete handshake (RFC 6455 §4.1). */
export function isHandshake({ headers }: UpgradeHead): boolean {
  return (
    headers.upgrade?.toLowerCase() === 'websocket' &&
    CONNECTION.test(headers.connection ?? '') &&
    KEY_TEXT.test(headers[KEY] ?? '') &&
    headers['sec-websocket-version'] === '13'
  )
}

/** RFC 6455 §1.3: what makes an answer to a key, and to nothing else that a server may be asked. */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

/** The headers of any call (C8.2), and the upgrade. @param host what Host says */
export function handshakeHeaders(text: HeaderText, host: string): Record<string, string> {
  const headers = headersOf(text)
  // A server may only compress single messages, and an extension negotiates that.
  delete headers['accept-encoding']
  return { host, ...headers, connection: 'Upgrade', upgrade: 'websocket' }
}

/** The headers of a 101 that belong to the websocket: the others pass as from any answer (C8.3). */
const OWN: Readonly<Record<string, string>> = {
  'sec-websocket-accept': 'Sec-WebSocket-Accept',
  'sec-websocket-protocol': 'Sec-WebSocket-Protocol',
  'sec-websocket-extensions': 'Sec-WebSocket-Extensions',
}

/** The items of a list in a header (RFC 9110 §5.6.1). */
const itemsOf = (value: string | undefined): readonly string[] =>
  (value ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')

/**
 * RFC 6455 §4.2.2: the subprotocol is one of those that the client offered, in its very case, or there is none; an
 * extension is one that it offered (§9.1), with any parameters. Browsers would fail the connection; other clients would
 * continue and read frames by rules that they never agreed to.
 */
function requireOffered({ headers }: Call, received: IncomingHttpHeaders): void {
  const chosen = received['sec-websocket-protocol']
  if (chosen !== undefined && !itemsOf(headers['sec-websocket-protocol']).includes(chosen))
    throw new Fault('upstream_broken', { detail: 'the upstream chose a subprotocol that was not offered' })
  const offered = itemsOf(headers['sec-websocket-extensions']).map(nameOf)
  if (
    !itemsOf(received['sec-websocket-extensions'])
      .map(nameOf)
      .every((name) => offered.includes(name))
  )
    throw new Fault('upstream_broken', { detail: 'the upstream chose an extension that was not offered' })
}

/** The name in `permessage-deflate; client_max_window_bits`. A comma in a quoted parameter only makes the check stricter. */
const nameOf = (extension: string): string => (extension.split(';')[0] ?? '').trim()

/**
 * The headers of the 101 that the client gets.
 * @param passed those of the upstream's that pass as from any answer
 * @throws Fault `upstream_broken` if the upstream's 101 is no answer to this handshake (RFC 6455 §4.1): the bytes after
 *   it would be no websocket
 */
export function switchedHeaders(
  call: Call,
  received: IncomingHttpHeaders,
  passed: ResponseHeaders,
): Record<string, string | string[]> {
  const answer = createHash('sha1')
    .update(`${call.headers[KEY] ?? ''}${GUID}`)
    .digest('base64')
  if (received.upgrade?.toLowerCase() !== 'websocket' || received['sec-websocket-accept'] !== answer)
    throw new Fault('upstream_broken', { detail: 'the upstream switched to something else than was asked' })
  requireOffered(call, received)
  const headers: Record<string, string | string[]> = { Connection: 'Upgrade', Upgrade: 'websocket' }
  for (const [lower, name] of Object.entries(OWN)) {
    const value = received[lower]
    if (typeof value === 'string') headers[name] = value
  }
  for (const [name, value] of Object.entries(passed))
    headers[name] = typeof value === 'string' ? value : [...value]
  headers['X-Request-Id'] = call.id
  return headers
}
