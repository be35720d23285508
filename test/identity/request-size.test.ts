import { describe, expect, it } from 'vitest'
import { answerIn, authorizePath, openFlow, UserAgent, type BrowserAnswer } from '../support/user-agent.ts'
import { formOf } from '../support/identity-under-test.ts'

/** What a request may measure, so that no page of ours has an address that is refused later. */

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const LONGEST_TARGET = 8192

/** 6,144 characters of an address. */
const nonce = '!'.repeat(2048)

function byPost(path: string): Promise<BrowserAnswer> {
  const [endpoint = '', body = ''] = path.split('?')
  return new UserAgent(openFlow()).send({ path: endpoint, headers: FORM, body })
}

describe('C6.2.1 the size of a request', () => {
  it('C6.2.1 by POST, the same request goes on through the address that it may have', async () => {
    const path = authorizePath({ nonce, login_hint: 'x'.repeat(1000) })
    const seen = await byPost(path)
    expect(seen.status).toBe(303)
    expect(`${seen.location?.pathname}${seen.location?.search}`.length).toBeLessThanOrEqual(LONGEST_TARGET)
  })

  it('C6.2.1 no address of a page is longer than the listener reads, up to the last step', async () => {
    const agent = new UserAgent(openFlow())
    let longest = 1500
    let login = await agent.get(authorizePath({ nonce, login_hint: 'x'.repeat(longest) }))
    while (login.status === 400)
      login = await agent.get(authorizePath({ nonce, login_hint: 'x'.repeat((longest -= 1)) }))
    const consent = await agent.logIn(login)
    for (const { text } of [login, consent])
      for (const [, address = ''] of text.matchAll(/(?:action|href)="([^"]*)"/g))
        expect(address.replaceAll('&amp;', '&').length).toBeLessThanOrEqual(LONGEST_TARGET)
    expect(answerIn(await agent.submit(consent, { decision: 'allow' }))['code']).toBeDefined()
  })

  it('C6.3.3 a logout has the same limits', async () => {
    const agent = new UserAgent(openFlow())
    const bye = { client_id: 'ledgerline', post_logout_redirect_uri: 'https://app.test/bye' }
    for (const more of [{ state: 'x'.repeat(2049) }, { id_token_hint: 'x'.repeat(8000) }]) {
      const seen = await agent.get(`/connect/endsession?${formOf({ ...bye, ...more })}`)
      expect([seen.status, seen.location]).toEqual([400, undefined])
      expect((await agent.post('/connect/endsession', { ...bye, ...more })).status).toBe(400)
    }
  })
})
