/**
 * Which Postern the tests start: the sources, or, under `POSTERN_TEST_PROGRAM=bundle`, the bundle that ships. Then an import
 * of a module that the bundle offers by its name is the bundle's too (.config/from-bundle.ts).
 */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const CHOICES = ['bundle', 'sources'] as const
const chosen = process.env['POSTERN_TEST_PROGRAM'] ?? 'sources'
if (!CHOICES.some((choice) => choice === chosen))
  throw new Error(`POSTERN_TEST_PROGRAM is "${chosen}": expected ${CHOICES.join(' or ')}`)

export const IS_BUNDLE = chosen === 'bundle'

/** The command line, below the repository. */
export const PROGRAM = IS_BUNDLE ? 'dist/main.js' : 'src/main.ts'

declare module 'vitest' {
  interface TaskMeta {
    /** Why a test cannot be run on the bundle. */
    needsSources?: string
  }
}

/** The options of a test or of a `describe` that reaches for parts that the bundle does not offer. */
export const needsSources = (why: string) => ({ skip: IS_BUNDLE, meta: { needsSources: why } })

/** Runs before the first test: the bundle is made once, if a source is newer. */
export default function setup(): void {
  if (!IS_BUNDLE) return
  const made = execFileSync(process.execPath, ['.config/program.ts'], { cwd: ROOT, encoding: 'utf8' }).trim()
  if (made !== PROGRAM) throw new Error('the bundle cannot be made: see above')
}
