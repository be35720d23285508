/** A Postern that keeps its tokens in a Postgres of the benchmark's own. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { newSecret } from '../../../src/base/kernel/ids.ts'
import { PostgresCluster } from '../../support/postgres.ts'
import { postgresPrograms } from '../../support/postgres-programs.ts'
import { cpuSeconds, processTree } from './cpu-time.ts'
import { type Issuer, startPosternIssuer } from './issuers.ts'
import { newFolder, startUpstream } from './subjects.ts'
import { freePort } from '../../support/free-port.ts'

/** What is answered stands on the disk, as in production. */
const DURABLE = ['-c', 'fsync=on']

const configuration = (cluster: PostgresCluster): string => `audit: { enabled: false }
admin: { token: { env: POSTERN_ADMIN_TOKEN } }
store:
  kind: postgres
  url: '${cluster.url()}'
  seal: [{ id: bench, key: { env: POSTERN_SEAL } }]
`

/** Undefined where Postgres is not installed. Its CPU time is counted with Postern's. */
export async function startPostgresIssuer(name: string): Promise<Issuer | undefined> {
  if (postgresPrograms() === undefined) return undefined
  const cluster = new PostgresCluster(await newFolder(), await freePort(), DURABLE)
  cluster.create()
  await cluster.start()
  const upstream = await startUpstream()
  process.env['POSTERN_ADMIN_TOKEN'] = newSecret()
  process.env['POSTERN_SEAL'] = newSecret()
  const postern = await startPosternIssuer(name, configuration(cluster), upstream.url)
  const pid = Number(readFileSync(join(cluster.folder, 'data/postmaster.pid'), 'utf8').split('\n')[0])
  return {
    ...postern,
    cpu: () => postern.cpu() + cpuSeconds(processTree(pid)),
    stop: async () => {
      await postern.stop()
      upstream.stop()
      await cluster.remove()
    },
  }
}
