/**
 * Where the tests' files lie: in memory where there is room, so that no test waits for a disk that is busy with others. The
 * store gives up after 450 ms, and a slow disk alone can take that long.
 */
import { accessSync, chmodSync, constants, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'

const MEMORY = '/dev/shm'
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

/** Runs before the first test: `os.tmpdir()` of every process follows. What it returns runs after the last one. */
export default function setup(): (() => void) | undefined {
  if (!hasRoom()) return undefined
  const folder = mkdtempSync(join(MEMORY, 'postern-tests-'))
  // As /tmp: some servers run as another user.
  chmodSync(folder, 0o1777)
  process.env['TMPDIR'] = folder
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
}
