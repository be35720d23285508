import { readFileSync } from 'node:fs'
import { Agent, fetch } from 'undici'
import { describe, expect, it, onTestFinished } from 'vitest'
import { certificateFolder, makeCertificate } from '../../support/certificates.ts'
import { postern, type StartedPostern } from '../../support/start-postern.ts'
import { at, streaming } from '../../support/streaming.ts'
import { ALL_AT_ACME, basic } from '../../support/tokens.ts'
import {
  askWebsocket,
  closeOf,
  messageOn,
  startWebsocketUpstream,
  type Asked,
  type WebsocketUpstream,
} from '../../support/websocket-upstream.ts'

/** Websockets of the `ws` package's client over the gateway's own TLS (wss), its certificate verified. */

const LIVE = at('live/lobby')

interface Scene {
  readonly gateway: StartedPostern
  readonly upstream: WebsocketUpstream
  /** An endpoint of identity, by acme-books. */
  readonly post: (path: string, fields: Record<string, string>) => Promise<Record<string, string>>
  readonly token: () => Promise<string>
  readonly ask: (token?: string, target?: string) => Promise<Asked>
  readonly open: (token: string) => Promise<Extract<Asked, { kind: 'open' }>['socket']>
}

async function scene(): Promise<Scene> {
  const tls = makeCertificate(certificateFolder(), 'gateway')
  const ca = readFileSync(tls.certificate)
  const upstream = await startWebsocketUpstream()
  const { change, ...options } = streaming(upstream.url)
  const gateway = await postern({
    ...options,
    change: (loaded) => {
      const streamed = change?.(loaded) ?? loaded
      return { ...streamed, server: { ...streamed.server, tls } }
    },
  })
  const dispatcher = new Agent({ connect: { ca } })
  onTestFinished(() => dispatcher.close())
  const post: Scene['post'] = async (path, fields) => {
    const headers = { Authorization: basic('acme-books') }
    const body = new URLSearchParams(fields)
    const response = await fetch(gateway.authUrl + path, { method: 'POST', headers, body, dispatcher })
    const text = await response.text()
    if (!response.ok) throw new Error(`${response.status} ${text}`)
    return text === '' ? {} : (JSON.parse(text) as Record<string, string>)
  }
  const token: Scene['token'] = async () => {
    const person = { username: 'alice', password: 'alice-password', scope: ALL_AT_ACME }
    return (await post('/connect/token', { grant_type: 'password', ...person })).access_token!
  }
  const ask: Scene['ask'] = (bearer, target = LIVE) =>
    askWebsocket(gateway.baseUrl.replace('https', 'wss') + target, {
      ca,
      headers: bearer === undefined ? {} : { Authorization: `Bearer ${bearer}` },
    })
  const open: Scene['open'] = async (bearer) => {
    const asked = await ask(bearer)
    if (asked.kind !== 'open') throw new Error(`${asked.status} ${asked.body}`)
    return asked.socket
  }
  return { gateway, upstream, post, token, ask, open }
}

describe('C8.1 websockets over TLS', () => {
  it('C8.1 pass text, binary and large messages both ways, and the upstream learns of https', async () => {
    const { open, token, upstream, gateway } = await scene()
    const socket = await open(await token())
    socket.send('hello')
    expect(await messageOn(socket)).toEqual({ data: Buffer.from('hello'), isBinary: false })
    const large = Buffer.alloc(20 * 1024 ** 2, 'postern')
    socket.send(large)
    const echoed = await messageOn(socket)
    expect([echoed.isBinary, echoed.data.equals(large)]).toEqual([true, true])
    expect(upstream.handshakes[0]?.headers).toMatchObject({
      'x-forwarded-proto': 'https',
      'x-forwarded-host': `127.0.0.1:${gateway.port}`,
      'x-postern-client': 'acme-books',
    })
    expect(upstream.handshakes[0]?.headers.authorization).toBeUndefined()
  })

  it('C8.1 pass close codes both ways', async () => {
    const { open, token, upstream } = await scene()
    const bearer = await token()
    const first = await open(bearer)
    first.close(4001, 'enough')
    const [seen] = await Promise.all([closeOf(upstream.sockets[0]!), closeOf(first)])
    expect(seen).toEqual({ code: 4001, reason: 'enough' })
    const second = await open(bearer)
    upstream.sockets[1]?.close(4002, 'go')
    expect(await closeOf(second)).toEqual({ code: 4002, reason: 'go' })
  })

  it.each([
    ['without a token', undefined, LIVE, 401, 'API_NOT_AUTHORISED'],
    ['with a bad token', 'x.y.z', LIVE, 401, 'API_NOT_AUTHORISED'],
    ['of another business', 'good', LIVE.replace('ACME', 'GLOBEX'), 404, 'API_NOT_FOUND'],
  ])(
    'C4 are refused %s by a plain answer over TLS, unseen by the upstream',
    async (_what, bearer, target, status, code) => {
      const { ask, token, upstream } = await scene()
      const asked = await ask(bearer === 'good' ? await token() : bearer, target)
      if (asked.kind !== 'refused') throw new Error('it was opened')
      expect(asked.status).toBe(status)
      expect(asked.headers).toMatchObject({
        connection: 'close',
        'content-type': 'application/json; charset=utf-8',
      })
      expect(JSON.parse(asked.body)).toMatchObject({ Errors: [{ Code: code }], Data: {} })
      expect([upstream.handshakes, upstream.requests]).toEqual([[], []])
    },
  )

  it('C4.16 end with 1008 when their token is revoked, and no other does', async () => {
    const { ask, open, post, token } = await scene()
    const [one, other] = [await token(), await token()]
    const [socket, kept] = [await open(one), await open(other)]
    await post('/connect/revocation', { token: one })
    expect(await closeOf(socket)).toMatchObject({ code: 1008 })
    kept.send('kept')
    expect((await messageOn(kept)).data.toString()).toBe('kept')
    expect(await ask(one)).toMatchObject({ kind: 'refused', status: 401 })
  })

  it('C8.4 end when the upstream breaks off, and let it go when the client does', async () => {
    const { open, token, upstream } = await scene()
    const bearer = await token()
    const first = await open(bearer)
    upstream.sockets[0]?.terminate()
    expect((await closeOf(first)).code).toBe(1006)
    const second = await open(bearer)
    const closed = closeOf(upstream.sockets[1]!)
    second.terminate()
    expect((await closed).code).toBe(1006)
  })
})
