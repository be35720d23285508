import { join } from 'node:path'
import { inflateSync } from 'node:zlib'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openScene, Person } from '../support/browser-person.ts'
import { needing } from '../support/machine.ts'
import { scrollsSideways, violationsOn } from '../support/page-checks.ts'

/** C6.2.3: what every page looks like, in Debian's Chromium. */

/** With a folder here, the photographs stay there to be looked at. */
const ALBUM = process.env['POSTERN_TEST_SCREENSHOTS']

const VIEWPORTS = [
  { width: 320, height: 640 },
  { width: 768, height: 1024 },
  { width: 1280, height: 860 },
]

describe('C6.2.3 every page', { timeout: 300_000, ...needing('chromium') }, () => {
  for (const colorScheme of ['light', 'dark'] as const)
    for (const viewport of VIEWPORTS)
      it(`C6.2.3 is seen whole ${viewport.width} pixels wide, ${colorScheme}, and axe finds nothing on it`, async () => {
        const fresh = await openScene()
        onTestFinished(fresh.close)
        const person = await Person.enter(fresh, { colorScheme, viewport })
        await walkAllPages(person, async (name) => {
          expect([name, await violationsOn(person.page)]).toEqual([name, []])
          expect([name, await scrollsSideways(person.page)]).toEqual([name, false])
          const path =
            ALBUM && join(ALBUM, `${name.replaceAll(' ', '-')}-${viewport.width}-${colorScheme}.png`)
          const photograph = await person.page.screenshot({ fullPage: true, ...(path && { path }) })
          expect([name, differentRows(photograph)]).toEqual([name, expect.toSatisfy((rows) => rows > 50)])
        })
      })
})

/** How many rows of pixels of a PNG are unlike the one above them: a page that was not painted has hardly any. */
function differentRows(png: Buffer): number {
  const data: Buffer[] = []
  // The signature, then chunks: length, type, data, checksum (PNG, §5).
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at))
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT')
      data.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)))
  const pixels = inflateSync(Buffer.concat(data))
  const height = png.readUInt32BE(20)
  const stride = pixels.length / height
  const row = (index: number): Buffer => pixels.subarray(index * stride, (index + 1) * stride)
  return Array.from({ length: height - 1 }, (_, index) => index).filter(
    (index) => !row(index).equals(row(index + 1)),
  ).length
}

async function walkAllPages(person: Person, look: (name: string) => Promise<void>): Promise<void> {
  const { page } = person
  await person.ask()
  await look('login')
  await page.getByLabel('User name').fill('alice')
  await person.press('Sign in')
  await look('login without a password')
  await page.getByLabel('Password').fill('a password')
  await person.press('Show password')
  await look('login with the password shown')
  await person.logIn('alice', 'wrong')
  await look('login with a wrong password')
  await person.logIn()
  await look('consent with a choice')
  await page.getByRole('radio').first().check()
  await person.press('Allow')
  await person.backAtClient()
  await person.ask({ scope: 'openid email fund.read target:f/ACME/SUPER1', prompt: 'consent' })
  await look('consent for a fund')
  await person.open('/connect/account')
  await look('applications')
  await person.open('/connect/account?done=withdrawn')
  await look('applications after a withdrawal')
  await person.ask({ client_id: 'nobody' })
  await look('error')
  await person.ask({ client_id: 'nobody'.repeat(100), scope: 'x'.repeat(500), state: 'y'.repeat(500) })
  await look('error of a long request')
  await photographFormPost(person, look)
  await person.open('/')
  await look('top')
  await person.open('/conect/authorize')
  await look('mistyped')
  const elsewhere = await Person.enter(person.scene)
  await elsewhere.open('/connect/account')
  await elsewhere.logIn()
  await person.open('/connect/account')
  await look('applications with two logins')
  await elsewhere.press('Sign out everywhere')
  await person.ask()
  await look('login after a logout elsewhere')
  await person.logIn()
  await person.open('/connect/endsession')
  await look('logout')
  await person.press('Sign out')
  await look('logged out')
  await person.open('/connect/account')
  await person.logIn('carol')
  await look('applications, none connected')
  await person.ask()
  await look('no business')
  await page.context().clearCookies()
  await photographSearch(person, look)
  await page.context().clearCookies()
  await person.ask({ login_hint: 'a-very-long-name-'.repeat(20), ui_locales: 'de' })
  await look('login with a long name')
  closeIdentity(person, true)
  await person.ask()
  await look('closed')
  closeIdentity(person, false)
}

/** The page of `form_post` leaves by itself; with a client that answers nothing, it stays. */
async function photographFormPost(person: Person, look: (name: string) => Promise<void>): Promise<void> {
  const { page, scene } = person
  await page.route(`${scene.client.origin}/**`, (route) => route.fulfill({ status: 204 }))
  const posted = page.waitForRequest((request) => request.url().startsWith(scene.client.origin))
  await person.ask({ response_mode: 'form_post', scope: 'openid email fund.read target:f/ACME/SUPER1' })
  if ((await person.heading()).startsWith('Allow')) await person.press('Allow')
  await posted
  await page.waitForSelector('text=Continue')
  await look('form post')
  await page.unroute(`${scene.client.origin}/**`)
}

function closeIdentity({ scene: { postern } }: Person, closed: boolean): void {
  const message = 'Back at noon, after a longer pause for the move to another house.'
  postern.switches.set(closed ? [{ scope: { kind: 'identity' }, retryAfter: 9, message }] : [])
}

/** The consent page of somebody with 30 businesses: 20 at a time, and a search. */
async function photographSearch(person: Person, look: (name: string) => Promise<void>): Promise<void> {
  const { page } = person
  const search = async (text: string): Promise<void> => {
    await page.getByRole('searchbox').fill(text)
    await page.getByRole('searchbox').press('Enter')
  }
  await person.ask()
  await person.logIn('grace', 'alice-password')
  await look('consent with a search')
  await search('branch2')
  expect(await page.getByRole('radio').count()).toBe(11)
  await look('consent with what was found')
  await search('nowhere')
  await look('consent with nothing found')
}
