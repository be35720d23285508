/** What Prometheus sees of a service of several processes, while they die and while anybody calls anything. */
import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { poolConfig, startPool, startLoad, UPSTREAM_WORLD, type StartedPool } from '../support/worker-pool.ts'
import { flood } from '../support/flood.ts'
import { readSeries } from '../support/metrics.ts'
import { answerJson, startUpstream } from '../support/start-upstream.ts'
import { basic, issueToken } from '../support/tokens.ts'
import { askWebsocket, startWebsocketUpstream } from '../support/websocket-upstream.ts'

const FUNDS = answerJson({ FundSummaries: [], TotalCount: 0 })
/** Busy or not, every request is decided as it would be alone. */
const QUIET = 'log: { calls: none }\nload: { shedding: { delay: 0s } }'
/** Milliseconds. */
const PATIENCE = 120_000
const LONG = 180_000

interface Scrape {
  readonly status: number
  readonly ms: number
  readonly text: string
  /** Every series of Postern's own, by name and labels. */
  readonly series: ReadonlyMap<string, number>
}

async function scrape({ adminUrl }: StartedPool): Promise<Scrape> {
  const before = performance.now()
  const response = await fetch(`${adminUrl}/metrics`)
  const text = await response.text()
  const ms = performance.now() - before
  return { status: response.status, ms, text, series: readSeries(text) }
}

const isCounter = (series: string): boolean => /_(?:total|count|sum|bucket)(?:\{|$)/.test(series)

/** Counters that are lower than they were, or gone. */
const fallen = (before: Scrape, after: Scrape): string[] =>
  [...before.series]
    .filter(([series, value]) => isCounter(series) && (after.series.get(series) ?? -1) < value)
    .map(([series]) => series)

/** Scrapes, one after the other, until stopped. */
function keepScraping(pool: StartedPool, pause: number): { stop(): Promise<readonly Scrape[]> } {
  const scrapes: Scrape[] = []
  const stop = new AbortController()
  const running = (async () => {
    while (!stop.signal.aborted) {
      scrapes.push(await scrape(pool))
      await new Promise((resolve) => setTimeout(resolve, pause))
    }
  })()
  return {
    stop: async () => {
      stop.abort()
      await running
      return scrapes
    },
  }
}

const slowest = (scrapes: readonly Scrape[]): number => Math.max(...scrapes.map(({ ms }) => ms))
const median = (numbers: readonly number[]): number =>
  numbers.toSorted((one, other) => one - other)[numbers.length >> 1] ?? 0

/** A line of the log for each worker that was started, the first two included. */
const workersStarted = (pool: StartedPool): number =>
  pool.log().filter(({ event }) => event === 'worker_started').length

const ADDED = `
actions:
  - { level: business, area: fund-data, action: fund-list, methods: { GET: { scopes: { any: [fund.read] } } } }
  - { level: business, area: fund-data, action: added, methods: { GET: { scopes: { any: [fund.read] } } } }
`

describe('C11.1 the metrics of several workers', { timeout: LONG }, () => {
  it('T5.7 are answered at every scrape while workers die, and no counter ever falls', async ({
    annotate,
  }) => {
    const upstream = await startUpstream(FUNDS)
    const pool = await startPool(poolConfig(upstream.url))
    const token = await pool.token()
    const load = startLoad(() => pool.call(token), 150)
    await expect.poll(() => load.answers.length, { timeout: PATIENCE }).toBeGreaterThan(50)
    const scraper = keepScraping(pool, 100)
    for (let death = 1; death <= 4; death++) {
      const [victim = 0] = pool.workers()
      process.kill(victim, 'SIGKILL')
      await expect.poll(() => workersStarted(pool), { timeout: PATIENCE }).toBe(2 + death)
      const soFar = load.answers.length
      await expect.poll(() => load.answers.length, { timeout: PATIENCE }).toBeGreaterThan(soFar + 100)
    }
    await load.stop()
    const scrapes = await scraper.stop()
    await annotate(`${scrapes.length} scrapes, the slowest took ${slowest(scrapes).toFixed(1)} ms`)
    expect(new Set(scrapes.map(({ status }) => status))).toEqual(new Set([200]))
    const falls = scrapes.slice(1).map((after, at) => fallen(scrapes[at]!, after))
    expect(falls.flat()).toEqual([])
    const calls = 'postern_requests_total{door="api",area="fund-data",method="GET",status="200"}'
    expect(scrapes.at(-1)?.series.get(calls)).toBeGreaterThan(scrapes[0]?.series.get(calls) ?? 0)
  })

  it('T5.7 tell of the websockets that are open, not of those that were lost with a worker', async () => {
    const upstream = await startWebsocketUpstream()
    const pool = await startPool(`
extends: ${UPSTREAM_WORLD}
workers: 2
backends: { funds: { kind: stream, target: ${upstream.url} } }
actions:
  - level: business
    area: fund-data
    action: live
    methods: { GET: { scopes: { any: [fund.read] }, websocket: true } }
`)
    const headers = { Authorization: `Bearer ${await pool.token()}` }
    const url = `${pool.baseUrl.replace('http', 'ws')}/api/1.0/b/ACME/fund-data/live`
    const sockets = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const asked = await askWebsocket(url, { headers })
        if (asked.kind !== 'open') throw new Error(asked.body)
        return asked.socket
      }),
    )
    const open = async (): Promise<number | undefined> =>
      (await scrape(pool)).series.get('postern_tunnels_open{backend="funds"}')
    await expect.poll(open, { timeout: PATIENCE }).toBe(8)
    process.kill(pool.workers()[0]!, 'SIGKILL')
    const left = () => sockets.filter(({ readyState }) => readyState === WebSocket.OPEN)
    const isTrue = async (): Promise<boolean> => left().length < 8 && (await open()) === left().length
    await expect.poll(isTrue, { timeout: PATIENCE }).toBe(true)
    for (const socket of left()) socket.close()
    await expect.poll(open, { timeout: PATIENCE }).toBe(0)
    expect(await pool.order('POST', '/restart')).toMatchObject({ outcome: 'restarted' })
    expect(await open()).toBe(0)
  })

  it('C11.1 show actions and clients of the configuration from 0, whichever worker counts, also after a death and a reload', async () => {
    const upstream = await startUpstream(FUNDS)
    const config = (clients: number) => poolConfig(upstream.url, `metrics: { clients: ${clients} }`)
    const pool = await startPool(config(1))
    const name = 'postern_client_decisions_total'
    const allowed = async () => {
      const { series } = await scrape(pool)
      const counted = ['acme-books', 'globex-ledger', 'other'].map((client) =>
        series.get(`${name}{client="${client}",class="allowed"}`),
      )
      return counted
    }
    const allowedAt = (action: string): string =>
      `postern_decisions_total{reason="allowed",area="fund-data",action="${action}"}`
    const decided = async (action: string) => (await scrape(pool)).series.get(allowedAt(action))
    expect(await Promise.all([allowed(), decided('fund-list'), decided('added')])).toEqual([
      [0, undefined, 0],
      0,
      undefined,
    ])
    const first = await pool.token()
    // Connections go to both workers in turn, so each client is counted by both.
    const call = async (token: string) => {
      for (let at = 0; at < 4; at++) expect((await pool.call(token)).status).toBe(200)
    }
    await call(first)
    await expect.poll(allowed, { timeout: PATIENCE }).toEqual([4, undefined, 0])
    const { access_token: second } = await issueToken(pool, {
      client: 'globex-ledger',
      username: 'bob',
      scope: 'fund.read target:b/GLOBEX',
    })
    const elsewhere = async () => {
      const response = await fetch(`${pool.baseUrl}/api/1.0/b/GLOBEX/fund-data/fund-list`, {
        headers: { Authorization: `Bearer ${second}`, Connection: 'close' },
      })
      expect(response.status).toBe(200)
    }
    for (let at = 0; at < 4; at++) await elsewhere()
    await expect.poll(allowed, { timeout: PATIENCE }).toEqual([4, undefined, 4])
    process.kill(pool.workers()[0]!, 'SIGKILL')
    await expect.poll(() => workersStarted(pool), { timeout: PATIENCE }).toBe(3)
    await elsewhere()
    await expect.poll(allowed, { timeout: PATIENCE }).toEqual([4, undefined, 5])
    pool.write(`${config(2)}\n${ADDED}`)
    // The service sees the file for itself, and may have read it already.
    expect(await pool.order('POST', '/reload')).toMatchObject({
      outcome: expect.not.stringMatching('refused'),
    })
    await expect.poll(allowed, { timeout: PATIENCE }).toEqual([4, 0, 5])
    await expect.poll(() => decided('added'), { timeout: PATIENCE }).toBe(0)
    await elsewhere()
    await expect.poll(allowed, { timeout: PATIENCE }).toEqual([4, 1, 5])
    await call(first)
    await expect.poll(allowed, { timeout: PATIENCE }).toEqual([8, 1, 5])
  })

  it('T5.8 are as many series after 20,000 random paths and 20,000 random clients', async ({ annotate }) => {
    const upstream = await startUpstream(FUNDS)
    const pool = await startPool(poolConfig(upstream.url, QUIET))
    const authorization = `Authorization: Bearer ${await pool.token()}\r\n`
    const mark = randomBytes(6).toString('hex')
    const name = (index: number): string => `${mark}-${index}-${Math.random().toString(36).slice(2)}`
    const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${authorization}\r\n`
    const PATHS: readonly ((name: string) => string)[] = [
      (text) => `/${text}`,
      (text) => `/connect/${text}`,
      (text) => `/api/${text}`,
      (text) => `/api/1.0/b/${text}/fund-data/fund-list`,
      (text) => `/api/1.0/b/ACME/${text}/fund-list`,
      (text) => `/api/1.0/b/ACME/fund-data/${text}`,
      (text) => `/api/1.0/f/ACME/${text}/fund-data/fund-detail`,
      (text) => `/api/1.0/f/ACME/SUPER1/member-data/member-detail/${text}`,
    ]
    const randomPath = (index: number): string => get(PATHS[index % PATHS.length]!(name(index)))
    const post = (lines: string, body: string): string =>
      `POST /connect/token HTTP/1.1\r\nHost: 127.0.0.1\r\n${lines}` +
      `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    const CLIENTS: readonly ((name: string) => string)[] = [
      (text) => get(`/connect/authorize?response_type=code&client_id=${text}`),
      (text) => post('', `grant_type=authorization_code&code=x&code_verifier=x&client_id=${text}`),
    ]
    const randomClient = (index: number): string => CLIENTS[index % CLIENTS.length]!(name(index))
    // Of these a few must do: whoever has a secret is hashed, known or not (T3.9).
    const secretClient = (index: number): string =>
      post(`Authorization: ${basic(name(index))}\r\n`, 'grant_type=password&username=x&password=x&scope=api1')

    // What happens at all has happened once before the first scrape.
    await flood(pool.port, 400, randomPath)
    await flood(pool.port, 400, randomClient)
    await flood(pool.port, 10, secretClient)
    const readings = async (): Promise<readonly Scrape[]> => {
      const scrapes: Scrape[] = []
      while (scrapes.length < 21) scrapes.push(await scrape(pool))
      return scrapes
    }
    const decisions = ({ series }: Scrape): number =>
      [...series].reduce(
        (sum, [key, value]) => sum + (key.startsWith('postern_decisions_total') ? value : 0),
        0,
      )
    // This series comes when the audit trail is signed for the first time, whoever calls.
    const seriesOf = (scrapes: readonly Scrape[]): string[] =>
      [...scrapes.at(-1)!.series.keys()].filter((key) => key !== 'postern_audit_checkpoint_timestamp_seconds')
    // Workers tell what they counted twice a second.
    const told = async (): Promise<number> => decisions(await scrape(pool))
    await expect.poll(told, { timeout: PATIENCE }).toBeGreaterThanOrEqual(810)
    const before = await readings()
    const beside = keepScraping(pool, 1000)
    const paths = await flood(pool.port, 20_000, randomPath)
    const clients = await flood(pool.port, 20_000, randomClient)
    const secrets = await flood(pool.port, 100, secretClient)
    const during = await beside.stop()
    expect(paths).toEqual({ '404': 17_500, '501': 2500 })
    expect([clients, secrets]).toEqual([{ '400': 20_000 }, { '400': 100 }])
    await expect.poll(told, { timeout: PATIENCE }).toBeGreaterThan(40_000)
    const after = await readings()
    expect(seriesOf(after)).toEqual(seriesOf(before))
    expect(after.at(-1)?.text).not.toContain(mark)
    expect(upstream.requests).toEqual([])
    const [was = 0, is = 0] = [before, after].map((scrapes) => median(scrapes.map(({ ms }) => ms)))
    await annotate(
      `a scrape took ${was.toFixed(1)} ms before, ${is.toFixed(1)} ms after, ${slowest(during).toFixed(1)} ms at most beside`,
    )
  })
})
