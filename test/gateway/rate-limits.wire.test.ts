import { describe, expect, it, onTestFinished } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { eventually } from '../support/eventually.ts'
import { UPSTREAM_WORLD } from '../support/worker-pool.ts'
import { TICK_MS } from '../../src/gateway/limits/load-guard.ts'
import { movableClock, type MovableClock } from '../support/movable-clock.ts'
import { openRaw, type RawConnection } from '../support/raw-http.ts'
import { bearer, expectFault, form, requestBytes, send } from '../support/requests.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { startUpstream, type UpstreamConnection } from '../support/start-upstream.ts'
import { ALL_AT_ACME, basic, issueToken } from '../support/tokens.ts'
import { SETTINGS } from '../../src/serve/start/settings.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const USERINFO = '/api/1.0/u/connect/userinfo'
const RATE = { requests: 2, per: 1000, burst: 3 }

const json = { headers: { 'Content-Type': 'application/json' } }

type Load = Configuration['load']
type Change = { readonly [K in keyof Omit<Load, 'share'>]?: Partial<Load[K]> }

const withLoad =
  (change: Change) =>
  (loaded: Configuration): Configuration => ({
    ...loaded,
    load: {
      ...loaded.load,
      clients: { ...loaded.load.clients, ...change.clients },
      backends: { ...loaded.load.backends, ...change.backends },
      addresses: { ...loaded.load.addresses, ...change.addresses },
      shedding: { ...loaded.load.shedding, ...change.shedding },
    },
  })

/** A gateway with limits, whose time the test moves. */
async function limited(change: Change) {
  const clock = movableClock()
  const gateway = await postern({ clock, keeps: 'nothing', change: withLoad(change) })
  return { gateway, clock }
}

const tokenOf = async (gateway: StartedPostern): Promise<string> =>
  (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token

const askList = (gateway: StartedPostern, token: string, target = LIST) =>
  send(gateway, { target, headers: bearer(token) })

describe('C4.5: the rate of a client', () => {
  it('C4.5: answers carry what is left of the rate, whatever they are; without a rate none does', async () => {
    const { gateway } = await limited({ clients: { rate: RATE } })
    const token = await tokenOf(gateway)
    const ok = await askList(gateway, token)
    expect(ok.status).toBe(200)
    expect(ok.headers).toMatchObject({
      ratelimit: '"client";r=2;t=1',
      'ratelimit-policy': '"client";q=2;w=1',
    })
    const missing = await askList(gateway, token, '/api/1.0/b/ACME/fund-data/nothing')
    expectFault(missing, 'unknown_action')
    expect(missing.headers['ratelimit']).toBe('"client";r=1;t=1')
    expect((await askList(gateway, token, USERINFO)).headers['ratelimit']).toBe('"client";r=0;t=2')

    const free = await postern({ keeps: 'nothing' })
    const unlimited = await askList(free, await tokenOf(free))
    expect(unlimited.status).toBe(200)
    expect(Object.keys(unlimited.headers).filter((name) => name.startsWith('ratelimit'))).toEqual([])
  })

  it('C4.5: a call over the rate is 429 with Retry-After, at userinfo too, until it has been waited for', async () => {
    const { gateway, clock } = await limited({ clients: { rate: RATE } })
    const token = await tokenOf(gateway)
    for (let at = 0; at < 3; at++) expect((await askList(gateway, token)).status).toBe(200)
    for (const target of [LIST, USERINFO]) {
      const refused = await askList(gateway, token, target)
      expectFault(refused, 'rate_limited')
      expect(refused.headers).toMatchObject({ 'retry-after': '1', ratelimit: '"client";r=0;t=1' })
    }
    clock.advance(500)
    expect((await askList(gateway, token)).status).toBe(200)
    expectFault(await askList(gateway, token), 'rate_limited')
  })

  it('C4.5: the rate is the client’s, over all its tokens and no other client’s', async () => {
    const { gateway } = await limited({
      clients: { byId: { 'acme-books': { rate: { ...RATE, burst: 1 } } } },
    })
    expect((await askList(gateway, await tokenOf(gateway))).status).toBe(200)
    expectFault(await askList(gateway, await tokenOf(gateway)), 'rate_limited')
  })

  it('C4.5: comes behind C4.4: a bad token is 401, and costs nobody’s rate', async () => {
    const { gateway } = await limited({ clients: { rate: { ...RATE, burst: 1 } } })
    const token = await tokenOf(gateway)
    for (let at = 0; at < 5; at++) expectFault(await askList(gateway, `${token}x`), 'invalid_token')
    expect((await askList(gateway, token)).status).toBe(200)
  })
})

describe('C4.5: calls in flight', () => {
  /** A gateway before an upstream that answers when the test says so. */
  async function waiting(change: Change) {
    const held: UpstreamConnection[] = []
    const upstream = await startUpstream((connection) => void held.push(connection))
    const gateway = await postern({
      config: 'upstream.yaml',
      keeps: 'nothing',
      environment: { UPSTREAM_URL: upstream.url },
      change: (loaded) => {
        const { server, ...rest } = withLoad(change)(loaded)
        return { ...rest, server: { ...server, timeouts: { ...server.timeouts, drain: 50 } } }
      },
    })
    const token = await tokenOf(gateway)
    const begin = async (): Promise<RawConnection> => {
      const connection = await openRaw(gateway.port)
      connection.send(requestBytes({ target: LIST, headers: bearer(token) }))
      return connection
    }
    const beginAll = async (count: number): Promise<RawConnection[]> => {
      const begun = await Promise.all(Array.from({ length: count }, begin))
      await upstream.received(upstream.requests.length < count ? count : upstream.requests.length)
      return begun
    }
    return { gateway, upstream, held, token, begin, beginAll }
  }
  const settled = (gateway: StartedPostern, token: string, status: number) =>
    eventually(async () => {
      const connection = await openRaw(gateway.port)
      connection.send(requestBytes({ target: USERINFO, headers: bearer(token) }))
      const { status: given } = await connection.response()
      connection.destroy()
      expect(given).toBe(status)
    })

  it('C4.5: a call over a client’s cap is 429; one that ended, however it did, makes room for another', async () => {
    const { gateway, held, token, beginAll, upstream } = await waiting({ clients: { inFlight: 2 } })
    const [one, two] = await beginAll(2)
    expectFault(await askList(gateway, token), 'too_many_calls')
    expect(upstream.requests).toHaveLength(2)

    held[0]?.respond({ ...json, body: '{}' }) // an answer
    const answered = await Promise.race([one?.response(), two?.response()])
    expect(answered?.status).toBe(200)
    await settled(gateway, token, 200)

    held[1]?.reset() // a fault
    await settled(gateway, token, 200)
    await beginAll(2)
    await upstream.received(4)
    expectFault(await askList(gateway, token), 'too_many_calls')
  })

  it('C4.5: a client that left is not in flight', async () => {
    const { gateway, token, beginAll } = await waiting({ clients: { inFlight: 2 } })
    const begun = await beginAll(2)
    expectFault(await askList(gateway, token), 'too_many_calls')
    for (const connection of begun) connection.destroy()
    await settled(gateway, token, 200)
  })

  it('T5.4: a call over a backend’s cap is 503 at once and never reaches it; whatever needs no backend is served', async () => {
    const { gateway, held, token, begin, beginAll, upstream } = await waiting({
      backends: { byName: { funds: 2 } },
    })
    const begun = await beginAll(2)
    const refused = await askList(gateway, token)
    expectFault(refused, 'backend_busy')
    expect(refused.headers['retry-after']).toBe('1')
    expect(upstream.requests).toHaveLength(2)
    expect((await askList(gateway, token, USERINFO)).status).toBe(200)

    // In mid-stream the place is still taken; at the end of the stream it is free.
    held[0]?.raw('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 200002\r\n\r\n"')
    held[0]?.raw('a'.repeat(100_000))
    await Promise.race(begun.map((connection) => eventually(() => expect(connection.unread).not.toBe(''))))
    expectFault(await askList(gateway, token), 'backend_busy')
    held[0]?.raw(`${'a'.repeat(100_000)}"`)
    await Promise.race(begun.map((connection) => connection.response()))
    await eventually(async () => {
      const next = await begin()
      await eventually(() => expect(upstream.requests.length + next.unread.length).toBeGreaterThan(2))
      expect(next.unread).toBe('')
    })
    expectFault(await askList(gateway, token), 'backend_busy')
  })
})

describe('T5.4: a backend that hangs beside one that is well', () => {
  const MEMBERS = '/api/1.0/f/ACME/SUPER1/member-data/member-list'

  /** Members stand behind an upstream that never answers, funds do not; a client has six places. */
  async function besideHung(mode: 'enforce' | 'report-only') {
    const held: UpstreamConnection[] = []
    const hung = await startUpstream((connection) => void held.push(connection))
    const gateway = await postern({
      keeps: 'nothing',
      change: (loaded) => {
        const { configuration: forwarding } = SETTINGS.read(UPSTREAM_WORLD, { UPSTREAM_URL: hung.url })
        const change = withLoad({ clients: { inFlight: 6 } })(loaded)
        const { server } = loaded
        return {
          ...change,
          server: { ...server, timeouts: { ...server.timeouts, drain: 50 } },
          backends: { ...loaded.backends, hung: forwarding!.backends['funds']! },
          areas: { ...loaded.areas, 'member-data': { backend: 'hung', mode } },
        }
      },
    })
    const token = await tokenOf(gateway)
    const ask = async (): Promise<RawConnection> => {
      const connection = await openRaw(gateway.port)
      onTestFinished(() => connection.destroy())
      connection.send(requestBytes({ target: MEMBERS, headers: bearer(token) }))
      return connection
    }
    return { gateway, hung, held, token, ask }
  }

  it('T5.4 C4.5: it holds half of a client’s places; more calls to it are 429, those to the other are served', async () => {
    const { gateway, hung, token, ask } = await besideHung('enforce')
    const asked = await Promise.all(Array.from({ length: 12 }, ask))
    await hung.received(3)
    await eventually(() => expect(asked.filter(({ unread }) => unread !== '')).toHaveLength(9))
    for (const refused of asked.filter(({ unread }) => unread !== '')) {
      const response = await refused.response()
      expectFault(response, 'too_many_backend_calls')
      expect(response.headers['retry-after']).toBe('1')
    }
    for (let at = 0; at < 20; at++) expect((await askList(gateway, token)).status).toBe(200)
    expect((await askList(gateway, token, USERINFO)).status).toBe(200)
    expect(hung.requests).toHaveLength(3)
    // A client that leaves frees its place.
    for (const connection of asked) connection.destroy()
    await Promise.all(Array.from({ length: 3 }, ask))
    await hung.received(6)
  })

  it('C4.5: a report-only area lets such calls through, and tells of them', async () => {
    const { gateway, hung, held, token, ask } = await besideHung('report-only')
    const asked = await Promise.all(Array.from({ length: 5 }, ask))
    await hung.received(5)
    expect((await askList(gateway, token)).status).toBe(200)
    for (const connection of held) connection.respond({ ...json, body: '{}' })
    for (const connection of asked) expect((await connection.response()).status).toBe(200)
    const told = gateway.log().filter(({ wouldRefuse }) => wouldRefuse === 'too_many_backend_calls')
    expect(told).toHaveLength(2)
  })
})

describe('C4.5: the rate of an address', () => {
  it('C4.5: is asked before any token or password, at every door, and told in the form of the door', async () => {
    const { gateway, clock } = await limited({ addresses: { rate: RATE } })
    for (let at = 0; at < 3; at++) expectFault(await send(gateway, { target: LIST }), 'no_credentials')
    const refused = await send(gateway, { target: LIST })
    expectFault(refused, 'address_rate_limited')
    expect(refused.headers['retry-after']).toBe('1')
    const xml = await send(gateway, { target: LIST, headers: { Accept: 'application/xml' } })
    expectFault(xml, 'address_rate_limited', { format: 'xml' })
    expectFault(await send(gateway, { target: '/elsewhere' }), 'address_rate_limited')

    const { headers, body } = form({ grant_type: 'password', username: 'alice', password: 'alice-password' })
    const sent = { method: 'POST', target: '/connect/token', body }
    const login = { ...sent, headers: { ...headers, Authorization: basic('acme-books') } }
    const identity = await send(gateway, login)
    expect(identity.status).toBe(429)
    expect(identity.headers['retry-after']).toBe('1')
    expect(JSON.parse(identity.body)).toMatchObject({ error: 'temporarily_unavailable' })
    expect((await send(gateway, { target: '/.well-known/jwks.json' })).status).toBe(429)

    clock.advance(500)
    expect((await send(gateway, { target: '/.well-known/jwks.json' })).status).toBe(200)
  })

  it('C4.5: is the client’s behind a trusted proxy, and nobody else’s word counts', async () => {
    const clock: MovableClock = movableClock()
    const gateway = await postern({
      clock,
      keeps: 'nothing',
      change: (loaded) => {
        const { server, ...rest } = withLoad({ addresses: { rate: RATE } })(loaded)
        return { ...rest, server: { ...server, trustedProxies: ['127.0.0.1'] } }
      },
    })
    const from = (address: string) =>
      send(gateway, { target: LIST, headers: { 'X-Forwarded-For': `198.51.100.1, ${address}` } })
    for (let at = 0; at < 3; at++) expect((await from('192.0.2.1')).status).toBe(401)
    expect((await from('192.0.2.1')).status).toBe(429)
    expect((await from('192.0.2.2')).status).toBe(401)
    for (let at = 0; at < 2; at++) expect((await from(`2001:db8::${String(at)}`)).status).toBe(401)
    expect((await from('2001:db8:0:0:ffff::1')).status).toBe(401)
    expect((await from('2001:db8::9')).status).toBe(429)
  })

  it('C4.1 comes first: what cannot be read is told so', async () => {
    const { gateway } = await limited({ addresses: { rate: { ...RATE, burst: 1 } } })
    await send(gateway, { target: LIST })
    expectFault(await send(gateway, { target: '/api/1.0/b/ACME/..%2f' }), 'bad_target')
  })
})

describe('T5.4: load shedding', () => {
  it('T5.4: while the event loop is late, calls are 503 with Retry-After, and health and metrics are not', async () => {
    const { gateway, clock } = await limited({ shedding: { delay: 250 } })
    const guard = gateway.world.admission
    guard.stop()
    const turn = (count: number, late: number): void => {
      for (let at = 0; at < count; at++) {
        clock.advance(TICK_MS + late)
        guard.tick()
      }
    }
    const token = await tokenOf(gateway)
    turn(1, 5000)
    expect((await askList(gateway, token)).status).toBe(200)
    turn(40, 400)
    const refused = await askList(gateway, token)
    expectFault(refused, 'overloaded')
    expect(refused.headers['retry-after']).toBe('5')
    const login = await send(gateway, { method: 'POST', target: '/connect/token' })
    expect(login.status).toBe(503)
    expect(JSON.parse(login.body)).toMatchObject({ error: 'temporarily_unavailable' })
    expect((await fetch(`${gateway.adminUrl}/health/live`)).status).toBe(200)
    const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
    expect(metrics).toMatch(/^postern_decisions_total\{reason="overloaded",area="",action=""\} [12]$/m)
    turn(2000, 0)
    expect((await askList(gateway, token)).status).toBe(200)
    const notes = gateway.log().map((line) => line['event'])
    expect(notes.filter((note) => String(note).startsWith('shedding'))).toEqual([
      'shedding_started',
      'shedding_ended',
    ])
  })
})
