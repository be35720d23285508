/** Test tokens for operators who try a service (C11.5.7). One service serves most tests: they only ask it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { auditRecords, recordsOf } from '../support/audit-files.ts'
import { withoutAudit } from '../support/held-audit.ts'
import { type AdminAnswered, operatedHere } from '../support/operated.ts'
import { postern, startPostern, type StartedPostern } from '../support/start-postern.ts'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const ALICE_AT_ACME = { client: 'acme-books', user: 'alice', target: 'b/ACME' }
const SUBJECT = '45733adb-9b07-4d40-ae57-20cf9b802f51'

let service: StartedPostern
beforeAll(async () => {
  service = await startPostern({ keeps: 'trail' })
})
afterAll(() => service.close())

async function ask(
  { adminUrl, data }: Pick<StartedPostern, 'adminUrl' | 'data'>,
  body: object,
  path = '/test-tokens',
): Promise<AdminAnswered> {
  const token = readFileSync(join(data, 'admin-token'), 'utf8').trim()
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const response = await fetch(`${adminUrl}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: response.status, body: await response.json() }
}

const call = (token: string, path = 'b/ACME/fund-data/fund-list'): Promise<number> =>
  fetch(`${service.baseUrl}/api/1.0/${path}`, { headers: { authorization: `Bearer ${token}` } }).then(
    ({ status }) => status,
  )

const claimsOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

describe('C11.5.7 a test token', () => {
  it('C11.5.7 is what the token endpoint grants, without secrets: calls with it are let in', async () => {
    const { status, body } = await ask(service, { ...ALICE_AT_ACME, scope: 'openid fund.read' })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      ...{ client: 'acme-books', subject: SUBJECT, scope: 'openid fund.read target:b/ACME' },
      ...{ target: 'target:b/ACME', dropped: [], api: service.baseUrl },
    })
    expect(await call(body.token)).toBe(200)
    expect(await call(body.token, 'b/GLOBEX/fund-data/fund-list')).toBe(404)
  })

  it('C11.5.7 has no refresh token and no id_token, and never offline_access', async () => {
    const { body } = await ask(service, { ...ALICE_AT_ACME, scope: 'openid offline_access fund.read' })
    expect(Object.keys(body).sort()).toEqual(
      [
        'api',
        'business',
        'client',
        'dropped',
        'expiresIn',
        'id',
        'scope',
        'subject',
        'target',
        'token',
      ].sort(),
    )
    expect(body).toMatchObject({ scope: 'openid fund.read target:b/ACME', dropped: ['offline_access'] })
    expect(claimsOf(body.token)).not.toHaveProperty('family')
  })

  it('C11.5.7 lives 15 minutes at most, and no longer than the client’s other tokens', async () => {
    const { body } = await ask(service, ALICE_AT_ACME)
    const { exp, iat } = claimsOf(body.token) as { exp: number; iat: number }
    expect([body.expiresIn, exp - iat]).toEqual([900, 900])
    const short = await postern({
      keeps: 'trail',
      change: (configuration) => {
        const { clients } = configuration.directory
        const books = { ...clients['acme-books']!, accessTokenLifetime: 60_000 }
        const directory = { ...configuration.directory, clients: { ...clients, 'acme-books': books } }
        return { ...configuration, directory }
      },
    })
    expect((await ask(short, ALICE_AT_ACME)).body).toMatchObject({ expiresIn: 60 })
  })

  it('C11.5.7 goes to the first client that is granted one, where none is named', async () => {
    expect((await ask(service, { user: 'alice', target: 'b/ACME' })).body).toMatchObject({
      client: 'acme-books',
      scope: expect.stringContaining('fund.maintain'),
    })
    expect((await ask(service, { user: 'carol', target: 'b/INITECH' })).body).toEqual({
      error: 'no such token can be had',
      problems: [
        'invalid_scope  no client is granted such a token; ledgerline: the client may not have this target, or there is no such business or fund',
      ],
    })
  })

  it('C11.5.7 takes the subject for the name', async () => {
    expect((await ask(service, { user: SUBJECT, target: 'b/ACME' })).body.subject).toBe(SUBJECT)
  })

  it.each([
    ['no such client', { client: 'nobody' }, 'invalid_client  there is no such client'],
    ['no such user', { user: 'nobody' }, 'invalid_grant  there is no such user'],
    ['no such user, and no client', { client: undefined, user: 'nobody' }, 'invalid_grant  there is no such'],
    ['a user of other clients', { client: 'globex-ledger' }, 'invalid_grant  the user is none of this'],
    ['a business of others', { target: 'b/INITECH' }, 'invalid_scope  the client may not have'],
    ['a user of no right there', { user: 'bob' }, 'invalid_scope  the user may do nothing at'],
    ['no such scope', { scope: 'fund.raed' }, 'invalid_scope  fund.raed is not a scope value'],
    ['only offline_access', { scope: 'offline_access' }, 'invalid_scope  None of the values'],
  ])('C11.5.7 is refused as the token endpoint refuses: %s', async (_case, change, problem) => {
    const { status, body } = await ask(service, { ...ALICE_AT_ACME, ...change })
    expect([status, body]).toEqual([
      409,
      { error: 'no such token can be had', problems: [expect.stringContaining(problem)] },
    ])
  })

  it.each([
    ['without a user and a client', { target: 'b/ACME' }],
    ['an unknown member', { ...ALICE_AT_ACME, password: 'alice-password' }],
  ])('C11.5.7 is 400 %s', async (_case, body) => {
    expect((await ask(service, body)).status).toBe(400)
  })

  it('C11.5.7, C9.2 is refused while the identity endpoints are closed', async () => {
    const closed = await operatedHere()
    const scope = { user: 'alice', target: 'b/ACME' }
    await closed.admin('PUT', '/maintenance', { scope: 'identity', until: '2099-01-01T00:00Z' })
    expect(await closed.admin('POST', '/test-tokens', scope)).toMatchObject({
      status: 409,
      body: { problems: [expect.stringContaining('identity_maintenance  ')] },
    })
  })
})

it('C11.5.7 nobody is issued one by a service that others can reach', async () => {
  const server = { baseUrl: 'https://api.example.com' }
  const open = await postern({
    keeps: 'trail',
    // What is served to others must not have the demo's secrets.
    change: (configuration) => ({
      ...{ ...configuration, demo: false },
      directory: { ...configuration.directory, clients: {}, users: {} },
      server: { ...configuration.server, ...server },
    }),
  })
  expect(await ask(open, { user: 'alice' })).toEqual({
    status: 409,
    body: {
      error: 'this service issues no test tokens',
      problems: ['server.baseUrl: only a service that is on loopback issues test tokens'],
    },
  })
})

describe('C11.5.7 the record of a test token', () => {
  it('C11.5.7, C12.3 names the operator, and neither the token nor the name of the user', async () => {
    const { body } = await ask(service, { ...ALICE_AT_ACME, by: 'Ann', reason: 'a question of alice' })
    const record = recordsOf(service, 'token.issued').find(({ on }) => (on as { id: string }).id === body.id)
    expect(record).toMatchObject({
      ...{ outcome: 'success', why: 'a question of alice' },
      actor: { kind: 'operator', operator: 'admin', claimed: 'Ann', via: 'admin' },
      on: { kind: 'token', business: 'ACME', client: 'acme-books', subject: SUBJECT },
      grant: { grant: 'test', scope: body.scope, target: 'target:b/ACME' },
    })
    const written = `${JSON.stringify(auditRecords(service))}${service.logLines().join('')}`
    expect(written).not.toContain(body.token.split('.')[2])
    const noted = service.log().filter(({ event }) => event === 'test_token_issued')
    expect(noted.at(-1)).toMatchObject({ client: 'acme-books', subject: SUBJECT })
  })

  it('C11.5.7, C12.3 tells of a refusal too', async () => {
    await ask(service, { ...ALICE_AT_ACME, scope: 'fund.raed', reason: 'a slip' })
    await expect
      .poll(() => recordsOf(service, 'token.refused'))
      .toContainEqual(
        expect.objectContaining({
          ...{ outcome: 'refused', reason: 'invalid_scope', why: 'a slip' },
          actor: expect.objectContaining({ operator: 'admin' }),
          on: expect.objectContaining({ client: 'acme-books' }),
        }),
      )
  })

  it('C11.5.7, C12.1.4 comes before the token: where it cannot be kept, nobody sees one', async () => {
    const answer = await withoutAudit(service, () => ask(service, { user: 'alice', target: 'b/ACME' }))
    expect(answer.status).toBe(503)
    expect(JSON.stringify(answer.body)).not.toContain('eyJ')
  })

  it('C11.5.7 names the token by the id by which it is revoked', async () => {
    const { body } = await ask(service, { ...ALICE_AT_ACME })
    expect(await call(body.token)).toBe(200)
    expect((await ask(service, { jti: body.id }, '/revoke')).status).toBe(200)
    await expect.poll(() => call(body.token)).toBe(401)
  })
})
