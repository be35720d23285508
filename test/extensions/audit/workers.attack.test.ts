/**
 * The one trail of a service of several processes: workers send their records, the supervisor writes them (C12.4.2). What of it
 * stays when one of them is killed, stopped or replaced (T5.7, T5.9).
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { verifyTrail } from '../../../src/extensions/audit/read/verify.ts'
import { type ChainedRecord, openIntents, readChains } from './support/audit-chain.ts'
import { CREATE, JSON_BODY, LIST, NEW_FUND } from '../../support/audited-calls.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { eventually } from '../../support/eventually.ts'
import { sized } from '../../support/long.ts'
import { seriesOf } from '../../support/metrics.ts'
import { giveKey } from '../../support/ready-key.ts'
import { openRaw, type RawConnection, type RawResponse } from '../../support/raw-http.ts'
import { bearer, expectFault, requestBytes } from '../../support/requests.ts'
import { ENDS_AT_ONCE, ROOT, type SpawnOptions } from '../../support/spawn-postern.ts'
import {
  answerJson,
  startUpstream,
  type Upstream,
  type UpstreamBehaviour,
} from '../../support/start-upstream.ts'
import type { DiskTrouble } from './support/troubled-audit.ts'
import { poolConfig, startPool, type StartedPool } from '../../support/worker-pool.ts'

const CREATED = answerJson({ Code: 'NEW1' })
const silent: UpstreamBehaviour = () => undefined

interface ServedOptions {
  readonly workers?: number
  /** `audit.timeout`. */
  readonly timeout?: string
  readonly behaviour?: UpstreamBehaviour
  readonly ends?: string
}

/** A process that ends leaves a connection open whose first request is on its way. */
const ENDS_WHEN_SILENT = 'server: { timeouts: { lameDuck: 0s } }'

/** A service of workers before an upstream that takes changes. Each start has the same data folder. */
async function place({
  workers = 2,
  timeout = '20s',
  behaviour = CREATED,
  ends = ENDS_AT_ONCE,
}: ServedOptions = {}) {
  const upstream = await startUpstream(behaviour)
  const data = await dataFolder()
  await giveKey(data)
  const text = poolConfig(upstream.url, `${ends}\naudit: { timeout: ${timeout} }`)
  const start = (options: Pick<SpawnOptions, 'node'> = {}) =>
    startPool(text.replace('workers: 2', `workers: ${workers}`), {
      ...options,
      environment: { POSTERN_DATA: data },
    })
  return { upstream, data, folder: join(data, 'audit'), start }
}

/** A caller with connections of its own, which it keeps. */
async function callerOf(pool: StartedPool) {
  const token = await pool.token()
  const headers = { ...bearer(token), ...JSON_BODY }
  const change = requestBytes({ method: 'POST', target: CREATE, headers, body: NEW_FUND })
  const read = requestBytes({ target: LIST, headers: bearer(token) })
  const ask = async (connection: RawConnection, bytes: Buffer): Promise<RawResponse> => {
    connection.send(bytes)
    return connection.response()
  }
  return {
    headers,
    connect: () => openRaw(pool.port),
    change: (connection: RawConnection) => ask(connection, change),
    read: (connection: RawConnection) => ask(connection, read),
    /** Begins changes, each on a connection of its own, so that all workers take part. */
    begin: async (count: number): Promise<readonly RawConnection[]> => {
      const connections = await Promise.all(Array.from({ length: count }, () => openRaw(pool.port)))
      for (const connection of connections) connection.send(change)
      return connections
    },
  }
}

const becomes = (pool: StartedPool, series: string, value: number): Promise<void> =>
  eventually(async () => expect((await seriesOf(pool)).get(`postern_${series}`)).toBe(value))

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** The one chain of a folder. Throws if there is another, or it is not whole. */
function chainIn(folder: string): readonly ChainedRecord[] {
  const chains = [...readChains(folder).values()]
  expect(chains).toHaveLength(1)
  return chains[0] ?? []
}

interface Signed {
  readonly head: { readonly seq: number; readonly found?: true }
  readonly closed?: true
}

const manifestIn = (folder: string): readonly Signed[] =>
  readFileSync(join(folder, 'manifest.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Signed)

/** The ids of requests that have a record of an event. */
const idsOf = (records: readonly ChainedRecord[], event: string): ReadonlySet<string | undefined> =>
  new Set(records.filter((record) => record.event === event).map(({ requestId }) => requestId))

const idOf = ({ headers }: RawResponse): string => headers['x-request-id'] ?? ''

/** For one that was silent. */
function answerAll({ connections }: Upstream): void {
  const body = '{"Code":"NEW1"}'
  const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
  for (const { socket } of connections) socket.write(head + body)
}

const arrivedAt = ({ requests }: Upstream): readonly string[] =>
  requests.map(({ headers }) => headers['x-request-id']?.[0] ?? '')

describe('C12.4.2 the trail of a service of several processes', { timeout: 180_000 }, () => {
  it('C12.4.1 C12.4.4 has one name and one chain with the records of all workers, and its end is signed as the end', async () => {
    const workers = sized(3, 4)
    const { upstream, folder, start } = await place({ workers, behaviour: silent })
    const pool = await start()
    const { begin } = await callerOf(pool)
    const count = 4 * workers
    const connections = await begin(count)
    await upstream.received(count)
    // Each worker has its own, or one of them would have all.
    await becomes(pool, 'audit_open_intents', count)
    upstream.behave(CREATED)
    answerAll(upstream)
    const answers = await Promise.all(connections.map((connection) => connection.response()))
    expect(answers.map(({ status }) => status)).toEqual(Array(count).fill(200))
    await becomes(pool, 'audit_open_intents', 0)
    expect(await pool.stop()).toBe(0)
    const records = chainIn(folder)
    for (const event of ['call.intended', 'call.settled'])
      expect(answers.filter((answer) => !idsOf(records, event).has(idOf(answer)))).toEqual([])
    expect(records.at(-1)?.event).toBe('writer.closed')
    const last = manifestIn(folder).at(-1)
    expect(last).toMatchObject({ closed: true, head: { seq: records.length } })
    expect(last?.head.found).toBeUndefined()
    expect(verifyTrail({ folder })).toMatchObject({ whole: true, unsigned: 0, open: 0, foundLate: 0 })
  })

  it('C12.1.3 T5.7 of a worker that is killed the open intents are counted at once, and the chain goes on', async () => {
    const { upstream, folder, start } = await place({ behaviour: silent })
    const pool = await start()
    const { begin } = await callerOf(pool)
    const count = 6
    await begin(count)
    await upstream.received(count)
    await becomes(pool, 'audit_open_intents', count)
    const [one = 0, other = 0] = pool.workers()
    process.kill(one, 'SIGKILL')
    // Each of both had some: connections go to them in turns.
    const counted = await eventually(async () => {
      const series = await seriesOf(pool)
      const [abandoned = 0, open = 0] = ['abandoned', 'open'].map((which) =>
        series.get(`postern_audit_${which}_intents`),
      )
      expect([abandoned > 0, abandoned + open]).toEqual([true, count])
      return abandoned
    })
    expect(counted).toBeLessThan(count)
    await becomes(pool, 'workers{state="serving"}', 2)
    process.kill(other, 'SIGKILL')
    await becomes(pool, 'audit_abandoned_intents', count)
    await becomes(pool, 'workers{state="serving"}', 2)
    // Those that replace them write into the same chain.
    upstream.behave(CREATED)
    const { change, connect } = await callerOf(pool)
    const answer = await change(await connect())
    expect(answer.status).toBe(200)
    expect(await pool.stop()).toBe(0)
    const records = chainIn(folder)
    expect(idsOf(records, 'call.settled')).toContain(idOf(answer))
    expect(
      openIntents(folder)
        .map(({ requestId }) => requestId)
        .toSorted(),
    ).toEqual(arrivedAt(upstream).slice(0, count).toSorted())
    expect(verifyTrail({ folder })).toMatchObject({ whole: true, unsigned: 0, open: count })
  })

  it('C12.1.2 T5.9 while the supervisor is stopped changes are refused and reads go on; afterwards all is well', async () => {
    const { upstream, folder, start } = await place({ timeout: '1s' })
    const pool = await start()
    const caller = await callerOf(pool)
    // The supervisor hands connections over: these are with the workers before it is stopped.
    const connections = await Promise.all(Array.from({ length: 4 }, () => caller.connect()))
    const before = await Promise.all(connections.map((connection) => caller.change(connection)))
    expect(before.map(({ status }) => status)).toEqual(Array(4).fill(200))
    process.kill(pool.pid, 'SIGSTOP')
    const refused: RawResponse[] = []
    try {
      for (const connection of connections) {
        expect((await caller.read(connection)).status).toBe(200)
        const answer = await caller.change(connection)
        expectFault(answer, 'audit_unavailable')
        refused.push(answer)
        expect((await caller.read(connection)).status).toBe(200)
      }
    } finally {
      process.kill(pool.pid, 'SIGCONT')
    }
    for (const connection of connections)
      await eventually(async () => expect((await caller.change(connection)).status).toBe(200))
    const arrived = arrivedAt(upstream)
    for (const answer of refused) expect(arrived).not.toContain(idOf(answer))
    await eventually(async () =>
      expect(await (await fetch(`${pool.adminUrl}/health/ready`)).text()).toContain('"degraded":[]'),
    )
    // A call that was refused while its record was on the way is undone by another record.
    await becomes(pool, 'audit_open_intents', 0)
    expect(await pool.stop()).toBe(0)
    expect(openIntents(folder)).toEqual([])
    const records = chainIn(folder)
    for (const answer of refused) {
      const told = records.filter(({ requestId }) => requestId === idOf(answer))
      const [intent] = told.filter(({ event }) => event === 'call.intended')
      expect(told.filter(({ event }) => event === 'call.settled')).toMatchObject([
        { outcome: 'refused', intent: intent?.seq },
      ])
    }
    expect(verifyTrail({ folder })).toMatchObject({ whole: true, unsigned: 0 })
  })

  it('C12.1.2 C12.4.3 while their supervisor cannot write, all workers refuse changes at once, and reads go on', async () => {
    const { upstream, folder, start } = await place()
    const pool = await start({
      node: ['--require', join(ROOT, 'test/extensions/audit/support/troubled-audit.ts')],
    })
    const { connect, change, read } = await callerOf(pool)
    const connections = await Promise.all(Array.from({ length: 4 }, () => connect()))
    const changeAll = () => Promise.all(connections.map((connection) => change(connection)))
    const first = await changeAll()
    expect(first.map(({ status }) => status)).toEqual(Array(4).fill(200))
    writeFileSync(`${folder}.trouble`, 'read-only' satisfies DiskTrouble)
    // The first one finds the trouble, and is undone. From then on nothing is sent that could not be written.
    await eventually(async () => {
      const answers = await changeAll()
      expect(answers.map(({ status }) => status)).toEqual(Array(4).fill(503))
    })
    const received = upstream.requests.length
    const refused = await changeAll()
    for (const answer of refused) expectFault(answer, 'audit_unavailable')
    expect(upstream.requests).toHaveLength(received)
    for (const connection of connections) expect((await read(connection)).status).toBe(200)
    rmSync(`${folder}.trouble`)
    await eventually(async () => {
      const answers = await changeAll()
      expect(answers.map(({ status }) => status)).toEqual(Array(4).fill(200))
    })
    await becomes(pool, 'audit_open_intents', 0)
    expect(await pool.stop()).toBe(0)
    const records = chainIn(folder)
    const intended = idsOf(records, 'call.intended')
    expect(refused.filter((answer) => intended.has(idOf(answer)))).toEqual([])
    expect(openIntents(folder)).toEqual([])
    expect(verifyTrail({ folder })).toMatchObject({ whole: true, unsigned: 0, open: 0 })
  })

  it('C12.1.2 C12.4.4 T5.7 of a supervisor that is killed the workers refuse what must be recorded, and end; the next start signs what it finds', async () => {
    const { upstream, folder, start } = await place()
    const pool = await start()
    const caller = await callerOf(pool)
    const workers = pool.workers()
    const answered = await Promise.all((await caller.begin(4)).map((connection) => connection.response()))
    expect(answered.map(({ status }) => status)).toEqual(Array(4).fill(200))
    // Some of those under way are at the upstream, and some are not recorded yet: their bodies are not there.
    upstream.behave(silent)
    const underWay = await caller.begin(2)
    await upstream.received(6)
    const body = Buffer.from(NEW_FUND)
    const halves = await Promise.all(Array.from({ length: 4 }, () => caller.connect()))
    const head = requestBytes({
      method: 'POST',
      target: CREATE,
      headers: { ...caller.headers, Expect: '100-continue', 'Content-Length': String(body.length) },
    })
    for (const half of halves) {
      half.send(head)
      expect((await half.response()).status).toBe(100)
    }
    process.kill(pool.pid, 'SIGKILL')
    await eventually(() => expect(isAlive(pool.pid)).toBe(false))
    const received = upstream.requests.length
    for (const half of halves) half.send(body)
    for (const half of halves) expectFault(await half.response(), 'audit_unavailable')
    expect(upstream.requests).toHaveLength(received)
    // The client is told what the upstream has done, though nobody can record it.
    answerAll(upstream)
    const told = await Promise.all(underWay.map((connection) => connection.response()))
    expect(told.map(({ status }) => status)).toEqual([200, 200])
    await eventually(() => expect(workers.filter(isAlive)).toEqual([]))
    const left = chainIn(folder)
    for (const event of ['call.intended', 'call.settled'])
      expect(answered.filter((answer) => !idsOf(left, event).has(idOf(answer)))).toEqual([])
    const lines = manifestIn(folder).length
    const next = await start()
    expect(manifestIn(folder)[lines]?.head).toMatchObject({ seq: left.length })
    await becomes(next, 'audit_abandoned_intents', told.length)
    expect(await next.stop()).toBe(0)
    const records = chainIn(folder)
    expect(records.slice(0, left.length)).toEqual(left)
    const open = openIntents(folder).map(({ requestId }) => requestId)
    expect(open.toSorted()).toEqual(told.map(idOf).toSorted())
    expect(verifyTrail({ folder })).toMatchObject({ whole: true, unsigned: 0, open: told.length })
  })

  it('C12.1.3 a rolling restart (SIGUSR2) loses no record of a change', async () => {
    const { folder, start } = await place({ ends: ENDS_WHEN_SILENT })
    const pool = await start()
    const { connect, change } = await callerOf(pool)
    const workers = pool.workers()
    const answers: RawResponse[] = []
    let isOver = false
    const callers = Array.from({ length: 4 }, async () => {
      while (!isOver) {
        const connection = await connect()
        answers.push(await change(connection))
        connection.destroy()
      }
    })
    await eventually(() => expect(answers.length).toBeGreaterThan(8))
    process.kill(pool.pid, 'SIGUSR2')
    await eventually(() => {
      const now = pool.workers()
      expect(now).toHaveLength(2)
      expect(now.filter((pid) => workers.includes(pid))).toEqual([])
    })
    const restarted = answers.length
    await eventually(() => expect(answers.length).toBeGreaterThan(restarted + 8))
    isOver = true
    await Promise.all(callers)
    expect(await pool.stop()).toBe(0)
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    const records = chainIn(folder)
    for (const event of ['call.intended', 'call.settled'])
      expect(answers.filter((answer) => !idsOf(records, event).has(idOf(answer)))).toEqual([])
    expect(manifestIn(folder).at(-1)).toMatchObject({ closed: true })
    expect(verifyTrail({ folder })).toMatchObject({ whole: true, unsigned: 0, open: 0 })
  })
})
