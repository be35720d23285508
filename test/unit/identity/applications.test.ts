import { describe, expect, it } from 'vitest'
import {
  answerIn,
  authorizePath,
  openFlow,
  redeem,
  type BrowserAnswer,
  UserAgent,
  obtainCode,
} from './user-agent.ts'
import type { TestIdentity } from './identity-under-test.ts'

const PATH = '/connect/applications'
const OFFLINE = { scope: 'openid fund.read offline_access target:b/ACME' }

const valuesOf = ({ text }: BrowserAnswer, name: string): string[] =>
  [...text.matchAll(new RegExp(`name="${name}"\\s+value="([^"]+)"`, 'g'))].map((match) => match[1] ?? '')

const isLive = async (service: TestIdentity, token: string): Promise<boolean> => {
  try {
    await service.check.check(token)
    return true
  } catch {
    return false
  }
}

describe('C6.2.2 connected applications', () => {
  it('C6.2.2 asks for a login first, and then shows the list', async () => {
    const agent = new UserAgent(openFlow())
    const login = await agent.get(PATH)
    expect(login.text).toContain('Sign in')
    const seen = await agent.logIn(login)
    expect(seen.text).toContain('Your connected applications')
    expect(seen.text).toContain('You have not connected any application.')
    expect(seen.text).toContain('This browser')
  })

  it('C6.2.2 lists consents in people’s words', async () => {
    const { agent } = await obtainCode(openFlow(), OFFLINE)
    const { text } = await agent.get(PATH)
    for (const word of ['Ledgerline', 'Business: Acme Advisory', 'Sign you in', 'Has lasting access'])
      expect(text).toContain(word)
  })

  it('C6.2.2 withdrawn, a consent takes codes, families and access tokens with it', async () => {
    const service = openFlow()
    const { agent, code } = await obtainCode(service, OFFLINE)
    const { json } = await redeem(service, code)
    const pending = answerIn(await agent.get(authorizePath(OFFLINE)))['code'] ?? ''
    expect(await isLive(service, json.access_token)).toBe(true)
    const page = await agent.get(PATH)
    const [key] = valuesOf(page, 'withdraw')
    const after = await agent.submit(page, { withdraw: key })
    expect(after.text).toContain('The access was withdrawn.')
    expect(after.text).toContain('You have not connected any application.')
    expect(await isLive(service, json.access_token)).toBe(false)
    expect(await service.store.list('refresh_family')).toHaveLength(0)
    expect((await redeem(service, pending)).json.error).toBe('invalid_grant')
    expect((await agent.get(authorizePath(OFFLINE))).text).toContain('Allow Ledgerline')
  })

  it('C6.2.2 withdrawn for one business, another one’s stays', async () => {
    const service = openFlow()
    const options = { username: 'greta' }
    const acme = await obtainCode(service, { scope: 'fund.read target:b' }, { ...options, business: 'ACME' })
    const globex = await obtainCode(
      service,
      { scope: 'fund.read target:b' },
      { ...options, business: 'GLOBEX' },
    )
    const tokens = await Promise.all([redeem(service, acme.code), redeem(service, globex.code)])
    const page = await acme.agent.get(PATH)
    const after = page.text.split('Business: Globex Partners')[1] ?? ''
    const key = /name="withdraw"\s+value="([^"]+)"/.exec(after)?.[1]
    await acme.agent.submit(page, { withdraw: key })
    const live = await Promise.all(tokens.map(({ json }) => isLive(service, json.access_token)))
    expect(live).toEqual([true, false])
  })

  it('C6.2.2 somebody else’s consents and sessions can’t be ended', async () => {
    const service = openFlow()
    const alice = await obtainCode(service)
    const [consent] = valuesOf(await alice.agent.get(PATH), 'withdraw')
    const [session] = valuesOf(await alice.agent.get(PATH), 'end')
    const greta = new UserAgent(service)
    const page = await greta.logIn(await greta.get(PATH), 'greta')
    await greta.submit(page, { withdraw: consent })
    await greta.submit(page, { end: session })
    expect(valuesOf(await alice.agent.get(PATH), 'withdraw')).toEqual([consent])
  })

  it('C6.2.2 lists logins by browser, and ends one elsewhere', async () => {
    const service = openFlow()
    const elsewhere = new UserAgent(service, {
      'user-agent': 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0',
    })
    await elsewhere.logIn(await elsewhere.get(PATH))
    service.clock.at += 1000
    const here = new UserAgent(service)
    const page = await here.logIn(await here.get(PATH))
    expect(page.text).toContain('Firefox on Windows')
    const after = await here.submit(page, { end: valuesOf(page, 'end')[1] })
    expect(after.text).toContain('That browser has been signed out.')
    expect((await elsewhere.get(PATH)).text).toContain('User name')
    const own = await here.submit(after, { end: valuesOf(after, 'end')[0] })
    expect(own.text).toContain('You are signed out')
    expect((await here.get(PATH)).text).toContain('User name')
  })

  it('T6 changes nothing without the page’s token', async () => {
    const { agent } = await obtainCode(openFlow())
    const page = await agent.get(PATH)
    const [key] = valuesOf(page, 'withdraw')
    for (const csrf of [undefined, 'x'.repeat(43)])
      expect((await agent.submit(page, { withdraw: key, csrf })).text).toContain('nothing was changed')
    expect(valuesOf(await agent.get(PATH), 'withdraw')).toEqual([key])
  })

  it('C12 login, consent, code and withdrawal leave a note each', async () => {
    const service = openFlow()
    const { agent } = await obtainCode(service)
    const page = await agent.get(PATH)
    await agent.submit(page, { withdraw: valuesOf(page, 'withdraw')[0] })
    const events = service.notes.map(({ event }) => event)
    expect(events).toEqual(['login', 'consent', 'code_issued', 'consent_withdrawn'])
    for (const { facts } of service.notes) expect(facts).toMatchObject({ requestId: expect.any(String) })
  })
})
