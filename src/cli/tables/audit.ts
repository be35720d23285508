import { ROW_OUTCOMES } from '../../contracts/audit-query.ts'
import type { Options, Verb } from '../../operator/verb.ts'
import type { CommandTable } from '../verbs.ts'
import { CONFIG, JSON_ANSWER, ORDER } from './order.ts'

const WHEN = {
  month: { type: 'string', value: 'MONTH', help: 'All of a month such as 2026-03, in UTC' },
  from: {
    ...{ type: 'string', value: 'WHEN' },
    help: 'From a month, a day or a time with its zone: 2026-03, 2026-03-31, 2026-03-31T18:00Z',
  },
  until: { type: 'string', value: 'WHEN', help: 'Until the end of a month or a day, or until a time' },
} as const satisfies Options

/** The filters of `find`, by the names of the admin API. */
export const FILTERS = {
  business: { type: 'string', value: 'CODE', help: 'The business that it was about' },
  fund: { type: 'string', value: 'CODE', help: 'The fund that it was about' },
  user: {
    type: 'string',
    value: 'SUBJECT',
    help: 'Who acted, or whom it is about, by the `sub` of the tokens',
  },
  client: { type: 'string', value: 'ID', help: 'Through which client it came, or which it is about' },
  by: {
    ...{ type: 'string', value: 'NAME' },
    help: 'Who acted, as it was proven: a subject, a client id, the name of an operator',
  },
  action: { type: 'string', value: 'NAME', help: 'fund-detail, or fund-data/fund-detail' },
  event: {
    ...{ type: 'string', value: 'NAME', multiple: true },
    help: 'token.issued, or user.* for a group',
  },
  outcome: {
    ...{ type: 'string', words: ROW_OUTCOMES },
    help: 'How it ended; open: an intent whose outcome is missing',
  },
  request: { type: 'string', value: 'ID', help: 'A request id' },
  changed: { type: 'boolean', help: 'Only what has changed something, or may have (open)' },
  ...WHEN,
} as const satisfies Options

const ASKING = {
  csv: { type: 'boolean', help: 'Export as CSV' },
  json: { type: 'boolean', help: 'Export as one list in JSON' },
  jsonl: { type: 'boolean', help: 'Export as one JSON object in a line' },
  ...ORDER,
} as const satisfies Options

const FOLDERS = [{ name: 'FOLDER', kind: 'folder', optional: true, repeated: true }] as const

const QUESTION_NOTES = [
  'With FOLDER it reads copies, or the trails of several nodes, and leaves no record. Without, it asks the service of the configuration, which records who asks; while no service runs it reads the files itself, and leaves the record.',
]

export const FIND = {
  summary: 'Show who did what: all records that fit all filters, and a call as one row',
  notes: QUESTION_NOTES,
  arguments: FOLDERS,
  options: { ...FILTERS, ...ASKING },
  examples: [
    {
      line: 'postern audit find --business ACME --fund SUPER1 --changed --month 2026-03',
      does: 'show who changed something of a fund in a month',
    },
    {
      line: 'postern audit find --event token.issued --client acme-books --csv',
      does: 'export for a spreadsheet',
    },
  ],
} as const satisfies Verb

export const SHOW = {
  summary: 'Show every record of one request, in order, with all that it holds',
  notes: QUESTION_NOTES,
  arguments: [{ name: 'REQUEST-ID' }, ...FOLDERS],
  options: { ...WHEN, ...ASKING },
  examples: [
    {
      line: 'postern audit show 7c8b40a1f5d24a0e9c1d7f3b2a6e5d4c',
      does: 'by the header X-Request-Id of the answer',
    },
  ],
} as const satisfies Verb

export const OPEN = {
  summary: 'Show intents without an outcome: calls that were cut off, and those under way',
  notes: QUESTION_NOTES,
  arguments: FOLDERS,
  options: { ...WHEN, ...ASKING },
  examples: [{ line: 'postern audit open', does: 'show calls whose outcome is unknown' }],
} as const satisfies Verb

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

export const REDACT = {
  summary: 'Erase the personal values of all records whose actor or object is this `sub`',
  notes: ['A running service does it, with your token; else the command itself. The trail still verifies.'],
  arguments: [],
  options: {
    subject: {
      type: 'string',
      value: 'SUBJECT',
      help: 'Whose values are erased. Required, and so is --reason',
    },
    ...JSON_ANSWER,
    ...ORDER,
  },
  examples: [
    {
      line: "postern audit redact --subject 45733adb-9b07-4d40-ae57-20cf9b802f51 --reason 'request 4711'",
      does: 'erase the values of one person',
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
  verbs: { find: FIND, show: SHOW, open: OPEN, verify: VERIFY, redact: REDACT, hash: HASH, key: KEY },
  notes: ['--config names the configuration that is served: it says where the trail is. Times are in UTC.'],
} as const satisfies CommandTable
