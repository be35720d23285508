/** The commands that serve a file and try it, as they can be typed in the folder where this Postern was started. */
import { existsSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Environment } from '../../config/references.ts'

/** How this process was started. */
export interface Started {
  readonly environment: Environment
  /** The working folder. */
  readonly cwd: string
  /** The program that runs this one: Node. */
  readonly node: string
  /** `process.argv[1]`: the file that was started, as it was named. */
  readonly entry: string
}

const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/

/** A word as a POSIX shell reads it. */
const shellWord = (text: string): string => (PLAIN.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)

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

/** @param file a path from the working folder */
export const serveCommandText = (file: string, started: Started): string =>
  `${programOf(started)} serve ${shellWord(file)}`

/** A call of the API, and who makes it. */
export interface FirstCall {
  readonly user: string
  /** The path; the method is GET. */
  readonly path: string
}

/** @param file a path from the working folder */
export const tryCommandText = (file: string, { user, path }: FirstCall, started: Started): string =>
  `${programOf(started)} try --config ${shellWord(file)} --user ${shellWord(user)} GET ${shellWord(path)}`
