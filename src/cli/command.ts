/** What every command has: the terminal, the exit codes, subcommands, and the configuration that it is for. */
import { parseArgs } from 'node:util'
import { didYouMean } from '../config/problem-text.ts'
import type { Environment } from '../config/references.ts'
import { reportText, type Report } from '../config/report.ts'
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
  /** The text of `--help`, for the arguments beside it. Default: the usage and the summary of the table of commands. */
  readonly help?: string | ((args: readonly string[]) => string)
  readonly run: (args: readonly string[], terminal: Terminal) => Promise<number>
}

/** The command line is wrong. The message goes to stderr, and the exit code is 2. */
export class UsageError extends Error {}

/** `postern client add`, `postern client list`, … */
export interface Subcommand {
  /** What follows the name of the command: `disable ID`. */
  readonly usage: string
  readonly summary: string
  /** The options, one per line. */
  readonly options?: readonly string[]
  /** `args` are the arguments after the name of the subcommand. */
  readonly run: (args: readonly string[], terminal: Terminal) => Promise<number>
}

type Subcommands = Readonly<Record<string, Subcommand>>

const subcommandOf = (subcommands: Subcommands, word: string): Subcommand | undefined =>
  Object.hasOwn(subcommands, word) ? subcommands[word] : undefined

function helpOf(name: string, subcommands: Subcommands, notes: string): string {
  const lines = Object.values(subcommands).map(({ usage, summary, options = [] }) =>
    [`  postern ${name} ${usage}`, ...[summary, ...options].map((line) => `      ${line}`)].join('\n'),
  )
  return `Usage:\n\n${lines.join('\n')}\n\n${notes}\n`
}

/** A command whose first argument names the subcommand. It throws UsageError if that is none of them. */
export function commandOf(name: string, subcommands: Subcommands, notes: string): Command {
  return {
    help([word = '']) {
      const chosen = subcommandOf(subcommands, word)
      return helpOf(name, chosen === undefined ? subcommands : { [word]: chosen }, notes)
    },
    run(args, terminal) {
      const [word = '', ...rest] = args
      const chosen = subcommandOf(subcommands, word)
      if (chosen) return chosen.run(rest, terminal)
      const names = Object.keys(subcommands)
      const hint = didYouMean(word, names)
      throw new UsageError(`expected one of ${names.join(', ')}${hint === undefined ? '' : ` — ${hint}`}`)
    },
  }
}

/**
 * The one positional argument.
 *
 * @throws UsageError if there is none, or more than one
 */
export function singleName(positionals: readonly string[], what: string): string {
  const [name, ...more] = positionals
  if (name === undefined || more.length > 0) throw new UsageError(`expected one ${what}`)
  return name
}

/**
 * The configuration file: named on the command line, else the default (default-file.ts).
 *
 * @throws UsageError if several are named, or none is and there is no default
 */
export function configurationFile(args: readonly string[], { env }: Terminal): string {
  const { positionals } = parseArgs({ args: [...args], allowPositionals: true, options: {} })
  if (positionals.length > 1) throw new UsageError(`expected one file, got ${positionals.length}`)
  const file = positionals[0] ?? defaultFile(env)
  if (file === undefined) throw new UsageError(adviceWithoutFile())
  return file
}

/** `1 code`, `2 codes`. */
export const countOf = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`

/** Writes every problem and their number to stderr. */
export function writeReport(file: string, report: Report, { stderr }: Terminal): void {
  const errors = report.problems.filter((problem) => problem.severity === 'error').length
  const warnings = report.problems.length - errors
  const counts = [errors && countOf(errors, 'problem'), warnings && countOf(warnings, 'warning')].filter(
    Boolean,
  )
  if (counts.length > 0) stderr.write(`${reportText(report)}${file}: ${counts.join(', ')}\n`)
}
