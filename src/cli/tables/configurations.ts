/** The tables of the commands that read a configuration file: check and serve. */
import { DEFAULT_FILE } from '../command.ts'
import type { CommandTable } from '../verbs.ts'

const FILE = [{ name: 'FILE', kind: 'file', optional: true }] as const
const FILE_NOTE = `FILE is the configuration. Default: ${DEFAULT_FILE}.`

export const CHECK = {
  verbs: {
    '': {
      summary: 'Report the problems of a configuration, without serving it',
      notes: [FILE_NOTE, 'The exit code is 2 if it could not be served.'],
      arguments: FILE,
      options: {
        strict: {
          type: 'boolean',
          help: 'Also list the operations that do not tell clients their summary, description, data or examples. Any warning makes the exit code 1',
        },
        expect: {
          ...{ type: 'string', kind: 'file' },
          help: 'Also tell whether calls are decided as this file expects: rows of a call, its client, user and target, and `allowed` or the reason of the refusal. Each row that is decided otherwise is shown with its line and with what would change it: exit code 1. No service needs to run. The store is only read',
        },
        connect: {
          type: 'boolean',
          help: 'Also connect to the store of kind postgres, and tell whether it can be used: address, rights, tables, clock. Exit code 1 if not',
        },
        json: {
          type: 'boolean',
          help: '{file, canBeServed, problems: [{severity, file, line, path, message, hint}]}; with --connect also {store: [{level, text}]}; with --expect also {calls, mismatches: [{file, line, row, call, client, user, target, expected, actual, words}]}',
        },
      },
      examples: [
        { line: 'postern check my.yaml', does: 'report its problems' },
        { line: 'postern check my.yaml --connect', does: 'try its database too' },
        { line: 'postern check my.yaml --strict --json', does: 'the same for a CI, which warnings fail too' },
        {
          line: 'postern check my.yaml --expect access.yaml',
          does: 'compare its decisions with what is expected',
        },
      ],
    },
  },
} as const satisfies CommandTable

export const SERVE = {
  verbs: {
    '': {
      summary: 'Serve a configuration until SIGTERM or SIGINT',
      notes: [
        FILE_NOTE,
        'SIGHUP makes it read its configuration again, SIGUSR2 replaces its worker processes one by one. What it has to tell stands in its log, as lines of JSON. The exit code is 2 if the configuration is refused.',
      ],
      arguments: FILE,
      options: {},
      examples: [
        { line: 'postern serve', does: 'serve the default configuration' },
        { line: 'POSTERN_PORT=8443 postern serve my.yaml', does: 'serve a file of your own on another port' },
      ],
    },
  },
} as const satisfies CommandTable
