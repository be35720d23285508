/** The commands about a store that several nodes share. */
import type { AddedCommand } from '../../operate/hooks/added-command.ts'

export const COMMANDS = {
  migrate: {
    summary: 'Make or migrate the tables of a store that several nodes share',
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
        },
        examples: [
          { line: 'postern migrate', does: 'make or migrate the tables' },
          { line: 'postern migrate --check', does: 'tell whether there is something to do' },
          { line: 'postern migrate --finish', does: 'when all nodes run the new version' },
        ],
        changes: true,
        work: async (...given) => (await import('./run-commands.ts')).migrateTables(...given),
      },
    },
  },
  store: {
    summary: 'Copy the store of one machine into one that several nodes share',
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
            type: 'string',
            value: 'sqlite:PATH',
            help: 'The old store: `sqlite:` and the path of its file. It is only read',
          },
          keys: {
            type: 'string',
            kind: 'folder',
            help: 'The folder of its keys. Default: `keys` beside the file',
          },
        },
        examples: [
          {
            line: 'postern store copy --from sqlite:/var/lib/postern/postern.sqlite --config nodes.yaml',
            does: 'go over to a store that several nodes share',
          },
        ],
        changes: true,
        work: async (...given) => (await import('./store-copy.ts')).copyIntoShared(...given),
      },
    },
  },
  nodes: {
    summary: 'List the nodes that share a store',
    verbs: {
      '': {
        summary:
          'List the nodes that share a store: address, version, tables, configuration, clock, age of what they know',
        notes: [
          'Nodes that were seen within the last hour. No service needs to run.',
          'Exit code 1: those that serve now have different configurations.',
        ],
        arguments: [],
        options: {},
        examples: [{ line: 'postern nodes', does: 'list them, the latest first' }],
        changes: false,
        work: async (...given) => (await import('./run-commands.ts')).listNodes(...given),
      },
    },
  },
} as const satisfies Readonly<Record<string, AddedCommand>>
