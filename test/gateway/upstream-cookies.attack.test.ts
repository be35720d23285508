import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { setsOwnCookie } from '../../src/base/http/head/end-to-end-headers.ts'
import { linkCookie, sessionCookie } from '../../src/identity/stored/own-cookies.ts'
import { startOver } from '../support/over-module.ts'
import { type RawResponse, sendRaw } from '../support/raw-http.ts'
import { bearer, requestBytes, send } from '../support/requests.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { startUpstream, type UpstreamConnection } from '../support/start-upstream.ts'
import { at, withStream } from '../support/streaming.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

/** T2.12: cookies of Postern's own, set by a service behind it. */

const HOSTILE = [
  'postern-session-8080=x; Path=/',
  'postern-session=x',
  '__Host-postern-session=x; Secure; Path=/',
  '__host-POSTERN-session=x',
  '__Secure-postern-session=x',
  'Postern-Session-80=',
  ' postern-session = x',
  '=postern-session-8080=x',
  '= __Host-postern-session=x',
  'postern-session-8080',
  'postern-link-8080=x; Path=/',
  'postern-link=x',
  '__Host-postern-link=x; Secure; Path=/',
  '__host-POSTERN-Link=',
  '= postern-link-80=x',
]
const KEPT = ['a=b; Path=/', 'session=postern-session', 'my-postern-link=1', '=', '']

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const ACCEPT = createHash('sha1').update(`${KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')

const lines = (cookies: readonly string[]): string =>
  cookies.map((cookie) => `Set-Cookie: ${cookie}\r\n`).join('')

const setting =
  (cookies: readonly string[]) =>
  (connection: UpstreamConnection): void =>
    connection.raw(
      `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n${lines(cookies)}\r\n{}`,
    )

const dropped = (gateway: StartedPostern): number =>
  gateway.log().filter(({ event, backend }) => event === 'cookie_dropped' && backend === 'funds').length

/** `stream` is the `http` backend with websockets. */
async function before(cookies: readonly string[]) {
  const upstream = await startUpstream(setting(cookies))
  const gateway = await postern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: (loaded) => withStream(loaded, { responseHeaders: ['Set-Cookie'] }),
  })
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  return { upstream, gateway, token: access_token }
}

const cookiesIn = ({ rawHeaders }: RawResponse): readonly string[] =>
  rawHeaders.filter(([name]) => name.toLowerCase() === 'set-cookie').map(([, value]) => value)

describe('T2.12 a service that sets the cookies of Postern’s own', () => {
  it('C8.3 none of them reaches the client in any spelling; its other cookies do; the log tells it', async () => {
    const { gateway, token } = await before([...HOSTILE, ...KEPT.slice(0, 3)])
    const answer = await sendRaw(gateway.port, requestBytes({ target: LIST, headers: bearer(token) }))
    expect(cookiesIn(answer)).toEqual(KEPT.slice(0, 3))
    expect(dropped(gateway)).toBe(1)
  })

  it('C8.3 where there are no others, there is no such header', async () => {
    const { gateway, token } = await before(HOSTILE)
    const answer = await sendRaw(gateway.port, requestBytes({ target: LIST, headers: bearer(token) }))
    expect([answer.status, cookiesIn(answer)]).toEqual([200, []])
  })

  it('C8.3 nor by the answer to a handshake', async () => {
    const { upstream, gateway, token } = await before([])
    upstream.behave((connection) =>
      connection.raw(
        'HTTP/1.1 101 Sure\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
          `Sec-WebSocket-Accept: ${ACCEPT}\r\n${lines([...HOSTILE, 'a=b'])}\r\n`,
      ),
    )
    const answer = await sendRaw(
      gateway.port,
      requestBytes({
        target: at('live/lobby'),
        headers: {
          ...bearer(token),
          Connection: 'Upgrade',
          Upgrade: 'websocket',
          'Sec-WebSocket-Version': '13',
          'Sec-WebSocket-Key': KEY,
        },
      }),
    )
    expect([answer.status, cookiesIn(answer)]).toEqual([101, ['a=b']])
    expect(dropped(gateway)).toBe(1)
  })

  it('C8.3, C8.9 nor by a module that runs around the service', async () => {
    const { gateway, token } = await startOver(
      `{ response: () => ({ status: 200, headers: { 'Set-Cookie': ${JSON.stringify([...HOSTILE, 'a=b'])} }, body: { kind: 'value', value: {} } }) }`,
      { module: { responseHeaders: ['Set-Cookie'] } },
    )
    const { headers } = await send(gateway, { target: LIST, headers: bearer(token) })
    expect(headers['set-cookie']).toEqual('a=b')
    expect(dropped(gateway)).toBe(1)
  })

  it('C6.2.3 C6.3.7 whatever Postern calls its cookies is one of its own', () => {
    for (const issuer of ['https://api.example', 'http://127.0.0.1:8080', 'http://api.example'])
      for (const cookie of [sessionCookie(issuer), linkCookie(issuer)]) {
        expect(setsOwnCookie(cookie.write('x'))).toBe(true)
        expect(setsOwnCookie(cookie.clear())).toBe(true)
      }
    for (const value of HOSTILE) expect([value, setsOwnCookie(value)]).toEqual([value, true])
    for (const value of KEPT) expect([value, setsOwnCookie(value)]).toEqual([value, false])
  })
})
