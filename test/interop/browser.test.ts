import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { CHALLENGE, EVERYTHING, openScene, Person, VERIFIER, type Scene } from '../support/browser-person.ts'
import { needing } from '../support/machine.ts'

/** C6.2.2, C6.2.3 as a person meets them: Debian's Chromium in front of a whole Postern. */

const BASIC = `Basic ${Buffer.from('ledgerline:ledgerline-secret').toString('base64')}`

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

const formOn = ({ page }: Person): Promise<{ readonly action: string; readonly csrf: string }> =>
  page.evaluate(`({
    action: document.querySelector('form[method=post]').getAttribute('action'),
    csrf: document.querySelector('[name=csrf]').value,
  })`)

/** A proxy that takes away what older browsers don't send. It keeps the `Origin` of each form that comes through it. */
async function openHidingProxy() {
  const origins: (string | undefined)[] = []
  let port = 0
  const server = createServer((incoming, response) => {
    const headers = Object.entries(incoming.headers).filter(([name]) => !name.startsWith('sec-fetch-'))
    if (incoming.method === 'POST') origins.push(incoming.headers.origin)
    const { method, url } = incoming
    const outgoing = request(
      { host: '127.0.0.1', port, method, path: url, headers: Object.fromEntries(headers) },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
        answer.pipe(response)
      },
    )
    incoming.pipe(outgoing)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    leadTo: (to: number): void => {
      port = to
    },
    origins: () => origins,
  }
}

describe('C6.2 in a browser', needing('chromium'), () => {
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

      await person.open('/connect/account')
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
      await person.open('/connect/account')
      expect(await person.heading()).toBe('Sign in')
    })

  it('C6.2.3 by keyboard alone', async () => {
    const person = await Person.enter(scene)
    const { keyboard } = person.page
    await person.ask()
    // The first field has the focus, which a busy browser gives it after the page has loaded.
    await person.page.waitForFunction('document.activeElement.name === "username"')
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

  it('C6.2.3 the password can be seen while it is typed, and hidden again', async () => {
    const person = await Person.enter(scene)
    await person.open('/connect/account')
    const field = person.page.getByLabel('Password')
    await person.page.getByLabel('User name').fill('alice')
    await field.fill('wrong')
    await person.press('Show password')
    expect(await field.getAttribute('type')).toBe('text')
    await person.press('Hide password')
    expect(await field.getAttribute('type')).toBe('password')
    await person.press('Show password')
    await field.press('Enter')
    await person.page.waitForSelector('text=do not match an active account')
    expect(await field.inputValue()).toBe('')
  })

  it('C6.2.3 without scripts the login page has no button that does nothing', async () => {
    const person = await Person.enter(scene, { javaScriptEnabled: false })
    await person.open('/connect/account')
    expect(await person.page.getByRole('button').allInnerTexts()).toEqual(['Sign in'])
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
    await person.open('/connect/account')
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

  it('T6 without `Sec-Fetch-Site` our own forms are believed, and those of another page are not', async () => {
    const proxy = await openHidingProxy()
    const behind = await openScene(proxy.url)
    onTestFinished(behind.close)
    proxy.leadTo(behind.postern.port)
    const person = await Person.enter(behind)
    await person.ask()
    const { action, csrf } = await formOn(person)

    // The port is another one and the site is the same: the cookie comes along, and the form has its token.
    const elsewhere = await person.page.context().newPage()
    await elsewhere.goto(behind.client.origin)
    await elsewhere.setContent(`<form method="post" action="${new URL(action, proxy.url).href}">
      <input name="csrf" value="${csrf}"><input name="username" value="alice">
      <input name="password" value="alice-password"><button name="decision" value="login">go</button></form>`)
    await elsewhere.getByRole('button').click()
    await elsewhere.waitForSelector('h1:text("Sign in")')
    expect(proxy.origins()).toEqual([behind.client.origin])

    await person.logIn()
    await person.page.getByLabel('Globex Partners').check()
    await person.press('Allow')
    expect((await person.backAtClient()).has('code')).toBe(true)
    await person.open('/connect/account')
    await person.press(/Withdraw access/)
    expect(await person.page.getByRole('status').innerText()).toContain('The access was withdrawn.')
    await person.open('/connect/endsession')
    await person.press('Sign out')
    expect(await person.heading()).toBe('You are signed out')
    expect(proxy.origins().slice(1)).toEqual(['null', 'null', 'null', 'null'])
  })

  it('T6 another site can’t frame the pages, nor log anybody in', async () => {
    const person = await Person.enter(scene)
    await person.ask()
    await person.page.goto(scene.client.origin)
    await person.page.setContent(`<iframe src="${scene.postern.authUrl}/connect/account"></iframe>`, {
      waitUntil: 'load',
    })
    const framed = person.page.frames()[1]
    expect(framed?.url()).toMatch(/^chrome-error:/)
    await person.page.setContent(`<form method="post" action="${scene.postern.authUrl}/connect/login">
      <input name="username" value="alice"><input name="password" value="alice-password"><button>go</button></form>`)
    await person.press('go')
    await person.page.waitForSelector('text=to see and manage your account')
  })
})
