/** What every command has: the terminal, and the configuration that it is for. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Problems, reportText } from '../config/problems.ts'
import type { Environment } from '../config/validate.ts'
import { hasCode, reasonInWords } from '../kernel/thrown.ts'
import type { Terminal } from '../operator/terminal.ts'
import { countOf } from '../operator/text.ts'
import { EXIT, UsageError } from '../operator/verb.ts'

// Which configuration a command takes that was given none.

/** The name of the file that `postern init` writes. */
export const OWN_FILE = 'postern.yaml'

const DEMO = 'config/demo.yaml'

/** For the help texts of commands. The demo is in the working folder of a clone and of the container only. */
export const DEFAULT_FILE = `POSTERN_CONFIG, else ${OWN_FILE} here, else ${DEMO}`

/** Undefined if the environment names no file and the working folder has neither file. */
const defaultFile = (environment: Environment): string | undefined =>
  environment['POSTERN_CONFIG'] || [OWN_FILE, DEMO].find((file) => existsSync(file))

/** The demo that is a part of this Postern, wherever it is installed. */
const shippedDemo = (): string => fileURLToPath(new URL(`../../${DEMO}`, import.meta.url))

/** What to do where there is no default: a message of several lines. */
const adviceWithoutFile = (): string =>
  `no configuration was named, and this folder has no ${OWN_FILE}. Do one of these:
  postern init     makes a configuration of your own, with new secrets
  POSTERN_CONFIG   names the file for all commands; or name it on the command line
  postern serve ${shippedDemo()}
                   serves the demo`

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

// What becomes of a command whose standard output cannot be written.

/**
 * Does the work of a command that prints. Standard output that cannot be written (a full disk) is told, with an exit code
 * that is never that of an answer. A reader that has seen enough (`| head`) changes nothing.
 */
export async function printing(work: () => Promise<number>, { stdout, stderr }: Terminal): Promise<number> {
  let broken: Error | undefined
  const onError = (error: Error): void => void (broken ??= error)
  stdout.on('error', onError)
  const ended = await work().catch((thrown: unknown) => {
    if (broken === undefined) throw thrown
    return EXIT.done
  })
  // A stream reports a failed write only after the write has returned.
  await new Promise(setImmediate)
  if (broken === undefined || hasCode(broken, 'EPIPE')) return ended
  stderr.write(`postern: standard output cannot be written (${reasonInWords(broken)})\n`)
  return EXIT.refused
}
