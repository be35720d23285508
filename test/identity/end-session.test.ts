import { describe, expect, it } from 'vitest'
import { formOf } from '../support/identity-under-test.ts'
import { openFlow, redeem, UserAgent, obtainCode } from '../support/user-agent.ts'

const BYE = 'https://app.test/bye'
const at = (params: Record<string, string> = {}): string => `/connect/endsession?${formOf(params)}`

async function loggedIn(username = 'alice') {
  const service = openFlow()
  const { agent, code } = await obtainCode(service, {}, { username })
  const { json } = await redeem(service, code)
  const isIn = async (): Promise<boolean> =>
    (await agent.get('/connect/account')).text.includes('Your account')
  return { service, agent, hint: String(json.id_token), isIn }
}

describe('C6.3.3 RP-initiated logout', () => {
  it('C6.3.3 with a valid hint the session ends at once, and the browser goes to the client with its state', async () => {
    const { agent, hint, isIn } = await loggedIn()
    const seen = await agent.get(at({ id_token_hint: hint, post_logout_redirect_uri: BYE, state: 'a b' }))
    expect([seen.status, seen.location?.href]).toEqual([303, `${BYE}?state=a+b`])
    expect(String(seen.headers['Set-Cookie'])).toContain('Max-Age=0')
    expect(await isIn()).toBe(false)
  })

  it('C6.3.3 an expired hint will do', async () => {
    const { agent, hint, isIn, service } = await loggedIn()
    service.clock.at += 3_600_000
    expect((await agent.get(at({ id_token_hint: hint }))).text).toContain('You are signed out')
    expect(await isIn()).toBe(false)
  })

  it('C6.3.3 by POST, too', async () => {
    const { agent, hint, isIn } = await loggedIn()
    await agent.post('/connect/endsession', { id_token_hint: hint })
    expect(await isIn()).toBe(false)
  })

  it.each([
    ['no hint', () => ({})],
    ['a forged hint', (hint: string) => ({ id_token_hint: `${hint.slice(0, -8)}AAAAAAAA` })],
    ['junk', () => ({ id_token_hint: 'x' })],
  ])('C6.3.3 with %s the user is asked', async (_, params) => {
    const { agent, hint, isIn } = await loggedIn()
    const page = await agent.get(at(params(hint)))
    expect(page.text).toContain('Sign out?')
    expect(await isIn()).toBe(true)
    expect((await agent.submit(page, { decision: 'logout' })).text).toContain('You are signed out')
    expect(await isIn()).toBe(false)
  })

  it('C6.3.3 a hint about somebody else is no reason to end this session unasked', async () => {
    const greta = await loggedIn('greta')
    const agent = new UserAgent(greta.service)
    await agent.logIn(await agent.get('/connect/account'))
    const page = await agent.get(at({ id_token_hint: greta.hint }))
    expect(page.text).toContain('Sign out?')
  })

  it('C6.3.3 the answer to the question goes on to the client', async () => {
    const { agent } = await loggedIn()
    const page = await agent.get(at({ client_id: 'ledgerline', post_logout_redirect_uri: BYE, state: 's' }))
    expect(page.text).toContain('Ledgerline asks to sign you out')
    const seen = await agent.submit(page, { decision: 'logout' })
    expect(seen.location?.href).toBe(`${BYE}?state=s`)
  })

  it.each([
    ['another address', { client_id: 'ledgerline', post_logout_redirect_uri: 'https://evil.test/' }],
    ['a longer address', { client_id: 'ledgerline', post_logout_redirect_uri: `${BYE}/x` }],
    ['an unknown client', { client_id: 'nobody', post_logout_redirect_uri: BYE }],
  ])('T6 %s is never gone to', async (_, params) => {
    const { agent, isIn } = await loggedIn()
    const seen = await agent.get(at(params))
    expect([seen.status, seen.location]).toEqual([400, undefined])
    expect(await isIn()).toBe(true)
  })

  it.each([
    ['alone', {}],
    ['with a state', { state: 's' }],
    ['with a hint that cannot be read', { id_token_hint: 'x' }],
  ])('C6.3.3 an address %s, without a client, offers to sign out, and is never gone to', async (_, more) => {
    const { agent, isIn } = await loggedIn()
    const page = await agent.get(at({ post_logout_redirect_uri: BYE, ...more }))
    expect([page.status, page.location]).toEqual([200, undefined])
    expect(page.text).toContain('Sign out?')
    expect(await isIn()).toBe(true)
    const seen = await agent.submit(page, { decision: 'logout' })
    expect([seen.status, seen.location]).toEqual([200, undefined])
    expect(seen.text).toContain('You are signed out')
    expect(seen.text).not.toContain(`href="${BYE}`)
    expect(await isIn()).toBe(false)
  })

  it('C6.3.3 a client_id that is not the hint’s is an error', async () => {
    const { agent, hint } = await loggedIn()
    expect((await agent.get(at({ id_token_hint: hint, client_id: 'pocketbooks' }))).status).toBe(400)
  })

  it('C6.3.3 logged out already, the page says so, and offers the client’s address', async () => {
    const agent = new UserAgent(openFlow())
    const seen = await agent.get(at({ client_id: 'ledgerline', post_logout_redirect_uri: BYE }))
    expect(seen.status).toBe(200)
    expect(seen.text).toContain(`href="${BYE}"`)
  })

  it('T6 without the page’s token nobody is logged out', async () => {
    const { agent, isIn } = await loggedIn()
    const page = await agent.get(at())
    expect((await agent.submit(page, { decision: 'logout', csrf: 'x' })).text).toContain('Sign out?')
    expect(await isIn()).toBe(true)
  })
})
