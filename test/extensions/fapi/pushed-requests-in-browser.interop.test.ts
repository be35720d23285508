import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CHALLENGE, openScene, Person, type Scene } from '../../support/browser-person.ts'
import { needing } from '../../support/machine.ts'
import { postForm } from '../../support/oauth.ts'

/** C6.2.1a as a person meets it: Debian's Chromium, whose address bar has nothing but a reference. */

const TITLE = 'Allow Ledgerline to connect?'

let scene: Scene

beforeAll(async () => {
  scene = await openScene()
})
afterAll(() => scene.close())

/** The address that the client sends the browser to. */
async function push(params: Readonly<Record<string, string>> = {}): Promise<string> {
  const { json } = await postForm(scene.postern, '/connect/par', {
    client: 'ledgerline',
    secret: 'ledgerline-secret',
    params: {
      redirect_uri: `${scene.client.origin}/callback`,
      response_type: 'code',
      scope: 'openid fund.read target:b',
      state: 'state-1',
      code_challenge: CHALLENGE,
      code_challenge_method: 'S256',
      prompt: 'consent',
      ...params,
    },
  })
  const query = new URLSearchParams({ client_id: 'ledgerline', request_uri: json.request_uri as string })
  return `/connect/authorize?${query.toString()}`
}

describe('C6.2.1a a pushed request in a browser', needing('chromium'), () => {
  it.each(['query', 'form_post'])(
    'C6.2.1a reload, sign-in, a mistake, back and consent go on with the same request, answered by %s',
    async (response_mode) => {
      const person = await Person.enter(scene)
      const { page } = person
      await person.open(await push({ response_mode }))
      await page.reload()
      await person.logIn('alice', 'wrong')
      expect(await page.getByRole('alert').innerText()).toContain('do not match an active account')
      await page.goBack()
      await person.logIn()
      expect(await person.heading()).toBe(TITLE)
      await page.reload()
      await page.goBack()
      await page.goForward()
      expect(await person.heading()).toBe(TITLE)
      expect(page.url()).not.toContain('code_challenge')
      await page.getByLabel('Globex Partners').check()
      await person.press('Allow')
      const answer = await person.backAtClient()
      expect([answer.get('state'), answer.get('iss')]).toEqual(['state-1', scene.postern.authUrl])
      expect(answer.get('code')).toEqual(expect.any(String))
    },
  )

  it('C6.2.1a after the decision, back leads to a page that says that it is over', async () => {
    const person = await Person.enter(scene)
    const path = await push()
    await person.open(path)
    await person.logIn()
    await person.press('Do not allow')
    expect((await person.backAtClient()).get('error')).toBe('access_denied')
    await person.open(path)
    expect(await person.heading()).toBe('This request is over')
    expect(await person.page.locator('body').innerText()).toContain('invalid_request_uri')
  })

  it('C6.2.1a prompt=login asks once, also for another account; the search keeps the request', async () => {
    const person = await Person.enter(scene)
    const { page } = person
    await person.open(await push({ prompt: 'login consent' }))
    await person.logIn()
    expect(await person.heading()).toBe(TITLE)
    await page.getByRole('link', { name: 'Not you?' }).click()
    await person.logIn('grace', 'alice-password')
    await page.getByRole('searchbox').fill('BRANCH30')
    await page.getByRole('searchbox').press('Enter')
    await page.getByLabel('Acme BRANCH30').check()
    await person.press('Allow')
    expect((await person.backAtClient()).get('code')).toEqual(expect.any(String))
  })
})
