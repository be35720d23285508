import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { attackUpstream, bytesOf, type AttackedUpstream } from '../../support/attacked.ts'
import { HOSTILE } from '../../support/hostile-segments.ts'
import { sendRaw, type RawResponse } from '../../support/raw-http.ts'
import { at, withStream } from '../../support/streaming.ts'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'

/** T2.10 and C8.8 on handshakes of websockets: they are sent, and answered, as any call. */

const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const ACCEPT = createHash('sha1').update(`${KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
const HANDSHAKE = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${KEY}\r\n`

const SENT = {
  path: '/ws/{business}/{room}',
  query: { business: '{business}' },
  headers: { 'X-Room': '{room}' },
}

/** Gives the websocket of `live/{room}` this section. */
function shaped(loaded: Configuration): Configuration {
  const streamed = withStream(loaded, { responseHeaders: ['Link', 'Location', 'X-Node', 'X-Zone'] })
  return {
    ...streamed,
    actions: streamed.actions.map((action) =>
      action.action === 'live/{room}' && action.methods.GET
        ? { ...action, methods: { GET: { ...action.methods.GET, upstream: SENT } } }
        : action,
    ),
  }
}

let attacked: AttackedUpstream
beforeAll(async () => {
  attacked = await attackUpstream({ change: shaped })
})
afterAll(() => attacked.close())
beforeEach(() => attacked.forget())

/** Switches, with these header lines. */
const switching = (lines = ''): void =>
  attacked.upstream.behave((connection) =>
    connection.raw(
      'HTTP/1.1 101 Sure\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
        `Sec-WebSocket-Accept: ${ACCEPT}\r\n${lines}\r\n`,
    ),
  )

const open = (room: string, lines = ''): Promise<RawResponse> =>
  sendRaw(
    attacked.port,
    bytesOf({ target: at(`live/${room}`), lines: attacked.authorization + HANDSHAKE + lines }),
  )

describe('T2.10 what a handshake is made to say', () => {
  it('C8.7 the tenant is ours, in path, query and header, whatever the client sends', async () => {
    switching()
    for (const query of ['business=GLOBEX', '?business=GLOBEX', 'Business[]=GLOBEX', 'a;business%00x=GLOBEX'])
      expect([query, (await open(`1?${query}&a`, 'X_Room: GLOBEX\r\n')).status]).toEqual([query, 101])
    for (const { target, head } of attacked.received()) {
      expect(target).toMatch(/^\/ws\/ACME\/1\?(?:a&)?a&business=ACME$/)
      expect(head).not.toContain('GLOBEX')
    }
  })

  it.each(HOSTILE)('C3.4 C8.7 %s is no room', async (room) => {
    switching()
    expect((await open(`x${room}y`)).status).toBe(/^(?:\.|%2e)+$/i.test(room) ? 101 : 400)
    for (const { target } of attacked.received()) expect(target).toMatch(/^\/ws\/ACME\/x\.+y\?business=ACME$/)
  })

  it('C8.7 a value that no header holds is 400, and the upstream gets no handshake', async () => {
    switching()
    for (const room of ['a%20b', '%C3%A9']) expect([room, (await open(room)).status]).toEqual([room, 400])
    expect(attacked.received()).toEqual([])
    expect(attacked.gateway.log().some(({ reason }) => reason === 'unsendable_argument')).toBe(true)
  })
})

describe('C8.8 what the answer to a handshake tells', () => {
  it('C8.8 no address of the upstream; its URLs are the public ones, or left out', async () => {
    const { url } = attacked.upstream
    switching(
      `Link: </ws/ACME/2>; rel=next, </ws/GLOBEX/2>; rel=prev\r\nLocation: ${url}/ws/GLOBEX/1\r\n` +
        `X-Node: ${url}\r\nX-Zone: a\r\n`,
    )
    const { status, headers } = await open('1')
    expect(status).toBe(101)
    expect(headers).toMatchObject({
      link: `<${attacked.gateway.baseUrl}${at('live/2')}>; rel="next"`,
      'x-zone': 'a',
    })
    expect(headers).not.toHaveProperty('location')
    expect(headers).not.toHaveProperty('x-node')
  })

  it('C8.4, C8.8 a redirect is not followed, and its place is not told', async () => {
    attacked.upstream.behave((connection) =>
      connection.respond({ status: 302, headers: { Location: `${attacked.upstream.url}/elsewhere` } }),
    )
    const { status, headers, body } = await open('1')
    expect(status).toBe(500)
    expect(headers).not.toHaveProperty('location')
    expect(body).not.toContain('127.0.0.1')
    expect(attacked.received()).toHaveLength(1)
  })
})
