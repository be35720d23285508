import { execFileSync } from 'node:child_process'
import { statfsSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd } from './shared.ts'
import { dataFolder } from './data-folder.ts'

/** A disk of 1 MiB, for one test that needs `a small disk`. */
export async function smallDisk() {
  const folder = await dataFolder()
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=700', 'tmpfs', folder])
  atEnd(() => void execFileSync('umount', ['-l', folder]))
  const ballast = join(folder, 'ballast')
  return {
    folder,
    /** Leaves no byte. */
    fill: (): void => {
      const { bavail, bsize } = statfsSync(folder)
      writeFileSync(ballast, Buffer.alloc(bavail * bsize))
    },
    empty: (): void => truncateSync(ballast),
  }
}
