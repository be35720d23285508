/** What else can be typed for the operations of operation-rows.ts: with the service up alone. */
import { expect } from 'vitest'
import { ANNOUNCED, ASKED, gives, LINK, ONE_ROLE, type Row, takes, TWO_ROLES } from './operation-rows.ts'
import { DATA, GRANTED, LISTING } from './shrinking-rights.ts'

const EXPORTED = takes('audit.exported')

/** A claim, which no record may have. */
export const EMAIL = 'dora@example.com'

export const FURTHER: readonly Row[] = [
  {
    ...{ id: 'editBusiness', line: "business edit ~ --phone-number '+1 512 555' --address country= --json" },
    route: [200, '/businesses/~', { phoneNumber: '+1 512 555', address: { country: null } }],
    output: {
      record: { phoneNumber: '+1 512 555', address: { locality: 'Austin' }, funds: 'listed' },
      changed: ['phoneNumber', 'address'],
    },
    records: gives('business.changed'),
  },
  {
    ...{ id: 'editBusiness', line: "business edit ~ --phone-number '+1 512 555'", output: '~: as it was\n' },
    route: [200, '/businesses/~', { phoneNumber: '+1 512 555' }],
  },
  {
    id: 'listBusinesses',
    line: 'business list --limit 2 --json',
    output: { next: expect.any(String) as unknown },
  },
  {
    ...{ id: 'editFund', line: "fund edit ~ F1 --name '' --json", records: gives('fund.changed') },
    ...{ route: [200, '/businesses/~/funds/F1', { name: null }], output: { changed: ['name'] } },
  },
  {
    id: 'listRoles',
    line: 'role list --all --json',
    output: /^\{.*"name":"Administrator".*"source":"configuration"\}$/m,
  },
  {
    ...{ id: 'editClient', line: 'client edit ~ --access-token-lifetime 10m --reason asked' },
    route: [200, '/clients/~', { accessTokenLifetime: '10m' }],
    ...{ output: '~: changed: access-token-lifetime\n', records: gives('client.changed') },
    recorded: {
      ...{ on: { kind: 'client', id: '~' }, why: 'asked' },
      change: { accessTokenLifetime: { after: '10m' } },
    },
  },
  {
    ...{ id: 'editClient', line: 'client edit ~ --access-token-lifetime 5m --business ACME --json' },
    route: [200, '/clients/~', { accessTokenLifetime: '5m', businesses: ['ACME'] }],
    output: {
      record: { accessTokenLifetime: '5m', businesses: ['ACME'] },
      changed: ['businesses', 'accessTokenLifetime'],
      ended: [{ client: '~', business: 'GLOBEX', families: 0, sessions: 0, codes: 0, consents: 0 }],
    },
    records: takes('client.changed'),
    recorded: {
      change: {
        accessTokenLifetime: { before: '10m', after: '5m' },
        businesses: { before: ['ACME', 'GLOBEX'], after: ['ACME'] },
      },
    },
  },
  { id: 'editClient', line: 'client edit ~ --business ACME --json', output: { changed: [], ended: [] } },
  { id: 'showClient', line: 'client show ~ --json', output: { id: '~', validSecrets: 2 } },
  {
    ...{ id: 'rotateSecret', line: 'client rotate-secret ~ --overlap 0s --json' },
    output: { record: { validSecrets: 1, oldSecretEndsAt: undefined } },
    records: gives('client.secret_rotated'),
  },
  {
    ...{
      id: 'addClient',
      line: 'client add ~app --kind public --name App --scope openid --redirect-uri https://a.example/',
    },
    ...{ output: 'client_id      ~app\n', records: gives('client.added') },
  },
  { id: 'rotateSecret', line: 'client rotate-secret ~app', code: 1, output: 'has no secret' },
  { id: 'listClients', line: 'client list --prefix ~ --limit 1', output: /\n~ +customer [^\n]*\n$/ },
  { id: 'listClients', line: 'client list --prefix ~ --json', output: /"id": "~"[^]*"id": "~app"/ },
  { id: 'addUser', line: 'user add ~-invited --for 7d', code: 2, output: 'it needs --link' },
  // Adds nobody: the row behind it does.
  { id: 'addUser', line: 'user add ~-invited --link --for 8d', code: 2, output: 'from 1h to 7d' },
  {
    ...{ id: 'addUser', line: 'user add ~-invited --link --for 7d --access ACME=Read-only', output: LINK },
    records: [...gives('user.added'), ...gives('user.link_made')],
    recorded: { change: { forMs: 604_800_000 }, values: { 'on.id': '~-invited' } },
  },
  {
    ...{ id: 'editUser', line: `user edit ~ --claim email=${EMAIL} --claim address.locality=Sydney` },
    route: [200, '/users/~', { claims: { email: EMAIL, address: { locality: 'Sydney' } } }],
    ...{ output: '~: changed: claim\n', records: gives('user.changed') },
    recorded: {
      ...{ on: { kind: 'user', subject: 'S-~' }, values: { 'on.id': '~' } },
      change: { claims: ['email', 'address.locality'] },
    },
  },
  {
    ...{ id: 'editUser', line: 'user edit ~ --access ACME=Read-only', records: takes('user.changed') },
    output:
      '~: changed: access\n~: ended what was issued at GLOBEX: 0 families of refresh tokens, 0 codes, and the access tokens\n',
    recorded: { change: { access: { before: TWO_ROLES, after: ONE_ROLE } } },
  },
  {
    ...{
      id: 'editUser',
      line: "user edit ~ --claim email= --claim address.locality= --access '' --customer acme-books --json",
    },
    route: [
      200,
      '/users/~',
      {
        claims: { email: null, address: null },
        access: { ACME: null, GLOBEX: null, '~': null },
        customers: ['acme-books'],
      },
    ],
    output: { record: { claims: { name: 'Dora' }, access: {}, customers: ['acme-books'] } },
    records: gives('user.changed'),
  },
  { id: 'listUsers', line: 'user list --prefix ~ --json', output: /"subject": "S-~"/ },

  {
    ...{ id: 'editUser', line: "user edit ~ --access ''", ends: 'nothing', records: takes('user.changed') },
    output:
      '~: changed: access\n~: ended what was issued at ~: 1 family of refresh tokens, 0 codes, and the access tokens\n',
  },
  {
    ...{ id: 'editUser', line: "user edit ~ --customer ''", ends: 'nothing', records: takes('user.changed') },
    output:
      '~: changed: customer\n~: ended what was issued through ~: 1 family of refresh tokens, 0 codes, and the access tokens\n',
  },
  {
    ...{ id: 'editUser', line: 'user edit ~ --locked', ends: 'nothing', records: takes('user.changed') },
    output:
      '~: changed: locked\n~: ended what was issued: 1 family of refresh tokens, 0 codes, and the access tokens\n',
  },
  {
    ...{ id: 'editUser', line: 'user edit ~ --access ~=Equal', ends: 'same', records: gives('user.changed') },
    output: '~: changed: access\n',
  },
  {
    ...{
      id: 'editUser',
      line: 'user edit ~ --claim name=Anna',
      ends: 'same',
      records: gives('user.changed'),
    },
    output: '~: changed: claim\n',
  },
  {
    ...{
      id: 'editClient',
      line: "client edit ~ --business ''",
      ends: 'nothing',
      records: takes('client.changed'),
    },
    output:
      '~: changed: business\n~: ended what was issued at ~: 1 family of refresh tokens, 0 codes, and the access tokens\n',
  },
  {
    ...{ id: 'editClient', line: `client edit ~ --scope '${GRANTED.join(' ')} profile'`, ends: 'same' },
    ...{ output: '~: changed: scope\n', records: gives('client.changed') },
  },
  {
    ...{ id: 'editRole', line: `role edit ~ --scope '${DATA.join(' ')} business.fund.create'`, ends: 'same' },
    ...{ output: '~: changed: scope\n', records: gives('role.changed') },
  },
  {
    // By a value that implies the one before.
    ...{ id: 'editRole', line: `role edit ~ --scope 'fund.maintain ${LISTING}'`, ends: 'same' },
    ...{ output: '~: changed: scope\n', records: gives('role.changed') },
  },
  {
    // The tokens are for the business, not for the fund.
    ...{ id: 'removeFund', line: 'fund remove ~ F1', ends: 'same', output: '~/F1: removed\n' },
    records: takes('fund.removed'),
  },

  { id: 'streamRecords', line: 'audit find --user S-~ --changed', output: / user\.changed /, records: ASKED },
  {
    id: 'streamRecords',
    line: 'audit find --event role.added --jsonl',
    output: /^\{.*"role\.added"/,
    records: EXPORTED,
  },
  {
    id: 'streamRecords',
    line: 'audit find --event store.copied --json',
    output: /^\[\s*\]\n$/,
    records: EXPORTED,
  },
  { id: 'streamRecords', line: 'audit find --by nobody --csv', output: /^time/, records: EXPORTED },
  { id: 'streamRecords', line: `audit show ${'f'.repeat(32)}`, output: '', records: ASKED },
  { id: 'streamRecords', line: 'audit open', output: '', records: ASKED },
  {
    ...{ id: 'redactSubject', line: 'audit redact --subject S-nobody --reason again --json' },
    ...{ output: { values: 0 }, records: gives('audit.redacted') },
  },
  { id: 'listKeys', line: 'keys list --json', output: /"state": "announced"/ },
  {
    ...{ id: 'rotateKeys', line: 'keys rotate --compromised --yes --reason stolen' },
    ...{ output: /made[^]*removed/, records: takes('keys.compromised'), recorded: { why: 'stolen' } },
  },
  {
    ...{
      id: 'rotateKeys',
      line: 'keys rotate --compromised --yes --json',
      records: takes('keys.compromised'),
    },
    output: { made: expect.any(Array) as unknown, removed: expect.any(Array) as unknown },
  },
  {
    id: 'rotateKeys',
    line: 'keys rotate --json',
    output: { made: expect.any(Array) as unknown },
    records: ANNOUNCED,
  },
]
