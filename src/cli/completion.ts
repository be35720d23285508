/** `postern completion`: shells ask `completion words` what fits a line. It reads the tables of all commands (C11.6). */
import { readFileSync } from 'node:fs'
import type { Terminal } from '../operate/operation/terminal.ts'
import {
  type Argument,
  EXIT,
  KINDS,
  type Option,
  type Options,
  UsageError,
  type Verb,
} from '../operate/operation/verb.ts'
import { allCommands, findCommand, tableOfCommand } from './command-list.ts'
import { chosenVerb, commandOf, type CommandTable } from './line/command.ts'
import { COMPLETION } from './line/tables.ts'

/** A word that fits, and its description in a few words. */
type Proposed = readonly [word: string, description: string]

/** The words that fit, or the kind of names in the file system that do. */
type Proposals = 'files' | 'folders' | 'at-files' | readonly Proposed[]

/** The first sentence, which fits on a line of a menu. */
const firstSentence = (text: string): string => text.split(/[.;:](?: |$)/, 1)[0] ?? ''

const undescribed = (words: readonly string[]): readonly Proposed[] => words.map((word) => [word, ''])

/** The proposals for the value of an option, or for an argument. */
function valuesOf(of: Argument | Pick<Option, 'kind' | 'words' | 'proposes'>): Proposals {
  const words = ('words' in of ? of.words : undefined) ?? of.proposes
  return words === undefined ? (KINDS[of.kind ?? 'text'].completes ?? []) : undescribed(words)
}

const flagsOf = ([name, { short, negatable }]: readonly [string, Option]): readonly string[] => [
  `--${name}`,
  ...(negatable === true ? [`--no-${name}`] : []),
  ...(short === undefined ? [] : [`-${short}`]),
]

/** The option with a value that a word names. */
const withValue = (options: Options, word: string | undefined): Option | undefined =>
  Object.entries(options).find(
    (entry) => entry[1].type === 'string' && word !== undefined && flagsOf(entry).includes(word),
  )?.[1]

function inVerb(
  { options, arguments: expected }: Verb,
  typed: readonly string[],
  current: string,
): Proposals {
  const valued = withValue(options, typed.at(-1))
  if (valued !== undefined) return valuesOf(valued)
  if (current.startsWith('-'))
    return [
      ...Object.entries(options).flatMap((entry) =>
        flagsOf(entry).map((flag): Proposed => [flag, firstSentence(entry[1].help)]),
      ),
      ['--help', 'Show the options, with examples'],
    ]
  const given = typed.filter((word, at) => !word.startsWith('-') && !withValue(options, typed[at - 1]))
  const last = expected.at(-1)
  const argument = expected[given.length] ?? (last?.repeated === true ? last : undefined)
  return argument === undefined ? [] : valuesOf(argument)
}

const described = (rows: Readonly<Record<string, { readonly summary: string }>>): readonly Proposed[] =>
  Object.entries(rows).map(([name, { summary }]) => [name, firstSentence(summary)])

/** @param typed the words before `current`, without the name of the program */
async function proposalsFor(typed: readonly string[], current: string): Promise<Proposals> {
  const [name, ...rest] = typed
  if (name === undefined) return [...described(await allCommands()), ...undescribed(['--help', '--version'])]
  const row = await findCommand(name)
  if (row === undefined) return []
  const table: CommandTable = await tableOfCommand(name, row)
  const named = described(table.verbs).filter(([word]) => word !== '')
  if (rest.length === 0 && !current.startsWith('-') && named.length > 0) return named
  const chosen = chosenVerb(table, rest)
  return chosen === undefined ? [] : inVerb(chosen.verb, chosen.args, current)
}

/** The words of a line up to the one to complete. Bash gives `--role=o` and `ACME=Clerk` as three words, zsh as one. */
function wordsUpTo(index: number, words: readonly string[]): { typed: readonly string[]; current: string } {
  const line = words.slice(1, index + 1).flatMap((word) => {
    const [, name, value] = /^(--[^=]+)=(.*)$/.exec(word) ?? []
    return name === undefined || value === undefined ? [word] : [name, value]
  })
  const current = line.at(-1) ?? ''
  const typed = line
    .slice(0, -1)
    .filter((word, at) => word !== '=' && (line[at - 1] !== '=' || line[at - 2]?.startsWith('--') === true))
  return { typed, current: current === '=' ? '' : current }
}

async function printWords(
  { positionals: [index = '', ...words] }: { readonly positionals: readonly string[] },
  { stdout }: Terminal,
): Promise<number> {
  if (!/^\d{1,6}$/.test(index)) throw new UsageError('INDEX: expected the number of a word, 0 for the first')
  const { typed, current } = wordsUpTo(Number(index), words)
  const proposals = await proposalsFor(typed, current)
  const fitting = typeof proposals === 'string' ? [] : proposals.filter(([word]) => word.startsWith(current))
  const lines = fitting.map(([word, description]) => `${word}\t${description}`)
  stdout.write([typeof proposals === 'string' ? proposals : 'words', ...lines, ''].join('\n'))
  return EXIT.done
}

/** The script of a shell, which asks `completion words`. */
const printScript =
  (file: URL) =>
  (_given: unknown, { stdout }: Terminal): number => {
    stdout.write(readFileSync(file))
    return EXIT.done
  }

export const completionCommand = commandOf(COMPLETION, {
  bash: printScript(new URL('postern.bash', import.meta.url)),
  zsh: printScript(new URL('postern.zsh', import.meta.url)),
  words: printWords,
})
