/** `postern COMMAND …`: finds the command, runs it, and tells what is wrong with a command line (C11.6). */
import { didYouMean } from '../base/config/problem-text.ts'
import type { Terminal } from '../operate/operation/terminal.ts'
import { EXIT, UsageError } from '../operate/operation/verb.ts'
import { VERSION } from '../serve/parts/version.ts'
import { allCommands, commandGroups, findCommand, RETIRED, tableOfCommand } from './command-list.ts'
import { chosenVerb, type CommandRow, DEFAULT_FILE, printing } from './line/command.ts'
import { loadCommand } from './commands.ts'
import { columnOf, commandHelp, entriesText, usageLine, verbHelp } from './line/help-text.ts'

const groupText =
  (column: number) =>
  ([title, rows]: readonly [string, Readonly<Record<string, CommandRow>>]): string =>
    `${title}:\n${entriesText(
      Object.entries(rows).map(([name, { summary }]) => [name, summary]),
      column,
    )}\n`

async function helpText(): Promise<string> {
  const groups = Object.entries(await commandGroups())
  const column = columnOf(groups.flatMap(([, rows]) => Object.keys(rows)))
  const options = [
    ['--help', 'Show this text; behind a command, its verbs or options with examples'],
    ['--version', 'Show the version'],
  ] as const
  return `Usage: postern COMMAND [ARGUMENTS]

${groups.map(groupText(column)).join('')}Options:
${entriesText(options, column)}
The configuration of a command that is given none: ${DEFAULT_FILE}.
`
}

/** A command that was named. */
interface Named {
  readonly name: string
  readonly row: CommandRow
}

async function helpTextOf({ name, row }: Named, args: readonly string[]): Promise<string> {
  const table = await tableOfCommand(name, row)
  const chosen = chosenVerb(table, args)
  return chosen === undefined ? commandHelp(name, table) : verbHelp(name, chosen)
}

/** The text next to a message about wrong arguments. */
async function usageTextOf({ name, row }: Named, args: readonly string[]): Promise<string> {
  const chosen = chosenVerb(await tableOfCommand(name, row), args)
  if (chosen === undefined) return `Verbs and examples: postern ${name} --help\n`
  const verb = chosen.name === '' ? name : `${name} ${chosen.name}`
  return `Usage: ${usageLine(name, chosen.name, chosen.verb)}\nOptions and examples: postern ${verb} --help\n`
}

/** The service has its own way to continue without standard output (operate/watch/log). */
const isService = (name: string): boolean => name === 'serve'

/** Behind `--` there are arguments only. */
function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return args.slice(0, end < 0 ? undefined : end).some((arg) => arg === '--help' || arg === '-h')
}

async function runCommand(named: Named, args: readonly string[], terminal: Terminal): Promise<number> {
  const { name, row } = named
  if (asksForHelp(args)) {
    terminal.stdout.write(await helpTextOf(named, args))
    return EXIT.done
  }
  const command = await loadCommand(name, row)
  const work = (): Promise<number> => command.run(args, terminal)
  try {
    return await (isService(name) ? work() : printing(work, terminal))
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    terminal.stderr.write(`postern: ${error.message}\n\n${await usageTextOf(named, args)}`)
    return EXIT.refused
  }
}

async function refuseCommand(word: string, { stderr }: Terminal): Promise<number> {
  const instead = RETIRED.get(word)
  if (instead !== undefined) {
    stderr.write(`postern: "${word}" is retired: write \`${instead}\`\n`)
    return EXIT.refused
  }
  const hint = didYouMean(word, [
    ...Object.keys(await allCommands()),
    ...RETIRED.keys(),
    '--help',
    '--version',
  ])
  stderr.write(
    `postern: there is no command "${word}"${hint === undefined ? '' : ` — ${hint}`}\n\nAll commands: postern --help\n`,
  )
  return EXIT.refused
}

/** Runs a command line (the arguments after the name of the program). The promise gives the exit code. */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  const [word, ...rest] = args
  // `postern help try` is `postern try --help`.
  if (word === 'help' && rest[0] !== undefined) return runCommandLine([...rest, '--help'], terminal)
  if (word === '--help' || word === '-h' || word === 'help') terminal.stdout.write(await helpText())
  else if (word === '--version') terminal.stdout.write(`postern ${VERSION}\n`)
  else if (word === undefined) {
    terminal.stderr.write(await helpText())
    return EXIT.refused
  } else {
    const row = await findCommand(word)
    return row === undefined ? refuseCommand(word, terminal) : runCommand({ name: word, row }, rest, terminal)
  }
  return EXIT.done
}
