/** Several worker processes, of which one dies or freezes, or whose supervisor does (T5.9, T5.7). More of it: test/long/prove/. */
import { connect, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { seriesOf } from '../support/metrics.ts'
import { poolConfig, startPool, type StartedPool } from '../support/worker-pool.ts'
import { answerJson, startUpstream } from '../support/start-upstream.ts'

const FUNDS = answerJson({ FundSummaries: [], TotalCount: 0 })
/** Milliseconds: on a busy machine a process takes seconds to start. Nobody waits that long otherwise. */
const PATIENCE = 120_000
const LONG = 120_000

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const told = (pool: StartedPool, event: string): number =>
  pool.log().filter((line) => line['event'] === event).length

const untilWhole = (pool: StartedPool) =>
  expect.poll(() => pool.workers().length, { timeout: PATIENCE }).toBe(2)

describe('a worker that fails within an order', { timeout: LONG }, () => {
  it('T5.9 a reload, the next one, a restart and SIGTERM end, though a worker is killed in the midst of it', async () => {
    const pool = await startPool(poolConfig((await startUpstream(FUNDS)).url))
    for (let delay = 0; delay < 2; delay++) {
      const reload = pool.order('POST', '/reload')
      await new Promise((resolve) => setTimeout(resolve, delay))
      process.kill(pool.workers()[delay % 2] ?? 0, 'SIGKILL')
      expect(await reload).toMatchObject({ outcome: 'reloaded' })
      await untilWhole(pool)
    }
    expect(await pool.order('POST', '/restart')).toMatchObject({ outcome: 'restarted' })
    const workers = pool.workers()
    expect(await pool.stop()).toBe(0)
    expect(workers.filter(isAlive)).toEqual([])
  })

  it('T5.9 C11.1 a worker that is frozen holds up no scrape; it is replaced, and serves what a reload meanwhile brought', async () => {
    const upstream = await startUpstream(FUNDS)
    const pool = await startPool(poolConfig(upstream.url))
    const token = await pool.token()
    const [frozen = 0] = pool.workers()
    process.kill(frozen, 'SIGSTOP')
    const scrapes = await Promise.all(Array.from({ length: 10 }, () => seriesOf(pool)))
    expect(scrapes.map((series) => series.get('postern_worker_deaths_total'))).toEqual(Array(10).fill(0))
    pool.write(`${poolConfig(upstream.url)}\nmaintenance: [{ scope: area/fund-data }]`)
    expect(await pool.order('POST', '/reload')).toMatchObject({ outcome: 'reloaded' })
    expect(isAlive(frozen)).toBe(false)
    await untilWhole(pool)
    // The log is written within a second.
    await expect.poll(() => told(pool, 'worker_started'), { timeout: PATIENCE }).toBe(3)
    await expect.poll(() => told(pool, 'worker_frozen'), { timeout: PATIENCE }).toBe(1)
    expect((await seriesOf(pool)).get('postern_worker_deaths_total')).toBe(1)
    const statuses = await Promise.all(Array.from({ length: 8 }, async () => (await pool.call(token)).status))
    expect(new Set(statuses)).toEqual(new Set([503]))
  })

  it('C14.1 a worker explains calls, and another one where it is killed meanwhile', async () => {
    const upstream = await startUpstream(FUNDS)
    const pool = await startPool(poolConfig(upstream.url))
    const token = await pool.token()
    const described = { method: 'GET', path: '/api/1.0/b/ACME/fund-data/fund-list', token, by: 'olga' }
    expect(await pool.order('POST', '/explain', described)).toMatchObject({ outcome: 'let in', kind: 'call' })
    const asked = Array.from({ length: 20 }, () => pool.order('POST', '/explain', described))
    process.kill(pool.workers()[0] ?? 0, 'SIGKILL')
    const outcomes = (await Promise.all(asked)).map(({ outcome }) => outcome)
    expect(new Set(outcomes)).toEqual(new Set(['let in']))
    expect(upstream.requests).toEqual([])
    expect(pool.output()).not.toContain(token.slice(-40))
  })

  it('T5.9 SIGTERM ends the service though a worker is frozen, and leaves no process behind', async () => {
    const pool = await startPool(poolConfig((await startUpstream(FUNDS)).url))
    const workers = pool.workers()
    process.kill(workers[1] ?? 0, 'SIGSTOP')
    expect(await pool.stop()).toBe(0)
    expect(workers.filter(isAlive)).toEqual([])
  })
})

describe('a supervisor that is killed', { timeout: LONG }, () => {
  it('T5.7 its workers finish the calls in flight, and then end', async () => {
    const upstream = await startUpstream(() => undefined)
    const pool = await startPool(poolConfig(upstream.url))
    const token = await pool.token()
    const workers = pool.workers()
    const calls = Array.from({ length: 6 }, () => askAlone(pool.port, token))
    await upstream.received(6)
    process.kill(pool.pid, 'SIGKILL')
    await expect.poll(() => isAlive(pool.pid)).toBe(false)
    const body = '{"FundSummaries":[],"TotalCount":0}'
    const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
    for (const { socket } of upstream.connections) socket.write(head + body)
    for (const answer of await Promise.all(calls)) expect(answer).toMatch(/^HTTP\/1\.1 200 [^]*"Data":/)
    await expect.poll(() => workers.filter(isAlive), { timeout: PATIENCE }).toEqual([])
  })
})

/** A call over a connection of its own; answers all that came until it was closed. */
async function askAlone(port: number, token: string): Promise<string> {
  const socket: Socket = connect(port, '127.0.0.1')
  socket.write(
    `GET /api/1.0/b/ACME/fund-data/fund-list HTTP/1.1\r\nHost: localhost:${port}\r\nAuthorization: Bearer ${token}\r\n\r\n`,
  )
  let text = ''
  for await (const chunk of socket as AsyncIterable<Buffer>) text += chunk.toString()
  return text
}
