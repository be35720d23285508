/** What can happen to several nodes and their Postgres: how it begins, how it ends, and what callers notice. */
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Answered, between, callData, type Caller, callRefresh, type Refresher } from './callers.ts'
import { freePort } from '../../../support/free-port.ts'
import { type Nodes, type NodesOptions, type StartedNode, startNodes } from './nodes.ts'
import { PostgresCluster, query } from '../../../support/postgres.ts'
import { issueToken } from '../../../support/tokens.ts'

export const SCOPE = 'openid offline_access business.fund.list target:b/ACME'

/** Nodes with callers. The caller of each list at the same place calls the node of that place. */
export interface World {
  readonly cluster: PostgresCluster
  /** Hears from the cluster what is written there. */
  readonly standby: PostgresCluster | undefined
  readonly nodes: readonly StartedNode[]
  /** In which their tables are. */
  readonly schema: string
  readonly order: Nodes['order']
  readonly data: readonly Caller[]
  readonly refreshers: readonly Refresher[]
  close(): Promise<void>
}

export async function startCluster(): Promise<PostgresCluster> {
  const cluster = new PostgresCluster(await mkdtemp(join(tmpdir(), 'postern-postgres-')), await freePort())
  cluster.create()
  await cluster.start()
  return cluster
}

async function startStandby(primary: PostgresCluster): Promise<PostgresCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-standby-'))
  const standby = new PostgresCluster(folder, await freePort())
  standby.createStandby(primary)
  await standby.start()
  return standby
}

export async function startWorld(
  options: NodesOptions & { readonly standby?: boolean; readonly cluster?: PostgresCluster } = {},
): Promise<World> {
  const cluster = options.cluster ?? (await startCluster())
  const standby = options.standby === true ? await startStandby(cluster) : undefined
  // So that a trouble lasts longer than the store may take.
  const started = await startNodes(cluster, { ...options, store: `deadline: 2s\n  ${options.store ?? ''}` })
  const { nodes } = started
  const tokens = await Promise.all(nodes.map((node) => issueToken(node, { scope: SCOPE })))
  const data = nodes.map((node, at) => callData(() => node.baseUrl, tokens[at]!.access_token, 5))
  const refreshers = nodes.map((node, at) => callRefresh(() => node.authUrl, tokens[at]!.refresh_token!, 50))
  return {
    ...{ cluster, standby, nodes, data, refreshers, schema: started.schema },
    order: (node, path, body) => started.order(node, path, body),
    close: async () => {
      for (const { proxy } of nodes) proxy.mend()
      await Promise.all([...data, ...refreshers].map((caller) => caller.stop()))
      await started.close()
      await standby?.remove()
      await cluster.remove()
    },
  }
}

/** Waits until something holds, ten seconds at most. */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (const end = performance.now() + 10_000; !(await holds());) {
    if (performance.now() > end) throw new Error(`not within 10 s: ${what}`)
    await pause(10)
  }
}

export interface Trouble {
  readonly begin: (world: World) => void | Promise<void>
  readonly end: (world: World) => void | Promise<void>
  /** Only the second node has it; the first one works all the time. */
  readonly ofSecond?: boolean
  /** The standby that takes over lacks the latest commits. */
  readonly losesCommits?: boolean
  /** It needs a standby. */
  readonly withStandby?: boolean
}

const setReadOnly =
  (value: 'on' | 'off') =>
  ({ cluster }: World): void => {
    query(cluster, `ALTER SYSTEM SET default_transaction_read_only = ${value}`)
    query(cluster, 'SELECT pg_reload_conf()')
  }

const forAll =
  (change: (node: StartedNode) => void) =>
  ({ nodes }: World): void =>
    nodes.forEach(change)

/** The primary dies, and the address leads to its standby. */
export async function failOver({ cluster, standby, nodes }: World): Promise<void> {
  await cluster.kill()
  await standby!.promote()
  for (const { proxy } of nodes) proxy.leadTo(standby!.port)
}

export const TROUBLES: Readonly<Record<string, Trouble>> = {
  frozen: { begin: ({ cluster }) => cluster.freeze(), end: ({ cluster }) => cluster.thaw() },
  killed: { begin: ({ cluster }) => cluster.kill(), end: ({ cluster }) => cluster.start() },
  'read-only': { begin: setReadOnly('on'), end: setReadOnly('off') },
  'slow by 2 s': {
    begin: forAll(({ proxy }) => proxy.delay(2000)),
    end: forAll(({ proxy }) => proxy.mend()),
  },
  'not reached by one node': {
    begin: ({ nodes }) => nodes[1]!.proxy.cut(),
    end: ({ nodes }) => nodes[1]!.proxy.mend(),
    ofSecond: true,
  },
  'silent to one node': {
    begin: ({ nodes }) => nodes[1]!.proxy.freeze(),
    end: ({ nodes }) => nodes[1]!.proxy.mend(),
    ofSecond: true,
  },
  'failed over': { begin: ({ cluster }) => cluster.freeze(), end: failOver, withStandby: true },
  'failed over, with 50 commits lost': {
    begin: async ({ standby, refreshers }) => {
      standby!.deafen()
      const done = () => refreshers.reduce((sum, { answers }) => sum + answers.length, 0)
      const enough = done() + 50
      await until(() => done() >= enough, 'fifty refreshes')
    },
    end: failOver,
    losesCommits: true,
    withStandby: true,
  },
}

export interface Findings {
  /** Data calls that were asked while it lasted, and afterwards. */
  readonly data: readonly Answered[]
  /** Refreshes meanwhile, of the nodes that had it. */
  readonly refreshed: readonly Answered[]
  /** Data calls in the second before. */
  readonly before: readonly Answered[]
  /** Refreshes of the nodes that did not have it. */
  readonly elsewhere: readonly Answered[]
  /**
   * Milliseconds from its end until a refresh succeeded that was asked afterwards, at the slowest node;
   * Infinity: none did within 10 s.
   */
  readonly backAfter: number
}

async function untilBack(callers: readonly Caller[], since: number): Promise<number> {
  const first = ({ answers }: Caller) => answers.find(({ at, status }) => at >= since && status === 200)
  const isBack = () => callers.every((caller) => first(caller) !== undefined)
  for (const end = performance.now() + 10_000; !isBack();) {
    if (performance.now() > end) return Infinity
    await pause(10)
  }
  return Math.max(...callers.map((caller) => first(caller)!.at + first(caller)!.took - since))
}

/** Lets it happen for so many milliseconds while callers call. */
export async function suffer(world: World, trouble: Trouble, ms: number): Promise<Findings> {
  await pause(1000)
  const begun = performance.now()
  await trouble.begin(world)
  await pause(ms)
  await trouble.end(world)
  const ended = performance.now()
  const had = trouble.ofSecond === true ? world.refreshers.slice(1, 2) : world.refreshers
  const backAfter = await untilBack(had, ended)
  await pause(500)
  return {
    before: between(world.data, begun - 1000, begun),
    data: between(world.data, begun),
    // One that was under way when it began may be the only one that it refused.
    refreshed: between(had, 0, ended).filter(({ at, took }) => at + took >= begun),
    elsewhere: between(
      world.refreshers.filter((refresher) => !had.includes(refresher)),
      begun,
    ),
    backAfter,
  }
}
