/** The tables of `postern client`, `user`, `business`, `fund` and `role`: made from one table of nouns (C11.5.1). */
import { type NounName, NOUNS } from '../../directory/nouns.ts'
import type { Argument, Example, Options, Verb } from '../../operator/verb.ts'
import { argumentsOf, editOptionsOf, optionsOf } from '../directory/noun-options.ts'
import type { CommandTable } from '../verbs.ts'
import { CONFIG, JSON_ANSWER, ORDER } from './order.ts'

const READ = { ...JSON_ANSWER, ...CONFIG } as const satisfies Options
const ANSWERED = { ...JSON_ANSWER, ...ORDER } as const satisfies Options

/** In sentences of the help. */
const ADDED: Readonly<Record<NounName, string>> = {
  client: 'Add a client, and show its secret',
  user: 'Add a user. The password is typed or piped in',
  business: 'Add a business',
  fund: 'Add a fund to a business of the store that lists its funds',
  role: 'Add a role',
}

const DISABLED: Readonly<Record<NounName, string>> = {
  client: 'Refuse all its requests and revoke its tokens, in every process within a second',
  user: 'Refuse all logins, and end tokens and sessions, in every process within a second',
  business: 'Refuse all calls and tokens for it, and end what was issued for it; consents stay',
  fund: 'Refuse all calls and tokens for it',
  role: 'Users with this role may do nothing at the business, from their next token on',
}

const EDIT_NOTES = [
  'What is not given stays. A list replaces the whole list before. An empty value empties a list, or removes a value. What was issued beyond what is left ends, and the command tells what.',
]

interface Samples {
  /** A name, as it is typed. */
  readonly name: string
  readonly add: string
  readonly edit: string
  readonly list: string
}

/** What stands in the examples. */
const SAMPLES: Readonly<Record<NounName, Samples>> = {
  client: {
    name: 'tally',
    add: "--kind customer --name Tally --business ACME --scope 'openid fund.read'",
    edit: "--scope 'openid fund.read'",
    list: '--prefix ta',
  },
  user: {
    name: 'dora',
    add: '--customer tally --access ACME=Read-only < password.txt',
    edit: '--access ACME=Administrator --claim email=dora@example.com',
    list: '--all --json',
  },
  business: { name: 'INITECH', add: '--name Initech', edit: "--name 'Initech Ltd'", list: '--limit 20' },
  fund: { name: 'INITECH SUPER1', add: "--name 'Super One'", edit: "--name 'Super 1'", list: 'INITECH' },
  role: {
    name: 'Clerk',
    add: "--scope 'fund.read business.fund.list'",
    edit: '--scope fund.read',
    list: '--json',
  },
}

const PAGE = {
  prefix: { type: 'string', help: 'Only those whose name begins with it' },
  limit: { type: 'string', kind: 'rows', help: 'Rows of a page: 1 to 1000. Default: 100' },
  after: { type: 'string', value: 'NAME', help: 'The page behind this name' },
  all: { type: 'boolean', help: 'Every page; with --json one record a line' },
  ...READ,
} as const satisfies Options

const namesOf = (noun: NounName): readonly Argument[] =>
  NOUNS[noun].names.map((name) => ({ name: name.toUpperCase() }))

const stateVerb = <const O extends Options>(noun: NounName, verb: string, summary: string, options: O) =>
  ({
    summary,
    arguments: namesOf(noun),
    options,
    examples: [example(noun, verb, '', `${verb} it`)],
  }) as const satisfies Verb

function example(noun: NounName, verb: string, more: string, does: string): Example {
  const { name } = SAMPLES[noun]
  return { line: ['postern', noun, verb, name, more].filter((word) => word !== '').join(' '), does }
}

const addVerb = (noun: NounName) =>
  ({
    summary: ADDED[noun],
    arguments: namesOf(noun),
    options: { ...argumentsOf(optionsOf(noun)), ...ANSWERED },
    examples: [example(noun, 'add', SAMPLES[noun].add, `add a ${noun} to the store`)],
  }) satisfies Verb

const editVerb = (noun: NounName) =>
  ({
    ...{ summary: `Change a ${noun} of the store`, notes: EDIT_NOTES },
    arguments: namesOf(noun),
    options: { ...argumentsOf(editOptionsOf(noun)), ...ANSWERED },
    examples: [example(noun, 'edit', SAMPLES[noun].edit, 'change this, and leave the rest')],
  }) satisfies Verb

const listVerb = (noun: NounName) =>
  ({
    summary: `List the ${NOUNS[noun].plural} of the configuration and of the store, page by page`,
    arguments: namesOf(noun).slice(0, -1),
    options: PAGE,
    examples: [{ line: `postern ${noun} list ${SAMPLES[noun].list}`, does: 'list some of them' }],
  }) as const satisfies Verb

const verbsOf = (noun: NounName) => ({
  add: addVerb(noun),
  show: stateVerb(noun, 'show', `Show a ${noun}, without hashes`, READ),
  edit: editVerb(noun),
  disable: stateVerb(noun, 'disable', DISABLED[noun], ANSWERED),
  enable: stateVerb(noun, 'enable', 'Let it be used again. What has ended stays so', ANSWERED),
  remove: stateVerb(
    noun,
    'remove',
    'Remove it, and end what it holds, consents too. Its name may be given again',
    ANSWERED,
  ),
  list: listVerb(noun),
})

const notesOf = (noun: NounName): readonly string[] => [
  'What the configuration holds is shown and listed, and changed only in the configuration. A running service follows within a second.',
  ...(noun === 'user'
    ? ['People whom directory.people finds are neither listed nor changed: they live in another system.']
    : []),
]

const tableOf = (noun: NounName) => ({ verbs: verbsOf(noun), notes: notesOf(noun) }) satisfies CommandTable

const ROTATE_SECRET = {
  summary: 'Make another secret of a client. The old one stays valid for the overlap',
  arguments: namesOf('client'),
  options: {
    overlap: {
      ...{ type: 'string', kind: 'duration' },
      help: 'How long the old secret stays valid; 0s: not at all. Default: 1d',
    },
    ...ANSWERED,
  },
  examples: [example('client', 'rotate-secret', '--overlap 7d', 'both secrets work for a week')],
} as const satisfies Verb

const SET_PASSWORD = {
  summary: 'Change the password, typed or piped in. The user must log in again everywhere',
  arguments: namesOf('user'),
  options: ANSWERED,
  examples: [
    example('user', 'set-password', '', 'ask for the password'),
    example('user', 'set-password', '< password.txt', 'read it from a file'),
  ],
} as const satisfies Verb

const [CLIENTS, USERS] = [tableOf('client'), tableOf('user')]

export const CLIENT = { ...CLIENTS, verbs: { ...CLIENTS.verbs, 'rotate-secret': ROTATE_SECRET } }
export const USER = { ...USERS, verbs: { ...USERS.verbs, 'set-password': SET_PASSWORD } }
export const BUSINESS = tableOf('business')
export const FUND = tableOf('fund')
export const ROLE = tableOf('role')
