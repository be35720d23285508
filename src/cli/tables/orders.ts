/** The tables of the commands that give an order to a running service: reload, revoke, status. */
import type { Options, Verb } from '../../operator/verb.ts'
import type { CommandTable } from '../verbs.ts'
import { JSON_ANSWER, SERVICE_ORDER } from './order.ts'

const ANSWERED = { ...JSON_ANSWER, ...SERVICE_ORDER } as const satisfies Options

const RELOAD_VERB = {
  summary: 'Make a running service read its configuration again',
  notes: ['A configuration that has problems is refused, and changes nothing: exit code 1.'],
  arguments: [],
  options: ANSWERED,
  examples: [{ line: "postern reload --reason 'new client'", does: 'put the file on disk in force' }],
} as const satisfies Verb

export const RELOAD = { verbs: { '': RELOAD_VERB } } as const satisfies CommandTable

export const STATUS = {
  verbs: {
    '': {
      summary: 'Show how a running service is: what is wrong first, then each part',
      notes: ['Exit code 0: ready, 1: not ready, or no answer.'],
      arguments: [],
      options: ANSWERED,
      examples: [
        { line: 'postern status', does: 'show it for people' },
        { line: 'postern status --json --admin-url http://127.0.0.1:9090', does: 'print it for a program' },
      ],
    },
  },
} as const satisfies CommandTable

/** Which tokens are revoked. */
export const RULE = {
  before: {
    ...{ type: 'string', value: 'now' },
    help: 'Everything that was given until now: after a backup was restored. Everybody logs in again',
  },
  jti: { type: 'string', value: 'ID', help: 'One access token' },
  family: {
    ...{ type: 'string', value: 'ID' },
    help: 'A family of refresh tokens, with its authorization code and its access tokens',
  },
  subject: { type: 'string', value: 'SUBJECT', help: 'A user: sessions, families, codes and access tokens' },
  client: { type: 'string', value: 'ID', help: 'A client: families, codes and access tokens' },
  business: { type: 'string', value: 'CODE', help: 'A business: families, codes and access tokens' },
} as const satisfies Options

/** How they are revoked. */
export const HOW = {
  issuer: {
    ...{ type: 'string', value: 'NAME' },
    help: 'In a sidecar with several issuers: the issuer that the id is of, by its name or URL',
  },
  consents: { type: 'boolean', help: 'End consents too. Without it, they stay' },
  preview: { type: 'boolean', help: 'Show what would be revoked, and change nothing' },
  force: { type: 'boolean', help: 'Also if an id is not known. Without it, that is refused: exit code 1' },
} as const satisfies Options

export const REVOKE = {
  verbs: {
    '': {
      summary: 'End sessions, refresh tokens, codes and access tokens, at once and for good',
      notes: ['With several of --subject, --client and --business, only what matches all of them.'],
      arguments: [],
      options: { ...RULE, ...HOW, ...ANSWERED },
      examples: [
        { line: 'postern revoke --client acme-books --preview', does: 'show how much there is' },
        {
          line: "postern revoke --subject 45733adb-9b07-4d40-ae57-20cf9b802f51 --reason 'lost laptop'",
          does: 'end all that a user has',
        },
        { line: "postern revoke --before now --reason 'backup restored'", does: 'end all that anybody has' },
      ],
    },
  },
} as const satisfies CommandTable
