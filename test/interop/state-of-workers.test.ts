/** What the metrics tell of a service of two processes: each has parts of its own, and may end at any moment. */
import { describe, expect, it } from 'vitest'
import { becomes, seriesOf, valueOf } from '../support/metrics.ts'
import { postForm } from '../support/oauth.ts'
import { answerJson, startUpstream } from '../support/start-upstream.ts'
import { issueToken } from '../support/tokens.ts'
import { poolConfig, startPool, type StartedPool } from '../support/worker-pool.ts'

const LONG = 180_000
const FUNDS = answerJson({ FundSummaries: [], TotalCount: 0 })

/** Uses one refresh token twice. */
async function replay(pool: StartedPool): Promise<void> {
  const scope = 'openid offline_access fund.read target:b/ACME'
  const { refresh_token = '' } = await issueToken(pool, { scope })
  const params = { grant_type: 'refresh_token', refresh_token }
  expect((await postForm(pool, '/connect/token', { params })).status).toBe(200)
  expect((await postForm(pool, '/connect/token', { params })).json.error).toBe('invalid_grant')
}

describe('C11.1 the state of two workers', { timeout: LONG }, () => {
  it('T5.7 C11.1 a worker that dies is counted, and what it has counted stays', async () => {
    const upstream = await startUpstream(FUNDS)
    const pool = await startPool(poolConfig(upstream.url, 'identity: { refreshToken: { grace: 0s } }'))
    await becomes(pool, 'workers{state="serving"}', 2)
    expect(await valueOf(pool, 'worker_deaths_total')).toBe(0)
    expect(await valueOf(pool, 'token_replays_total{kind="refresh_token"}')).toBe(0)
    await replay(pool)
    await becomes(pool, 'token_replays_total{kind="refresh_token"}', 1)
    const before = await seriesOf(pool)
    // Whichever of the two has counted it: both die.
    for (const worker of pool.workers()) process.kill(worker, 'SIGKILL')
    await becomes(pool, 'worker_deaths_total', 2)
    await becomes(pool, 'workers{state="serving"}', 2)
    const after = await seriesOf(pool)
    const kept = [
      'token_replays_total{kind="refresh_token"}',
      'store_verb_duration_seconds_count{verb="create"}',
      'audit_records_total{group="tokens"}',
      'audit_sync_duration_seconds_count',
    ].map((name) => `postern_${name}`)
    expect(kept.filter((name) => (after.get(name) ?? -1) < (before.get(name) ?? 0))).toEqual([])
    expect(await valueOf(pool, 'store_up')).toBe(1)
    expect(await valueOf(pool, 'audit_writable')).toBe(1)
  })

  it('C11.1 tells whether the configuration that was read last is in force', async () => {
    const upstream = await startUpstream(FUNDS)
    const text = poolConfig(upstream.url)
    const pool = await startPool(text)
    const loaded = async (): Promise<number> =>
      (await valueOf(pool, 'configuration_loaded_timestamp_seconds')) ?? 0
    const first = await loaded()
    expect(first).toBeGreaterThan(0)
    expect(await valueOf(pool, 'configuration_last_reload_successful')).toBe(1)
    pool.write(`${text}\nvendor: NO`)
    await expect(pool.order('POST', '/reload')).rejects.toThrow(/409/)
    expect(await valueOf(pool, 'configuration_last_reload_successful')).toBe(0)
    expect(await loaded()).toBe(first)
    pool.write(`${text}\nmaintenance: [{ scope: area/fund-data }]`)
    await pool.order('POST', '/reload')
    expect(await valueOf(pool, 'configuration_last_reload_successful')).toBe(1)
    expect(await loaded()).toBeGreaterThan(first)
    expect(await valueOf(pool, 'maintenance_on_since_timestamp_seconds{scope="area"}')).toBeGreaterThan(first)
  })

  it('C4.5 a client has one rate at all workers together', async () => {
    const upstream = await startUpstream(FUNDS)
    const pool = await startPool(
      poolConfig(upstream.url, 'load: { clients: { rate: { requests: 40, per: 1h } } }'),
    )
    const token = await pool.token()
    const statuses: number[] = []
    // Calls that follow each other, each on a connection of its own: half of them are each worker's.
    for (let call = 0; call < 120; call++) statuses.push((await pool.call(token)).status)
    const letIn = statuses.filter((status) => status === 200).length
    // Apart, the workers would let in 80.
    expect(letIn).toBeGreaterThanOrEqual(40)
    expect(letIn).toBeLessThan(80)
  })
})
