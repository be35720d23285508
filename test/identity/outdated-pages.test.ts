import { describe, expect, it } from 'vitest'
import { answerIn, authorizePath, openFlow, UserAgent } from '../support/user-agent.ts'

/** Forms of pages that were opened before the browser's cookie changed: the next page says so, and goes on. */

describe('C6.2.3 a login page that is out of date', () => {
  it('C6.2.3 opened before the browser had a cookie, in two tabs: the next page says so and keeps the name', async () => {
    const service = openFlow()
    const agent = new UserAgent(service)
    const first = await agent.get(authorizePath())
    agent.cookie = undefined
    await agent.get(authorizePath())
    const again = await agent.logIn(first)
    expect(again.status).toBe(422)
    expect(again.text).toContain('This page was out of date')
    expect(again.text).not.toContain('cookie that')
    expect(again.text).toContain('value="alice"')
    expect(service.verified).toHaveLength(0)
    expect((await agent.logIn(again)).text).toContain('Allow Ledgerline')
  })

  it('C6.2.3 after a login in another tab: goes on as that user, and says so', async () => {
    const service = openFlow()
    const agent = new UserAgent(service)
    const first = await agent.get(authorizePath())
    await agent.logIn(await agent.get(authorizePath()))
    const next = await agent.logIn(first)
    expect(next.text).toContain('Allow Ledgerline')
    expect(next.text).toContain('You signed in in another tab meanwhile')
    expect(service.verified).toHaveLength(1)
    expect(answerIn(await agent.submit(next, { decision: 'allow' }))['code']).toBeDefined()
  })

  it('C6.2.3 after a login in another tab, prompt=login asks once more all the same', async () => {
    const service = openFlow()
    const agent = new UserAgent(service)
    const first = await agent.get(authorizePath({ prompt: 'login' }))
    await agent.logIn(await agent.get(authorizePath()))
    const next = await agent.logIn(first)
    expect(next.text).toContain('asks you to sign in once more')
    expect((await agent.logIn(next)).text).toContain('Allow Ledgerline')
  })

  it('C6.2.3 cookies are blamed only if none comes twice', async () => {
    const agent = new UserAgent(openFlow())
    const submitWithoutCookie = async (page: Awaited<ReturnType<typeof agent.get>>) => {
      agent.cookie = undefined
      const cookieless = /name="cookieless" value="(1)"/.exec(page.text)?.[1]
      return agent.submit(page, { username: 'alice', password: 'alice-password', cookieless })
    }
    const once = await submitWithoutCookie(await agent.get(authorizePath()))
    expect(once.text).toContain('This page was out of date')
    const twice = await submitWithoutCookie(once)
    expect(twice.text).toContain('Your browser does not keep the cookie')
    const kept = await agent.logIn(twice)
    expect(kept.text).toContain('Allow Ledgerline')
  })

  it('C6.2.3 Cancel counts from such a page too', async () => {
    const agent = new UserAgent(openFlow())
    const page = await agent.get(authorizePath())
    agent.cookie = undefined
    expect(answerIn(await agent.submit(page, { decision: 'cancel' }))['error']).toBe('access_denied')
  })
})

describe('C6.2.3 an answer that comes after the session', () => {
  const asked = async () => {
    const service = openFlow()
    const agent = new UserAgent(service)
    return { service, agent, page: await agent.logIn(await agent.get(authorizePath())) }
  }

  it.each([
    ['ended in the store', (agent: UserAgent) => agent.service.store.removeBy('session', {})],
    ['was logged out in another tab', (agent: UserAgent) => void (agent.cookie = undefined)],
  ])('C6.2.3 Allow after the session %s: says so, asks for a login and goes on', async (_, end) => {
    const { agent, page, service } = await asked()
    await end(agent)
    const login = await agent.submit(page, { decision: 'allow' })
    expect(login.text).toContain('You were signed out before your answer arrived')
    expect(await service.store.list('code')).toHaveLength(0)
    const again = await agent.logIn(login)
    expect(again.text).toContain('Allow Ledgerline')
    expect(answerIn(await agent.submit(again, { decision: 'allow' }))['code']).toBeDefined()
  })

  it('C6.2.3 Allow after another user logged in: nothing is allowed, and that user is asked', async () => {
    const { agent, page, service } = await asked()
    await agent.logIn(await agent.get(authorizePath({ prompt: 'login' })), 'greta')
    const again = await agent.submit(page, { decision: 'allow' })
    expect(again.text).toContain('Nothing was allowed yet')
    expect(await service.store.list('consent')).toHaveLength(0)
    await agent.submit(again, { decision: 'allow' })
    expect((await service.store.list('consent')).map(({ value }) => value['subject'])).toEqual(['sub-greta'])
  })

  it('C6.2.3 Do not allow counts all the same', async () => {
    const { agent, page } = await asked()
    agent.cookie = undefined
    expect(answerIn(await agent.submit(page, { decision: 'deny' }))['error']).toBe('access_denied')
  })

  it('C6.2.3 a withdrawal after the session ended: says that nothing was changed', async () => {
    const { agent, page, service } = await asked()
    await agent.submit(page, { decision: 'allow' })
    const list = await agent.get('/connect/account')
    await service.store.removeBy('session', {})
    const login = await agent.submit(list, { withdraw: 'x' })
    expect(login.text).toContain('nothing was changed')
    expect(await service.store.list('consent')).toHaveLength(1)
  })

  it('C6.3.3 a logout from a page that is out of date asks once more, and says why', async () => {
    const { agent } = await asked()
    const page = await agent.get('/connect/endsession')
    await agent.logIn(await agent.get(authorizePath({ prompt: 'login' })))
    const again = await agent.submit(page, { decision: 'logout' })
    expect(again.text).toContain('you are still signed in')
    expect((await agent.submit(again, { decision: 'logout' })).text).toContain('You are signed out')
  })

  it.each(['nothing', 'constructor', '<b>'])('C6.2.3 an address may not say %s', async (notice) => {
    const seen = await new UserAgent(openFlow()).get(`${authorizePath()}&notice=${notice}`)
    expect(seen.text).not.toContain('role="status"')
  })
})
