/** The tables of `postern sessions`, `families` and `consents`. */
import type { Options } from '../../operator/verb.ts'
import type { CommandTable } from '../verbs.ts'
import { JSON_ANSWER, SERVICE_ORDER } from './order.ts'

const SUBJECT = {
  type: 'string',
  value: 'SUBJECT',
  help: 'Only of this user, by the `sub` of the tokens',
} as const

const ALL_FILTERS = {
  subject: SUBJECT,
  client: { type: 'string', value: 'ID', help: 'Only of this client' },
  business: { type: 'string', value: 'CODE', help: 'Only for this business' },
} as const satisfies Options

const PAGE = {
  limit: { type: 'string', kind: 'rows', help: 'Rows of a page, up to 1000. Default: 100' },
  after: { type: 'string', value: 'ID', help: 'The page behind this id' },
  ...JSON_ANSWER,
  ...SERVICE_ORDER,
} as const satisfies Options

const ENDING = {
  preview: { type: 'boolean', help: 'Show what would end, and change nothing' },
  yes: { type: 'boolean', help: 'With a filter: do not ask' },
  ...JSON_ANSWER,
  ...SERVICE_ORDER,
} as const satisfies Options

interface Texts {
  readonly kind: string
  readonly list: string
  readonly end: string
  /** An option of the examples. */
  readonly filter: string
}

const NOTES = ['With several filters, only what matches all of them. At most 1,000 end at once.']

const tableOf = <const F extends Options>({ kind, list, end, filter }: Texts, filters: F) =>
  ({
    verbs: {
      list: {
        summary: list,
        arguments: [],
        options: { ...filters, ...PAGE },
        examples: [{ line: `postern ${kind} list ${filter}`, does: 'show the first 100 of them' }],
      },
      end: {
        ...{ summary: end, usage: 'ID | FILTER… [OPTIONS]', notes: NOTES },
        arguments: [{ name: 'ID', optional: true }],
        options: { ...filters, ...ENDING },
        examples: [
          { line: `postern ${kind} end ${filter} --preview`, does: 'show what would end' },
          {
            line: `postern ${kind} end 3vHqk0Pz4yJmTnqf0b2Gfw`,
            does: 'end one, by the id that `list` shows',
          },
        ],
      },
    },
  }) as const satisfies CommandTable

export const SESSIONS = tableOf(
  {
    kind: 'sessions',
    list: 'List logins in browsers',
    end: 'Log browsers out. Refresh tokens stay: see `postern families` and `postern revoke`',
    filter: '--subject 45733adb-9b07-4d40-ae57-20cf9b802f51',
  },
  { subject: SUBJECT },
)

export const FAMILIES = tableOf(
  {
    kind: 'families',
    list: 'List families of refresh tokens',
    end: 'End families of refresh tokens, with their codes and access tokens',
    filter: '--client acme-books --business ACME',
  },
  ALL_FILTERS,
)

export const CONSENTS = tableOf(
  {
    kind: 'consents',
    list: 'List what users have allowed clients',
    end: 'Withdraw consents, with the codes and the token families that they gave',
    filter: '--client ledgerline',
  },
  ALL_FILTERS,
)
