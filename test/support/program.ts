/**
 * Which Postern the tests start: the bundle, which is what ships. The tests `*.wire.test.ts` and `*.attack.test.ts` start its service in their
 * own process too: what they import of `src` is the bundle's (.config/from-bundle.ts). Under `POSTERN_TEST_PROGRAM=sources`
 * everything is the sources, so that a debugger or a profile shows their lines.
 */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const CHOICES = ['bundle', 'sources'] as const
const chosen = process.env['POSTERN_TEST_PROGRAM'] ?? 'bundle'
if (!CHOICES.some((choice) => choice === chosen))
  throw new Error(`POSTERN_TEST_PROGRAM is "${chosen}": expected ${CHOICES.join(' or ')}`)

export const IS_BUNDLE = chosen === 'bundle'

/** The command line, below the repository. */
export const PROGRAM = IS_BUNDLE ? 'dist/main.js' : 'src/main.ts'

/** Runs before the first test: the bundle is made once, if a source is newer. */
export default function setup(): void {
  if (!IS_BUNDLE) return
  const made = execFileSync(process.execPath, ['.config/program.ts'], { cwd: ROOT, encoding: 'utf8' }).trim()
  if (made !== PROGRAM) throw new Error('the bundle cannot be made: see above')
}
