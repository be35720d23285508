/** `postern configuration check|diff|reload|show`: of a running service (C11.5.4). */
import { parseArgs } from 'node:util'
import type { FileCheck, FileDifference } from '../operations/configuration-orders.ts'
import { accessChangeText } from './access-change-text.ts'
import { callAdminApi } from './admin-commands.ts'
import { type Command, commandOf, countOf, EXIT, type Subcommand } from './command.ts'
import { SERVICE_ORDER, SERVICE_ORDER_HELP } from './order-options.ts'
import { reloadCommand } from './orders.ts'

const OPTIONS = { ...SERVICE_ORDER, json: { type: 'boolean', default: false } } as const

const read = (args: readonly string[]) => parseArgs({ args: [...args], options: OPTIONS }).values

const jsonText = (answer: unknown): string => `${JSON.stringify(answer, null, 2)}\n`

const asLines = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('')

const restartLines = (paths: readonly string[]): string =>
  asLines(paths.map((path) => `${path}  cannot change while the service runs: restart it`))

function checkText({ fits, problems, warnings, needsRestart }: FileCheck): string {
  const end = fits ? 'a reload would put it in force' : 'a reload would be refused'
  return `${asLines([...problems, ...warnings])}${restartLines(needsRestart)}${end}\n`
}

const STORED = 'The store has too many clients or users: only those of the configuration were compared.\n'

function differenceText(difference: FileDifference): string {
  const { same, changed, changedCount, needsRestart, withStored } = difference
  if (same) return 'the file says what is in force\n'
  const more = changedCount > changed.length ? [`  and ${changedCount - changed.length} more`] : []
  const settings = asLines([
    `${countOf(changedCount, 'setting')} differ${changedCount === 1 ? 's' : ''}`,
    ...changed.map((path) => `  ${path}`),
    ...more,
  ])
  return `${settings}${restartLines(needsRestart)}${accessChangeText(difference)}${withStored ? '' : STORED}`
}

const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = {
  check: {
    usage: 'check [--json]',
    summary: 'Check the file on disk as a reload would. Exit code 0: it fits, 2: not',
    run(args, terminal) {
      const options = read(args)
      const exit = { of: ({ fits }: FileCheck) => (fits ? EXIT.done : EXIT.refused), trouble: EXIT.failed }
      const call = { method: 'POST', path: '/configuration/check', body: {} } as const
      return callAdminApi(call, options, terminal, options.json ? jsonText : checkText, exit)
    },
  },
  diff: {
    usage: 'diff [--json]',
    summary: 'What a reload would change: settings, without values, and who gains (+) or loses (-) access',
    run(args, terminal) {
      const options = read(args)
      const call = { method: 'GET', path: '/configuration/diff' } as const
      return callAdminApi(call, options, terminal, options.json ? jsonText : differenceText)
    },
  },
  reload: {
    usage: 'reload',
    summary: 'Put the file on disk in force, or refuse it and change nothing. Short form: `postern reload`',
    run: (args, terminal) => reloadCommand.run(args, terminal),
  },
  show: {
    usage: 'show',
    summary: 'The configuration in force, as JSON, without its secrets',
    run: (args, terminal) =>
      callAdminApi({ method: 'GET', path: '/configuration' }, read(args), terminal, jsonText),
  },
}

const NOTES = `The running service reads its own file: \`postern check\` and \`postern diff\` do it without one. While nothing of the
file can be read, give --admin-url and your own token.

${SERVICE_ORDER_HELP}`

export const configurationCommand: Command = commandOf('configuration', SUBCOMMANDS, NOTES)
