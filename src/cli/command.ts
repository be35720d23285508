import type { Environment } from '../config/references.ts'
import { didYouMean } from '../config/problem-text.ts'
import { parseArgs } from 'node:util'
import { reportText, type Report } from '../config/report.ts'

/** What a verb sees of the process; tests hand in their own. */
export interface Terminal {
  readonly env: Environment
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WritableStream
  readonly stderr: NodeJS.WritableStream
}

/** The exit codes of every verb. */
export const EXIT = {
  done: 0,
  /** It was tried and failed. */
  failed: 1,
  /** It was not even tried: the command line or the configuration is wrong. */
  refused: 2,
} as const

/** One verb of the command line, in a file of its own. `args` are those after the verb; answers the exit code. */
export interface Command {
  /** For `--help`, where there is more to say than the table of verbs does. */
  readonly help?: string
  readonly run: (args: readonly string[], terminal: Terminal) => Promise<number>
}

/** A command line that cannot be meant: told on stderr, exit code 2. */
export class UsageError extends Error {}

/** Verbs made of several acts: `postern client add`, `postern client list`, … */

export interface Subcommand {
  /** What follows the verb: `disable ID`. */
  readonly usage: string
  readonly summary: string
  /** The options, one a line. */
  readonly options?: readonly string[]
  /** `args` are those after the act. */
  readonly run: (args: readonly string[], terminal: Terminal) => Promise<number>
}

function helpOf(verb: string, acts: Readonly<Record<string, Subcommand>>, notes: string): string {
  const lines = Object.values(acts).map(({ usage, summary, options = [] }) =>
    [`  postern ${verb} ${usage}`, ...[summary, ...options].map((line) => `      ${line}`)].join('\n'),
  )
  return `Usage:\n\n${lines.join('\n')}\n\n${notes}\n`
}

/** Chooses the act by the first argument. */
export function commandOf(verb: string, acts: Readonly<Record<string, Subcommand>>, notes: string): Command {
  return {
    help: helpOf(verb, acts, notes),
    run(args, terminal) {
      const [word = '', ...rest] = args
      const act = Object.hasOwn(acts, word) ? acts[word] : undefined
      if (act) return act.run(rest, terminal)
      const hint = didYouMean(word, Object.keys(acts))
      throw new UsageError(
        `expected one of ${Object.keys(acts).join(', ')}${hint === undefined ? '' : ` — ${hint}`}`,
      )
    },
  }
}

/** The one positional argument of an act. Throws UsageError. */
export function singleName(positionals: readonly string[], what: string): string {
  const [name, ...more] = positionals
  if (name === undefined || more.length > 0) throw new UsageError(`expected one ${what}`)
  return name
}

/** Which configuration a verb means, and how its problems are told. */

const DEMO = 'config/demo.yaml'

/** The file named on the command line, else by POSTERN_CONFIG, else the demo world's. Throws UsageError. */
export function configurationFile(args: readonly string[], { env }: Terminal): string {
  const { positionals } = parseArgs({ args: [...args], allowPositionals: true, options: {} })
  if (positionals.length > 1) throw new UsageError(`expected one file, got ${positionals.length}`)
  return positionals[0] ?? (env['POSTERN_CONFIG'] || DEMO)
}

const count = (number: number, of: string): string => `${number} ${of}${number === 1 ? '' : 's'}`

/** Writes every problem to stderr, and how many there are. */
export function writeReport(file: string, report: Report, { stderr }: Terminal): void {
  const errors = report.problems.filter((problem) => problem.severity === 'error').length
  const warnings = report.problems.length - errors
  const told = [errors && count(errors, 'problem'), warnings && count(warnings, 'warning')].filter(Boolean)
  if (told.length > 0) stderr.write(`${reportText(report)}${file}: ${told.join(', ')}\n`)
}
