/**
 * What callers of two nodes notice while the disk of their Postgres is full for 10 s (`-- 10`): data calls, refreshes, and
 * how soon all is well when there is room. Its log of writes (WAL) lies elsewhere: without room for that, Postgres itself ends. 1
 * where a data call failed, or a client was logged out. Needs the right to mount.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { between, startCaller, statusesOf, timeOf } from '../support/callers.ts'
import { freePort } from '../support/free-port.ts'
import { SCOPE, startWorld, suffer, type Trouble } from '../support/node-troubles.ts'
import { postForm } from '../support/oauth.ts'
import { PostgresCluster } from '../support/postgres.ts'

const folder = mkdtempSync(join(tmpdir(), 'postern-small-'))
const wal = `${folder}-wal`
const ballast = join(folder, 'ballast')
execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=100m,mode=1777', 'tmpfs', folder])
chmodSync(folder, 0o1777)

/** Again and again: what Postgres frees is taken too. */
let filling: NodeJS.Timeout | undefined
function fill(): void {
  const { bavail, bsize } = statfsSync(folder)
  if (bavail > 0) writeFileSync(ballast, Buffer.alloc(bavail * bsize), { flag: 'a' })
}

const full: Trouble = {
  begin: () => {
    fill()
    filling = setInterval(fill, 50)
  },
  end: () => {
    clearInterval(filling)
    truncateSync(ballast)
  },
}

try {
  const cluster = new PostgresCluster(join(folder, 'cluster'), await freePort())
  cluster.create(['--waldir', wal])
  await cluster.start()
  const world = await startWorld({ cluster })
  const params = { grant_type: 'password', username: 'alice', password: 'alice-password', scope: SCOPE }
  // A login is a new row, which needs room. A refresh changes one, and often finds room where it stands.
  const logins = startCaller(
    async () => (await postForm(world.nodes[0]!, '/connect/token', { params })).status,
  )
  const begun = performance.now()
  const { data, refreshed, backAfter } = await suffer(world, full, Number(process.argv[2] ?? 10) * 1000)
  const [called, told] = [statusesOf(data), statusesOf(refreshed)]
  console.log('data calls', called, `longest ${timeOf(data, 1).toFixed(0)} ms; refreshes`, told)
  console.log(`  longest ${timeOf(refreshed, 1).toFixed(0)} ms; well again after ${backAfter.toFixed(0)} ms`)
  await logins.stop()
  const last = logins.answers.at(-1)?.status === 200
  console.log('  logins', statusesOf(between([logins], begun)), last ? 'well again' : 'NOT WELL AGAIN')
  await world.close()
  process.exitCode = Object.keys(called).join() === '200' && backAfter < Infinity && last ? 0 : 1
} finally {
  execFileSync('umount', ['-l', folder])
  rmSync(folder, { recursive: true, force: true })
  rmSync(wal, { recursive: true, force: true })
}
