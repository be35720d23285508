/** The tables of the commands that make a secret or the hash of one: admin-token, hash-password. */
import { ROLES } from '../../settings/admin.ts'
import type { CommandTable } from '../verbs.ts'
import { JSON_ANSWER } from './order.ts'

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
          ...{ type: 'string', words: ROLES },
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
