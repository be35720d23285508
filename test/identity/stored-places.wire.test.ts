/** Businesses, funds and roles of the store, over real sockets. */
import { randomBytes } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import { Fault } from '../../src/base/kernel/faults.ts'
import { directoryEditors } from '../support/directory-editors.ts'
import { expectExplained, explain } from '../support/explained.ts'
import { postForm } from '../support/oauth.ts'
import { bearer, send } from '../support/requests.ts'
import { shared } from '../support/shared.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { Person } from '../support/person.ts'
import { fillStore, STORED_PASSWORD } from '../support/stored-records.ts'

const FUND_READER = 'fund.read business.fund.list business.fund.create'
const at = (business: string, fund?: string): string =>
  fund === undefined
    ? `/api/1.0/b/${business}/fund-data/fund-list`
    : `/api/1.0/f/${business}/${fund}/member-data/member-list`

const opened = shared(async () => {
  const gateway = await postern({ keeps: 'nothing' })
  const editors = await directoryEditors(gateway.configuration, gateway.world, () => Promise.resolve())
  const secret = await fillStore(editors)
  const ask = (params: Readonly<Record<string, string>>) =>
    postForm(gateway, '/connect/token', { client: 'tally', secret, params })
  const tokenFor = async (scope: string): Promise<string> => {
    const answer = await ask({ grant_type: 'password', username: 'ann', password: STORED_PASSWORD, scope })
    expect(answer.status, JSON.stringify(answer.json)).toBe(200)
    return String(answer.json['access_token'])
  }
  const call = (target: string, token: string) => send(gateway, { target, headers: bearer(token) })
  return { gateway, editors, ask, tokenFor, call }
})

/** The store of the one worker cannot be reached from now on. */
function cutOff({ world }: StartedPostern): void {
  vi.spyOn(world.store, 'find').mockImplementation(() =>
    Promise.reject(new Fault('identity_unavailable', { detail: 'the test cut it off' })),
  )
}

/** Of the last call. Lines of other events come when they come. */
const decided = (gateway: StartedPostern): unknown =>
  gateway.log().findLast(({ event }) => event === 'call')?.['reason']

describe('C4.8 a business of the store', () => {
  it('is open to its own tokens, and to nobody else', async () => {
    const { gateway, tokenFor, call } = await opened()
    const token = await tokenFor(`${FUND_READER} target:b/STORED`)
    expect((await call(at('STORED'), token)).status).toBe(200)
    expect((await call(at('STORED', 'F1'), token)).status).toBe(200)
    const wrong = [
      at('OTHER'),
      at('OTHER', 'F1'),
      at('NOWHERE'),
      at('ACME'),
      at('STORED', 'F2'),
      at('stored'),
    ]
    const texts = new Set<string>()
    for (const target of wrong) {
      const answer = await call(target, token)
      expect([target, answer.status]).toEqual([target, 404])
      texts.add(answer.body)
    }
    expect(texts.size).toBe(1)
    expect(decided(gateway)).toBe('unknown_place')
  })

  it('is asked of the store only where the token is for it (C4.12)', async () => {
    const { gateway, tokenFor, call } = await opened()
    const token = await tokenFor(`${FUND_READER} target:f/STORED/F1`)
    const looked = vi.spyOn(gateway.world.store, 'find')
    for (const target of [at('OTHER'), at('NOWHERE'), at('STORED'), at('STORED', 'F9'), at('OTHER', 'F1')])
      expect((await call(target, token)).status).toBe(404)
    expect(looked).not.toHaveBeenCalled()
  })

  it('answers 404 once it is disabled, and what was issued for it ends', async () => {
    const { editors, ask, tokenFor, call } = await opened.own()
    const scope = `${FUND_READER} offline_access target:b/STORED`
    const first = await ask({ grant_type: 'password', username: 'ann', password: STORED_PASSWORD, scope })
    const token = String(first.json['access_token'])
    const elsewhere = await tokenFor(`${FUND_READER} target:b/OTHER`)
    expect((await call(at('STORED'), token)).status).toBe(200)
    await editors.businesses.disable('STORED')
    expect((await call(at('STORED'), token)).status).toBe(401)
    expect((await call(at('OTHER'), elsewhere)).status).toBe(200)
    const again = await ask({
      grant_type: 'refresh_token',
      refresh_token: String(first.json['refresh_token']),
    })
    expect([again.status, again.json['error']]).toEqual([400, 'invalid_grant'])
    const refused = await ask({ grant_type: 'password', username: 'ann', password: STORED_PASSWORD, scope })
    expect(refused.json['error']).toBe('invalid_scope')
    await editors.businesses.enable('STORED')
    expect((await call(at('STORED'), token)).status).toBe(401)
    expect((await call(at('STORED'), await tokenFor(scope))).status).toBe(200)
  })

  it('that is removed takes its funds along: one that is added later has none of them', async () => {
    const { editors, tokenFor, call } = await opened.own()
    await editors.businesses.remove('STORED')
    await editors.businesses.add({ code: 'STORED', name: 'Another' })
    const token = await tokenFor(`${FUND_READER} target:b/STORED`)
    expect((await call(at('STORED'), token)).status).toBe(200)
    expect((await call(at('STORED', 'F1'), token)).status).toBe(404)
  })

  it('gets the funds that its backend creates, and keeps them', async () => {
    const { gateway, tokenFor, call } = await opened()
    const token = await tokenFor(`${FUND_READER} target:b/STORED`)
    expect((await call(at('STORED', 'MADE'), token)).status).toBe(404)
    const created = await send(gateway, {
      ...{ method: 'POST', target: '/api/1.0/b/STORED/fund-data/fund-create' },
      headers: { ...bearer(token), 'Content-Type': 'application/json' },
      body: JSON.stringify({ Code: 'MADE', Name: 'Made' }),
    })
    expect(created.status, created.body).toBe(200)
    expect((await call(at('STORED', 'MADE'), token)).status).toBe(200)
    expect((await gateway.world.store.find('directory_fund', 'STORED/MADE'))?.value).toEqual({
      record: { business: 'STORED', code: 'MADE', disabled: false },
    })
  })

  it('goes on while the store is out of reach, if this process knows it; else the call is 503', async () => {
    const { gateway, editors, tokenFor, call } = await opened.own()
    const token = await tokenFor(`${FUND_READER} target:b/STORED`)
    await editors.funds.add({ business: 'STORED', code: 'F3' })
    expect((await call(at('STORED', 'F1'), token)).status).toBe(200)
    cutOff(gateway)
    expect((await call(at('STORED', 'F1'), token)).status).toBe(200)
    const sent = { target: at('STORED', 'F3'), headers: bearer(token) }
    const unknown = await send(gateway, sent)
    expect([unknown.status, decided(gateway)]).toEqual([503, 'place_judge_unavailable'])
    expect(unknown.headers['retry-after']).toBeDefined()
    const { checks } = await expectExplained(gateway, sent, 'place_judge_unavailable')
    expect(checks.find(({ clause }) => clause === 'C4.8')?.words).toBe(
      'Whether there is a fund F3 of business STORED is not known: the store cannot be reached.',
    )
    // Of another business nothing is asked, so it is as unknown as before.
    expect((await call(at('OTHER'), token)).status).toBe(404)
  })

  it('C14.1 is explained as it is decided, and an explanation remembers nothing', async () => {
    const { gateway, editors, tokenFor, call } = await opened()
    const token = await tokenFor(`${FUND_READER} target:b/STORED`)
    await editors.funds.add({ business: 'STORED', code: 'UNSEEN' })
    const targets = [at('STORED', 'F1'), at('STORED', 'F2'), at('STORED'), at('OTHER'), at('NOWHERE', 'F1')]
    for (const target of targets) {
      const explained = await explain(gateway, { target, headers: bearer(token) })
      const reason = explained.refusal?.reason
      const { status } = await call(target, token)
      expect([target, status, reason ?? 200]).toEqual([
        target,
        status,
        status === 200 ? 200 : decided(gateway),
      ])
    }
    await explain(gateway, { target: at('STORED', 'UNSEEN'), headers: bearer(token) })
    expect(gateway.world.storedPlaces.known('STORED', 'UNSEEN')).toBeUndefined()
    const other = await explain(gateway, { target: at('OTHER'), headers: bearer(token) })
    expect(other.checks.find(({ clause }) => clause === 'C4.8')?.facts).toMatchObject({
      ...{ exists: true, isTarget: false, problems: ['other target'] },
    })
  })

  it('is told by userinfo, and by the page on which a user chooses', async () => {
    const { gateway, editors, tokenFor } = await opened.own()
    const token = await tokenFor('openid service_profile target:b/STORED')
    const told = await send(gateway, { target: '/api/1.0/u/connect/userinfo', headers: bearer(token) })
    expect(JSON.parse(told.body)).toMatchObject({
      service_profile: {
        ...{ service_role: 'Clerk', business_name: 'Stored & Sons', business_code: 'STORED' },
        business_phone_number: '+61 8 5550 0100',
      },
    })
    await editors.clients.add({
      ...{ id: 'books', kind: 'public', name: 'Books', grants: ['authorization_code'] },
      redirectUris: ['http://127.0.0.1/callback'],
      businesses: ['ACME', 'STORED', 'OTHER'],
      scopes: ['fund.read', 'business.fund.list', 'profile'],
    })
    const person = new Person(gateway.authUrl)
    const query = new URLSearchParams({
      ...{ response_type: 'code', client_id: 'books', redirect_uri: 'http://127.0.0.1/callback' },
      ...{ scope: 'fund.read target:b', state: 'x' },
      code_challenge: randomBytes(32).toString('base64url'),
      code_challenge_method: 'S256',
    })
    await editors.users.setPassword('ann', 'ann-password')
    const login = await person.open(`${gateway.authUrl}/connect/authorize?${query.toString()}`)
    const shown = await person.logIn(login, 'ann')
    expect(shown.text).toContain('Stored &amp; Sons')
    expect(shown.text).toContain('Other')
    expect(shown.text).not.toContain('Acme Advisory')
  })

  it('whose name the configuration takes is that of the configuration', async () => {
    const { gateway } = await opened()
    const { store } = gateway.world
    await store.create('directory_business', 'ACME', { value: { record: { code: 'ACME', name: 'Hidden' } } })
    await store.create('directory_fund', 'ACME/HIDDEN', {
      value: { record: { business: 'ACME', code: 'HIDDEN' } },
    })
    const answer = await postForm(gateway, '/connect/token', {
      ...{ client: 'acme-books', secret: 'acme-books-secret' },
      params: {
        grant_type: 'password',
        username: 'alice',
        password: 'alice-password',
        scope: 'fund.read target:b/ACME',
      },
    })
    const headers = bearer(String(answer.json['access_token']))
    expect((await send(gateway, { target: at('ACME', 'HIDDEN'), headers })).status).toBe(404)
    expect((await send(gateway, { target: at('ACME', 'SUPER1'), headers })).status).toBe(200)
  })
})

describe('C5.5 a role of the store', () => {
  it('counts as it is when a token is issued or refreshed', async () => {
    const { editors, ask } = await opened.own()
    const scope = 'fund.read business.fund.list offline_access target:b/STORED'
    const first = await ask({ grant_type: 'password', username: 'ann', password: STORED_PASSWORD, scope })
    expect(first.json['scope']).toBe(scope)
    const change = await editors.roles.plan('Clerk', () => ({ scopes: ['business.fund.list'] }))
    await change.commit()
    const next = await ask({
      grant_type: 'refresh_token',
      refresh_token: String(first.json['refresh_token']),
    })
    expect(next.json['scope']).toBe('business.fund.list offline_access target:b/STORED')
    await editors.roles.disable('Clerk')
    const gone = await ask({ grant_type: 'refresh_token', refresh_token: String(next.json['refresh_token']) })
    expect([gone.status, gone.json['error']]).toEqual([400, 'invalid_grant'])
  })
})
