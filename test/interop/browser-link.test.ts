import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import {
  openBrowser,
  openSharedBrowser,
  type BrowserOptions,
  type SharedBrowser,
} from '../support/browser.ts'
import { addUser, FORGOTTEN, linkFor, openScene, Person, type Scene } from '../support/browser-person.ts'
import { needing } from '../support/machine.ts'
import { troublesOf } from '../support/page-checks.ts'

/** C6.3.7, T6.6: a link by which somebody sets their password, in Debian's Chromium. */

const PASSWORD = 'tulip ferry anvil'
const OVER = 'This link is no longer good'

let scene: Scene
let browser: SharedBrowser

/** Somebody who was invited, and the link that they were given. */
async function invited(username: string): Promise<{ readonly link: string; readonly code: string }> {
  await addUser(scene, username)
  const link = await linkFor(scene, username)
  return { link, code: new URL(link).searchParams.get('code') ?? '' }
}

async function enter(options: BrowserOptions = {}): Promise<Person> {
  const page = await browser.page(options)
  onTestFinished(() => page.context().close())
  return new Person(page, scene)
}

async function choose({ page }: Person, password: string, again = password): Promise<void> {
  await page.getByLabel('New password', { exact: true }).fill(password)
  await page.getByLabel('New password again').fill(again)
  await page.getByRole('button', { name: 'Set the password' }).click()
}

/** All that a browser sends, but the cookie, which is where the code is to be. */
function watchRequests(page: Page): () => Promise<readonly string[]> {
  const sent: Promise<string>[] = []
  page.on('request', (request) => {
    const told = async (): Promise<string> => {
      const headers = Object.entries(await request.allHeaders()).filter(([name]) => name !== 'cookie')
      return JSON.stringify([request.method(), request.url(), headers, request.postData()])
    }
    sent.push(told())
  })
  return () => Promise.all(sent)
}

/** What the buttons that lead back and forth lead to, and their menu shows. */
async function addressesOf(page: Page): Promise<readonly string[]> {
  const protocol = await page.context().newCDPSession(page)
  const { entries } = await protocol.send('Page.getNavigationHistory')
  return entries.map(({ title, url }) => `${url} ${title}`)
}

const where = ({ page }: Person): string => page.url().replace(scene.postern.authUrl, '')

describe('C6.3.7 a link, in a browser', { timeout: 120_000, ...needing('chromium') }, () => {
  beforeAll(async () => {
    scene = await openScene()
    browser = await openSharedBrowser()
  })
  afterAll(async () => {
    await browser.close()
    await scene.close()
  })

  for (const javaScriptEnabled of [true, false])
    it(`C6.3.7 T6.6 leads who was invited to an account, and its code stands in the first request alone, scripts ${javaScriptEnabled ? 'on' : 'off'}`, async () => {
      const username = `ann-${javaScriptEnabled ? 'scripted' : 'plain'}`
      const { code, link } = await invited(username)
      const person = await enter({ javaScriptEnabled })
      const { page } = person
      const sent = watchRequests(page)

      await page.goto(link)
      expect([where(person), await person.heading()]).toEqual(['/connect/link', 'Choose a password'])
      expect(await page.locator('.lead').innerText()).toBe(`for the account ${username}`)
      await page.reload()
      await page.goBack()
      expect(page.url()).toBe('about:blank')
      await page.goForward()
      expect([where(person), await person.heading()]).toEqual(['/connect/link', 'Choose a password'])
      await choose(person, 'short')
      expect(await page.getByRole('alert').innerText()).toContain('it needs at least 12 characters')
      await choose(person, PASSWORD, `${PASSWORD}s`)
      expect(await page.getByRole('alert').innerText()).toContain('are not the same')
      for (const field of await page.locator('input[type=password]').all())
        expect(await field.inputValue()).toBe('')
      await choose(person, PASSWORD)
      const done = ['/connect/link?done=password', 'Your password is set']
      expect([where(person), await person.heading()]).toEqual(done)
      // A page by GET: no form is sent again.
      await page.reload()
      expect([where(person), await person.heading()]).toEqual(done)
      const cookies = await page.context().cookies()
      expect(cookies.filter(({ name, value }) => name.includes('link') || value === code)).toEqual([])
      await page.getByRole('link', { name: 'Sign in' }).click()
      await person.logIn(username, PASSWORD)
      expect(await person.heading()).toBe('Your account')

      const behindBack = await addressesOf(page)
      expect(behindBack.length).toBeGreaterThan(3)
      expect(behindBack.filter((address) => address.includes(code))).toEqual([])
      await page.goto(`${scene.postern.authUrl}/connect/link`)
      expect(await person.heading()).toBe(OVER)

      const [first, ...others] = await sent()
      expect(first).toContain(code)
      expect(others.length).toBeGreaterThan(5)
      expect(others.filter((each) => each.includes(code))).toEqual([])
    })

  it('C6.3.7 C6.2.3 its pages are seen well: the form, the form with problems, the last page, and a link that is over', async () => {
    const { link } = await invited('ann-looked-at')
    const person = await enter()
    const { page } = person
    const troubles: unknown[] = []
    const look = async (name: string, heading: string): Promise<void> => {
      expect([name, await person.heading()]).toEqual([name, heading])
      troubles.push(...(await troublesOf(page, name)))
    }
    await page.goto(link)
    await look('link', 'Choose a password')
    await choose(person, 'short')
    await look('link-short', 'Choose a password')
    await choose(person, PASSWORD)
    await look('link-done', 'Your password is set')
    await page.getByRole('link', { name: 'Sign in' }).click()
    expect(await page.locator('main').innerText()).toContain(FORGOTTEN)
    await look('sign-in-forgotten', 'Sign in')
    const over = await page.goto(link)
    expect([over?.status(), await page.locator('main').innerText()]).toEqual([
      404,
      expect.stringContaining(FORGOTTEN),
    ])
    await look('link-over', OVER)
    expect(troubles).toEqual([])
  })

  it('C6.3.7 C6.2.3 each password can be seen while it is typed, and neither is when the form is sent', async () => {
    const { link } = await invited('ann-showing')
    const { page } = await enter()
    await page.goto(link)
    const [one, two] = [
      page.getByLabel('New password', { exact: true }),
      page.getByLabel('New password again'),
    ]
    const types = async (): Promise<(string | null)[]> => [
      await one.getAttribute('type'),
      await two.getAttribute('type'),
    ]
    const [showOne, showTwo] = await page.getByRole('button', { name: /^Show / }).all()
    await showTwo?.click()
    expect(await types()).toEqual(['password', 'text'])
    await page.getByRole('button', { name: /^Show / }).click()
    expect(await types()).toEqual(['text', 'text'])
    await page
      .getByRole('button', { name: /^Hide / })
      .first()
      .click()
    expect(await types()).toEqual(['password', 'text'])
    await showOne?.click()
    // What the browser would keep and offer again is looked at as it is sent.
    await page.evaluate(`document.forms[0].addEventListener('submit', (event) => event.preventDefault())`)
    await two.press('Enter')
    expect(await types()).toEqual(['password', 'password'])
    expect(await page.getByRole('button', { name: /^Show / }).count()).toBe(2)
  })

  it('C6.3.7 C6.2.3 it is filled in by keyboard alone, and password managers know its fields', async () => {
    const { link } = await invited('ann-keys')
    const person = await enter()
    const { page } = person
    await page.goto(link)
    const fields = await page
      .locator('input:not([name=csrf])')
      .evaluateAll((inputs) =>
        inputs.map((input) =>
          ['name', 'autocomplete', 'type', 'value'].map((name) => input.getAttribute(name)),
        ),
      )
    expect(fields).toEqual([
      ['username', 'username', 'text', 'ann-keys'],
      ['password', 'new-password', 'password', ''],
      ['again', 'new-password', 'password', ''],
    ])
    await page.waitForFunction('document.activeElement.name === "password"')
    await page.keyboard.type('short')
    await page.keyboard.press('Enter')
    await page.waitForSelector('text=it needs at least 12 characters')
    await page.waitForFunction('document.activeElement.name === "password"')
    const described = await page.evaluate(
      `document.activeElement.getAttribute('aria-describedby').split(' ').map((id) => document.getElementById(id).textContent)`,
    )
    expect(described).toEqual([
      expect.stringContaining('too short'),
      expect.stringContaining('At least 12 characters.'),
    ])
    await page.keyboard.type(PASSWORD)
    while ((await page.evaluate('document.activeElement.name')) !== 'again') await page.keyboard.press('Tab')
    await page.keyboard.type(PASSWORD)
    await page.keyboard.press('Enter')
    await page.waitForSelector('h1:text("Your password is set")')
  })

  it('T6.6 C6.3.7 the browser’s own list of addresses has the link as it was opened, which is good for nothing once it was used', async () => {
    const { code, link } = await invited('ann-remembered')
    const { close, context, profile } = await openBrowser()
    onTestFinished(close)
    const person = new Person(context.pages()[0] ?? (await context.newPage()), scene)
    await person.page.goto(link)
    await choose(person, PASSWORD)
    expect(await person.heading()).toBe('Your password is set')
    await context.close()
    const history = new DatabaseSync(join(profile, 'Default', 'History'), { readOnly: true })
    onTestFinished(() => history.close())
    const remembered = history.prepare('SELECT url FROM urls').all()
    // No server can keep an address out of it. Nothing beside it has the code.
    expect(remembered.flatMap(({ url }) => (String(url).includes(code) ? [url] : []))).toEqual([link])
    const thief = await enter()
    await thief.page.goto(link)
    expect([where(thief), await thief.heading()]).toEqual(['/connect/link', OVER])
  })
})
