import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { Configuration } from '../../src/configuration.ts'
import {
  hasBrowser,
  openBrowser,
  openClientPage,
  type BrowserOptions,
  type ClientPage,
} from '../support/browser.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'

/** C6.2.2, C6.2.3 as a person meets them: Debian's Chromium in front of a whole Postern. */

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
const BASIC = `Basic ${Buffer.from('ledgerline:ledgerline-secret').toString('base64')}`
const EVERYTHING = 'openid profile email offline_access fund.read business.fund.list target:b'

interface Scene {
  readonly postern: StartedPostern
  readonly client: ClientPage
  readonly close: () => Promise<void>
}

async function openScene(): Promise<Scene> {
  const client = await openClientPage()
  const postern = await startPostern({
    change: (configuration) => withClientAt(configuration, client.origin),
  })
  return {
    postern,
    client,
    close: async () => {
      await postern.close()
      await client.close()
    },
  }
}

function withClientAt(configuration: Configuration, origin: string): Configuration {
  const { directory } = configuration
  const ledgerline = {
    ...directory.clients['ledgerline']!,
    redirectUris: [`${origin}/callback`],
    postLogoutRedirectUris: [`${origin}/bye`],
  }
  return {
    ...configuration,
    directory: { ...directory, clients: { ...directory.clients, ledgerline } },
  }
}

/** A person: a browser of their own. */
class Person {
  readonly page: Page
  readonly scene: Scene

  constructor(page: Page, scene: Scene) {
    this.page = page
    this.scene = scene
  }

  static async enter(scene: Scene, options: BrowserOptions = {}): Promise<Person> {
    const { close, context } = await openBrowser(options)
    onTestFinished(close)
    return new Person(context.pages()[0] ?? (await context.newPage()), scene)
  }

  async open(path: string): Promise<void> {
    await this.page.goto(`${this.scene.postern.authUrl}${path}`)
  }

  ask(params: Readonly<Record<string, string>> = {}): Promise<void> {
    const query = new URLSearchParams({
      client_id: 'ledgerline',
      redirect_uri: `${this.scene.client.origin}/callback`,
      response_type: 'code',
      scope: EVERYTHING,
      state: 'state-1',
      code_challenge: CHALLENGE,
      code_challenge_method: 'S256',
      ...params,
    })
    return this.open(`/connect/authorize?${query.toString()}`)
  }

  async logIn(username = 'alice', password = `${username}-password`): Promise<void> {
    await this.page.getByLabel('User name').fill(username)
    await this.page.getByLabel('Password').fill(password)
    await this.press('Sign in')
  }

  async press(name: string | RegExp): Promise<void> {
    await this.page
      .getByRole('button', { name, exact: typeof name === 'string' })
      .first()
      .click()
  }

  heading(): Promise<string> {
    return this.page.getByRole('heading', { level: 1 }).innerText()
  }

  async backAtClient(): Promise<URLSearchParams> {
    await this.page.waitForURL(`${this.scene.client.origin}/**`)
    return this.scene.client.received()
  }
}

const token = (scene: Scene, params: Readonly<Record<string, string>>): Promise<Response> =>
  fetch(`${scene.postern.authUrl}/connect/token`, {
    method: 'POST',
    headers: { authorization: BASIC },
    body: new URLSearchParams(params),
  })

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- whatever the endpoint says; the tests judge it
async function redeem(scene: Scene, code: string): Promise<any> {
  const answer = await token(scene, {
    grant_type: 'authorization_code',
    code,
    redirect_uri: `${scene.client.origin}/callback`,
    code_verifier: VERIFIER,
  })
  return answer.json()
}

describe.skipIf(!hasBrowser)('C6.2 in a browser', { timeout: 120_000 }, () => {
  let scene: Scene

  beforeAll(async () => {
    scene = await openScene()
  })
  afterAll(() => scene.close())

  for (const javaScriptEnabled of [true, false])
    it(`C6.2.3 from login to logout, ${javaScriptEnabled ? 'with' : 'without'} JavaScript`, async () => {
      const fresh = await openScene()
      onTestFinished(fresh.close)
      const person = await Person.enter(fresh, { javaScriptEnabled })
      const { page } = person

      await person.ask()
      await person.logIn('alice', 'wrong')
      expect(await page.getByRole('alert').innerText()).toContain('do not match an active account')
      await person.logIn()
      expect(await person.heading()).toBe('Allow Ledgerline to connect?')
      expect(await page.getByRole('radio').count()).toBe(2)
      await page.getByLabel('Globex Partners').check()
      await person.press('Do not allow')
      expect((await person.backAtClient()).get('error')).toBe('access_denied')

      await person.ask()
      await page.getByLabel('Globex Partners').check()
      await person.press('Allow')
      const answer = await person.backAtClient()
      expect([answer.get('state'), answer.get('iss')]).toEqual(['state-1', fresh.postern.authUrl])
      const tokens = await redeem(fresh, answer.get('code') ?? '')
      expect(tokens.scope).toBe(EVERYTHING.replace('target:b', 'target:b/GLOBEX'))

      await person.ask({ scope: EVERYTHING.replace('target:b', 'target:b/GLOBEX') })
      expect((await person.backAtClient()).get('code')).not.toBe(answer.get('code'))

      await person.open('/connect/applications')
      await person.press(/Withdraw access/)
      expect(await page.getByRole('status').innerText()).toContain('The access was withdrawn.')
      const refresh = { grant_type: 'refresh_token', refresh_token: String(tokens.refresh_token) }
      expect(await (await token(fresh, refresh)).json()).toMatchObject({ error: 'invalid_grant' })
      await person.ask({ scope: EVERYTHING.replace('target:b', 'target:b/GLOBEX') })
      expect(await person.heading()).toBe('Allow Ledgerline to connect?')

      const bye = `${fresh.client.origin}/bye`
      await person.open(`/connect/endsession?client_id=ledgerline&post_logout_redirect_uri=${bye}&state=x`)
      await person.press('Sign out')
      await page.waitForURL(`${bye}?state=x`)
      await person.open('/connect/applications')
      expect(await person.heading()).toBe('Sign in')
    })

  it('C6.2.3 by keyboard alone', async () => {
    const person = await Person.enter(scene)
    const { keyboard } = person.page
    await person.ask()
    // The first field has the focus.
    await keyboard.type('alice')
    await keyboard.press('Tab')
    await keyboard.type('alice-password')
    await keyboard.press('Enter')
    await person.page.waitForSelector('text=Allow Ledgerline to connect?')
    const focused = (): Promise<string> =>
      person.page.evaluate<string>('document.activeElement.value || document.activeElement.textContent')
    const seen: string[] = []
    for (let step = 0; step < 12 && seen.at(-1) !== 'ACME'; step += 1) {
      await keyboard.press('Tab')
      seen.push(await focused())
    }
    await keyboard.press('ArrowDown')
    expect(await focused()).toBe('GLOBEX')
    while ((await focused()) !== 'allow') await keyboard.press('Tab')
    await keyboard.press('Enter')
    const answer = await person.backAtClient()
    const tokens = await redeem(scene, answer.get('code') ?? '')
    expect(tokens.scope).toContain('target:b/GLOBEX')
  })

  it('C6.2.1 form_post arrives by itself with JavaScript, and by its button without', async () => {
    for (const javaScriptEnabled of [true, false]) {
      const person = await Person.enter(scene, { javaScriptEnabled })
      const before = scene.client.posts()
      await person.ask({ response_mode: 'form_post', prompt: 'none' })
      if (!javaScriptEnabled) await person.press('Continue')
      const answer = await person.backAtClient()
      expect(answer.get('error')).toBe('login_required')
      expect(scene.client.posts()).toBe(before + 1)
    }
  })

  it('C6.2.1 a request by POST from the client’s own site finds the login', async () => {
    const person = await Person.enter(scene)
    await person.open('/connect/applications')
    await person.logIn('bob')
    await person.page.goto(scene.client.origin)
    const fields = {
      client_id: 'ledgerline',
      redirect_uri: `${scene.client.origin}/callback`,
      response_type: 'code',
      scope: 'openid',
      nonce: 'n',
      code_challenge: CHALLENGE,
      code_challenge_method: 'S256',
    }
    await person.page.evaluate(`{
      const form = document.body.appendChild(document.createElement('form'))
      form.method = 'post'
      form.action = ${JSON.stringify(`${scene.postern.authUrl}/connect/authorize`)}
      for (const [name, value] of Object.entries(${JSON.stringify(fields)}))
        form.append(Object.assign(document.createElement('input'), { name, value }))
      form.submit()
    }`)
    await person.page.waitForSelector('text=Signed in as Bob Baker.')
  })

  it('T6 another site can’t frame the pages, nor log anybody in', async () => {
    const person = await Person.enter(scene)
    await person.ask()
    await person.page.goto(scene.client.origin)
    await person.page.setContent(`<iframe src="${scene.postern.authUrl}/connect/applications"></iframe>`, {
      waitUntil: 'load',
    })
    const framed = person.page.frames()[1]
    expect(framed?.url()).toMatch(/^chrome-error:/)
    await person.page.setContent(`<form method="post" action="${scene.postern.authUrl}/connect/login">
      <input name="username" value="alice"><input name="password" value="alice-password"><button>go</button></form>`)
    await person.press('go')
    await person.page.waitForSelector('text=Please sign in again')
  })

  for (const colorScheme of ['light', 'dark'] as const)
    it(`C6.2.3 axe finds nothing on any page, ${colorScheme}, on a phone and on a desk`, async () => {
      const fresh = await openScene()
      onTestFinished(fresh.close)
      for (const viewport of [
        { width: 390, height: 844 },
        { width: 1280, height: 860 },
      ]) {
        const person = await Person.enter(fresh, { colorScheme, viewport })
        await walkAllPages(person, async (name) => {
          expect([name, await violationsOn(person.page)]).toEqual([name, []])
          expect([name, await scrollsSideways(person.page)]).toEqual([name, false])
        })
      }
    })
})

/** Of WCAG 2.2 A and AA, and of good practice. */
async function violationsOn(page: Page): Promise<unknown> {
  // Run through the protocol, which the pages' own policy does not bind.
  await page.evaluate(AXE)
  return page.evaluate(`axe.run(document).then(({ violations }) =>
    violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => html) })))`)
}

const scrollsSideways = (page: Page): Promise<boolean> =>
  page.evaluate<boolean>('document.documentElement.scrollWidth > document.documentElement.clientWidth')

async function walkAllPages(person: Person, look: (name: string) => Promise<void>): Promise<void> {
  const { page } = person
  await person.ask()
  await look('login')
  await page.getByLabel('User name').fill('alice')
  await person.press('Sign in')
  await look('login without a password')
  await person.logIn('alice', 'wrong')
  await look('login with a wrong password')
  await person.logIn()
  await look('consent with a choice')
  await person.press('Allow')
  await person.backAtClient()
  await person.ask({ scope: 'openid email fund.read target:f/ACME/SUPER1', prompt: 'consent' })
  await look('consent for a fund')
  await person.open('/connect/applications')
  await look('applications')
  await person.open('/connect/applications?done=withdrawn')
  await look('applications after a withdrawal')
  await person.ask({ client_id: 'nobody' })
  await look('error')
  await person.open('/connect/endsession')
  await look('logout')
  await person.press('Sign out')
  await look('logged out')
  await person.open('/connect/applications')
  await person.logIn('carol')
  await look('applications, none connected')
  await person.ask()
  await look('no business')
}
