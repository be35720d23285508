/** Which roles of the admin API are told of people, route by route (C12.2.4). */
import { revoke } from '../../src/operate/revoke/revoke.ts'
import { writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { hashSecret } from '../../src/identity/directory/hashing/hasher.ts'
import { newSecret } from '../../src/base/kernel/ids.ts'
import { RECORD_KINDS } from '../../src/identity/directory/editors/editors.ts'
import { adminRoutes } from '../../src/operate/openapi.ts'
import type { AdminOperation } from '../../src/operate/operation/operation.ts'
import { ROLES } from '../../src/operate/settings/admin.ts'
import { configFiles } from '../support/config-files.ts'
import { postForm } from '../support/oauth.ts'
import { bearer } from '../support/requests.ts'
import { DEMO } from '../support/spawn-postern.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'
import { addedOperations } from '../../src/serve/start/settings.ts'

type Role = (typeof ROLES)[number]
const TOKENS = Object.fromEntries(ROLES.map((role) => [role, newSecret()])) as Record<Role, string>

/** What nobody else is called. */
const ZOE = { name: 'zoe-in-file', subject: 'subject-of-zoe', claims: ['Zoe Zimmer', 'zoe@people.example'] }
const PERSONAL = [ZOE.name, ZOE.subject, ...ZOE.claims]
const PASSWORD = 'alice-password'
const HASH = '$argon2id$v=19$m=8,t=1,p=1$4lOo54epeKwolrpl718pwg$s5LG6MuPSOjrA2Tpk52DLQBsU9+r9pg9yYkUGs/XCA4'
const SCOPE = 'openid offline_access fund.read target:b/ACME'

/** @param access of Zoe, as YAML @param more settings */
const configuration = (access: string, more = ''): string => `
extends: ${DEMO}
store: { kind: memory }
admin:
  tokens:
${ROLES.map((role) => `    - { name: the-${role}, role: ${role}, hash: '${hashSecret(TOKENS[role])}' }`).join('\n')}
directory:
  users:
    ${ZOE.name}:
      subject: ${ZOE.subject}
      password: ${HASH}
      customers: [acme-books]
      access: ${access}
      claims: { name: ${ZOE.claims[0]}, email: ${ZOE.claims[1]} }
${more}
`
const GOOD = '{ ACME: Administrator }'

interface Ids {
  readonly token: string
  readonly revoked: string
  /** Of a refused call, and of the token's answer. */
  readonly refused: string
  readonly issued: string
}

interface Case {
  readonly body?: (ids: Ids) => object
  /** In place of the parameters, with a query. */
  readonly path?: (ids: Ids) => string
  /** Who is told of people there; everybody else who may use the route is not. */
  readonly told: readonly Role[]
}

const ADMINISTER: readonly Role[] = ['administer']
const FUNDS = '/api/1.0/b/ACME/fund-data/fund-list'
const listed = (path: string): Case => ({ path: () => path, told: [] })

/** By operation. Those that need `administer` are not here: no other role may use them. */
const CASES: Readonly<Record<string, readonly Case[]>> = {
  listMaintenance: [{ told: [] }],
  setMaintenance: [{ body: () => ({ scope: 'area/fund-data', from: '2099-01-01T00:00:00Z' }), told: [] }],
  previewMaintenance: [{ body: () => ({ scope: 'service' }), told: [] }],
  endMaintenance: [listed('/maintenance?scope=service')],
  reload: [{ told: ADMINISTER }],
  restart: [{ told: [] }],
  revoke: [{ body: () => ({ business: 'ACME', preview: true }), told: [] }],
  acceptStore: [{ body: () => ({ what: 'clock' }), told: [] }],
  listLockouts: [{ told: ['operate', 'administer'] }],
  clearLockouts: [listed('/lockouts?user=nobody')],
  showStatus: [{ told: ADMINISTER }],
  showConfiguration: [{ told: ADMINISTER }],
  checkConfiguration: [{ told: ADMINISTER }],
  compareConfiguration: [{ told: ADMINISTER }],
  listKeys: [{ told: [] }],
  explain: [
    { body: ({ token }) => ({ method: 'GET', path: FUNDS, token }), told: ADMINISTER },
    { body: ({ revoked }) => ({ method: 'GET', path: FUNDS, token: revoked }), told: ADMINISTER },
    { body: () => ({ method: 'GET', path: FUNDS, client: 'acme-books', user: ZOE.name }), told: ADMINISTER },
  ],
  explainPast: [{ body: ({ refused }) => ({ request: refused }), told: ADMINISTER }],
  listClients: [{ told: [] }],
  showClient: [listed('/clients/acme-books')],
  listBusinesses: [{ told: [] }],
  showBusiness: [listed('/businesses/ACME')],
  listFunds: [listed('/businesses/ACME/funds')],
  showFund: [listed('/businesses/ACME/funds/SUPER1')],
  listRoles: [{ told: [] }],
  showRole: [listed('/roles/Administrator')],
  findRecords: [{ told: ['audit'] }],
  listOpenIntents: [{ told: [] }],
  streamRecords: [{ told: ['audit'] }],
  verifyTrail: [{ told: [] }],
  showRequest: [{ path: ({ issued }) => `/audit/${issued}`, told: ['audit'] }],
  describe: [{ told: [] }],
}

const ROUTES = adminRoutes('1', RECORD_KINDS, await addedOperations()).filter(
  ({ needs }) => needs !== 'administer',
)

async function ask(
  { adminUrl }: StartedPostern,
  route: AdminOperation,
  { body, path }: Case,
  role: Role,
  ids: Ids,
) {
  const sent = body?.(ids)
  const response = await fetch(`${adminUrl}${path?.(ids) ?? route.path}`, {
    method: route.method,
    headers: {
      authorization: `Bearer ${TOKENS[role]}`,
      ...(sent !== undefined && { 'content-type': 'application/json' }),
    },
    ...(sent !== undefined && { body: JSON.stringify(sent) }),
  })
  return { status: response.status, text: await response.text() }
}

/** Each role at these operations: who was told of people, by operation and case. */
async function whoIsTold(service: StartedPostern, ids: Ids, operations: readonly string[]) {
  const seen: string[] = []
  const expected: string[] = []
  for (const route of ROUTES.filter(({ operationId }) => operations.includes(operationId)))
    for (const [at, row] of (CASES[route.operationId] ?? []).entries())
      for (const role of ROLES) {
        const { status, text } = await ask(service, route, row, role, ids)
        const what = `${route.operationId} ${at} ${role}`
        expect([what, status], text).toEqual([what, expect.toSatisfy((code) => code < 500 && code !== 404)])
        if (PERSONAL.some((value) => text.includes(value))) seen.push(what)
        if (row.told.includes(role)) expected.push(what)
      }
  return { seen, expected }
}

async function prepare(service: StartedPostern): Promise<Ids> {
  const params = { grant_type: 'password', username: ZOE.name, password: PASSWORD, scope: SCOPE }
  const revoked = (await issueToken(service, { username: ZOE.name, password: PASSWORD, scope: SCOPE }))
    .access_token
  await revoke(
    service.context,
    { subject: ZOE.subject },
    { preview: false, consents: false, force: false },
    { via: 'the test' },
  )
  const { headers, json } = await postForm(service, '/connect/token', { params })
  const token = String(json.access_token)
  const call = await fetch(`${service.baseUrl}/api/1.0/b/GLOBEX/fund-data/fund-list`, {
    headers: bearer(token),
  })
  const wrong = { ...params, password: 'wrong' }
  for (let count = 0; count < 5; count += 1) await postForm(service, '/connect/token', { params: wrong })
  return {
    ...{ token, revoked, refused: call.headers.get('x-request-id') ?? '' },
    issued: headers.get('x-request-id') ?? '',
  }
}

it(
  'C12.2.4 roles are told of people by no route but those that they have for that: every route, every role',
  { timeout: 60_000 },
  async () => {
    expect(ROUTES.map(({ operationId }) => operationId).sort()).toEqual(Object.keys(CASES).sort())
    const file = configFiles({ 'a.yaml': configuration(GOOD) })('a.yaml')
    const service = await postern({ keeps: 'trail', file })
    const ids = await prepare(service)

    // Zoe gains something; no reload takes that over, because of the other setting.
    writeFileSync(
      file,
      configuration(
        '{ ACME: Administrator, GLOBEX: Administrator }',
        'server: { timeouts: { lameDuck: 1s } }',
      ),
    )
    const differing = await whoIsTold(service, ids, ['compareConfiguration', 'checkConfiguration'])
    expect(differing.seen).toEqual(['compareConfiguration 0 administer'])

    // Her entry is wrong.
    writeFileSync(file, configuration('{ NOWHERE: Administrator }'))
    const { seen, expected } = await whoIsTold(
      service,
      ids,
      ROUTES.map(({ operationId }) => operationId),
    )
    expect(seen).toEqual(expected)
  },
)

it('C12.2.4 who may not read of people is told the rest: file and line of a problem, what changes, and why', async () => {
  const file = configFiles({ 'a.yaml': configuration(GOOD) })('a.yaml')
  const service = await postern({ keeps: 'trail', file })
  const ids = await prepare(service)
  writeFileSync(file, configuration('{ ACME: Read-only }', 'server: { timeouts: { lameDuck: 1s } }'))
  const route = (id: string) => ROUTES.find(({ operationId }) => operationId === id)!
  const answer = async (id: string, role: Role, row = CASES[id]?.[0] ?? { told: [] }) =>
    JSON.parse((await ask(service, route(id), row, role, ids)).text) as Record<string, unknown>
  expect(await answer('compareConfiguration', 'operate')).toMatchObject({
    changed: expect.arrayContaining(['directory.users  [person]', 'server.timeouts.lameDuck']),
    gained: [{ kind: 'user', who: '[person]', what: 'Read-only', where: 'ACME' }],
  })
  writeFileSync(file, configuration('{ NOWHERE: Administrator }'))
  const { problems } = await answer('checkConfiguration', 'audit')
  expect(problems).toEqual([expect.stringMatching(/a\.yaml:\d+ {2}directory\.users {2}\[person\]$/)])
  expect(await answer('showConfiguration', 'operate')).toMatchObject({
    directory: { users: '[person]', clients: { 'acme-books': { name: 'Acme Books' } } },
  })
  const { caller, checks } = await answer('explain', 'operate', CASES['explain']?.[1])
  expect(caller).toMatchObject({ client: 'acme-books', subject: '[person]' })
  expect(JSON.stringify(checks)).toContain('It was revoked with everything of subject [person]')
})
