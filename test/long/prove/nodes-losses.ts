/**
 * What a trouble of nodes and their Postgres loses: logins, codes and refresh tokens that are refused, revoked tokens that are let in
 * later than documented, failed data calls. Clocks that jump, full disks, another server, a purge of 1,000,000 rows, a new version
 * node by node and back; and all of nodes-troubles. 1 if anything was lost or let in.
 *
 *     npm run prove nodes-losses -- --seconds 20 [--only clock] [--rows 1000000] [--seed 7] [--commit 21d3499]
 *
 * `--commit`: the version that nodes are upgraded from. Needs the right to mount, and HAProxy.
 */
import { parseArgs } from 'node:util'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { BEHIND_BALANCER, startBalancer } from '../../extensions/postgres/support/balanced-nodes.ts'
import {
  between,
  callData,
  type Caller,
  statusesOf,
  timeOf,
} from '../../extensions/postgres/support/callers.ts'
import { giveClock } from '../../extensions/postgres/support/database-clock.ts'
import { layOut } from '../../support/earlier-postern.ts'
import { freePort } from '../../support/free-port.ts'
import { startFullPostgres } from '../../extensions/postgres/support/full-postgres.ts'
import { openNode } from '../../extensions/postgres/support/killed-postgres.ts'
import {
  failOver,
  SCOPE,
  startCluster,
  startWorld,
  type World,
  TROUBLES,
  until,
} from '../../extensions/postgres/support/node-troubles.ts'
import type { NodesOptions, StartedNode } from '../../extensions/postgres/support/nodes.ts'
import { query, type PostgresCluster } from '../../support/postgres.ts'
import { oneOf, randomFrom } from '../../support/seeded-random.ts'
import { type Accounts, type Lost, startAccounts } from '../../extensions/postgres/support/token-accounts.ts'
import { issueToken } from '../../support/tokens.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    only: { type: 'string', default: '' },
    rows: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: '1' },
    // The release before (0.1.0) has no store that nodes share: this is the last version before leases of login turns.
    commit: { type: 'string', default: '21d3499' },
  },
})
const rows = Number(values.rows)
const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const random = randomFrom(Number(values.seed))

/** What happens, over as many milliseconds as are given. */
type Happening = (world: World, ms: number) => Promise<void>

interface Drill {
  readonly run: Happening
  readonly options?: NodesOptions & { readonly standby?: boolean; readonly cluster?: PostgresCluster }
  /** Nodes can't read the changes of others meanwhile. */
  readonly isBlind?: boolean
  /** What is done once the nodes have started. Resolves with where clients reach them; undefined: one of them by turns. */
  readonly prepare?: (world: World) => Promise<string | undefined>
  /** Milliseconds that it lasts at least. */
  readonly least?: number
  readonly close?: () => void | Promise<void>
}

/** performance.now() since which a failover may lose what was given. */
let losesSince = Infinity

async function databaseClock(): Promise<Drill> {
  const cluster = await startCluster()
  const { jump } = giveClock(cluster, 'postern')
  return {
    options: { cluster },
    // Each node looks once in 45 to 75 seconds for what has expired.
    least: 90_000,
    run: async (_world, ms) => {
      for (const ahead of [2 * MINUTE, -2 * MINUTE, -40 * DAY]) {
        jump(ahead)
        await pause(3000)
        jump(0)
        await pause(1000)
      }
      jump(40 * DAY)
      await pause(ms - 12_000)
      jump(0)
    },
  }
}

const nodeClock = (): Drill => ({
  options: { ahead: [0, 0] },
  run: async ({ nodes }, ms) => {
    const jumps = [2 * MINUTE, -2 * MINUTE, 40 * DAY, -40 * DAY, 10_000]
    for (const ahead of jumps) {
      nodes[1]!.jump(ahead)
      await pause(ms / jumps.length)
    }
    nodes[1]!.jump(0)
  },
})

async function fullDisk(hasLog: boolean): Promise<Drill> {
  const { cluster, fill, empty, remove } = await startFullPostgres(hasLog)
  return {
    options: { cluster },
    isBlind: hasLog,
    close: remove,
    run: async (_world, ms) => {
      fill()
      await pause(ms)
      empty()
      if (!hasLog) return
      // As whoever runs it would: it has ended, or ends now.
      await cluster.kill()
      await cluster.start()
    },
  }
}

/** A standby that has each commit before its client hears of it. */
const failOverInStep = (): Drill => ({
  options: { standby: true },
  isBlind: true,
  run: async (world, ms) => {
    query(world.cluster, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
    query(world.cluster, `ALTER SYSTEM SET synchronous_commit = 'remote_apply'`)
    query(world.cluster, 'SELECT pg_reload_conf()')
    await pause(ms)
    await failOver(world)
  },
})

/** A standby that hears of commits later than their clients, or lags a second behind. */
const failOverBehind = (lag: number): Drill => ({
  options: { standby: true },
  isBlind: true,
  run: async (world, ms) => {
    await pause(ms)
    // What its primary had not sent when it died.
    losesSince = performance.now() - 100
    if (lag > 0) world.standby!.deafen()
    await pause(lag)
    await failOver(world)
  },
})

const purge = (): Drill => ({
  prepare: async ({ cluster, schema, nodes }) => {
    // Living ones among them, as many.
    query(
      cluster,
      `INSERT INTO ${schema}.record (kind, key, value, attempt, expires_at, family)
         SELECT 'kind' || n % 5, md5(n::text), '{"filling":true}', 'a', ${Date.now()} + ${DAY} * (n % 2 * 2 - 1), md5(n::text)
         FROM generate_series(1, ${rows}) n`,
    )
    query(cluster, `ANALYZE ${schema}.record`)
    // The ways to Postgres are in this process, which waited.
    const worked = (): Promise<boolean> =>
      issueToken(nodes[0]!, { scope: SCOPE }).then(
        () => true,
        () => false,
      )
    await until(worked, 'a login')
    await pause(1000)
    return undefined
  },
  run: async ({ cluster, schema }, ms) => {
    const { store } = await openNode(cluster.url(), schema)
    const times: number[] = []
    const begun = performance.now()
    for (let removed = 1; removed > 0 || performance.now() < begun + ms;) {
      const start = performance.now()
      removed = await store.purge(200)
      times.push(performance.now() - start)
    }
    await store.close()
    const left = query(
      cluster,
      `SELECT count(*) FROM ${schema}.record WHERE expires_at < ${Date.now() - DAY / 2}`,
    )
    times.sort((one, other) => one - other)
    const at = (share: number): string => (times[Math.floor(share * (times.length - 1))] ?? 0).toFixed(0)
    console.log(
      `  ${rows} rows, half of them dead: ${times.length} rounds, median ${at(0.5)} ms, 99 % ${at(0.99)}, longest ${at(1)}; ${left} left`,
    )
    if (left !== '0') process.exitCode = 1
  },
})

async function upgrade(): Promise<Drill> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-earlier-'))
  const root = join(folder, 'postern')
  await layOut(values.commit, root)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const ours: StartedNode[] = []
  let closeBalancer: () => Promise<void> = () => Promise.resolve()
  const replace = async (nodes: readonly StartedNode[], next: string, rest: number): Promise<void> => {
    for (const [at, node] of nodes.entries()) {
      const before = ours[at] ?? node
      const code = await before.stop()
      if (code !== 0) console.log(`  node ${at + 1} ended with ${code}`)
      ours[at] = await before.restart(next)
      await pause(rest)
    }
  }
  return {
    options: { root, count: 3, publicUrl: url, server: BEHIND_BALANCER },
    prepare: async ({ nodes }) => {
      closeBalancer = await startBalancer(port, nodes)
      return url
    },
    run: async ({ nodes }, ms) => {
      const here = join(import.meta.dirname, '../../..')
      for (const next of [here, root, here]) await replace(nodes, next, ms / 9)
    },
    close: async () => {
      await closeBalancer()
      await Promise.all(ours.map((node) => node.stop()))
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const DRILLS: Readonly<Record<string, () => Drill | Promise<Drill>>> = {
  'clock of the database jumps': databaseClock,
  'clock of a node jumps': nodeClock,
  'disk full': () => fullDisk(false),
  'disk full, with the log of writes': () => fullDisk(true),
  'server replaced by one in step': failOverInStep,
  'server replaced by one that hears later': () => failOverBehind(0),
  'server replaced by one that is 1 s behind': () => failOverBehind(1000),
  'purge beside calls': purge,
  'upgrade node by node, back and again': upgrade,
  ...Object.fromEntries(
    Object.entries(TROUBLES)
      .filter(([, { withStandby }]) => withStandby !== true)
      .map(([name, { begin, end }]): [string, () => Drill] => [
        name,
        () => ({
          isBlind: true,
          run: async (world, ms) => {
            await begin(world)
            await pause(ms)
            await end(world)
          },
        }),
      ]),
  ),
}

const countBy = (lost: readonly Lost[]): string => {
  const counts: Record<string, number> = {}
  for (const { what, isTriedBefore } of lost) {
    const name = isTriedBefore ? `${what} (after an answer that did not come, or 503)` : what
    counts[name] = (counts[name] ?? 0) + 1
  }
  return Object.entries(counts)
    .map(([what, count]) => `${count} × ${what}`)
    .join(', ')
}

/** WorkerMessages, and tells whether all is as it should be. */
function judge(name: string, accounts: Accounts, data: readonly Caller[], isBack: boolean): boolean {
  const isDocumented = ({ givenAt }: Lost): boolean => givenAt >= losesSince
  const wrongly = accounts.lost.filter((lost) => !isDocumented(lost))
  const called = statusesOf(between(data, 0))
  const isWell =
    wrongly.length === 0 &&
    accounts.letIn.length === 0 &&
    isBack &&
    Object.keys(called).every((status) => status === '200')
  console.log(`${isWell ? 'well  ' : 'FAILED'} ${name}`)
  const answers = between(data, 0)
  console.log(
    '  data calls',
    called,
    `p99 ${timeOf(answers, 0.99).toFixed(0)} ms, longest ${timeOf(answers, 1).toFixed(0)}`,
  )
  for (const [what, statuses] of Object.entries(accounts.told())) console.log(`  ${what}`, statuses)
  console.log(
    `  revoked tokens let in later than documented: ${accounts.letIn.length}`,
    accounts.letIn.slice(0, 5).join('; '),
  )
  console.log(
    `  a revoked token was let in for the last time ${accounts.longestLetIn.toFixed(0)} ms after the answer`,
  )
  console.log(`  lost: ${wrongly.length}`, countBy(wrongly))
  if (losesSince < Infinity) {
    const documented = accounts.lost.filter(isDocumented)
    console.log(
      `  lost as documented, given in the last moments of the server before: ${documented.length}`,
      countBy(documented),
    )
  }
  if (!isBack) console.log('  NOT WELL AGAIN within 10 s')
  return isWell
}

async function prove(name: string, make: () => Drill | Promise<Drill>): Promise<boolean> {
  losesSince = Infinity
  const drill = await make()
  const world = await startWorld({
    settings: 'workers: 2\nload: { shedding: { delay: 0s } }',
    ...drill.options,
  })
  // Its callers call each node, also while that is replaced.
  await Promise.all([...world.data, ...world.refreshers].map((caller) => caller.stop()))
  const { nodes } = world
  const url = await drill.prepare?.(world)
  const entry = () => (url === undefined ? oneOf(random, nodes) : { baseUrl: url, authUrl: url })
  let knowsSince = 0
  const data: Caller[] = []
  try {
    for (const at of nodes.keys()) {
      const { access_token: token } = await issueToken(entry(), { scope: SCOPE })
      data.push(callData(() => url ?? nodes[at]!.baseUrl, token, 10))
    }
    const accounts = await startAccounts({ world, entry, knowsSince: () => knowsSince, random })
    await pause(2000)
    if (drill.isBlind === true) knowsSince = Infinity
    await drill.run(world, Math.max(Number(values.seconds) * 1000, drill.least ?? 0))
    // Five failures open the breaker for half a second.
    if (drill.isBlind === true) knowsSince = performance.now() + 1500
    const isBack = await accounts.settle()
    await Promise.all([accounts.stop(), ...data.map((caller) => caller.stop())])
    return judge(name, accounts, data, isBack)
  } finally {
    await Promise.all(data.map((caller) => caller.stop()))
    await world.close()
    await drill.close?.()
  }
}

const chosen = Object.entries(DRILLS).filter(([name]) => name.includes(values.only))
for (const [name, make] of chosen) if (!(await prove(name, make))) process.exitCode = 1
process.exit()
