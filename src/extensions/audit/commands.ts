/** The command `postern audit`. */
import type { AddedCommand } from '../../operate/hooks/added-command.ts'

export const AUDIT_COMMANDS = {
  audit: {
    summary: 'The audit trail: prove it, and ask it who changed what',
    notes: ['--config names the configuration that is served: it says where the trail is. Times are in UTC.'],
    after: 'backup',
    order: ['find', 'show', 'open', 'verify', 'redact', 'hash', 'key'],
    verbs: {
      verify: {
        summary: 'Prove that nobody has changed, removed or added records',
        notes: [
          'Exit code 0: the trail is whole, 1: it is not, 2: it cannot be read.',
          'Without FOLDER it also compares how the trail began with what the store remembers of that.',
        ],
        arguments: [{ name: 'FOLDER', kind: 'folder', optional: true, repeated: true }],
        options: {
          anchor: {
            type: 'string',
            kind: 'file',
            multiple: true,
            help: 'A log, or a file of anchors, which shows whether everything was cut back',
          },
          key: {
            type: 'string',
            kind: 'file',
            help: 'The public key of the trail. Default: the one in its folder, which may have been replaced',
          },
        },
        examples: [
          { line: 'postern audit verify', does: 'verify the trail of the default configuration' },
          {
            line: 'postern audit verify /mnt/copy/audit --key audit-public.pem --anchor postern.log',
            does: 'verify a copy with what is kept elsewhere',
          },
        ],
        changes: false,
        work: async (...given) => (await import('./run-commands.ts')).verify(...given),
      },
      hash: {
        summary: 'Print what `call.body` is in the record of a call whose body is in this file',
        arguments: [{ name: 'FILE', kind: 'file' }],
        options: {},
        examples: [{ line: 'postern audit hash body.json', does: 'compute the hash of a body' }],
        changes: false,
        work: async (...given) => (await import('./run-commands.ts')).hash(...given),
      },
      key: {
        summary: 'Print the public key that proves the trail. Keep it elsewhere, for `verify --key`',
        arguments: [],
        options: {},
        examples: [{ line: 'postern audit key > audit-public.pem', does: 'copy the key to a file' }],
        changes: false,
        work: async (...given) => (await import('./run-commands.ts')).printKey(...given),
      },
    },
  },
} as const satisfies Readonly<Record<string, AddedCommand>>
