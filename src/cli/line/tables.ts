/** The tables of the commands that are not operations: their verbs, options and arguments. */
import { METHOD_AND_PATH } from '../../operate/explain/described-call.ts'
import type { Verb } from '../../operate/operation/verb.ts'
import { ROLES } from '../../operate/settings/admin.ts'
import { CONFIG, JSON_ANSWER, ORDER } from './call-options.ts'
import { type CommandTable, DEFAULT_FILE } from './command.ts'

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
          type: 'string',
          kind: 'file',
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
      summary: 'Serve a configuration until SIGTERM, SIGINT or SIGQUIT',
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

const BASH = {
  summary: 'Print the completion of bash, for commands, verbs, options and their values',
  arguments: [],
  options: {},
  examples: [
    {
      line: 'source <(postern completion bash)',
      does: 'complete in this shell; in ~/.bashrc, in every new one',
    },
  ],
} as const satisfies Verb

const ZSH = {
  summary: 'Print the completion of zsh, with what each command and option does',
  arguments: [],
  options: {},
  examples: [
    { line: 'postern completion zsh > "${fpath[1]}/_postern"', does: 'install it, for every new shell' },
    { line: 'source <(postern completion zsh)', does: 'complete in this shell, behind compinit' },
  ],
} as const satisfies Verb

const WORDS = {
  summary: 'Print what fits a command line, for the completions of shells',
  notes: [
    'The first line is `words`, or the kind of names of files that fit. Each line behind `words` is a word, a tab and a description.',
  ],
  arguments: [{ name: 'INDEX' }, { name: 'WORD', repeated: true }],
  options: {},
  examples: [
    { line: 'postern completion words -- 2 postern maintenance o', does: 'tell what fits the third word' },
  ],
} as const satisfies Verb

export const COMPLETION = { verbs: { bash: BASH, zsh: ZSH, words: WORDS } } as const satisfies CommandTable

export const ACCESS = {
  verbs: {
    '': {
      summary: 'Show who may call what, what a call needs, or what another configuration would change',
      usage: '[METHOD PATH | --against OLD] [OPTIONS]',
      notes: [
        'Shows for each action and method who may call it, or what they lack. Without --client and --user, every client and every user is shown: a client as if it acted for a user who may do everything, a user as if through a client that may have everything. Maintenance, rates and what a token asks for are not looked at: `postern explain` does that.',
        'With METHOD and PATH it shows which scopes that call needs, what implies them, and which clients and roles have them. PATH is that of a call, or an action as it is listed (`area/action`). A token is for a client and for a user: both must have the scope.',
        'With --against it shows who gains (+) and who loses (-) access compared with the configuration OLD: clients and roles by action, users by their role at a business. An area that becomes report-only is open to anybody. Versions that an operation gains or loses are told by operation. The exit code is 2 if the scopes or the directory of one have problems.',
        'Clients and users of the store are included. The store is only read, and the service may run meanwhile.',
      ],
      arguments: METHOD_AND_PATH.map((each) => ({ ...each, optional: true })),
      options: {
        client: { type: 'string', value: 'ID', help: 'This client only' },
        user: {
          type: 'string',
          value: 'NAME',
          help: 'This user only; with --client, what a token of that client for this user opens',
        },
        business: { type: 'string', value: 'CODE', help: 'This business only' },
        against: {
          type: 'string',
          kind: 'file',
          value: 'OLD',
          help: 'Compare with this older configuration; the new one is --config',
        },
        csv: {
          type: 'boolean',
          help: "For spreadsheets; a text that a spreadsheet would run as a formula gets a ' before it",
        },
        json: {
          type: 'boolean',
          help: 'A list of {client, user, role, business, level, area, action, method, versions, access, missing}. With METHOD and PATH: a list of {level, area, action, method, versions, reportOnly, groups, clients, roles}. With --against: {gained, lost}, each a list of {kind, who, what, where}',
        },
        ...CONFIG,
      },
      examples: [
        {
          line: 'postern access --client globex-ledger --user bob',
          does: 'show what bob may do through this client',
        },
        { line: 'postern access --csv', does: 'print all of it for a spreadsheet' },
        {
          line: 'postern access GET /api/1.0/b/ACME/fund-data/fund-list',
          does: 'show which scopes this call needs, and who has them',
        },
        { line: 'postern access GET fund-data/fund-list', does: 'the same by the name of an action' },
        {
          line: 'postern access --against my.yaml --config next.yaml',
          does: 'show what the change of a file would open and close',
        },
      ],
    },
  },
} as const satisfies CommandTable

export const KEYS = {
  verbs: {
    doctor: {
      summary: 'List problems of the keys, also coming ones. Exit code 1 if there is an error',
      arguments: [],
      options: { ...JSON_ANSWER, ...CONFIG },
      examples: [{ line: 'postern keys doctor', does: 'check the keys' }],
    },
    rewrap: {
      summary: 'Seal the keys in a Postgres store with the first seal, so that older seals can go',
      arguments: [],
      options: { ...JSON_ANSWER, ...ORDER },
      examples: [{ line: 'postern keys rewrap', does: 'seal them anew, before you remove an older seal' }],
    },
  },
} as const satisfies CommandTable

export const BACKUP = {
  verbs: {
    '': {
      summary: 'Copy the store to a new file, also while it is in use',
      notes: [
        'Only you can read the copy. Neither the keys nor the audit trail are in it: the command says which folders to copy too.',
      ],
      arguments: [{ name: 'FILE', kind: 'file' }],
      options: { ...JSON_ANSWER, ...ORDER },
      examples: [
        {
          line: 'postern backup /var/backups/postern-2026-02-01.sqlite',
          does: 'copy the store of the default configuration',
        },
      ],
    },
  },
} as const satisfies CommandTable

export const ADMIN_TOKEN = {
  verbs: {
    add: {
      summary: 'Make the token of a named operator, show it once, and print its entry for `admin.tokens`',
      notes: [
        'The entry has only a hash of the token. Add it to the configuration and reload the service, to put it in force.',
        'Roles: `view` reads status and metrics. `operate` also switches maintenance, reloads, restarts, revokes, ends lockouts, reads the configuration and explains, without people. `administer` also changes the directory, sessions and keys, and erases. `audit` reads the status, the configuration, explanations and the audit trail, and changes nothing.',
      ],
      arguments: [{ name: 'NAME' }],
      options: {
        role: {
          type: 'string',
          words: ROLES,
          help: 'What the operator may do. Required',
        },
        expires: {
          type: 'string',
          kind: 'duration',
          help: 'Refuse the token after this time. Default: never',
        },
        json: { type: 'boolean', help: '{name, role, hash, expires, token}' },
      },
      examples: [
        { line: 'postern admin-token add ann --role operate --expires 90d', does: 'make a token for ann' },
      ],
    },
  },
} as const satisfies CommandTable

export const HASH_PASSWORD = {
  verbs: {
    '': {
      summary: 'Read a password from standard input and print its hash, for `directory.users`',
      notes: ['The password is never an argument, because process lists show arguments.'],
      arguments: [],
      options: JSON_ANSWER,
      examples: [
        { line: 'postern hash-password', does: 'ask for a password' },
        { line: 'postern hash-password < password.txt', does: 'read it from a file' },
      ],
    },
  },
} as const satisfies CommandTable
