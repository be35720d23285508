import { describe, expect, it } from 'vitest'
import { Fault } from '../../src/base/kernel/faults.ts'
import {
  answerIn,
  authorizePath,
  openFlow,
  redeem,
  type BrowserAnswer,
  UserAgent,
  obtainCode,
} from '../support/user-agent.ts'
import type { TestIdentity } from '../support/identity-under-test.ts'

const PATH = '/connect/account'
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

describe('C6.2.2 the account page', () => {
  it('C6.2.2 asks for a login first, and then shows the list', async () => {
    const agent = new UserAgent(openFlow())
    const login = await agent.get(PATH)
    expect(login.text).toContain('Sign in')
    const seen = await agent.logIn(login)
    expect(seen.text).toContain('Your account')
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
    expect((await elsewhere.get(PATH)).text).toContain('<h1>Sign in</h1>')
    const own = await here.submit(after, { end: valuesOf(after, 'end')[0] })
    expect(own.text).toContain('You are signed out')
    expect((await here.get(PATH)).text).toContain('<h1>Sign in</h1>')
  })

  it('C6.2.2 tells when and from where each login was used last, once a minute at most, in the configured zone', async () => {
    const { pages } = openFlow().deps.config
    const service = openFlow({ config: { pages: { ...pages, timeZone: 'Australia/Sydney' } } })
    const here = new UserAgent(service)
    await here.logIn(await here.get(PATH))
    const version = async () => (await service.store.list('session'))[0]?.version
    const before = await version()
    service.clock.at += 59_000
    await here.get(PATH)
    expect(await version()).toBe(before)
    service.clock.at += 86_400_000 / 4
    const { text } = await here.get(PATH)
    expect(text).toContain('192.0.2.7')
    expect(text).toMatch(/Signed in on <time[^>]*>1 June 2026 at 10:00 am AEST/)
    const next = await here.get(PATH)
    expect(next.text).toMatch(/Last used on <time[^>]*>1 June 2026 at 4:00 pm AEST/)
    expect(await version()).toBe((before ?? 0) + 1)
  })

  it('C6.2.2 is shown also where the use cannot be written down', async () => {
    const service = openFlow()
    const agent = new UserAgent(service)
    await agent.logIn(await agent.get(PATH))
    service.clock.at += 60_000
    service.store.replace = () => Promise.reject(new Fault('identity_unavailable'))
    expect((await agent.get(PATH)).text).toContain('Where you are signed in')
  })

  it('C6.2.2 a login that an older version wrote is listed without what it does not tell', async () => {
    const service = openFlow()
    const here = new UserAgent(service)
    await here.logIn(await here.get(PATH))
    const [entry] = await service.store.list('session')
    const { asOf, authTime, browser, subject } = entry!.value
    const older = { asOf, authTime, browser, subject }
    await service.store.create('session', 'older', { value: older, indexes: { subject: 'sub-alice' } })
    expect(valuesOf(await here.get(PATH), 'end')).toHaveLength(2)
  })

  it('C6.2.2 signs out everywhere, and nobody else', async () => {
    const service = openFlow()
    const [here, elsewhere, greta] = [1, 2, 3].map(() => new UserAgent(service))
    const alone = await here!.logIn(await here!.get(PATH))
    expect(alone.text).not.toContain('Sign out everywhere')
    await elsewhere!.logIn(await elsewhere!.get(PATH))
    await greta!.logIn(await greta!.get(PATH), 'greta')
    const page = await here!.get(PATH)
    expect((await here!.submit(page, { everywhere: '1', csrf: 'x' })).text).toContain('nothing was changed')
    expect(await service.store.list('session')).toHaveLength(3)
    const seen = await here!.submit(page, { everywhere: '1' })
    expect(seen.text).toContain('You are signed out everywhere')
    expect(String(seen.headers['Set-Cookie'])).toContain('Max-Age=0')
    const left = await service.store.list('session')
    expect(left.map(({ value }) => value['subject'])).toEqual(['sub-greta'])
    for (const agent of [here!, elsewhere!])
      expect((await agent.get(PATH)).text).toContain('<h1>Sign in</h1>')
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
