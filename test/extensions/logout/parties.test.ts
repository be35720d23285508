import { decodeJwt } from 'jose'
import { describe, expect, it } from 'vitest'
import { SESSION } from '../../../src/identity/stored/sessions.ts'
import { LogoutQueue } from '../../../src/extensions/logout/queue.ts'
import { DELIVERY, LOGOUT_PARTY } from '../../../src/extensions/logout/records.ts'
import { StoredRevocableRecords } from '../../../src/identity/stored/revocable-records.ts'
import {
  basic,
  client,
  formOf,
  requestToken,
  type TestIdentity,
  type TestIdentityOptions,
} from '../../support/identity-under-test.ts'
import type { UserAgent } from '../../support/user-agent.ts'
import {
  answerIn,
  app,
  authorizePath,
  obtainCode,
  openFlow as openPlainFlow,
  partner,
  redeem,
} from '../../support/user-agent.ts'

const NOTIFIED = 'https://app.test/logged-out'
const told = { ...partner, ...{ backchannelLogoutUri: NOTIFIED } }
const openFlow = (options: TestIdentityOptions = {}): TestIdentity =>
  openPlainFlow({ ...options, logouts: (store, clock) => new LogoutQueue(store, clock) })
const open = (clients = [told, app, client('acme-books')]): TestIdentity => openFlow({ clients })

const LASTING = 'openid offline_access fund.read target:b/ACME'

const queued = async ({ store }: TestIdentity): Promise<unknown[]> =>
  (await store.list(DELIVERY)).map(({ value }) => {
    const { client: to, sid, subject } = value
    return { to, sid, subject }
  })

/** Another code in the same browser, without a question. */
async function next(service: TestIdentity, agent: UserAgent): Promise<string> {
  const { code = '' } = answerIn(await agent.get(authorizePath({ prompt: 'none' })))
  return String((await redeem(service, code)).json.id_token)
}

/** Alice is logged in by a browser, and the client has an id_token. */
async function loggedIn(service = open(), params: Record<string, string> = {}) {
  const { agent, code } = await obtainCode(service, params)
  const { json } = await redeem(service, code)
  return { service, agent, json, sid: decodeJwt(json.id_token)['sid'] }
}

/** Logs in once more in the same browser: the first form is the login's. */
async function logInAgain(agent: UserAgent, username = 'alice'): Promise<void> {
  await agent.logIn(await agent.get(authorizePath({ prompt: 'login' })), username)
}

describe('C6.3.3a the `sid` of a login', () => {
  it('C6.3.3a stands in id_tokens of clients that are told of its end, and in no other’s', async () => {
    const { sid } = await loggedIn()
    expect(sid).toMatch(/^[\w-]{22}$/)
    const other = await loggedIn(openFlow())
    expect(other.sid).toBeUndefined()
    expect(await other.service.store.list(LOGOUT_PARTY)).toEqual([])
  })

  it('C6.3.3a is the same for each code of a session, and another one in another browser', async () => {
    const { service, agent, sid } = await loggedIn()
    expect(decodeJwt(await next(service, agent))['sid']).toBe(sid)
    expect((await loggedIn(service)).sid).not.toBe(sid)
  })

  it('C6.3.3a is kept with the family: a refresh gives it too', async () => {
    const { service, json, sid } = await loggedIn(open(), { scope: LASTING })
    const refreshed = await requestToken(
      service,
      {
        ...{ grant_type: 'refresh_token', refresh_token: json.refresh_token },
        ...{ username: undefined, password: undefined, scope: undefined },
      },
      { authorization: basic('ledgerline') },
    )
    expect(decodeJwt(refreshed.json.id_token)['sid']).toBe(sid)
  })

  it('C6.3.3a stays at the same person’s next login in the browser, and nobody is told', async () => {
    const { service, agent, sid } = await loggedIn()
    await logInAgain(agent)
    expect(decodeJwt(await next(service, agent))['sid']).toBe(sid)
    expect(await queued(service)).toEqual([])
  })

  it('C6.3.3a is another one for the next person, and the end of the first login is told', async () => {
    const { service, agent, sid } = await loggedIn()
    await logInAgain(agent, 'greta')
    expect(await queued(service)).toEqual([{ to: 'ledgerline', sid, subject: 'sub-alice' }])
    const [session] = await service.store.list(SESSION)
    expect(session?.value).toMatchObject({ subject: 'sub-greta' })
    expect(session?.value['sid']).not.toBe(sid)
  })

  it('C6.3.3a a family that was begun before the client was told has none', async () => {
    const before = openFlow()
    const { json } = await loggedIn(before, { scope: LASTING })
    const service = openFlow({ clients: [told], store: before.store })
    const refreshed = await requestToken(
      service,
      {
        ...{ grant_type: 'refresh_token', refresh_token: json.refresh_token },
        ...{ username: undefined, password: undefined, scope: undefined },
      },
      { authorization: basic('ledgerline') },
    )
    expect(refreshed.status).toBe(200)
    expect(decodeJwt(refreshed.json.id_token)['sid']).toBeUndefined()
  })
})

describe('C6.3.3a who is told, and when', () => {
  it('C6.3.3a a logout is told to each client that got an id_token of the session', async () => {
    const { service, agent, json, sid } = await loggedIn()
    const elsewhere = await loggedIn(service)
    await agent.get(`/connect/endsession?${formOf({ id_token_hint: json.id_token })}`)
    expect(await queued(service)).toEqual([{ to: 'ledgerline', sid, subject: 'sub-alice' }])
    expect(elsewhere.sid).not.toBe(sid)
  })

  it('C6.3.3a a client that got no id_token is told nothing', async () => {
    const service = open()
    const { agent, code } = await obtainCode(service, { scope: 'fund.read target:b/ACME' })
    expect((await redeem(service, code)).status).toBe(200)
    const page = await agent.get('/connect/endsession')
    await agent.submit(page, { decision: 'logout' })
    expect(await service.store.list(SESSION)).toEqual([])
    expect(await queued(service)).toEqual([])
  })

  it('C6.3.3a a session that its user ends on the page of applications is told, here or everywhere', async () => {
    const { service, agent } = await loggedIn()
    await loggedIn(service)
    const page = await agent.get('/connect/account')
    await agent.submit(page, { everywhere: 'yes' })
    expect((await queued(service)).length).toBe(2)
  })

  it('C11.5.2 a session that an operator ends is told, and its family stays', async () => {
    const { service, sid } = await loggedIn(open(), { scope: LASTING })
    const stored = new StoredRevocableRecords(service.deps)
    const [session] = await service.store.list(SESSION)
    const record = await stored.find('sessions', session?.key ?? '')
    if (record === undefined) throw new Error('no session')
    expect(await stored.end('sessions', record, {})).toBe(0)
    expect(await stored.end('sessions', record, {})).toBeUndefined()
    expect(await queued(service)).toEqual([{ to: 'ledgerline', sid, subject: 'sub-alice' }])
    expect((await service.store.list('refresh_family')).length).toBe(1)
  })

  it('C6.3.3a the end of a user is told by `sub` alone, once a client, also where a password was the grant', async () => {
    const service = open([told, { ...client('acme-books'), ...{ backchannelLogoutUri: NOTIFIED } }])
    await loggedIn(service)
    await loggedIn(service)
    await requestToken(service)
    await service.deps.tokenRevoker.end({ subject: 'sub-alice' })
    const subject = 'sub-alice'
    expect(new Set(await queued(service))).toEqual(
      new Set([
        { to: 'ledgerline', sid: undefined, subject },
        { to: 'acme-books', sid: undefined, subject },
      ]),
    )
    await service.deps.tokenRevoker.end({ subject: 'sub-alice' })
    expect((await queued(service)).length).toBe(2)
  })

  it('C6.3.3a if everything ends, everybody is told; if a client’s tokens end, nobody is', async () => {
    const { service } = await loggedIn()
    await service.deps.tokenRevoker.end({ client: 'ledgerline', subject: 'sub-alice' })
    expect(await queued(service)).toEqual([])
    await service.deps.tokenRevoker.end({ before: 'now' })
    expect(await queued(service)).toEqual([{ to: 'ledgerline', sid: undefined, subject: 'sub-alice' }])
  })

  it('C6.3.3a a login that is renewed each day is told after weeks', async () => {
    const { service, agent, sid } = await loggedIn()
    for (let day = 0; day < 40; day += 1) {
      service.clock.at += 11 * 3_600_000
      await logInAgain(agent)
      expect(decodeJwt(await next(service, agent))['sid']).toBe(sid)
    }
    const page = await agent.get('/connect/endsession')
    await agent.submit(page, { decision: 'logout' })
    expect(await queued(service)).toEqual([{ to: 'ledgerline', sid, subject: 'sub-alice' }])
  })

  it('T5.5 where the queue cannot be written, nothing ends, and the user may try again', async () => {
    const { service, agent, json } = await loggedIn()
    const create = service.store.create.bind(service.store)
    const path = `/connect/endsession?${formOf({ id_token_hint: json.id_token })}`
    service.store.create = () => Promise.reject(new Error('full'))
    expect((await agent.get(path)).status).toBe(500)
    expect((await service.store.list(SESSION)).length).toBe(1)
    service.store.create = create
    await agent.get(path)
    expect((await queued(service)).length).toBe(1)
  })
})
