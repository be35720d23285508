/** The tables of the commands about what a service keeps: keys and backup. */
import type { CommandTable } from '../verbs.ts'
import { CONFIG, JSON_ANSWER, ORDER } from './order.ts'

export const KEYS = {
  verbs: {
    list: {
      summary: 'List the signing keys with their states',
      arguments: [],
      options: { ...JSON_ANSWER, ...CONFIG },
      examples: [{ line: 'postern keys list', does: 'list them, oldest first' }],
    },
    rotate: {
      summary: 'Make the next keys. They are published before they sign',
      arguments: [],
      options: {
        compromised: {
          type: 'boolean',
          help: 'If somebody may have read the keys: replace them and the secret of refresh tokens now. All tokens issued so far are refused, and all refresh tokens end. It says how many, and asks',
        },
        yes: { type: 'boolean', help: 'With --compromised: do not ask; for scripts' },
        ...JSON_ANSWER,
        ...ORDER,
      },
      examples: [
        { line: 'postern keys rotate', does: 'make the next keys before their time' },
        {
          line: "postern keys rotate --compromised --reason 'stolen laptop'",
          does: 'replace keys that were stolen',
        },
      ],
    },
    doctor: {
      summary: 'List problems of the keys, also coming ones. Exit code 1 if there is an error',
      arguments: [],
      options: { ...JSON_ANSWER, ...CONFIG },
      examples: [{ line: 'postern keys doctor', does: 'check the keys' }],
    },
    rewrap: {
      summary: 'Seal the keys in a Postgres store with the first seal, so that older seals can go',
      arguments: [],
      options: { ...JSON_ANSWER, ...CONFIG },
      examples: [{ line: 'postern keys rewrap', does: 'seal them anew, before you remove an older seal' }],
    },
  },
} as const satisfies CommandTable

export const BACKUP = {
  verbs: {
    '': {
      summary: 'Copy the store to a new file, also while it is in use',
      notes: ['Only you can read the copy. The keys are not in it: copy their folder too.'],
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
