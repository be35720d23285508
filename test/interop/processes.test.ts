/** A service of several worker processes, changed, restarted and killed while it is called. */
import { describe, expect, it } from 'vitest'
import { poolConfig, startPool, startLoad, type Load, type StartedPool } from '../support/worker-pool.ts'
import { basic } from '../support/tokens.ts'
import { answerJson, startUpstream, type Upstream } from '../support/start-upstream.ts'

const FUNDS = answerJson({ FundSummaries: [], TotalCount: 0 })
/** Calls a second: bounded, so that the machine is not what is tested. */
const RATE = 150
/** Everything must be in force everywhere by then (C9.1). */
const SECOND = 1000

/** Milliseconds: on a busy machine a process takes seconds to start. Nobody waits that long otherwise. */
const PATIENCE = 120_000
const LONG = 120_000

const until = async (condition: () => boolean, what: string): Promise<void> => {
  const deadline = performance.now() + PATIENCE
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Waits for answers that were asked for after a moment, and answers their statuses. */
async function statusesAfter(load: Load, moment: number): Promise<Set<number>> {
  const later = () => load.answers.filter(({ askedAt }) => askedAt > moment)
  await until(() => later().length >= 40, 'answers')
  return new Set(later().map(({ status }) => status))
}

/** Gives an order while calls go on; answers what calls were told that were begun a second after it was carried out. */
async function afterOrder(pool: StartedPool, load: Load, ...order: Parameters<StartedPool['order']>) {
  await pool.order(...order)
  return statusesAfter(load, performance.now() + SECOND)
}

const action = (version: number): string => `
actions:
  - level: business
    area: fund-data
    action: fund-list
    methods:
      GET: { scopes: { any: [fund.read] }, versions: [1, 2], defaultVersion: ${version} }`

const versionsSeen = ({ requests }: Upstream): Set<string> =>
  new Set(requests.flatMap(({ headers }) => headers['x-postern-action-version'] ?? ['none']))

/** Every counter of a scrape, by series. */
function counters(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => /^postern_\w+(_total|_count|_sum|_bucket)[ {]/.test(line))
  return new Map(
    lines.map((line) => {
      const space = line.lastIndexOf(' ')
      return [line.slice(0, space), Number(line.slice(space))]
    }),
  )
}

async function scrape({ adminUrl }: StartedPool): Promise<Map<string, number>> {
  return counters(await (await fetch(`${adminUrl}/metrics`)).text())
}

describe('several workers', { timeout: LONG }, () => {
  it('C9.1 T3.4 have maintenance, revocations and a new configuration in force within a second, all of them', async () => {
    const upstream = await startUpstream(FUNDS)
    const text = poolConfig(upstream.url)
    const pool = await startPool(text)
    expect(pool.workers()).toHaveLength(2)
    let token = await pool.token()
    const load = startLoad(() => pool.call(token), RATE)

    expect(await afterOrder(pool, load, 'PUT', '/maintenance', { scope: 'business/ACME' })).toEqual(
      new Set([503]),
    )
    expect(await afterOrder(pool, load, 'DELETE', '/maintenance?scope=business/ACME')).toEqual(new Set([200]))
    expect(await afterOrder(pool, load, 'POST', '/revoke', { client: 'acme-books' })).toEqual(new Set([401]))
    token = await pool.token()
    expect(await statusesAfter(load, performance.now())).toEqual(new Set([200]))
    pool.write(`${text}\nmaintenance: [{ scope: area/fund-data }]`)
    expect(await afterOrder(pool, load, 'POST', '/reload')).toEqual(new Set([503]))
    // The file alone is enough, too.
    pool.write(text)
    await until(() => load.answers.at(-1)?.status === 200, 'the file to be seen')
    expect(await statusesAfter(load, performance.now() + SECOND)).toEqual(new Set([200]))
    await load.stop()
    expect(load.broken).toEqual([])
    const told = pool.log().map(({ event }) => event)
    expect(told).toEqual(
      expect.arrayContaining(['maintenance_changed', 'tokens_revoked', 'configuration_reloaded']),
    )
  })

  it('a hundred reloads lose no call, and none is judged by a mix of two configurations', async () => {
    const [one, two] = [await startUpstream(FUNDS), await startUpstream(FUNDS)]
    const texts = [poolConfig(one.url, action(1)), poolConfig(two.url, action(2))] as const
    const pool = await startPool(texts[0])
    const token = await pool.token()
    const load = startLoad(() => pool.call(token), RATE)
    for (let count = 1; count <= 100; count++) {
      pool.write(texts[count % 2 === 0 ? 0 : 1])
      await pool.order('POST', '/reload')
    }
    await load.stop()
    expect(load.broken).toEqual([])
    expect(Object.keys(load.counts)).toEqual(['200'])
    expect([versionsSeen(one), versionsSeen(two)]).toEqual([new Set(['1']), new Set(['2'])])
  })

  it('a bad file changes nothing, and the answer and the log say all that is wrong', async () => {
    const upstream = await startUpstream(FUNDS)
    const text = poolConfig(upstream.url)
    const pool = await startPool(text)
    const token = await pool.token()
    pool.write(`${text}\nvendor: NO\nscopess: {}`)
    await expect(pool.order('POST', '/reload')).rejects.toThrow(/409.*vendor.*scopess.*did you mean/)
    pool.write(text.replace('workers: 2', 'workers: 3'))
    await expect(pool.order('POST', '/reload')).rejects.toThrow(
      /workers {2}cannot change while the service runs/,
    )
    expect((await pool.call(token)).status).toBe(200)
    const refused = () => pool.log().filter(({ event }) => event === 'configuration_refused')
    await expect.poll(() => JSON.stringify(refused()), { timeout: PATIENCE }).toMatch(/vendor.*workers/)
  })

  it('a rolling restart loses no call', async () => {
    const upstream = await startUpstream(FUNDS)
    const pool = await startPool(poolConfig(upstream.url))
    const before = pool.workers()
    const token = await pool.token()
    const load = startLoad(() => pool.call(token), RATE)
    await until(() => load.answers.length > 50, 'calls')
    expect(await pool.order('POST', '/restart')).toEqual({ outcome: 'restarted', workers: 2 })
    expect(await statusesAfter(load, performance.now())).toEqual(new Set([200]))
    await load.stop()
    expect(load.broken).toEqual([])
    expect(Object.keys(load.counts)).toEqual(['200'])
    expect(pool.workers()).toHaveLength(2)
    expect(pool.workers().filter((pid) => before.includes(pid))).toEqual([])
  })

  it('T5.7 a worker that is killed costs the calls in flight on it at most, is replaced, and no counter falls', async () => {
    const upstream = await startUpstream(FUNDS)
    const pool = await startPool(poolConfig(upstream.url))
    const token = await pool.token()
    const load = startLoad(() => pool.call(token), RATE)
    await until(() => load.answers.length > 50, 'calls')
    let before = await scrape(pool)
    for (let death = 1; death <= 2; death++) {
      const [victim = 0] = pool.workers()
      process.kill(victim, 'SIGKILL')
      const started = () => pool.log().filter(({ event }) => event === 'worker_started').length
      await until(() => started() === 2 + death, 'a new worker')
      const after = await scrape(pool)
      const fallen = [...before].filter(([series, value]) => (after.get(series) ?? -1) < value)
      expect(fallen).toEqual([])
      before = after
      expect(await statusesAfter(load, performance.now())).toEqual(new Set([200]))
    }
    await load.stop()
    // Sixteen callers, half of them on the one that died.
    expect(load.broken.length).toBeLessThanOrEqual(2 * 16)
    expect(Object.keys(load.counts).filter((key) => key !== 'failed')).toEqual(['200'])
    expect(pool.log().filter(({ event }) => event === 'worker_died')).toHaveLength(2)
  })

  it('C6.3.5 failed logins are counted once for all workers; operators see and forget them', async () => {
    const upstream = await startUpstream(FUNDS)
    const pool = await startPool(poolConfig(upstream.url))
    const guess = async (): Promise<string> => {
      const response = await fetch(`${pool.authUrl}/connect/token`, {
        method: 'POST',
        headers: { Authorization: basic('acme-books'), Connection: 'close' },
        body: new URLSearchParams({
          grant_type: 'password',
          username: 'alice',
          password: 'x',
          scope: 'api1',
        }),
      })
      return response.text()
    }
    for (let count = 0; count < 6; count++) expect(await guess()).toContain('invalid_grant')
    const { lockouts } = await pool.order('GET', '/lockouts')
    expect(lockouts).toMatchObject([
      { user: 'alice', client: 'acme-books', network: '127.0.0.1', failures: 6 },
    ])
    expect(await pool.order('DELETE', '/lockouts?user=alice')).toEqual({ cleared: 1 })
    expect(await pool.order('GET', '/lockouts')).toEqual({ lockouts: [] })
    await pool.token()
  })
})
