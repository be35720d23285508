/** Commands and their verbs: which one is meant, and how it is run. */
import { didYouMean } from '../config/problem-text.ts'
import type { Terminal } from '../operator/terminal.ts'
import { type Given, UsageError, type Verb } from '../operator/verb.ts'
import type { Command } from './command.ts'
import { parse } from './options.ts'

/** The table of a command: one in `tables/`. */
export interface CommandTable {
  /** By the word behind the command's name. The one under `''` is meant if no verb is named. */
  readonly verbs: Readonly<Record<string, Verb>>
  /** Paragraphs about all its verbs. */
  readonly notes?: readonly string[]
}

/** Does the work of a verb. The promise gives the exit code. */
export type Work<V extends Verb> = (given: Given<V>, terminal: Terminal) => number | Promise<number>

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

/** What to say where no verb is named, or none that there is. */
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
