/** What every command has: the terminal, and the configuration that it is for. */
import { type Problems, reportText } from '../config/problems.ts'
import type { Terminal } from '../operator/terminal.ts'
import { countOf } from '../operator/text.ts'
import { UsageError } from '../operator/verb.ts'
import { adviceWithoutFile, defaultFile } from './default-file.ts'

/** A command: `args` are the arguments after its name. The promise gives the exit code. */
export interface Command {
  readonly run: (args: readonly string[], terminal: Terminal) => Promise<number>
}

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

/** Writes every problem and their number to stderr. */
export function writeReport(file: string, problems: Problems, { stderr }: Terminal): void {
  const errors = problems.list.filter((problem) => problem.severity === 'error').length
  const warnings = problems.list.length - errors
  const counts = [errors && countOf(errors, 'problem'), warnings && countOf(warnings, 'warning')].filter(
    Boolean,
  )
  if (counts.length > 0) stderr.write(`${reportText(problems)}${file}: ${counts.join(', ')}\n`)
}
