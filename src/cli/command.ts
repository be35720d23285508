/** What every command has: the terminal, the exit codes, and the configuration that it is for. */
import type { Environment } from '../config/references.ts'
import { reportText, type Problems } from '../config/problems.ts'
import { adviceWithoutFile, defaultFile } from './default-file.ts'

/** The part of `process` that a command uses. */
export interface Terminal {
  readonly env: Environment
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WritableStream
  readonly stderr: NodeJS.WritableStream
}

/** The exit codes of all commands. */
export const EXIT = {
  done: 0,
  /** The command failed. */
  failed: 1,
  /** Nothing was done: the command line or the configuration has a problem. */
  refused: 2,
} as const

/** A command: `args` are the arguments after its name. The promise gives the exit code. */
export interface Command {
  readonly run: (args: readonly string[], terminal: Terminal) => Promise<number>
}

/** The command line is wrong. The message goes to stderr, and the exit code is 2. */
export class UsageError extends Error {}

/**
 * The configuration file: as it was named, else the default (default-file.ts).
 *
 * @throws UsageError if none was named and there is no default
 */
export function configurationFile(named: string | undefined, { env }: Terminal): string {
  const file = named ?? defaultFile(env)
  if (file === undefined) throw new UsageError(adviceWithoutFile())
  return file
}

/** `1 code`, `2 codes`. */
export const countOf = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`

/** Writes every problem and their number to stderr. */
export function writeReport(file: string, problems: Problems, { stderr }: Terminal): void {
  const errors = problems.list.filter((problem) => problem.severity === 'error').length
  const warnings = problems.list.length - errors
  const counts = [errors && countOf(errors, 'problem'), warnings && countOf(warnings, 'warning')].filter(
    Boolean,
  )
  if (counts.length > 0) stderr.write(`${reportText(problems)}${file}: ${counts.join(', ')}\n`)
}
