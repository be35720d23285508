import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { AuditEvent } from '../../src/kernel/audit-events.ts'
import { recordsOf, type WrittenRecord } from '../support/audit-files.ts'
import { withoutAudit } from '../support/held-audit.ts'
import { movableClock } from '../support/movable-clock.ts'
import { postForm, type OAuthAnswer } from '../support/oauth.ts'
import { Person, type Shown } from '../support/person.ts'
import { bearer, send } from '../support/requests.ts'
import { postern, type StartedPostern, type StartOptions } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'

const ALICE = '45733adb-9b07-4d40-ae57-20cf9b802f51'
const CALLBACK = 'http://127.0.0.1:8090/callback'
const SCOPE = 'openid offline_access fund.read target:b/ACME'
const HERE = '127.0.0.1'
// RFC 7636, appendix B.
const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'

/** Codes and tokens that were given; none may stand in the trail. */
const secrets: (string | undefined)[] = []
const services: StartedPostern[] = []

async function serve(options: StartOptions = {}): Promise<StartedPostern> {
  const service = await postern(options)
  services.push(service)
  return service
}

/** All that is kept of the trail: records, and the values beside. */
function wholeTrail({ data }: StartedPostern): string {
  const folder = join(data, 'audit')
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
  return files.map((file) => readFileSync(join(file.parentPath, file.name), 'latin1')).join('\n')
}

/** The records of an event, once there are so many. */
async function recorded(
  service: StartedPostern,
  event: AuditEvent,
  count = 1,
): Promise<readonly WrittenRecord[]> {
  await expect.poll(() => recordsOf(service, event).length, { timeout: 5000 }).toBe(count)
  return recordsOf(service, event)
}

const tokens = async (service: StartedPostern, params: Readonly<Record<string, string>>, client?: string) => {
  const answer = await postForm(service, '/connect/token', {
    params,
    ...(client !== undefined && { client }),
  })
  secrets.push(params['refresh_token'], params['code'])
  if (answer.status === 200) keep(answer)
  return answer
}

const keep = ({ json }: OAuthAnswer): void => {
  secrets.push(json.access_token, json.refresh_token, json.id_token)
}

const byPassword = (service: StartedPostern, password = 'alice-password', username = 'alice') =>
  tokens(service, { grant_type: 'password', username, password, scope: SCOPE })

const byRefresh = (service: StartedPostern, token: string, client?: string) =>
  tokens(service, { grant_type: 'refresh_token', refresh_token: token }, client)

const byCode = (service: StartedPostern, code: string, others: Readonly<Record<string, string>> = {}) =>
  tokens(
    service,
    { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: VERIFIER, ...others },
    'ledgerline',
  )

const authorizeUrl = (params: Readonly<Record<string, string>> = {}): string =>
  `/connect/authorize?${new URLSearchParams({
    response_type: 'code',
    client_id: 'ledgerline',
    redirect_uri: CALLBACK,
    scope: SCOPE,
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
    ...params,
  }).toString()}`

const codeOf = ({ location }: Shown): string => {
  const code = location?.searchParams.get('code') ?? ''
  secrets.push(code)
  return code
}

/** A person who is logged in, and has allowed what the client asked for. */
async function walk(service: StartedPostern): Promise<{ person: Person; code: string }> {
  const person = new Person(service.authUrl)
  const consent = await person.logIn(await person.open(authorizeUrl()))
  secrets.push(person.cookie.split('=')[1])
  const code = codeOf(await person.submit(consent, { decision: 'allow' }))
  expect(code).not.toBe('')
  return { person, code }
}

const userinfo = async (service: StartedPostern, token: string): Promise<number> =>
  (await send(service, { target: '/api/1.0/u/connect/userinfo', headers: bearer(token) })).status

const isUnavailable = ({ json, status, headers }: OAuthAnswer): void => {
  expect([status, json.error]).toEqual([503, 'temporarily_unavailable'])
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
}

afterEach(() => {
  for (const service of services.splice(0)) {
    const trail = wholeTrail(service)
    const words = ['alice-password', 'acme-books-secret', 'ledgerline-secret', VERIFIER, ...secrets]
    const told = words.filter((word) => word !== undefined && word !== '' && trail.includes(word))
    expect(told).toEqual([])
  }
  secrets.length = 0
})

describe('C12.3 tokens', () => {
  it('C12.3 token.issued tells client, user, grant, scope and family; a refresh continues the family', async () => {
    const service = await serve()
    const first = await byPassword(service)
    await byRefresh(service, first.json.refresh_token)
    const [issued, refreshed] = await recorded(service, 'token.issued', 2)
    expect(issued).toMatchObject({
      outcome: 'success',
      requestId: first.headers.get('x-request-id'),
      actor: { kind: 'user', subject: ALICE, client: 'acme-books' },
      on: { kind: 'token', id: expect.any(String), family: expect.any(String), business: 'ACME' },
      grant: { grant: 'password', scope: SCOPE, target: 'target:b/ACME' },
      values: { 'actor.address': HERE },
    })
    expect(refreshed).toMatchObject({
      grant: { grant: 'refresh_token' },
      on: { family: (issued?.['on'] as { family: string }).family },
    })
  })

  it('C12.3 token.refused tells the fault, and what was typed as a personal value', async () => {
    const service = await serve()
    await byPassword(service, 'wrong', 'Alice Typed This')
    await byPassword(service, 'wrong')
    await postForm(service, '/connect/token', { params: {}, client: 'nobody', secret: 'guessed' })
    const [unknown, wrong, stranger] = await recorded(service, 'token.refused', 3)
    expect(unknown).toMatchObject({
      outcome: 'refused',
      reason: 'invalid_grant',
      actor: { kind: 'client', client: 'acme-books' },
      grant: { grant: 'password' },
      values: { 'actor.claimed': 'Alice Typed This', 'actor.address': HERE },
    })
    expect(JSON.stringify({ ...unknown, values: undefined })).not.toContain('Typed')
    expect(wrong).toMatchObject({ on: { subject: ALICE } })
    expect(stranger).toMatchObject({
      reason: 'invalid_client',
      actor: { kind: 'anonymous' },
      values: { 'actor.claimed': 'nobody' },
    })
    expect(wholeTrail(service)).not.toContain('guessed')
  })

  it('C12.3 token.revoked names what was revoked; a refused revocation is one too', async () => {
    const service = await serve()
    const { json } = await byPassword(service)
    const revoke = (token: string, client?: string) =>
      postForm(service, '/connect/revocation', { params: { token }, ...(client !== undefined && { client }) })
    await revoke(json.access_token, 'ledgerline')
    await revoke(json.access_token)
    await revoke(json.refresh_token)
    const [issued] = await recorded(service, 'token.issued')
    const { family, id } = issued?.['on'] as { family: string; id: string }
    expect(await recorded(service, 'token.revoked', 3)).toMatchObject([
      { outcome: 'refused', reason: 'invalid_grant', actor: { kind: 'client', client: 'ledgerline' } },
      { outcome: 'success', actor: { client: 'acme-books' }, on: { kind: 'token', id, subject: ALICE } },
      { outcome: 'success', on: { kind: 'token', family, subject: ALICE } },
    ])
  })

  it('C12.3 token.replayed tells the rule that ended the family', async () => {
    const clock = movableClock()
    const service = await serve({ clock })
    const { json } = await byPassword(service)
    await byRefresh(service, json.refresh_token)
    clock.advance(31_000)
    expect((await byRefresh(service, json.refresh_token)).json.error).toBe('invalid_grant')
    const [issued] = await recorded(service, 'token.issued', 2)
    const { family } = issued?.['on'] as { family: string }
    expect(await recorded(service, 'token.replayed')).toMatchObject([
      {
        outcome: 'refused',
        reason: 'invalid_grant',
        actor: { kind: 'client', client: 'acme-books' },
        on: { kind: 'token', family, subject: ALICE },
        change: { rule: { family }, ended: { families: 1 } },
      },
    ])
  })

  it('C12.3 code.issued and code.replayed name the family of their tokens', async () => {
    const service = await serve()
    const { code } = await walk(service)
    expect((await byCode(service, code)).status).toBe(200)
    expect((await byCode(service, code)).json.error).toBe('invalid_grant')
    const [issued] = await recorded(service, 'code.issued')
    expect(issued).toMatchObject({
      outcome: 'success',
      actor: { kind: 'user', subject: ALICE },
      on: { kind: 'code', client: 'ledgerline', business: 'ACME' },
      grant: { scope: SCOPE, target: 'target:b/ACME' },
    })
    const { family } = issued?.['on'] as { family: string }
    expect(await recorded(service, 'token.issued')).toMatchObject([
      { on: { family }, grant: { grant: 'authorization_code' } },
    ])
    expect(await recorded(service, 'code.replayed')).toMatchObject([
      { on: { kind: 'code', family, subject: ALICE }, change: { rule: { family } } },
    ])
  })

  it('C12.3 authorization.refused is recorded by redirect and by page', async () => {
    const service = await serve()
    const person = new Person(service.authUrl)
    await person.open(authorizeUrl({ scope: 'unheard-of' }))
    await person.open(authorizeUrl({ redirect_uri: 'https://elsewhere.test/' }))
    const consent = await person.logIn(await person.open(authorizeUrl()))
    await person.submit(consent, { decision: 'deny' })
    expect(await recorded(service, 'authorization.refused', 3)).toMatchObject([
      { reason: 'invalid_scope', actor: { kind: 'anonymous' }, on: { client: 'ledgerline' } },
      { reason: 'authorize_bad_redirect', actor: { kind: 'anonymous' }, on: { client: 'ledgerline' } },
      { reason: 'access_denied', actor: { kind: 'user', subject: ALICE }, on: { client: 'ledgerline' } },
    ])
  })
})

describe('C12.3 people', () => {
  it('C12.3 login.succeeded, login.refused and login.ended tell who, and which session', async () => {
    const service = await serve()
    const person = new Person(service.authUrl)
    const page = await person.open('/connect/applications')
    await person.submit(page, { username: 'alice', password: 'not-hers' })
    await person.logIn(page)
    const out = await person.open('/connect/endsession')
    await person.submit(out, { decision: 'logout' })
    expect(await recorded(service, 'login.refused')).toMatchObject([
      {
        outcome: 'refused',
        reason: 'invalid_grant',
        actor: { kind: 'anonymous' },
        on: { subject: ALICE },
        values: { 'actor.claimed': 'alice', 'actor.address': HERE },
      },
    ])
    const [begun] = await recorded(service, 'login.succeeded')
    expect(begun).toMatchObject({ actor: { kind: 'user', subject: ALICE }, on: { kind: 'session' } })
    expect(await recorded(service, 'login.ended')).toMatchObject([
      { actor: { kind: 'user', subject: ALICE }, on: { id: (begun?.['on'] as { id: string }).id } },
    ])
    expect(wholeTrail(service)).not.toContain('not-hers')
  })

  it('C12.3 session.revoked is a session that is ended from another browser', async () => {
    const service = await serve()
    const [here, there] = [new Person(service.authUrl), new Person(service.authUrl)]
    for (const person of [there, here]) await person.logIn(await person.open('/connect/applications'))
    const [other] = await recorded(service, 'login.succeeded', 2)
    const { id } = other?.['on'] as { id: string }
    await here.submit(await here.open('/connect/applications'), { end: id })
    expect(await recorded(service, 'session.revoked')).toMatchObject([
      { outcome: 'success', actor: { kind: 'user', subject: ALICE }, on: { kind: 'session', id } },
    ])
    expect((await there.open('/connect/applications')).text).toContain('name="password"')
  })

  it('C12.3 consent.given and consent.withdrawn tell client, business and scopes', async () => {
    const service = await serve()
    const { person, code } = await walk(service)
    await byCode(service, code)
    const page = await person.open('/connect/applications')
    const key = /name="withdraw" value="([^"]*)"/.exec(page.text)?.[1] ?? ''
    await person.submit(page, { withdraw: key })
    const on = { kind: 'consent', client: 'ledgerline', business: 'ACME' }
    const actor = { kind: 'user', subject: ALICE }
    expect(await recorded(service, 'consent.given')).toMatchObject([
      { outcome: 'success', actor, on, grant: { scope: SCOPE } },
    ])
    expect(await recorded(service, 'consent.withdrawn')).toMatchObject([
      { outcome: 'success', actor, on, change: { scopes: SCOPE.split(' '), families: 1 } },
    ])
  })

  it('C12.3 lockout.began is recorded once, when the delay begins', async () => {
    const service = await serve()
    const { free } = service.configuration.identity.guessing.attempts
    for (let count = 0; count <= free; count += 1) await byPassword(service, 'wrong')
    await recorded(service, 'token.refused', free + 1)
    expect(recordsOf(service, 'lockout.began')).toMatchObject([
      {
        actor: { kind: 'anonymous' },
        on: { kind: 'lockout', subject: ALICE, client: 'acme-books' },
        change: { of: 'attempts', failures: free },
        values: { 'on.id': 'alice', 'actor.address': HERE },
      },
    ])
  })
})

describe('C12.1.4 while nothing can be recorded', () => {
  it('C12.1.4 no token is given, nothing is stored, and reads go on', async () => {
    const service = await serve()
    const { access_token: before } = await issueToken(service, { scope: SCOPE })
    const families = await service.world.store.list('refresh_family')
    isUnavailable(await withoutAudit(service, () => byPassword(service)))
    expect(await service.world.store.list('refresh_family')).toHaveLength(families.length)
    await withoutAudit(service, async () => expect(await userinfo(service, before)).toBe(200))
    expect((await byPassword(service)).status).toBe(200)
  })

  it('C12.1.4 a refresh token is not used up, however long it takes', async () => {
    const clock = movableClock()
    const service = await serve({ clock })
    const { json } = await byPassword(service)
    const refused = await withoutAudit(service, () => byRefresh(service, json.refresh_token))
    isUnavailable(refused)
    // Far beyond the grace of a token that was used.
    clock.advance(600_000)
    const again = await byRefresh(service, json.refresh_token)
    expect(again.status).toBe(200)
    expect((await byRefresh(service, again.json.refresh_token)).status).toBe(200)
  })

  it('C12.1.4 a code is not used up, and its second use is noticed all the same', async () => {
    const service = await serve()
    const { code } = await walk(service)
    isUnavailable(await withoutAudit(service, () => byCode(service, code)))
    const good = await byCode(service, code)
    expect(good.status).toBe(200)
    expect((await byCode(service, code)).json.error).toBe('invalid_grant')
    expect((await byRefresh(service, good.json.refresh_token, 'ledgerline')).json.error).toBe('invalid_grant')
  })

  it('C12.1.4 a login begins no session, and ends none', async () => {
    const service = await serve()
    const person = new Person(service.authUrl)
    const page = await person.open('/connect/applications')
    const refused = await withoutAudit(service, () => person.logIn(page))
    expect(refused.status).toBe(503)
    expect(refused.text).toContain('temporarily_unavailable')
    expect(await service.world.store.list('session')).toHaveLength(0)
    expect((await person.open('/connect/applications')).text).toContain('name="password"')
    expect((await person.logIn(page)).text).toContain('Alice')
  })

  it('C12.1.4 no consent is kept and no code made; the same form works later', async () => {
    const service = await serve()
    const person = new Person(service.authUrl)
    const consent = await person.logIn(await person.open(authorizeUrl()))
    const refused = await withoutAudit(service, () => person.submit(consent, { decision: 'allow' }))
    expect(refused.status).toBe(503)
    expect(await service.world.store.list('consent')).toHaveLength(0)
    expect(await service.world.store.list('code')).toHaveLength(0)
    expect(codeOf(await person.submit(consent, { decision: 'allow' }))).not.toBe('')
    const { location } = await withoutAudit(service, () => person.open(authorizeUrl()))
    expect(location?.searchParams.get('error')).toBe('temporarily_unavailable')
    expect(location?.searchParams.has('code')).toBe(false)
    expect(await service.world.store.list('code')).toHaveLength(1)
  })

  it('C12.1.4 what takes away takes effect', async () => {
    const service = await serve()
    const { person, code } = await walk(service)
    const { json } = await byCode(service, code)
    await withoutAudit(service, async () => {
      const params = { token: json.refresh_token as string }
      const { status } = await postForm(service, '/connect/revocation', { params, client: 'ledgerline' })
      expect(status).toBe(200)
      await person.submit(await person.open('/connect/endsession'), { decision: 'logout' })
    })
    expect(await userinfo(service, json.access_token)).toBe(401)
    expect(await service.world.store.list('session')).toHaveLength(0)
  })

  it('C12.1.4 what was recorded and then not given is told by a second record', async () => {
    const service = await serve()
    const { store } = service.world
    const create = store.create.bind(store)
    Object.assign(store, { create: () => Promise.reject(new Error('the disk is gone')) })
    expect((await byPassword(service)).status).toBe(500)
    Object.assign(store, { create })
    const [said, undone] = await recorded(service, 'token.issued', 2)
    expect(said).toMatchObject({ outcome: 'success' })
    expect(undone).toMatchObject({ outcome: 'failed', reason: 'internal', intent: said?.['seq'] })
  })
})

describe('C12.1.5 refusals of identity', () => {
  it('C12.1.5 are recorded singly ten times a minute where nobody has proven who asks', async () => {
    const service = await serve()
    const guess = (secret: string) => postForm(service, '/connect/token', { params: {}, secret })
    for (let count = 0; count < 14; count += 1) await guess(`wrong-${count}`)
    expect(await recorded(service, 'token.refused', 10)).toHaveLength(10)
  })
})
