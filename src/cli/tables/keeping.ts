/** The tables of the commands about what a service keeps: keys, backup, and a store that several nodes share. */
import type { CommandTable } from '../verbs.ts'
import { CONFIG, JSON_ANSWER, ORDER } from './order.ts'

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

export const MIGRATE = {
  verbs: {
    '': {
      summary: 'Make the tables of a store of kind postgres, or bring them to the newest version',
      notes: [
        'Nodes may serve meanwhile: each version of the tables works with the version of Postern before, too. Use a connection without a pooler.',
      ],
      arguments: [],
      options: {
        check: { type: 'boolean', help: 'Change nothing; exit code 1 if there is something to do' },
        finish: {
          type: 'boolean',
          help: 'Take away what only older versions of Postern use. Refused while such a node was seen within ten minutes',
        },
        ...JSON_ANSWER,
        ...ORDER,
      },
      examples: [
        { line: 'postern migrate', does: 'make or migrate the tables' },
        { line: 'postern migrate --check', does: 'tell whether there is something to do' },
        { line: 'postern migrate --finish', does: 'when all nodes run the new version' },
      ],
    },
  },
} as const satisfies CommandTable

export const STORE = {
  verbs: {
    copy: {
      summary: 'Copy a SQLite store and its keys into the empty store of kind postgres of a configuration',
      notes: [
        'Stop the service first, and start none on the old file afterwards: what it hands out then is not in the copy. The old store, its keys and the audit trail stay where they are.',
        'A copy that was broken off is begun anew by the same command. Until it is whole, no node starts on the new store.',
      ],
      arguments: [],
      options: {
        from: {
          ...{ type: 'string', value: 'sqlite:PATH' },
          help: 'The old store: `sqlite:` and the path of its file. It is only read',
        },
        keys: {
          type: 'string',
          kind: 'folder',
          help: 'The folder of its keys. Default: `keys` beside the file',
        },
        ...JSON_ANSWER,
        ...ORDER,
      },
      examples: [
        {
          line: 'postern store copy --from sqlite:/var/lib/postern/postern.sqlite --config nodes.yaml',
          does: 'go over to a store that several nodes share',
        },
      ],
    },
  },
} as const satisfies CommandTable

export const NODES = {
  verbs: {
    '': {
      summary:
        'List the nodes that share a store: version, tables, configuration, clock, age of what they know',
      notes: ['Nodes that were seen within the last hour. No service needs to run.'],
      arguments: [],
      options: { ...JSON_ANSWER, ...CONFIG },
      examples: [{ line: 'postern nodes', does: 'list them, the latest first' }],
    },
  },
} as const satisfies CommandTable
