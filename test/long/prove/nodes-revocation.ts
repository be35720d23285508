/**
 * How long after the answer to `revoke` a token is refused by the last of four nodes, 200 times (`-- 200`); and what a node
 * that was paused for 60 s (`-- 200 60`) answers first to a token that was revoked meanwhile, and to a good one. 1 if a
 * revoked token is let in after a pause.
 */
import { decodeJwt } from 'jose'
import { setTimeout as pause } from 'node:timers/promises'
import { startCluster } from '../../extensions/postgres/support/node-troubles.ts'
import { type StartedNode, startNodes } from '../../extensions/postgres/support/nodes.ts'
import { bearer } from '../../support/requests.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'

const times = Number(process.argv[2] ?? 200)
const seconds = Number(process.argv[3] ?? 60)
const cluster = await startCluster()
const started = await startNodes(cluster, { count: 4, settings: 'load: { shedding: { delay: 0s } }' })
const { nodes } = started
const [first, last] = [nodes[0]!, nodes.at(-1)!]

async function call({ baseUrl }: StartedNode, token: string): Promise<number> {
  const answer = await fetch(`${baseUrl}/api/1.0/b/ACME/fund-data/fund-list`, { headers: bearer(token) })
  await answer.arrayBuffer()
  return answer.status
}

const draw = async (): Promise<string> => (await issueToken(first, { scope: ALL_AT_ACME })).access_token
const revoke = (token: string): Promise<number> =>
  started.order(first, '/revoke', { jti: decodeJwt(token).jti })

async function untilRefused(token: string): Promise<number> {
  for (const node of nodes) await call(node, token)
  await revoke(token)
  const since = performance.now()
  const refused = nodes.map(async (node) => {
    while ((await call(node, token)) !== 401) await pause(2)
    return performance.now() - since
  })
  return Math.max(...(await Promise.all(refused)))
}

const took: number[] = []
for (let count = 0; count < times; count += 1) took.push(await untilRefused(await draw()))
took.sort((one, other) => one - other)
const share = (part: number): string => `${took[Math.floor((took.length - 1) * part)]?.toFixed(0)} ms`
console.log(`refused by the last of 4 nodes: p50 ${share(0.5)}, p99 ${share(0.99)}, longest ${share(1)}`)

const [revoked, good] = [await draw(), await draw()]
for (const token of [revoked, good]) await call(last, token)
process.kill(last.pid, 'SIGSTOP')
await revoke(revoked)
await pause(seconds * 1000)
// They lie in its sockets when it goes on.
const statuses = Array.from({ length: 10 }, () => call(last, revoked))
const answered = Array.from({ length: 10 }, () =>
  call(last, good).then((status) => [status, performance.now()]),
)
await pause(200)
const since = performance.now()
process.kill(last.pid, 'SIGCONT')
const told = await Promise.all(statuses)
const waited = (await Promise.all(answered)).map(
  ([status, at = 0]) => `${status} ${(at - since).toFixed(0)} ms`,
)
console.log(
  `after a pause of ${seconds} s: the revoked token`,
  told.join(' '),
  '; the good one',
  waited.join(', '),
)
await started.close()
await cluster.remove()
process.exitCode = told.every((status) => status === 401) ? 0 : 1
