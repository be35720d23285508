import type { Options, Verb } from '../../operator/verb.ts'
import type { CommandTable } from '../verbs.ts'
import { JSON_ANSWER, SERVICE_ORDER } from './order.ts'

/** What is closed. The whole API, if none of them is given. */
const SCOPE = {
  business: { type: 'string', value: 'CODE', help: 'Calls for this business' },
  area: { type: 'string', value: 'NAME', help: 'The actions of this area' },
  backend: { type: 'string', value: 'NAME', help: 'The actions that this backend answers' },
  identity: { type: 'boolean', help: 'Logins and tokens' },
  service: { type: 'boolean', help: 'The whole API. This is the default' },
} as const satisfies Options

const CLOSURE = {
  ...SCOPE,
  message: { type: 'string', help: 'A text for clients, in place of the fixed one' },
  'retry-after': {
    ...{ type: 'string', kind: 'wait' },
    help: 'What clients are told to wait. Default: the time that is left, else 2m',
  },
  until: { type: 'string', kind: 'time', help: 'When it opens again. Default: when `off` says so' },
  'allow-client': {
    ...{ type: 'string', value: 'ID', multiple: true },
    help: 'A client that may still call. In a sidecar with several issuers NAME:CLIENT',
  },
  'allow-address': {
    ...{ type: 'string', value: 'ADDRESS', multiple: true },
    help: 'An address or a CIDR network that may still call',
  },
  preview: {
    type: 'boolean',
    help: 'Tell what would be closed, and whose calls of the last hour would have been refused. Change nothing',
  },
  ...JSON_ANSWER,
  ...SERVICE_ORDER,
} as const satisfies Options

export const ON = {
  summary: 'Close the service, or a part of it, now',
  arguments: [],
  options: CLOSURE,
  examples: [
    {
      line: "postern maintenance on --business ACME --until 30m --message 'Back at six'",
      does: 'close one business for half an hour',
    },
    {
      line: 'postern maintenance on --preview',
      does: 'show whose calls closing everything would refuse; nothing is closed',
    },
  ],
} as const satisfies Verb

export const PLAN = {
  summary: 'Close the service, or a part of it, from --from on',
  arguments: [],
  options: { from: { type: 'string', kind: 'time', help: 'When it closes. Required' }, ...CLOSURE },
  examples: [
    {
      line: 'postern maintenance plan --area member-data --from 2030-02-01T20:00+10:00 --until 2030-02-01T22:00+10:00',
      does: 'close an area for two hours of an evening',
    },
  ],
} as const satisfies Verb

export const OFF = {
  summary: 'Open again what is closed, or cancel what is planned',
  arguments: [],
  options: {
    ...SCOPE,
    id: { type: 'string', value: 'ID', help: 'One entry, also a planned one, by the id that `status` shows' },
    ...JSON_ANSWER,
    ...SERVICE_ORDER,
  },
  examples: [{ line: 'postern maintenance off --business ACME', does: 'open this business again' }],
} as const satisfies Verb

export const STATUS = {
  summary: 'List what is closed and what is planned',
  arguments: [],
  options: { ...JSON_ANSWER, ...SERVICE_ORDER },
  examples: [{ line: 'postern maintenance status --json', does: 'list it for a program' }],
} as const satisfies Verb

export const MAINTENANCE = {
  verbs: { on: ON, plan: PLAN, off: OFF, status: STATUS },
} as const satisfies CommandTable
