/**
 * Whether any of 20 refreshing clients is logged out while the Postgres of their two nodes is killed ten times
 * (`-- 10`), with `kill -9` of all its processes; 1 if one is.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { between, callRefresh, statusesOf, timeOf } from '../../extensions/postgres/support/callers.ts'
import { SCOPE, startWorld } from '../../extensions/postgres/support/node-troubles.ts'
import { issueToken } from '../../support/tokens.ts'

const kills = Number(process.argv[2] ?? 10)
const world = await startWorld()
const { nodes, cluster, data } = world
const clients = await Promise.all(
  Array.from({ length: 20 }, async (_, at) => {
    const { refresh_token = '' } = await issueToken(nodes[at % 2]!, { scope: SCOPE })
    // At one node and the other by turns, so that a retry often comes to the other one.
    let asked = at
    return callRefresh(() => nodes[(asked += 1) % 2]!.authUrl, refresh_token, 30)
  }),
)
const begun = performance.now()
for (let kill = 0; kill < kills; kill += 1) {
  await pause(1500)
  await cluster.kill()
  await pause(500)
  await cluster.start()
}
await pause(3000)
const ended = performance.now()
await Promise.all(clients.map((client) => client.stop()))
const told = statusesOf(between(clients, begun))
const called = between(data, begun, ended)
const loggedOut = clients.filter(({ answers }) => answers.at(-1)?.status !== 200).length
console.log(`${kills} kills: refreshes`, told, `longest ${timeOf(between(clients, begun), 1).toFixed(0)} ms;`)
console.log(`  ${loggedOut} of ${clients.length} clients logged out; data calls`, statusesOf(called))
await world.close()
process.exitCode = loggedOut === 0 && !('400' in told) ? 0 : 1
