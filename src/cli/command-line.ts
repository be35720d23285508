/** `postern VERB …`: the table of verbs, and what is common to all of them. */
import { didYouMean } from '../config/problem-text.ts'
import { VERSION } from '../start/version.ts'
import { EXIT, UsageError, type Terminal, type Command } from './command.ts'

interface Row {
  readonly usage: string
  readonly summary: string
  /** Imported only when asked for: starting a verb costs that verb alone. */
  readonly load: () => Promise<Command>
}

const VERBS: Readonly<Record<string, Row>> = {
  serve: {
    usage: 'serve [FILE]',
    summary: 'Serve a configuration',
    load: async () => (await import('./serve.ts')).serveCommand,
  },
  check: {
    usage: 'check [FILE]',
    summary: 'Tell every problem of a configuration, without serving it',
    load: async () => (await import('./check.ts')).checkCommand,
  },
  diff: {
    usage: 'diff OLD NEW [--json]',
    summary: 'Tell who gains or loses access to which actions between two configurations',
    load: async () => (await import('./check.ts')).diffCommand,
  },
  backup: {
    usage: 'backup FILE [--config FILE]',
    summary: 'Copy the store into a new file, while it serves',
    load: async () => (await import('./backup.ts')).backupCommand,
  },
  keys: {
    usage: 'keys list|rotate|doctor [--compromised [--yes]] [--config FILE]',
    summary: 'Signing keys: which there are, the next ones, what is wrong with them',
    load: async () => (await import('./keys.ts')).keysCommand,
  },
  init: {
    usage: 'init [FOLDER]',
    summary: 'Write a configuration of your own, with fresh secrets',
    load: async () => (await import('./init.ts')).initCommand,
  },
  client: {
    usage: 'client add|list|disable|enable|rotate-secret …',
    summary: 'Clients that stand in the store',
    load: async () => (await import('./client.ts')).clientCommand,
  },
  user: {
    usage: 'user add|list|disable|enable|set-password …',
    summary: 'Users that stand in the store',
    load: async () => (await import('./user.ts')).userCommand,
  },
  maintenance: {
    usage: 'maintenance on|off|plan|status …',
    summary: 'Switch a service, or a part of it, off and on while it runs',
    load: async () => (await import('./maintenance.ts')).maintenanceCommand,
  },
  revoke: {
    usage: 'revoke [--client ID] [--subject SUB] …',
    summary: 'End what is held: sessions, refresh tokens, codes, access tokens',
    load: async () => (await import('./admin-commands.ts')).revokeCommand,
  },
  reload: {
    usage: 'reload [--config FILE]',
    summary: 'Let a running service read its configuration anew',
    load: async () => (await import('./admin-commands.ts')).reloadCommand,
  },
  restart: {
    usage: 'restart [--config FILE]',
    summary: 'Replace the worker processes, one after the other',
    load: async () => (await import('./admin-commands.ts')).restartCommand,
  },
  lockouts: {
    usage: 'lockouts [list|clear] …',
    summary: 'Whose logins are slowed down by failures',
    load: async () => (await import('./admin-commands.ts')).lockoutsCommand,
  },
  'hash-password': {
    usage: 'hash-password',
    summary: 'Read a password and write its hash, for `directory.users`',
    load: async () => (await import('./init.ts')).hashPasswordCommand,
  },
}

const COLUMN = 18

/** One line, or two where the usage is longer than its column. */
const helpLine = ({ usage, summary }: Pick<Row, 'usage' | 'summary'>): string =>
  usage.length < COLUMN
    ? `  ${usage.padEnd(COLUMN)}${summary}`
    : `  ${usage}\n  ${' '.repeat(COLUMN)}${summary}`

const HELP = `Usage: postern VERB [ARGUMENTS]

${Object.values(VERBS).map(helpLine).join('\n')}

${helpLine({ usage: '--help', summary: 'This text' })}
${helpLine({ usage: '--version', summary: 'The version' })}

FILE is the configuration; else POSTERN_CONFIG, else config/demo.yaml.
`

const helpOf = ({ usage, summary }: Row): string => `Usage: postern ${usage}\n\n${summary}.\n`

const isParseError = (error: unknown): error is Error =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS_')

async function runVerb(row: Row, args: readonly string[], terminal: Terminal): Promise<number> {
  if (args.includes('--help')) {
    terminal.stdout.write((await row.load()).help ?? helpOf(row))
    return EXIT.done
  }
  try {
    return await (await row.load()).run(args, terminal)
  } catch (error) {
    if (!(error instanceof UsageError) && !isParseError(error)) throw error
    terminal.stderr.write(`postern: ${error.message}\n\n${helpOf(row)}`)
    return EXIT.refused
  }
}

function refuseVerb(word: string, { stderr }: Terminal): number {
  const hint = didYouMean(word, [...Object.keys(VERBS), '--help', '--version'])
  stderr.write(`postern: there is no verb "${word}"${hint === undefined ? '' : ` — ${hint}`}\n\n${HELP}`)
  return EXIT.refused
}

/** Runs a command line (the arguments after the program's name); answers the exit code. */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  const [word, ...rest] = args
  if (word === '--help' || word === '-h' || word === 'help') terminal.stdout.write(HELP)
  else if (word === '--version') terminal.stdout.write(`postern ${VERSION}\n`)
  else if (word === undefined) {
    terminal.stderr.write(HELP)
    return EXIT.refused
  } else {
    const row = Object.hasOwn(VERBS, word) ? VERBS[word] : undefined
    return row ? runVerb(row, rest, terminal) : refuseVerb(word, terminal)
  }
  return EXIT.done
}
