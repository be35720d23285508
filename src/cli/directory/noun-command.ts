/** `postern client|user|business|fund|role …`: made from one table of nouns (C11.5.1). */
import { parseArgs } from 'node:util'
import type { Problem } from '../../config/report.ts'
import { type NounName, NOUNS, type Written } from '../../directory/nouns.ts'
import type { DirectoryOrders, RecordAt } from '../../operations/directory-orders.ts'
import { type Command, commandOf, type Subcommand, type Terminal } from '../command.ts'
import { DIRECTORY_ORDER_NOTES } from '../order-options.ts'
import { printJson, readPassword } from '../terminal.ts'
import {
  argumentsOf,
  editOptionsOf,
  givenChanges,
  givenRecord,
  helpOf,
  optionNames,
  optionsOf,
} from './noun-options.ts'
import { JSON_TOO, NAMES, namesOf, onDirectory } from './noun-task.ts'
import { listRecords } from './list-records.ts'
import { linesOf } from './open-directory.ts'
import { endedLines, recordLines, showSecret } from './record-text.ts'

/** In a usage: `BUSINESS CODE`. */
const usageOf = (noun: NounName): string => NOUNS[noun].names.join(' ').toUpperCase()

const parse = (args: readonly string[], options: Parameters<typeof argumentsOf>[0]) =>
  parseArgs({
    args: [...args],
    allowPositionals: true,
    allowNegative: true,
    options: { ...argumentsOf(options), ...JSON_TOO },
  })

const write = (lines: readonly string[], { stdout }: Terminal): void => {
  for (const line of lines) stdout.write(line)
}

function warn(noun: NounName, warnings: readonly Problem[], { stderr }: Terminal): void {
  for (const line of linesOf(warnings, optionNames(noun))) stderr.write(`postern: ${line} (warning)\n`)
}

/** What is printed of a new record: of a client its id and its secret, so that a script can cut them out. */
function showAdded(
  { noun, names }: RecordAt,
  record: Written,
  secret: string | undefined,
  terminal: Terminal,
): void {
  if (noun === 'client') {
    showSecret(names[0] ?? '', secret, terminal)
    return
  }
  const subject = noun === 'user' ? ` with the subject ${String(record['subject'])}` : ''
  terminal.stdout.write(`${names.join('/')}: added${subject}\n`)
}

const add =
  (noun: NounName): Subcommand['run'] =>
  async (args, terminal) => {
    const options = optionsOf(noun)
    const { positionals, values } = parse(args, options)
    const names = namesOf(NAMES[noun], positionals)
    const named = Object.fromEntries(NOUNS[noun].names.map((member, index) => [member, names[index]]))
    const given = givenRecord(options, values)
    const secrets = noun === 'user' ? { password: await readPassword(terminal, true) } : {}
    const work = async (directory: DirectoryOrders): Promise<void> => {
      const { record, secret, warnings } = await directory.add(noun, { ...given, ...named, ...secrets })
      warn(noun, warnings, terminal)
      if (values.json === true) printJson({ record, ...(secret !== undefined && { secret }) }, terminal)
      else showAdded({ noun, names }, record, secret, terminal)
    }
    return onDirectory({ noun, order: values, terminal, work })
  }

const show =
  (noun: NounName): Subcommand['run'] =>
  (args, terminal) => {
    const { positionals, values } = parse(args, [])
    const names = namesOf(NAMES[noun], positionals)
    const work = async (directory: DirectoryOrders): Promise<void> => {
      const { record } = await directory.show({ noun, names })
      if (values.json === true) printJson(record, terminal)
      else write(recordLines(record), terminal)
    }
    return onDirectory({ noun, order: values, terminal, work })
  }

const edit =
  (noun: NounName): Subcommand['run'] =>
  (args, terminal) => {
    const options = editOptionsOf(noun)
    const { positionals, values } = parse(args, options)
    const names = namesOf(NAMES[noun], positionals)
    const changes = givenChanges(options, values)
    const optionOf = optionNames(noun)
    const work = async (directory: DirectoryOrders): Promise<void> => {
      const { record, changed, ended, warnings } = await directory.edit({ noun, names }, changes)
      warn(noun, warnings, terminal)
      const name = names.join('/')
      const told = changed.map((member) => optionOf[member] ?? member).join(', ')
      const rows = ended.map(({ loss, ended: counts }) => ({ ...loss.tokens, ...counts }))
      if (values.json === true) printJson({ record, changed, ended: rows }, terminal)
      else
        write(
          [
            changed.length === 0 ? `${name}: as it was\n` : `${name}: changed: ${told}\n`,
            ...endedLines(name, ended),
          ],
          terminal,
        )
    }
    return onDirectory({ noun, order: values, terminal, work })
  }

/** `disable`, `enable` and `remove`. */
const onState =
  (noun: NounName, verb: 'disable' | 'enable' | 'remove'): Subcommand['run'] =>
  (args, terminal) => {
    const { positionals, values } = parse(args, [])
    const names = namesOf(NAMES[noun], positionals)
    const work = async (directory: DirectoryOrders): Promise<void> => {
      const done = await directory[verb]({ noun, names })
      const name = names.join('/')
      if (values.json === true) printJson({ [`${verb}d`]: name }, terminal)
      else write([`${name}: ${verb}d\n`, ...endedLines(name, done?.ended ?? [])], terminal)
    }
    return onDirectory({ noun, order: values, terminal, work })
  }

/** The lines of the help on lists. */
const LIST_HELP = [
  `${'--prefix TEXT'.padEnd(34)}only those whose name begins with it`,
  `${'--limit NUMBER'.padEnd(34)}rows of a page: 1 to 1000; 100 if not given`,
  `${'--after NAME'.padEnd(34)}the page behind this name`,
  `${'--all'.padEnd(34)}every page; with --json one record a line`,
]

/** In sentences of the help. */
const ADDED: Readonly<Record<NounName, string>> = {
  client: 'Add a client, and show its secret',
  user: 'Add a user. The password is typed or piped in',
  business: 'Add a business',
  fund: 'Add a fund to a business of the store that lists its funds',
  role: 'Add a role',
}

const DISABLED: Readonly<Record<NounName, string>> = {
  client: 'Refuse all its requests and revoke its tokens, in every process within a second',
  user: 'Refuse all logins, and end tokens and sessions, in every process within a second',
  business: 'Refuse all calls and tokens for it, and end what was issued for it; consents stay',
  fund: 'Refuse all calls and tokens for it',
  role: 'Users with this role may do nothing at the business, from their next token on',
}

const EDIT_NOTES = [
  'What is not given stays. A list replaces the whole list before. An empty value empties a list, or removes a value.',
  'What was issued beyond what is left ends, and the command tells what.',
]

function verbsOf(noun: NounName): Readonly<Record<string, Subcommand>> {
  const [usage, within] = [
    usageOf(noun),
    NOUNS[noun].names.slice(0, -1).map((name) => `${name.toUpperCase()} `),
  ]
  const state = (verb: 'disable' | 'enable' | 'remove', summary: string): Subcommand => ({
    ...{ usage: `${verb} ${usage} [--json]`, summary },
    run: onState(noun, verb),
  })
  return {
    add: {
      ...{ usage: `add ${usage} … [--json]`, summary: ADDED[noun], options: helpOf(optionsOf(noun)) },
      run: add(noun),
    },
    show: { usage: `show ${usage} [--json]`, summary: `Show a ${noun}, without hashes`, run: show(noun) },
    edit: {
      ...{ usage: `edit ${usage} … [--json]`, summary: `Change a ${noun} of the store` },
      options: [...EDIT_NOTES, ...helpOf(editOptionsOf(noun))],
      run: edit(noun),
    },
    disable: state('disable', DISABLED[noun]),
    enable: state('enable', 'Let it be used again. What has ended stays so'),
    remove: state('remove', 'Remove it, and end what it holds, consents too. Its name may be given again'),
    list: {
      usage: `list ${within.join('')}[--prefix TEXT] [--limit NUMBER] [--after NAME] [--all] [--json]`,
      summary: `List the ${NOUNS[noun].plural} of the configuration and of the store, page by page`,
      options: LIST_HELP,
      run: listRecords(noun),
    },
  }
}

const notesOf = (noun: NounName): string =>
  [
    `What the configuration holds is shown and listed, and changed only in the configuration.`,
    ...(noun === 'user'
      ? ['People whom directory.people finds are neither listed nor changed: they live in another system.']
      : []),
  ].join('\n')

/** `postern client …`, `postern user …` and so on. `more` are verbs that no other noun has. */
export const nounCommand = (noun: NounName, more: Readonly<Record<string, Subcommand>> = {}): Command =>
  commandOf(noun, { ...verbsOf(noun), ...more }, `${notesOf(noun)}\n\n${DIRECTORY_ORDER_NOTES}`)
