import type { Verb } from '../../operator/verb.ts'
import type { CommandTable } from '../verbs.ts'
import { CONFIG, JSON_ANSWER } from './order.ts'

const FOLDERS = [{ name: 'FOLDER', kind: 'folder', optional: true, repeated: true }] as const

export const VERIFY = {
  summary: 'Prove that nobody has changed, removed or added records',
  notes: [
    'Exit code 0: the trail is whole, 1: it is not, 2: it cannot be read.',
    'Without FOLDER it also compares how the trail began with what the store remembers of that.',
  ],
  arguments: FOLDERS,
  options: {
    anchor: {
      ...{ type: 'string', kind: 'file', multiple: true },
      help: 'A log, or a file of anchors, which shows whether everything was cut back',
    },
    key: {
      ...{ type: 'string', kind: 'file' },
      help: 'The public key of the trail. Default: the one in its folder, which may have been replaced',
    },
    ...JSON_ANSWER,
    ...CONFIG,
  },
  examples: [
    { line: 'postern audit verify', does: 'verify the trail of the default configuration' },
    {
      line: 'postern audit verify /mnt/copy/audit --key audit-public.pem --anchor postern.log',
      does: 'verify a copy with what is kept elsewhere',
    },
  ],
} as const satisfies Verb

export const HASH = {
  summary: 'Print what `call.body` is in the record of a call whose body is in this file',
  arguments: [{ name: 'FILE', kind: 'file' }],
  options: { ...JSON_ANSWER, ...CONFIG },
  examples: [{ line: 'postern audit hash body.json', does: 'compute the hash of a body' }],
} as const satisfies Verb

export const KEY = {
  summary: 'Print the public key that proves the trail. Keep it elsewhere, for `verify --key`',
  arguments: [],
  options: { ...JSON_ANSWER, ...CONFIG },
  examples: [{ line: 'postern audit key > audit-public.pem', does: 'copy the key to a file' }],
} as const satisfies Verb

export const AUDIT = {
  verbs: { verify: VERIFY, hash: HASH, key: KEY },
  notes: ['--config names the configuration that is served: it says where the trail is. Times are in UTC.'],
} as const satisfies CommandTable
