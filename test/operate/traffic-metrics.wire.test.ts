/** What a scrape shows of calls, connections and targets while there is traffic. */
import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { Jwk } from '../../src/base/kernel/jwk.ts'
import { importPublicKey, isSignedBy } from '../../src/identity/keys/verify/signatures.ts'
import { type HttpConfig, replaceFunds } from '../support/changed-funds.ts'
import { seriesOf } from '../support/metrics.ts'
import { bearer, send } from '../support/requests.ts'
import { shared } from '../support/shared.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { answerJson, startUpstream, type UpstreamConnection } from '../support/start-upstream.ts'
import { at, streaming, withStream } from '../support/streaming.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'
import { askWebsocket, startWebsocketUpstream } from '../support/websocket-upstream.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const FUNDS = answerJson({ FundSummaries: [], TotalCount: 0 })

async function start(upstreamUrl: string, change: (backend: HttpConfig) => HttpConfig) {
  const gateway = await postern({
    config: 'upstream.yaml',
    keeps: 'nothing',
    environment: { UPSTREAM_URL: upstreamUrl },
    change: replaceFunds(change),
  })
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  const call = () => send(gateway, { target: LIST, headers: bearer(access_token) })
  return { gateway, call }
}

/** An upstream that keeps its callers waiting until it is told to answer all, also those that come then. */
async function startSlowUpstream() {
  const held: UpstreamConnection[] = []
  const upstream = await startUpstream((connection) => void held.push(connection))
  return {
    upstream,
    answerAll: () => {
      upstream.behave(FUNDS)
      for (const connection of held.splice(0)) FUNDS(connection)
    },
  }
}

/** Values of series by the short names that they are given. */
async function values<Name extends string>(gateway: StartedPostern, names: Readonly<Record<Name, string>>) {
  const series = await seriesOf(gateway)
  const entries = Object.entries<string>(names).map(([name, key]) => [name, series.get(key)])
  return Object.fromEntries(entries) as Record<Name, number | undefined>
}

const FUNDS_NOW = {
  calls: 'postern_calls_in_flight',
  backend: 'postern_backend_calls_in_flight{backend="funds"}',
  active: 'postern_upstream_connections{backend="funds",state="active"}',
  idle: 'postern_upstream_connections{backend="funds",state="idle"}',
  queue: 'postern_upstream_queue{backend="funds"}',
}

const TARGETS = {
  healthy: 'postern_upstream_targets{backend="funds",state="healthy"}',
  ejected: 'postern_upstream_targets{backend="funds",state="ejected"}',
  ejections: 'postern_upstream_ejections_total{backend="funds"}',
  retries: 'postern_upstream_retries_total{backend="funds"}',
}

describe('C11.1 the traffic of the moment', () => {
  const serve = shared(() => postern({ keeps: 'nothing' }))

  it('C11.1 tells calls in flight, connections in use and calls that wait for one', async () => {
    const { upstream, answerAll } = await startSlowUpstream()
    const { gateway, call } = await start(upstream.url, (backend) => ({ ...backend, maxConnections: 2 }))
    const now = () => values(gateway, FUNDS_NOW)
    expect(await now()).toEqual({ calls: 0, backend: 0, active: 0, idle: 0, queue: 0 })
    const answers = Array.from({ length: 5 }, call)
    await expect.poll(now).toEqual({ calls: 5, backend: 5, active: 2, idle: 0, queue: 3 })
    expect(upstream.requests).toHaveLength(2)
    answerAll()
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    await expect.poll(now).toEqual({ calls: 0, backend: 0, active: 0, idle: 2, queue: 0 })
  })

  it('C11.1 shows the calls of a configuration that was replaced, and of the one in force, together', async () => {
    const { upstream, answerAll } = await startSlowUpstream()
    const { gateway, call } = await start(upstream.url, (backend) => backend)
    const now = () => values(gateway, { ...FUNDS_NOW, ...TARGETS })
    const before = [call(), call()]
    await expect.poll(async () => (await now()).active).toBe(2)
    const other = replaceFunds((backend) => ({ ...backend, maxConnections: 7 }))(gateway.configuration)
    await gateway.worker!.prepare(other)
    await gateway.worker!.commit()
    const after = call()
    const both = { calls: 3, backend: 3, active: 3, queue: 0, healthy: 1, ejected: 0 }
    await expect.poll(now).toMatchObject(both)
    // The backend is the same, and is kept: it is read once.
    await gateway.worker!.prepare({ ...other, log: { ...other.log, calls: 'none' } })
    await gateway.worker!.commit()
    expect(await now()).toMatchObject(both)
    answerAll()
    await Promise.all([...before, after])
    await expect.poll(now).toMatchObject({ calls: 0, backend: 0, active: 0, queue: 0 })
  })

  it('C11.1 shows a dead target as ejected, and counts the ejection and the calls that were repeated', async () => {
    const well = await startUpstream(FUNDS)
    const dead = await startUpstream((connection) => connection.reset())
    const { gateway, call } = await start(well.url, (backend) => {
      const { target, ...others } = backend
      return { ...others, targets: [target ?? well.url, dead.url], ejection: { failures: 3, for: 60_000 } }
    })
    const now = () => values(gateway, TARGETS)
    expect(await now()).toEqual({ healthy: 2, ejected: 0, ejections: 0, retries: 0 })
    const statuses = new Set<number>()
    for (let at = 0; at < 20; at++) statuses.add((await call()).status)
    expect(statuses).toEqual(new Set([200]))
    expect(dead.requests).toHaveLength(3)
    expect(await now()).toEqual({ healthy: 1, ejected: 1, ejections: 1, retries: 3 })
  })

  it('C11.1 counts a websocket as a call in flight and its connection as one in use', async () => {
    const upstream = await startWebsocketUpstream()
    const gateway = await postern({ ...streaming(upstream.url), keeps: 'nothing', change: withStream })
    const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
    const now = () => values(gateway, FUNDS_NOW)
    const asked = await askWebsocket(`${gateway.baseUrl.replace('http', 'ws')}${at('live/lobby')}`, {
      headers: bearer(access_token),
    })
    if (asked.kind !== 'open') throw new Error(asked.body)
    expect(await now()).toEqual({ calls: 1, backend: 1, active: 1, idle: 0, queue: 0 })
    asked.socket.close()
    await expect.poll(now).toEqual({ calls: 0, backend: 0, active: 0, idle: 0, queue: 0 })
  })

  it('C11.1 tells the checks of passwords that wait, and whether calls are shed', async () => {
    const gateway = await serve()
    const waiting = 'postern_hash_queue'
    const hashes = Array.from({ length: 40 }, () => gateway.world.hasher.hash('a password'))
    expect((await seriesOf(gateway)).get(waiting)).toBeGreaterThan(0)
    await Promise.all(hashes)
    const series = await seriesOf(gateway)
    expect([series.get(waiting), series.get('postern_shedding')]).toEqual([0, 0])
  })

  it('C11.1 tells the signatures that wait to be checked', async () => {
    const gateway = await serve()
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-521' })
    const key = await importPublicKey(publicKey.export({ format: 'jwk' }) as Jwk, 'ES512')
    const token = `a.b.${Buffer.alloc(132, 1).toString('base64url')}`
    const checks = Array.from({ length: 1_000 }, () => isSignedBy(token, key, 'ES512'))
    const waiting = 'postern_signature_queue'
    expect((await seriesOf(gateway)).get(waiting)).toBeGreaterThan(0)
    await Promise.all(checks)
    expect((await seriesOf(gateway)).get(waiting)).toBe(0)
  })
})
