/**
 * What operators can order of a service, and a command does by itself where none runs (C11.5.1, C12.1.7): one table over the
 * operations. `operate/both-ways.wire.test.ts` walks it: each row by command with the service up, those of `ROWS` with it down
 * too, those with a route by the admin API, and those that end something with two workers. `further-rows.ts` has the others.
 */
import { type Left, LISTING } from './shrinking-rights.ts'

/** The same by the admin API: the status of its answer, the path, the body. The method is that of the operation. */
export type Route = readonly [status: number, path: string, body?: object]

/**
 * `~` stands for a name. In a row that `ends` something it is that of a business, a role, a client and a user of the row's
 * own, of whom somebody holds tokens; in all others one name.
 */
export interface Row {
  /** Of the operation that is carried out. */
  readonly id: string
  readonly route?: Route
  /** What is typed behind `postern`. */
  readonly line: string
  /** What is piped in. */
  readonly input?: string
  /** The exit code. Default: 0. */
  readonly code?: 1 | 2
  /** What it prints: members of its JSON and of the `record` in it, else the text or a part of it; on standard error if it is refused. */
  readonly output: string | RegExp | object
  /** Each record, as `event outcome`. Default: none. */
  readonly records?: readonly string[]
  /** What its last record says. */
  readonly recorded?: object
  /** What is left of the tokens of whoever holds some. */
  readonly ends?: Left
  /** These tokens are for the fund F1, not for the business. */
  readonly fund?: true
  /**
   * Of the same name as the row before, which it follows: access tokens that have ended stay so. And what a refresh gives
   * from then on.
   */
  readonly again?: Left
}

export const PASSWORD = 'a-long-enough-password'

/** Whatever gives is recorded before it is done, too. */
export const gives = (event: string): readonly string[] => [`${event} pending`, `${event} success`]
export const takes = (event: string): readonly string[] => [`${event} success`]

export const ASKED = takes('audit.queried')
/** Of each algorithm. */
export const ANNOUNCED = [...takes('keys.announced'), ...takes('keys.announced')]

const CLIENT = '--kind customer --name Tally --agreement 2026-01-15 --business ACME --business GLOBEX'
const ADDED_CLIENT = {
  ...{ id: '~', kind: 'customer', name: 'Tally', agreement: '2026-01-15' },
  ...{ businesses: ['ACME', 'GLOBEX'], scopes: ['openid', 'fund.read'] },
}
export const ONE_ROLE = { ACME: 'Read-only' }
export const TWO_ROLES = { ...ONE_ROLE, GLOBEX: 'Read-only' }
const ADDED_USER = {
  ...{ username: '~', subject: 'S-~', password: PASSWORD, customers: ['~'] },
  ...{ access: TWO_ROLES, claims: { name: 'Dora' } },
}
const USER = '--subject S-~ --customer ~ --access ACME=Read-only --access GLOBEX=Read-only --claim name=Dora'
const ADDRESS = { locality: 'Austin', country: 'US' }
const PLACE = '--address locality=Austin --address country=US'

/** All that is printed of a link by which somebody sets a password, so that it can be piped on. */
export const LINK = /^https?:\/\/\S+\/connect\/link\?code=[\w-]{43}\n$/

/** Each operation and exit code once. A row finds what the rows before it have made. */
export const ROWS: readonly Row[] = [
  {
    ...{ id: 'addBusiness', line: `business add ~ --name Hooli ${PLACE} --reason asked` },
    route: [201, '/businesses', { code: '~', name: 'Hooli', address: ADDRESS }],
    ...{ output: '~: added\n', records: gives('business.added') },
    recorded: { on: { kind: 'business', business: '~' }, why: 'asked' },
  },
  {
    ...{
      id: 'addBusiness',
      line: 'business add ~ --name Hooli',
      code: 1,
      output: 'There is a business "~" already',
    },
    route: [409, '/businesses', { code: '~', name: 'Hooli' }],
  },
  {
    ...{ id: 'addBusiness', line: 'business add BAD --funds some', code: 2 },
    route: [400, '/businesses', { code: 'BAD', funds: 'some' }],
    output: /--name {2}is missing.*\n.*--funds {2}expected one of/,
  },
  {
    ...{ id: 'addFund', line: "fund add ~ F1 --name 'Fund one'", output: '~/F1: added\n' },
    ...{
      route: [201, '/businesses/~/funds', { code: 'F1', name: 'Fund one' }],
      records: gives('fund.added'),
    },
    recorded: { on: { kind: 'fund', business: '~', fund: 'F1' } },
  },
  {
    ...{ id: 'addFund', line: 'fund add NOWHERE F1', code: 1, output: 'There is no business "NOWHERE"' },
    route: [404, '/businesses/NOWHERE/funds', { code: 'F1' }],
  },
  {
    ...{ id: 'addRole', line: "role add ~ --scope 'fund.read api1'", output: '~: added\n' },
    ...{ route: [201, '/roles', { name: '~', scopes: ['fund.read', 'api1'] }], records: gives('role.added') },
    recorded: { on: { kind: 'role', id: '~' } },
  },
  {
    ...{
      id: 'addRole',
      line: 'role add Boss --scope fund.raed',
      code: 2,
      output: 'did you mean "fund.read"?',
    },
    route: [400, '/roles', { name: 'Boss', scopes: ['fund.raed'] }],
  },
  {
    ...{ id: 'addClient', line: `client add ~ ${CLIENT} --scope 'openid fund.read' --reason asked` },
    route: [201, '/clients', ADDED_CLIENT],
    ...{ output: /^client_id {6}~\nclient_secret {2}[\w-]{43}\n$/, records: gives('client.added') },
    recorded: { on: { kind: 'client', id: '~' }, why: 'asked' },
  },
  {
    ...{ id: 'addClient', line: `client add ~ ${CLIENT} --scope openid`, code: 1 },
    ...{ route: [409, '/clients', ADDED_CLIENT], output: 'There is a client "~" already' },
  },
  {
    ...{ id: 'addClient', line: `client add other ${CLIENT} --business ACNE --scope openid`, code: 2 },
    route: [400, '/clients', { ...ADDED_CLIENT, id: 'other', businesses: ['ACNE'] }],
    output: /--business.* {2}names no business .* did you mean "ACME"\?/,
  },
  {
    ...{
      id: 'addUser',
      line: `user add ~ ${USER}`,
      input: `${PASSWORD}\n`,
      route: [201, '/users', ADDED_USER],
    },
    ...{ output: '~: added with the subject S-~\n', records: gives('user.added') },
    recorded: { on: { kind: 'user', subject: 'S-~' }, values: { 'on.id': '~' } },
  },
  {
    ...{ id: 'addUser', line: 'user add eve --access ACME=Nobody', input: `${PASSWORD}\n`, code: 2 },
    route: [400, '/users', { username: 'eve', password: PASSWORD, access: { ACME: 'Nobody' } }],
    output: '--access ACME  names no role',
  },

  {
    ...{ id: 'showBusiness', line: 'business show ~', route: [200, '/businesses/~'] },
    output: /^funds +listed\n[^]*^source +store$/m,
  },
  {
    ...{ id: 'showBusiness', line: 'business show ~y', code: 1, output: 'There is no business "~y"' },
    route: [404, '/businesses/~y'],
  },
  { id: 'listBusinesses', line: 'business list --prefix ~', output: /^CODE.*\n~ +store +enabled/ },
  {
    id: 'showFund',
    line: 'fund show ~ F1 --json',
    route: [200, '/businesses/~/funds/F1'],
    output: { code: 'F1' },
  },
  { id: 'listFunds', line: 'fund list ~', output: /\n.*F1 +/ },
  {
    ...{ id: 'listFunds', line: 'fund list NOWHERE', code: 1, output: 'There is no business "NOWHERE"' },
    route: [404, '/businesses/NOWHERE/funds'],
  },
  { id: 'showRole', line: 'role show ~', route: [200, '/roles/~'], output: /^scopes +fund\.read api1$/m },
  { id: 'listRoles', line: 'role list --prefix ~', output: /^NAME.*\n~ +store +enabled +fund\.read api1\n$/ },
  { id: 'showClient', line: 'client show ~', route: [200, '/clients/~'], output: /^validSecrets +1$/m },
  { id: 'listClients', line: 'client list --prefix ~', output: /\n~ +customer +store +enabled +1 +Tally\n$/ },
  { id: 'showUser', line: 'user show ~', route: [200, '/users/~'], output: /^access +ACME=Read-only/m },
  { id: 'listUsers', line: 'user list --prefix ~', output: /\n~ +store +enabled/ },

  {
    ...{ id: 'editBusiness', line: "business edit ~ --name 'Hooli Ltd' --json", ends: 'same' },
    route: [200, '/businesses/~', { name: 'Hooli Ltd' }],
    ...{ output: { record: { name: 'Hooli Ltd' }, changed: ['name'] }, records: gives('business.changed') },
  },
  {
    ...{
      id: 'editBusiness',
      line: 'business edit ACME --name Other',
      code: 1,
      output: 'in the configuration',
    },
    route: [409, '/businesses/ACME', { name: 'Other' }],
  },
  {
    ...{ id: 'disableBusiness', line: 'business disable ~ --reason closed', ends: 'nothing' },
    ...{
      route: [200, '/businesses/~/disable'],
      records: takes('business.disabled'),
      recorded: { why: 'closed' },
    },
    output:
      '~: disabled\n~: ended what was issued at ~: 1 family of refresh tokens, 0 codes, and the access tokens\n',
  },
  {
    ...{ id: 'enableBusiness', line: 'business enable ~ --json', again: 'nothing', output: { enabled: '~' } },
    ...{ route: [200, '/businesses/~/enable'], records: gives('business.enabled') },
  },
  {
    ...{ id: 'disableBusiness', line: 'business disable ACME', code: 1, output: 'in the configuration' },
    route: [409, '/businesses/ACME/disable'],
  },
  {
    ...{ id: 'editFund', line: 'fund edit ~ F1 --name First --json', ends: 'same', fund: true },
    route: [200, '/businesses/~/funds/F1', { name: 'First' }],
    ...{ output: { record: { name: 'First' }, changed: ['name'] }, records: gives('fund.changed') },
  },
  {
    ...{ id: 'disableFund', line: 'fund disable ~ F1', ends: 'nothing', fund: true },
    ...{ route: [200, '/businesses/~/funds/F1/disable'], records: takes('fund.disabled') },
    output: '~/F1: disabled\n~/F1: ended the access tokens for this fund\n',
  },
  {
    ...{ id: 'enableFund', line: 'fund enable ~ F1', again: 'same', output: '~/F1: enabled\n' },
    ...{ route: [200, '/businesses/~/funds/F1/enable'], records: gives('fund.enabled') },
  },
  {
    ...{
      id: 'editRole',
      line: 'role edit ~ --scope fund.read',
      ends: 'less',
      records: takes('role.changed'),
    },
    route: [200, '/roles/~', { scopes: ['fund.read'] }],
    output: `~: changed: scope\n~: ended the access tokens that have ${LISTING}\n`,
  },
  {
    ...{ id: 'disableRole', line: 'role disable ~', ends: 'nothing', records: takes('role.disabled') },
    route: [200, '/roles/~/disable'],
    output: '~: disabled\n~: ended the access tokens of the users who have this role\n',
  },
  {
    ...{ id: 'enableRole', line: 'role enable ~', again: 'same', output: '~: enabled\n' },
    ...{ route: [200, '/roles/~/enable'], records: gives('role.enabled') },
  },
  {
    ...{ id: 'editClient', line: "client edit ~ --scope 'openid offline_access fund.read'", ends: 'less' },
    route: [200, '/clients/~', { scopes: ['openid', 'offline_access', 'fund.read'] }],
    output: `~: changed: scope\n~: ended the access tokens that have ${LISTING}\n`,
    records: takes('client.changed'),
  },
  {
    ...{ id: 'editClient', line: 'client edit ~ --access-token-lifetime 2d', code: 2 },
    route: [400, '/clients/~', { accessTokenLifetime: '2d' }],
    output: '--access-token-lifetime  expected `1s` to `24h`',
  },
  {
    ...{ id: 'rotateSecret', line: 'client rotate-secret ~ --overlap 1h --reason yearly' },
    ...{ route: [200, '/clients/~/secrets', { overlap: '1h' }], records: gives('client.secret_rotated') },
    output: /^client_id {6}~\nclient_secret {2}[\w-]{43}\n$/,
    recorded: { on: { kind: 'client', id: '~' }, change: { overlapMs: 3_600_000 }, why: 'yearly' },
  },
  {
    ...{ id: 'rotateSecret', line: 'client rotate-secret ~', code: 1, output: 'Two secrets are valid until' },
    route: [409, '/clients/~/secrets'],
  },
  {
    ...{ id: 'disableClient', line: 'client disable ~', ends: 'nothing', records: takes('client.disabled') },
    ...{ route: [200, '/clients/~/disable'], output: /^~: disabled\n~: ended what was issued: 1 family/ },
  },
  { id: 'disableClient', line: 'client disable nobody', code: 1, output: 'There is no client "nobody"' },
  {
    ...{ id: 'enableClient', line: 'client enable ~', again: 'nothing', output: '~: enabled\n' },
    ...{ route: [200, '/clients/~/enable'], records: gives('client.enabled') },
  },
  {
    ...{ id: 'editUser', line: 'user edit ~ --access ~=Weak', ends: 'less', records: gives('user.changed') },
    route: [200, '/users/~', { access: { '~': 'Weak' } }],
    output: `~: changed: access\n~: ended the access tokens that have ${LISTING}\n`,
  },
  {
    ...{ id: 'setPassword', line: 'user set-password ~ --json', input: `${PASSWORD}-2\n`, ends: 'nothing' },
    route: [200, '/users/~/password', { password: `${PASSWORD}-2` }],
    output: { username: '~', changed: ['password'] },
    records: gives('user.password_set'),
  },
  {
    ...{ id: 'setPassword', line: 'user set-password ~', input: 'short\n', code: 2, output: 'is too short' },
    route: [400, '/users/~/password', { password: 'short' }],
  },
  {
    ...{ id: 'setPassword', line: 'user set-password nobody', input: `${PASSWORD}\n`, code: 1 },
    ...{
      route: [404, '/users/nobody/password', { password: PASSWORD }],
      output: 'There is no user "nobody"',
    },
  },
  {
    ...{ id: 'linkUser', line: 'user link ~ --for 1h --reason forgotten', output: LINK },
    ...{ route: [201, '/users/~/link', { for: '1h' }], records: gives('user.link_made') },
    recorded: {
      ...{ on: { kind: 'user', subject: 'S-~' }, values: { 'on.id': '~' } },
      ...{ change: { forMs: 3_600_000 }, why: 'forgotten' },
    },
  },
  {
    ...{ id: 'linkUser', line: 'user link ~ --for 8d', code: 2, output: 'from 1h to 7d' },
    route: [400, '/users/~/link', { for: '8d' }],
  },
  {
    ...{ id: 'linkUser', line: 'user link nobody', code: 1, output: 'There is no user "nobody"' },
    route: [404, '/users/nobody/link'],
  },
  {
    ...{ id: 'disableUser', line: 'user disable ~', ends: 'nothing', records: takes('user.disabled') },
    ...{ route: [200, '/users/~/disable'], output: /^~: disabled\n~: ended what was issued: 1 family/ },
    recorded: { on: { kind: 'user', subject: 'S-~' }, values: { 'on.id': '~' } },
  },
  {
    ...{ id: 'disableUser', line: 'user disable nobody', code: 1, output: 'There is no user "nobody"' },
    route: [404, '/users/nobody/disable'],
  },
  {
    ...{ id: 'enableUser', line: 'user enable ~', again: 'nothing', output: '~: enabled\n' },
    ...{ route: [200, '/users/~/enable'], records: gives('user.enabled') },
  },

  {
    ...{ id: 'streamRecords', line: 'audit find --event business.added --business ~ --reason asked' },
    ...{ output: /^TIME.*\n.* business\.added at ~ +success\n$/, records: ASKED, recorded: { why: 'asked' } },
  },
  {
    id: 'streamRecords',
    line: 'audit find --month 2020-03',
    code: 1,
    output: 'No record fits',
    records: ASKED,
  },
  {
    id: 'streamRecords',
    line: 'audit find --event busines.added',
    code: 2,
    output: 'did you mean "business.added"?',
  },
  {
    id: 'redactSubject',
    line: 'audit redact --subject S-~',
    code: 2,
    output: 'expected --subject and --reason',
  },
  {
    ...{ id: 'redactSubject', line: 'audit redact --subject S-~ --reason asked' },
    ...{ output: /^\d+ personal values of S-~ erased/, records: gives('audit.redacted') },
    recorded: { on: { subject: 'S-~' }, why: 'asked' },
  },

  {
    ...{ id: 'removeUser', line: 'user remove ~ --reason left', ends: 'nothing', output: '~: removed\n' },
    ...{ route: [200, '/users/~'], records: takes('user.removed'), recorded: { why: 'left' } },
  },
  {
    ...{ id: 'removeUser', line: 'user remove nobody', code: 1, output: 'There is no user "nobody"' },
    route: [404, '/users/nobody'],
  },
  {
    ...{ id: 'removeClient', line: 'client remove ~', ends: 'nothing', output: '~: removed\n' },
    ...{ route: [200, '/clients/~'], records: takes('client.removed') },
  },
  {
    ...{ id: 'removeRole', line: 'role remove ~ --json', ends: 'nothing', output: { removed: '~' } },
    ...{ route: [200, '/roles/~'], records: takes('role.removed') },
  },
  {
    ...{ id: 'removeFund', line: 'fund remove ~ F1', ends: 'nothing', fund: true, output: '~/F1: removed\n' },
    ...{ route: [200, '/businesses/~/funds/F1'], records: takes('fund.removed') },
  },
  {
    ...{ id: 'removeBusiness', line: 'business remove ~', ends: 'nothing', output: '~: removed\n' },
    ...{ route: [200, '/businesses/~'], records: takes('business.removed') },
  },

  { id: 'listKeys', line: 'keys list', output: /^ES256-1\.jwk +signing +[^]*^RS256-1\.jwk +signing/m },
  {
    id: 'rotateKeys',
    line: 'keys rotate --reason planned',
    output: /^ES256-2\.jwk: made/,
    records: ANNOUNCED,
  },
  { id: 'rotateKeys', line: 'keys rotate --compromised', code: 2, output: 'add --yes to confirm' },
]
