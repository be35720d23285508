/**
 * Where the tests' files lie: in memory where there is room, so that no test waits for a disk that is busy with others. The
 * store gives up after 450 ms, and a slow disk alone can take that long.
 */
import {
  accessSync,
  chmodSync,
  constants,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MEMORY = '/dev/shm'
const PREFIX = 'postern-tests-'
/** Milliseconds. No run takes that long. */
const DAY = 86_400_000
/** Bytes; the tests need a quarter. A container often has 64 MiB. */
const ROOM = 2 * 1024 ** 3

function hasRoom(): boolean {
  try {
    accessSync(MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize >= ROOM
  } catch {
    return false
  }
}

/** Runs that were killed left theirs, which takes memory until it is removed. */
function removeAbandoned(): void {
  for (const folder of globSync(join(MEMORY, `${PREFIX}*`)))
    try {
      if (Date.now() - statSync(folder).mtimeMs <= DAY) continue
      endPostgres(folder)
      rmSync(folder, { recursive: true, force: true })
    } catch {
      // Another user's, or removed meanwhile.
    }
}

/** The folder of the Postgres that the tests of a run share (postgres.ts). */
export const SHARED_POSTGRES = 'shared-postgres'

/** Ends the Postgres that the tests of a run have shared, if one was started. */
function endPostgres(folder: string): void {
  try {
    const [id] = readFileSync(join(folder, SHARED_POSTGRES, 'data/postmaster.pid'), 'utf8').split('\n')
    process.kill(Number(id), 'SIGQUIT')
  } catch {
    // None was started, or it has ended.
  }
}

/** Runs before the first test: `os.tmpdir()` of every process follows. What it returns runs after the last one. */
export default function setup(): () => void {
  removeAbandoned()
  const folder = mkdtempSync(join(hasRoom() ? MEMORY : tmpdir(), PREFIX))
  // As /tmp: some servers run as another user.
  chmodSync(folder, 0o1777)
  process.env['TMPDIR'] = folder
  return () => {
    endPostgres(folder)
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}
