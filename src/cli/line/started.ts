/** How this process was started, and other command lines as they can be typed in the same place. */
import { existsSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Environment } from '../../base/config/validate.ts'
import { type Terminal, shellWord } from '../../operate/operation/terminal.ts'

export interface Started {
  readonly environment: Environment
  /** The working folder. */
  readonly cwd: string
  /** The program that runs this one: Node. */
  readonly node: string
  /** `process.argv[1]`: the file that was started, as it was named. */
  readonly entry: string
}

/** Started by `npm run postern`, which npm does in the folder of the clone. */
function isOwnClone({ cwd, entry, environment }: Started): boolean {
  if (environment['npm_lifecycle_event'] !== 'postern') return false
  return realpathSync(entry) === join(realpathSync(cwd), 'src/main.ts')
}

/** Whether `npx postern` in the working folder starts what is installed there. npx looks in each folder above too. */
function isInstalledHere({ cwd, entry }: Started): boolean {
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const program = join(folder, 'node_modules/.bin/postern')
    if (existsSync(program)) return realpathSync(program) === realpathSync(entry)
    if (folder === dirname(folder)) return false
  }
}

/** Whether a shell finds `postern`. npm puts folders into PATH that the shell does not know. */
const isInPath = ({ environment, entry }: Started): boolean =>
  environment['npm_command'] === undefined &&
  basename(entry) === 'postern' &&
  (environment['PATH'] ?? '').split(':').includes(dirname(entry))

const PROGRAMS: readonly (readonly [fits: (started: Started) => boolean, program: string])[] = [
  [isOwnClone, 'npm run -s postern --'],
  [isInstalledHere, 'npx postern'],
  [isInPath, 'postern'],
]

/** The program by its path, which runs from anywhere: also what `npx` unpacked for this once. */
const byPath = ({ node, entry }: Started): string => `${shellWord(node)} ${shellWord(realpathSync(entry))}`

function programOf(started: Started): string {
  const [, program] = PROGRAMS.find(([fits]) => fits(started)) ?? []
  return program ?? byPath(started)
}

export const startedBy = ({ env }: Terminal): Started => ({
  environment: env,
  cwd: process.cwd(),
  node: process.execPath,
  entry: process.argv[1] ?? '',
})

/** @param words what follows `postern` */
export const commandText = (started: Started, words: readonly string[]): string =>
  [programOf(started), ...words.map(shellWord)].join(' ')
