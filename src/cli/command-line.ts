/** `postern COMMAND …`: the table of commands. */
import { didYouMean } from '../config/problem-text.ts'
import { VERSION } from '../start/version.ts'
import { EXIT, UsageError, type Terminal, type Command } from './command.ts'
import { DEFAULT_FILE } from './default-file.ts'
import { commandHelp, usageLine, verbHelp } from './help-text.ts'
import { printing } from './printing.ts'
import { chosenVerb, type CommandTable } from './verbs.ts'

interface Row {
  readonly usage: string
  readonly summary: string
  /** Its verbs and their options: one in `tables/`. */
  readonly table?: () => Promise<CommandTable>
  /** Imported only when it is used, so that a command starts without loading the others. */
  readonly load: () => Promise<Command>
}

const COMMANDS: Readonly<Record<string, Row>> = {
  serve: {
    usage: 'serve [FILE]',
    summary: 'Serve a configuration',
    load: async () => (await import('./serve.ts')).serveCommand,
  },
  check: {
    usage: 'check [FILE] [--strict] [--expect FILE]',
    summary: 'Report the problems of a configuration, without serving it',
    load: async () => (await import('./check.ts')).checkCommand,
  },
  diff: {
    usage: 'diff OLD NEW [--json]',
    summary: 'Show who gains or loses access between two configurations',
    load: async () => (await import('./check.ts')).diffCommand,
  },
  access: {
    usage: 'access [--client ID] [--user NAME] [--business CODE] [--csv | --json]',
    summary: 'Show who may call what, and what others lack',
    table: async () => (await import('./tables/access.ts')).ACCESS,
    load: async () => (await import('./access.ts')).accessCommand,
  },
  scopes: {
    usage: 'scopes METHOD PATH [--json]',
    summary: 'Show which scopes a call needs, and who has them',
    table: async () => (await import('./tables/access.ts')).SCOPES,
    load: async () => (await import('./scopes.ts')).scopesCommand,
  },
  explain: {
    usage: 'explain [--token T | --client ID --user NAME] METHOD PATH, or --request ID',
    summary: 'Show whether a running service would let a call in, and why not',
    table: async () => (await import('./tables/explain.ts')).EXPLAIN,
    load: async () => (await import('./explain.ts')).explainCommand,
  },
  backup: {
    usage: 'backup FILE [--config FILE]',
    summary: 'Copy the store to a new file, also while it is in use',
    table: async () => (await import('./tables/keeping.ts')).BACKUP,
    load: async () => (await import('./backup.ts')).backupCommand,
  },
  keys: {
    usage: 'keys list|rotate|doctor [--compromised [--yes]] [--config FILE]',
    summary: 'List the signing keys, make the next ones, find problems',
    table: async () => (await import('./tables/keeping.ts')).KEYS,
    load: async () => (await import('./keys.ts')).keysCommand,
  },
  init: {
    usage: 'init [FOLDER]',
    summary: 'Write a first configuration, with new secrets',
    load: async () => (await import('./init.ts')).initCommand,
  },
  client: {
    usage: 'client add|show|edit|disable|enable|remove|list|rotate-secret …',
    summary: 'Manage clients in the store',
    table: async () => (await import('./tables/directory.ts')).CLIENT,
    load: async () => (await import('./directory/commands.ts')).clientCommand,
  },
  user: {
    usage: 'user add|show|edit|disable|enable|remove|list|set-password …',
    summary: 'Manage users in the store',
    table: async () => (await import('./tables/directory.ts')).USER,
    load: async () => (await import('./directory/commands.ts')).userCommand,
  },
  business: {
    usage: 'business add|show|edit|disable|enable|remove|list …',
    summary: 'Manage businesses in the store',
    table: async () => (await import('./tables/directory.ts')).BUSINESS,
    load: async () => (await import('./directory/commands.ts')).businessCommand,
  },
  fund: {
    usage: 'fund add|show|edit|disable|enable|remove|list …',
    summary: 'Manage funds in the store',
    table: async () => (await import('./tables/directory.ts')).FUND,
    load: async () => (await import('./directory/commands.ts')).fundCommand,
  },
  role: {
    usage: 'role add|show|edit|disable|enable|remove|list …',
    summary: 'Manage roles in the store',
    table: async () => (await import('./tables/directory.ts')).ROLE,
    load: async () => (await import('./directory/commands.ts')).roleCommand,
  },
  maintenance: {
    usage: 'maintenance on|off|plan|status …',
    summary: 'Close a running service, or a part of it, and open it again',
    table: async () => (await import('./tables/maintenance.ts')).MAINTENANCE,
    load: async () => (await import('./maintenance.ts')).maintenanceCommand,
  },
  revoke: {
    usage: 'revoke [--client ID] [--subject SUB] …',
    summary: 'End sessions, refresh tokens, codes and access tokens',
    table: async () => (await import('./tables/orders.ts')).REVOKE,
    load: async () => (await import('./orders.ts')).revokeCommand,
  },
  sessions: {
    usage: 'sessions list|end …',
    summary: 'List logins in browsers, or end them',
    table: async () => (await import('./tables/revocables.ts')).SESSIONS,
    load: async () => (await import('./revocables.ts')).sessionsCommand,
  },
  families: {
    usage: 'families list|end …',
    summary: 'List families of refresh tokens, or end them',
    table: async () => (await import('./tables/revocables.ts')).FAMILIES,
    load: async () => (await import('./revocables.ts')).familiesCommand,
  },
  consents: {
    usage: 'consents list|end …',
    summary: 'List what users have allowed clients, or end them',
    table: async () => (await import('./tables/revocables.ts')).CONSENTS,
    load: async () => (await import('./revocables.ts')).consentsCommand,
  },
  status: {
    usage: 'status [--json]',
    summary: 'Show how a running service is: what is wrong first',
    table: async () => (await import('./tables/orders.ts')).STATUS,
    load: async () => (await import('./status.ts')).statusCommand,
  },
  configuration: {
    usage: 'configuration check|diff|reload|show',
    summary: 'Compare the file of a running service with what is in force; reload it',
    table: async () => (await import('./tables/configuration.ts')).CONFIGURATION,
    load: async () => (await import('./configuration.ts')).configurationCommand,
  },
  reload: {
    usage: 'reload [--config FILE]',
    summary: 'Make a running service read its configuration again',
    table: async () => (await import('./tables/orders.ts')).RELOAD,
    load: async () => (await import('./orders.ts')).reloadCommand,
  },
  restart: {
    usage: 'restart [--config FILE]',
    summary: 'Replace the worker processes of a running service, one by one',
    table: async () => (await import('./tables/orders.ts')).RESTART,
    load: async () => (await import('./orders.ts')).restartCommand,
  },
  lockouts: {
    usage: 'lockouts [list|clear] …',
    summary: 'List users whose logins are delayed after failures, or end the delay',
    table: async () => (await import('./tables/orders.ts')).LOCKOUTS,
    load: async () => (await import('./orders.ts')).lockoutsCommand,
  },
  audit: {
    usage: 'audit find|show|open|verify|redact|hash|key …',
    summary: 'The audit trail: prove it, and ask it who changed what',
    table: async () => (await import('./tables/audit.ts')).AUDIT,
    load: async () => (await import('./audit.ts')).auditCommand,
  },
  'admin-token': {
    usage: 'admin-token add NAME --role ROLE [--expires 90d]',
    summary: 'Make the token of a named operator, and show it once',
    table: async () => (await import('./tables/secrets.ts')).ADMIN_TOKEN,
    load: async () => (await import('./admin-token.ts')).adminTokenCommand,
  },
  'hash-password': {
    usage: 'hash-password',
    summary: 'Read a password and print its hash, for `directory.users`',
    table: async () => (await import('./tables/secrets.ts')).HASH_PASSWORD,
    load: async () => (await import('./hash-password.ts')).hashPasswordCommand,
  },
}

const COLUMN = 18

/** One line, or two if the usage is wider than its column. */
const helpLine = ({ usage, summary }: Pick<Row, 'usage' | 'summary'>): string =>
  usage.length < COLUMN
    ? `  ${usage.padEnd(COLUMN)}${summary}`
    : `  ${usage}\n  ${' '.repeat(COLUMN)}${summary}`

const HELP = `Usage: postern COMMAND [ARGUMENTS]

${Object.values(COMMANDS).map(helpLine).join('\n')}

${helpLine({ usage: '--help', summary: 'Show this text; after a command, its options' })}
${helpLine({ usage: '--version', summary: 'Show the version' })}

FILE is the configuration. Default: ${DEFAULT_FILE}.
`

const helpOf = ({ usage, summary }: Row): string => `Usage: postern ${usage}\n\n${summary}.\n`

const nameOf = ({ usage }: Row): string => usage.split(' ', 1)[0] ?? ''

const isParseError = (error: unknown): error is Error =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS_')

async function helpTextOf(row: Row, args: readonly string[]): Promise<string> {
  const table = await row.table?.()
  if (table !== undefined) {
    const chosen = chosenVerb(table, args)
    return chosen === undefined ? commandHelp(nameOf(row), table) : verbHelp(nameOf(row), chosen)
  }
  const { help = helpOf(row) } = await row.load()
  return typeof help === 'string' ? help : help(args)
}

/** What is shown beside a message about wrong arguments. */
async function usageTextOf(row: Row, args: readonly string[]): Promise<string> {
  const table = await row.table?.()
  const chosen = table && chosenVerb(table, args)
  const name = nameOf(row)
  if (chosen === undefined) return `${helpOf(row)}\nAll options: postern ${name} --help\n`
  const verb = chosen.name === '' ? name : `${name} ${chosen.name}`
  return `Usage: ${usageLine(name, chosen.name, chosen.verb)}\n\nOptions and examples: postern ${verb} --help\n`
}

/** The service has its own way to go on without standard output (operations/log). */
const isService = (row: Row): boolean => row === COMMANDS['serve']

async function runCommand(row: Row, args: readonly string[], terminal: Terminal): Promise<number> {
  if (args.some((arg) => arg === '--help' || arg === '-h')) {
    terminal.stdout.write(await helpTextOf(row, args))
    return EXIT.done
  }
  const command = await row.load()
  const work = (): Promise<number> => command.run(args, terminal)
  try {
    return await (isService(row) ? work() : printing(work, terminal))
  } catch (error) {
    if (!(error instanceof UsageError) && !isParseError(error)) throw error
    terminal.stderr.write(`postern: ${error.message}\n\n${await usageTextOf(row, args)}`)
    return EXIT.refused
  }
}

function refuseCommand(word: string, { stderr }: Terminal): number {
  const hint = didYouMean(word, [...Object.keys(COMMANDS), '--help', '--version'])
  stderr.write(`postern: there is no command "${word}"${hint === undefined ? '' : ` — ${hint}`}\n\n${HELP}`)
  return EXIT.refused
}

/** Runs a command line (the arguments after the name of the program). The promise gives the exit code. */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  const [word, ...rest] = args
  if (word === '--help' || word === '-h' || word === 'help') terminal.stdout.write(HELP)
  else if (word === '--version') terminal.stdout.write(`postern ${VERSION}\n`)
  else if (word === undefined) {
    terminal.stderr.write(HELP)
    return EXIT.refused
  } else {
    const row = Object.hasOwn(COMMANDS, word) ? COMMANDS[word] : undefined
    return row ? runCommand(row, rest, terminal) : refuseCommand(word, terminal)
  }
  return EXIT.done
}
