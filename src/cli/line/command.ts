/** The parts that every command has: its configuration, its verbs, and standard output that may fail. */
import { existsSync } from 'node:fs'
import { setImmediate } from 'node:timers'
import { fileURLToPath } from 'node:url'
import { didYouMean } from '../../base/config/problem-text.ts'
import { type Problems, reportText } from '../../base/config/problems.ts'
import type { Environment } from '../../base/config/validate.ts'
import { hasCode, reasonInWords } from '../../base/kernel/thrown.ts'
import type { AdminOperation } from '../../operate/operation/operation.ts'
import { countOf, type Terminal } from '../../operate/operation/terminal.ts'
import { EXIT, type Given, UsageError, type Verb } from '../../operate/operation/verb.ts'
import { parse } from './options.ts'

/** The name of the file that `postern init` writes. */
export const OWN_FILE = 'postern.yaml'

const DEMO = 'config/demo.yaml'

/** For the help texts of commands. The demo is in the working folder of a clone and of the container only. */
export const DEFAULT_FILE = `POSTERN_CONFIG, else ${OWN_FILE} here, else ${DEMO}`

/** Undefined if the environment names no file and the working folder has neither file. */
const defaultFile = (environment: Environment): string | undefined =>
  environment['POSTERN_CONFIG'] || [OWN_FILE, DEMO].find((file) => existsSync(file))

/** The demo that is a part of this Postern, wherever it is installed. */
const shippedDemo = (): string => fileURLToPath(new URL(`../../../${DEMO}`, import.meta.url))

/** Advice where there is no default: a message of several lines. */
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

/** A command, as the list of all commands has it. */
export interface CommandRow {
  /** For the list of all commands. */
  readonly summary: string
  /** The operations that its verbs are of: those of a file of `operate/`. Imported only when they are used. */
  readonly operations?: () => Promise<readonly AdminOperation[]>
  /** Its verbs that are none of an operation, and their options: one of line/tables.ts, or of init/table.ts. Imported only when it is used. */
  readonly table?: () => Promise<CommandTable>
  /** Its verbs as its help lists them. Default: those of operations first. */
  readonly verbs?: readonly string[]
  /** Paragraphs about all verbs of operations. */
  readonly notes?: readonly string[]
  /** The command behind which the list has it, if an extension adds it. Default: it is the first of the last group. */
  readonly after?: string | undefined
  /** Whether extensions add verbs to it. */
  readonly takesVerbs?: true
  /** Does the verbs that are none of an operation. Absent: `commands.ts` says what does. */
  readonly work?: () => Promise<Command>
}

/**
 * The configuration file: the one that was named, otherwise the default.
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

/** Does the work. An error of these kinds becomes a line on stderr and an exit code. */
export async function orTellTrouble(
  kinds: readonly (abstract new (...args: never) => Error)[],
  work: () => number | Promise<number>,
  { stderr }: Terminal,
  code: number = EXIT.failed,
): Promise<number> {
  try {
    return await work()
  } catch (thrown) {
    if (!(thrown instanceof Error && kinds.some((kind) => thrown instanceof kind))) throw thrown
    stderr.write(`postern: ${thrown.message}\n`)
    return code
  }
}

/**
 * Does the work of a command that prints. Standard output that cannot be written (a full disk) is an error, with an exit code
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

/** The verbs of a command, as they are typed: from tables.ts, or its operations. */
export interface CommandTable {
  /** By the word behind the command's name. The one under `''` is meant if no verb is named. */
  readonly verbs: Readonly<Record<string, Verb>>
  /** Paragraphs about all its verbs. */
  readonly notes?: readonly string[]
}

/** Does the work of a verb. The promise gives the exit code. */
type Work<V extends Verb> = (given: Given<V>, terminal: Terminal) => number | Promise<number>

type Works<T extends CommandTable> = { readonly [Name in keyof T['verbs']]: Work<T['verbs'][Name]> }

export interface ChosenVerb {
  /** `''` if none is named. */
  readonly name: string
  readonly verb: Verb
  /** The arguments behind its name. */
  readonly args: readonly string[]
}

/** The verb that a command line names. Undefined if it names none, and the command needs one. */
export function chosenVerb({ verbs }: CommandTable, args: readonly string[]): ChosenVerb | undefined {
  const [word = '', ...rest] = args
  const named = word !== '' && Object.hasOwn(verbs, word) ? verbs[word] : undefined
  if (named !== undefined) return { name: word, verb: named, args: rest }
  const unnamed = verbs['']
  return unnamed && { name: '', verb: unnamed, args }
}

/** The words that name the verbs of a command. */
export const verbNames = ({ verbs }: CommandTable): readonly string[] =>
  Object.keys(verbs).filter((name) => name !== '')

/** The error where no verb is named, or one that does not exist. */
export function noVerb(table: CommandTable, [word]: readonly string[]): UsageError {
  const names = verbNames(table)
  const hint = word === undefined ? undefined : didYouMean(word, names)
  return new UsageError(
    `expected one of ${names.join(', ')}${hint === undefined ? '' : `, got "${word}" — ${hint}`}`,
  )
}

/** A command whose arguments are read by its table. `works` has what each verb does. */
export function commandOf<const T extends CommandTable>(table: T, works: Works<T>): Command {
  return {
    async run(args, terminal) {
      const chosen = chosenVerb(table, args)
      if (chosen === undefined) throw noVerb(table, args)
      const work = works[chosen.name as keyof Works<T>] as Work<Verb>
      return work(parse(chosen.verb, chosen.args), terminal)
    },
  }
}
