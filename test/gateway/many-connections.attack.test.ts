import { describe, expect, it, onTestFinished } from 'vitest'
import { configFiles } from '../support/config-files.ts'
import { eventually } from '../support/eventually.ts'
import { openRaw, type RawConnection } from '../support/raw-http.ts'
import { shared } from '../support/shared.ts'
import { answerJson, startUpstream, type UpstreamConnection } from '../support/start-upstream.ts'
import { ALL_AT_ACME, basic } from '../support/tokens.ts'
import { poolConfig, startPool, type StartedPool } from '../support/worker-pool.ts'

/** T5.22: somebody opens so many connections that a process has no descriptor left for anything else. */

const LIMIT = 256
const KEPT = LIMIT / 4
const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const FUNDS = answerJson({ FundSummaries: [], TotalCount: 0 })

const call = (token: string): string =>
  `GET ${LIST} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n\r\n`

function tokenRequest(): string {
  const asked = { username: 'alice', password: 'alice-password', scope: ALL_AT_ACME }
  const body = new URLSearchParams({ grant_type: 'password', ...asked }).toString()
  const head = ['POST /connect/token HTTP/1.1', 'Host: 127.0.0.1', `Authorization: ${basic('acme-books')}`]
  const type = 'Content-Type: application/x-www-form-urlencoded'
  return [...head, type, `Content-Length: ${body.length}`, '', body].join('\r\n')
}

/**
 * From a signal on takes all descriptors but a part of those that are kept, until the next one. It takes again before each
 * connection out, since what closes meanwhile (a client's connection, a file) leaves descriptors below that are free.
 */
const TAKE_DESCRIPTORS = `
import { subscribe } from 'node:diagnostics_channel'
import { closeSync, openSync } from 'node:fs'
let taking = false
const taken = []
function take() {
  do taken.push(openSync('/dev/null'))
  while (taken.at(-1) < ${LIMIT - KEPT / 2})
  // Else each connection out would take one more, until none is left at all.
  closeSync(taken.pop())
}
subscribe('net.client.socket', () => {
  if (taking) take()
})
process.on('SIGWINCH', () => {
  taking = !taking
  if (taking) take()
  else for (const descriptor of taken.splice(0)) closeSync(descriptor)
  process.stderr.write(taking ? 'took\\n' : 'gave back\\n')
})`

/** Opens connections that send nothing, and leaves them open. Those that are refused are closed by the service. */
async function fill(port: number, count: number): Promise<readonly RawConnection[]> {
  const opened: RawConnection[] = []
  for (let at = 0; at < count; at += 1) opened.push(await openRaw(port))
  onTestFinished(() => opened.forEach((connection) => connection.destroy()))
  return opened
}

const openOf = (connections: readonly RawConnection[]): readonly RawConnection[] =>
  connections.filter(({ isClosed }) => !isClosed)

/** Asks with a connection of its own. */
const ask = async (url: string): Promise<Response> => fetch(url, { headers: { Connection: 'close' } })

async function metric({ adminUrl }: StartedPool, name: string): Promise<number> {
  const text = await (await ask(`${adminUrl}/metrics`)).text()
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1])
}

const countEvents = (pool: StartedPool, name: string): number =>
  pool.log().filter(({ event }) => event === name).length

async function startLimited(
  upstream: string,
  workers: number,
  node: readonly string[] = [],
): Promise<StartedPool> {
  const timeouts = 'server: { timeouts: { lameDuck: 0s, silence: 0s, headers: 2m, keepAlive: 2m } }'
  return startPool(poolConfig(upstream, timeouts).replace('workers: 2', `workers: ${workers}`), {
    descriptors: LIMIT,
    node,
  })
}

/** A pool of one process that two tests fill, each in its own way. */
const filled = shared(async () => {
  const upstream = await startUpstream(FUNDS)
  return { upstream, pool: await startLimited(upstream.url, 1) }
})

describe('T5.22 more connections than a process may open', () => {
  it.each([1, 2])(
    'T5.22 C11.1.1 silence neither operators nor those who are connected (%i processes)',
    async (workers) => {
      const upstream = await startUpstream(FUNDS)
      const pool = await startLimited(upstream.url, workers)
      const token = await pool.token()
      const kept = await openRaw(pool.port)
      kept.send(call(token))
      expect((await kept.response()).status).toBe(200)

      const flood = await fill(pool.port, workers * LIMIT)
      await eventually(() => expect(openOf(flood).length).toBeLessThan((workers * (LIMIT - KEPT)) / 2))
      expect(openOf(flood).length).toBeGreaterThan(workers * 20)

      await eventually(async () => {
        const readiness = await ask(`${pool.adminUrl}/health/ready`)
        expect(readiness.status).toBe(200)
        expect(await readiness.text()).toContain('"name":"connections"')
      })
      expect((await ask(`${pool.adminUrl}/health/live`)).status).toBe(200)
      expect(await pool.order('GET', '/status')).toMatchObject({ ready: true })
      await eventually(async () => {
        expect(await metric(pool, 'postern_connections_refused_total')).toBe(
          flood.length - openOf(flood).length,
        )
      })
      // A token, which is recorded and stored, and a call, which needs a connection to the service.
      kept.send(tokenRequest())
      expect((await kept.response()).status).toBe(200)
      kept.send(call(token))
      expect((await kept.response()).status).toBe(200)
      expect(await pool.order('POST', '/reload')).toBeDefined()
      expect(pool.output()).not.toContain('EMFILE')
      // The log is written a moment later.
      await eventually(() => expect(countEvents(pool, 'connections_refused')).toBeGreaterThan(0))
      expect(countEvents(pool, 'connections_refused')).toBeLessThanOrEqual(workers + 1)

      for (const connection of flood) connection.destroy()
      await eventually(async () => expect((await pool.call(token)).status).toBe(200))
    },
  )

  it('T5.22 C11.1.1 leave each connection that is taken its connection to the service', async () => {
    const held: UpstreamConnection[] = []
    const { upstream, pool } = await filled()
    upstream.behave((connection) => void held.push(connection))
    const token = await pool.token()
    const flood = await fill(pool.port, LIMIT)
    for (const connection of openOf(flood)) connection.send(call(token))
    await eventually(() => expect(held).toHaveLength(openOf(flood).length))
    expect((await ask(`${pool.adminUrl}/health/ready`)).status).toBe(200)
    for (const connection of held) FUNDS(connection)
    const answers = await Promise.all(openOf(flood).map((connection) => connection.response()))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(answers.length).toBeGreaterThan(20)
  })

  it('T5.22 C11.1.1 do not silence the admin listener where they are opened to itself', async () => {
    const { pool } = await filled()
    const flood = await fill(Number(new URL(pool.adminUrl).port), LIMIT)
    await eventually(() => expect(openOf(flood).length).toBeLessThanOrEqual(KEPT / 4))
    expect(await pool.order('GET', '/status')).toMatchObject({ ready: true })
    expect((await pool.call(await pool.token())).status).toBe(200)
    expect(pool.output()).not.toContain('EMFILE')
  })

  it('T5.22 C11.1.1 is told as overload where code of others takes them, and no target is blamed', async () => {
    const upstream = await startUpstream(FUNDS)
    const files = configFiles({ 'take.mjs': TAKE_DESCRIPTORS })
    const pool = await startLimited(upstream.url, 1, ['--import', files('take.mjs')])
    const token = await pool.token()
    const kept = await openRaw(pool.port)
    onTestFinished(() => kept.destroy())
    const leaving = await openRaw(pool.port)
    // Both have their descriptors, and no connection to the service is open that a call could use again.
    for (const connection of [kept, leaving]) {
      connection.send(call('unknown'))
      expect((await connection.response()).status).toBe(401)
    }
    const status = async () => {
      kept.send(call(token))
      return kept.response()
    }
    process.kill(pool.pid, 'SIGWINCH')
    await eventually(() => expect(pool.output()).toContain('took'))
    leaving.destroy()
    // More than the failures in a row that eject a target.
    for (let times = 0; times < 10; times += 1) {
      const { status: code, headers } = await status()
      expect([code, headers['retry-after']]).toEqual([503, '5'])
    }
    expect(upstream.requests).toEqual([])
    expect(await pool.order('GET', '/status')).toMatchObject({ ready: true })
    process.kill(pool.pid, 'SIGWINCH')
    await eventually(() => expect(pool.output()).toContain('gave back'))
    expect((await status()).status).toBe(200)
  })
})
