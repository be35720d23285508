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
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs'
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
      if (Date.now() - statSync(folder).mtimeMs > DAY) rmSync(folder, { recursive: true, force: true })
    } catch {
      // Another user's, or removed meanwhile.
    }
}

/** Runs before the first test: `os.tmpdir()` of every process follows. What it returns runs after the last one. */
export default function setup(): (() => void) | undefined {
  removeAbandoned()
  if (!hasRoom()) return undefined
  const folder = mkdtempSync(join(MEMORY, PREFIX))
  // As /tmp: some servers run as another user.
  chmodSync(folder, 0o1777)
  process.env['TMPDIR'] = folder
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
}
