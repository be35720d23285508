/**
 * Whether anybody is logged out while the Postgres of two nodes is killed in the middle of refreshes:
 * `node test/long/prove/postgres-kills.ts [KILLS]`. 1 where a client was refused.
 */
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'
import { refreshThroughKills } from '../../extensions/postgres/support/killed-postgres.ts'
import { PostgresCluster } from '../../support/postgres.ts'

const kills = Number(process.argv[2] ?? 10)
const cluster = new PostgresCluster(await mkdtemp(join(tmpdir(), 'postern-kills-')), await freePort())
cluster.create()
await cluster.start()
try {
  const told = await refreshThroughKills(cluster, kills)
  const [good = 0, waited = 0] = [told.get(200), told.get(503)]
  const isWell = [...told.keys()].every((status) => status === 200 || status === 503)
  console.log(`${isWell ? 'well' : 'FAILED'}: ${kills} kills, ${good} refreshes, ${waited} answers 503`)
  if (!isWell) console.log('others:', Object.fromEntries(told))
  process.exitCode = isWell ? 0 : 1
} finally {
  await cluster.remove()
}
