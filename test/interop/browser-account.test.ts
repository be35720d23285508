import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openSharedBrowser, type BrowserOptions, type SharedBrowser } from '../support/browser.ts'
import { addUser, FORGOTTEN, openScene, Person, type Scene } from '../support/browser-person.ts'
import { needing } from '../support/machine.ts'
import { troublesOf } from '../support/page-checks.ts'

/** C6.2.2, C6.3.7, T6.5: the account page and its password form, in Debian's Chromium. */

const NEXT = 'tulip ferry anvil'

let scene: Scene
let browser: SharedBrowser

async function enter(options: BrowserOptions = {}): Promise<Person> {
  const page = await browser.page(options)
  onTestFinished(() => page.context().close())
  return new Person(page, scene)
}

/** Somebody at their account page. */
async function signedIn(username: string, options: BrowserOptions = {}): Promise<Person> {
  const person = await enter(options)
  await person.open('/connect/account')
  await person.logIn(username)
  expect(await person.heading()).toBe('Your account')
  return person
}

/** The same of somebody whom an operator has added. */
async function ownerSignedIn(username: string, options: BrowserOptions = {}): Promise<Person> {
  await addUser(scene, username, `${username}-password`)
  return signedIn(username, options)
}

const FIELDS = ['Present password', 'New password', 'New password again']

const field = ({ page }: Person, label: string) => page.getByLabel(label, { exact: true })

async function change(person: Person, ...texts: readonly string[]): Promise<void> {
  for (const [at, label] of FIELDS.entries()) await field(person, label).fill(texts[at] ?? '')
  await person.press('Set the password')
}

const typesOf = (person: Person): Promise<(string | null)[]> =>
  Promise.all(FIELDS.map((label) => field(person, label).getAttribute('type')))

describe('C6.3.7 the account page, in a browser', { timeout: 120_000, ...needing('chromium') }, () => {
  beforeAll(async () => {
    scene = await openScene()
    browser = await openSharedBrowser()
  })
  afterAll(async () => {
    await browser.close()
    await scene.close()
  })

  for (const javaScriptEnabled of [true, false])
    it(`C6.3.7 its owner changes the password, stays signed in, and is signed out elsewhere, scripts ${javaScriptEnabled ? 'on' : 'off'}`, async () => {
      const username = `ann-${javaScriptEnabled ? 'scripted' : 'plain'}`
      const person = await ownerSignedIn(username, { javaScriptEnabled })
      const { page } = person
      const elsewhere = await signedIn(username)
      expect(await page.getByRole('button', { name: /^Show / }).count()).toBe(javaScriptEnabled ? 3 : 0)
      await change(person)
      expect(await page.getByRole('alert').getByRole('link').allInnerTexts()).toEqual([
        'Enter your present password.',
        'Enter a new password.',
      ])
      await change(person, 'a guess', NEXT, NEXT)
      const link = page.getByRole('alert').getByRole('link')
      expect(await link.innerText()).toBe('This is not your present password. Check it and try again.')
      for (const label of FIELDS) expect(await field(person, label).inputValue()).toBe('')
      await link.press('Enter')
      expect(await page.locator(':focus').getAttribute('name')).toBe('current')
      await change(person, `${username}-password`, NEXT, NEXT)
      expect(await page.getByRole('status').innerText()).toBe(
        'Your password was changed. You are signed out everywhere else.',
      )
      await page.reload()
      expect(await person.heading()).toBe('Your account')
      await elsewhere.open('/connect/account')
      expect(await elsewhere.heading()).toBe('Sign in')
      await elsewhere.logIn(username, NEXT)
      expect(await elsewhere.heading()).toBe('Your account')
    })

  it('C6.3.7 C6.2.3 it is seen well: with the form, with its problems, and without it', async () => {
    const person = await ownerSignedIn('ann-looked-at')
    const { page } = person
    const troubles: unknown[] = []
    const look = async (name: string): Promise<void> => void troubles.push(...(await troublesOf(page, name)))
    await look('account')
    await change(person, '', 'short')
    await look('account-problems')
    const alice = await signedIn('alice')
    expect(await alice.page.locator('main').innerText()).toContain(FORGOTTEN)
    expect(await alice.page.locator('input[type=password]').count()).toBe(0)
    troubles.push(...(await troublesOf(alice.page, 'account-elsewhere')))
    expect(troubles).toEqual([])
  })

  it('C6.3.7 C6.2.3 each password can be seen while it is typed, and none is when the form is sent', async () => {
    const person = await ownerSignedIn('ann-showing')
    const { page } = person
    for (const [at] of FIELDS.entries()) {
      await page
        .getByRole('button', { name: /^Show / })
        .first()
        .click()
      expect(await typesOf(person)).toEqual(FIELDS.map((_, each) => (each <= at ? 'text' : 'password')))
    }
    await page
      .getByRole('button', { name: /^Hide / })
      .nth(1)
      .click()
    expect(await typesOf(person)).toEqual(['text', 'password', 'text'])
    // What the browser would keep and offer again is looked at as it is sent.
    await page.evaluate(
      `document.querySelector('#current').form.addEventListener('submit', (event) => event.preventDefault())`,
    )
    await field(person, 'New password again').press('Enter')
    expect(await typesOf(person)).toEqual(['password', 'password', 'password'])
  })

  it('C6.3.7 the form is filled in by keyboard alone, from where password managers lead', async () => {
    const person = await enter()
    const { keyboard } = person.page
    await addUser(scene, 'ann-keys', 'ann-keys-password')
    await person.open('/.well-known/change-password')
    await person.logIn('ann-keys')
    for (const [name, text] of Object.entries({
      current: 'ann-keys-password',
      password: NEXT,
      again: NEXT,
    })) {
      for (
        let step = 0;
        step < 9 && (await person.page.evaluate('document.activeElement.name')) !== name;
        step += 1
      )
        await keyboard.press('Tab')
      await keyboard.type(text)
    }
    await keyboard.press('Enter')
    await person.page.waitForSelector('text=Your password was changed.')
  })

  it('T6.5 C6.3.7 a form of another page of this machine changes nothing, also with all that belongs in it', async () => {
    const person = await ownerSignedIn('ann-attacked')
    const csrf = await person.page.locator('[name=csrf]').first().inputValue()
    const elsewhere = await person.page.context().newPage()
    await elsewhere.goto(scene.client.origin)
    await elsewhere.setContent(`<form method="post" action="${scene.postern.authUrl}/connect/account">
      <input name="csrf" value="${csrf}"><input name="current" value="ann-attacked-password">
      <input name="password" value="${NEXT}"><input name="again" value="${NEXT}"><button>go</button></form>`)
    await elsewhere.getByRole('button').click()
    await elsewhere.waitForURL(`${scene.postern.authUrl}/connect/account`)
    expect(await elsewhere.locator('.notice').count()).toBe(0)
    const other = await enter()
    await other.open('/connect/account')
    await other.logIn('ann-attacked', NEXT)
    expect(await other.heading()).toBe('Sign in')
    await other.logIn('ann-attacked')
    expect(await other.heading()).toBe('Your account')
  })
})
