/**
 * Prints the program that `npm start` runs: the bundle, which is made first if a source is newer; the sources, if it cannot be
 * made (a checkout that can only be read, an installation without what builds it).
 */
import { globSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PROGRAM = 'dist/main.js'
/** Folders are newer when a file in them is removed. */
const MADE_OF = ['src/**', 'package.json', 'package-lock.json', '.config/bundle.ts']
/** Parts of earlier builds stay for a day: a service that runs reads some only when it needs them. */
const KEPT_MS = 24 * 60 * 60_000

const writtenAt = (file: string): number => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0

const isFresh = (): boolean =>
  globSync(MADE_OF, { cwd: ROOT }).every(
    (file) => writtenAt(join(ROOT, file)) < writtenAt(join(ROOT, PROGRAM)),
  )

async function program(): Promise<string> {
  if (isFresh()) return PROGRAM
  try {
    const { makeBundle } = await import('./bundle.ts')
    await makeBundle(Date.now() - KEPT_MS)
    return PROGRAM
  } catch (error) {
    const [reason] = String(error instanceof Error ? error.message : error).split('\n')
    process.stderr.write(
      `postern: the bundle cannot be made (${reason}): running the sources, which take more memory\n`,
    )
    return 'src/main.ts'
  }
}

console.log(await program())
