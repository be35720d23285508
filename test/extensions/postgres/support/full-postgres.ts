/** A Postgres whose disk can be filled. Needs the right to mount. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../support/free-port.ts'
import { PostgresCluster } from '../../../support/postgres.ts'

export interface FullPostgres {
  readonly cluster: PostgresCluster
  /** Leaves no byte, again and again: what Postgres frees is taken too. */
  readonly fill: () => void
  /** There is room again. */
  readonly empty: () => void
  readonly remove: () => void
}

/**
 * @param hasLog its log of writes (WAL) is on that disk as well: when there is no room for it, Postgres ends. Else the log lies
 *   elsewhere, and Postgres goes on answering
 */
export async function startFullPostgres(hasLog: boolean): Promise<FullPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-small-'))
  const wal = `${folder}-wal`
  const ballast = join(folder, 'ballast')
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=200m,mode=1777', 'tmpfs', folder])
  chmodSync(folder, 0o1777)
  let filling: NodeJS.Timeout | undefined
  const fill = (): void => {
    const { bavail, bsize } = statfsSync(folder)
    if (bavail > 0) writeFileSync(ballast, Buffer.alloc(bavail * bsize), { flag: 'a' })
  }
  const remove = (): void => {
    clearInterval(filling)
    execFileSync('umount', ['-l', folder])
    for (const each of [folder, wal]) rmSync(each, { recursive: true, force: true })
  }
  try {
    // Segments of 1 MiB, so that the log soon needs another one.
    const cluster = new PostgresCluster(join(folder, 'cluster'), await freePort(), [
      ...['-c', 'min_wal_size=2MB', '-c', 'wal_recycle=off'],
    ])
    cluster.create(['--wal-segsize=1', ...(hasLog ? [] : ['--waldir', wal])])
    await cluster.start()
    return {
      cluster,
      fill: () => {
        fill()
        filling = setInterval(fill, 50)
      },
      empty: () => {
        clearInterval(filling)
        truncateSync(ballast)
      },
      remove,
    }
  } catch (thrown) {
    remove()
    throw thrown
  }
}
