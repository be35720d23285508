/** Verbs made of several acts: `postern client add`, `postern client list`, … */
import { didYouMean } from '../config/suggest.ts'
import { UsageError, type Terminal, type Verb } from './verb.ts'

export interface Act {
  /** What follows the verb: `disable ID`. */
  readonly usage: string
  readonly summary: string
  /** The options, one a line. */
  readonly options?: readonly string[]
  /** `args` are those after the act. */
  readonly run: (args: readonly string[], terminal: Terminal) => Promise<number>
}

function helpOf(verb: string, acts: Readonly<Record<string, Act>>, notes: string): string {
  const lines = Object.values(acts).map(({ usage, summary, options = [] }) =>
    [`  postern ${verb} ${usage}`, ...[summary, ...options].map((line) => `      ${line}`)].join('\n'),
  )
  return `Usage:\n\n${lines.join('\n')}\n\n${notes}\n`
}

/** Chooses the act by the first argument. */
export function verbOfActs(verb: string, acts: Readonly<Record<string, Act>>, notes: string): Verb {
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
export function onlyName(positionals: readonly string[], what: string): string {
  const [name, ...more] = positionals
  if (name === undefined || more.length > 0) throw new UsageError(`expected one ${what}`)
  return name
}
