/**
 * Whether anybody is logged out, a revoked token is let in, or a data call fails while troubles of every kind come one after
 * another over three nodes with two workers each, and their Postgres; 1 if so.
 *
 *     npm run prove nodes-chaos -- --seconds 120 [--seed 7]
 */
import { decodeJwt } from 'jose'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { processTree } from '../load/cpu-time.ts'
import { callData, callRefresh, startCaller, statusesOf } from '../../extensions/postgres/support/callers.ts'
import { SCOPE, startCluster, until } from '../../extensions/postgres/support/node-troubles.ts'
import { startNodes, type StartedNode } from '../../extensions/postgres/support/nodes.ts'
import { bearer } from '../../support/requests.ts'
import { oneOf, randomFrom } from '../../support/seeded-random.ts'
import { issueToken } from '../../support/tokens.ts'

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '120' }, seed: { type: 'string', default: '1' } },
})
const random = randomFrom(Number(values.seed))
const pick = <T>(list: readonly T[]): T => oneOf(random, list)
const NODES = 3
const REFRESHERS = 12
/** Milliseconds after which a revocation is in force at a node without trouble. */
const SPREAD = 1000
/** Statements whose answers are lost. */
const STATEMENTS = ['create', 'replace', 'redeem', 'append', 'find', 'changes', 'budget_exchange', 'hold']

const cluster = await startCluster()
const settings = 'workers: 2\nload: { shedding: { delay: 0s } }\n'
const started = await startNodes(cluster, { count: NODES, settings })
const nodes: StartedNode[] = [...started.nodes]
/** performance.now() until which each node may know less than the others. */
const troubledUntil = nodes.map(() => 0)
const wrong: string[] = []

const signal = (node: StartedNode, name: NodeJS.Signals): void => {
  for (const pid of processTree(node.pid)) process.kill(pid, name)
}

interface Trouble {
  readonly name: string
  readonly of: readonly number[]
  readonly begin: () => void | Promise<void>
  readonly end: () => void | Promise<void>
}

function drawTrouble(): Trouble {
  const at = Math.floor(random() * NODES)
  const node = (): StartedNode => nodes[at]!
  const all = nodes.map((_, index) => index)
  const mend = (): void => node().proxy.mend()
  const statement = pick(STATEMENTS)
  return pick<Trouble>([
    { name: 'Postgres frozen', of: all, begin: () => cluster.freeze(), end: () => cluster.thaw() },
    { name: 'Postgres killed', of: all, begin: () => cluster.kill(), end: () => cluster.start() },
    { name: `node ${at} cut off`, of: [at], begin: () => node().proxy.cut(), end: mend },
    { name: `node ${at} hears nothing`, of: [at], begin: () => node().proxy.freeze(), end: mend },
    {
      name: `node ${at} hears late`,
      of: [at],
      begin: () => node().proxy.delay(200 + random() * 1500),
      end: mend,
    },
    {
      name: `answers to ${statement} lost`,
      of: [at],
      begin: () => node().proxy.lose(statement, 5),
      end: mend,
    },
    {
      name: `node ${at} paused`,
      of: [at],
      begin: () => signal(node(), 'SIGSTOP'),
      end: () => signal(node(), 'SIGCONT'),
    },
    {
      name: `node ${at} killed`,
      of: [at],
      begin: () => signal(node(), 'SIGKILL'),
      end: async () => {
        nodes[at] = await node().restart()
      },
    },
  ])
}

async function call({ baseUrl }: StartedNode, token: string): Promise<number> {
  const answer = await fetch(`${baseUrl}/api/1.0/b/ACME/fund-data/fund-list`, { headers: bearer(token) })
  await answer.arrayBuffer()
  return answer.status
}

interface Revoked {
  readonly token: string
  readonly at: number
  /** Nodes that have refused it. */
  readonly refusedBy: Set<number>
}
const revoked: Revoked[] = []

/** A token that is used, and revoked at another node. */
async function revokeOne(): Promise<number> {
  const { access_token: token } = await issueToken(pick(nodes), { scope: SCOPE })
  await call(pick(nodes), token).catch(() => 0)
  const status = await started.order(pick(nodes), '/revoke', { jti: decodeJwt(token).jti })
  if (status < 300) revoked.push({ token, at: performance.now(), refusedBy: new Set() })
  return status
}

/** A revoked token at a node that must know of it: because it has refused it before, or because it has no trouble. */
async function tryRevoked(): Promise<number> {
  if (revoked.length === 0) return 0
  const one = pick(revoked)
  const at = Math.floor(random() * NODES)
  const node = nodes[at]!
  const askedAt = performance.now()
  const mustKnow = one.refusedBy.has(at) || askedAt > Math.max(one.at, troubledUntil[at]!) + SPREAD
  const status = await call(node, one.token)
  if (status === 401) one.refusedBy.add(at)
  if (status === 200 && mustKnow) wrong.push(`node ${at} let a revoked token in`)
  return status
}

const good = await Promise.all(nodes.map((node) => issueToken(node, { scope: SCOPE })))
const data = nodes.map((_, at) => callData(() => nodes[at]!.baseUrl, good[at]!.access_token, 10))
const refreshers = await Promise.all(
  Array.from({ length: REFRESHERS }, async () => {
    const { refresh_token = '' } = await issueToken(nodes[0]!, { scope: SCOPE })
    return callRefresh(() => pick(nodes).authUrl, refresh_token, 50)
  }),
)
const revoker = startCaller(revokeOne, 300)
const trier = startCaller(tryRevoked, 20)

const end = performance.now() + Number(values.seconds) * 1000
const happened: Record<string, number> = {}
while (performance.now() < end) {
  await pause(random() * 2500)
  const { name, of, begin, end: mend } = drawTrouble()
  const kind = name.replace(/\d/, 'N')
  happened[kind] = (happened[kind] ?? 0) + 1
  for (const at of of) troubledUntil[at] = Infinity
  await begin()
  await pause(300 + random() * 3000)
  await mend()
  // Five failures open the breaker for half a second.
  for (const at of of) troubledUntil[at] = performance.now() + 1500
}
await pause(3000)
const since = performance.now()
const isBack = refreshers.map(
  ({ answers }) =>
    () =>
      answers.some(({ at, status }) => at > since && status === 200),
)
await until(() => isBack.every((back) => back()), 'everybody refreshes').catch((thrown: unknown) =>
  wrong.push(String(thrown)),
)
await Promise.all([...data, ...refreshers, revoker, trier].map((caller) => caller.stop()))
for (const { token } of revoked)
  for (const [at, node] of nodes.entries())
    if ((await call(node, token)) !== 401) wrong.push(`at the end node ${at} let a revoked token in`)

const refreshed = statusesOf(refreshers.flatMap(({ answers }) => answers))
const called = statusesOf(data.flatMap(({ answers }) => answers))
if ('400' in refreshed) wrong.push('a client was logged out')
for (const status of Object.keys(called))
  if (!['0', '200'].includes(status)) wrong.push(`a data call was answered ${status}`)
console.log(happened)
console.log('data calls', called, 'refreshes', refreshed, 'orders to revoke', statusesOf(revoker.answers))
console.log('revoked tokens', revoked.length, 'calls with them', statusesOf(trier.answers))
console.log(wrong.length === 0 ? 'all well' : [...new Set(wrong)].join('\n'))
await started.close().catch(() => undefined)
for (const node of nodes) await node.stop().catch(() => undefined)
await cluster.remove()
process.exit(wrong.length === 0 ? 0 : 1)
