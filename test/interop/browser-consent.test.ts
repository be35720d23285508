import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EVERYTHING, openScene, Person, type Scene } from '../support/browser-person.ts'
import { needing } from '../support/machine.ts'
import { scrollsSideways, violationsOn } from '../support/page-checks.ts'

/** C6.2.2: the answers of a long consent page, in Debian's Chromium. */

const ALBUM = process.env['POSTERN_TEST_SCREENSHOTS']

const VIEWPORTS = [
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
]

const CHANGING =
  'business.fund.create fund.maintain fund.details.read fund.details.maintain fund.member.read fund.member.maintain'

let scene: Scene

type Entering = Parameters<typeof Person.enter>[1]

/** Somebody before the consent page. */
async function asked(
  user: string,
  options: Entering,
  params: Parameters<Person['ask']>[0] = {},
): Promise<Person> {
  const person = await Person.enter(scene, options)
  await person.ask(params)
  await person.logIn(user, 'alice-password')
  return person
}

/** Grace, who has 30 businesses. */
const graceAsked = (options: Entering): Promise<Person> => asked('grace', options)

/** Heidi, who has 30 businesses with very long names, asked for all there is by a client with such a name. */
const heidiAsked = (options: Entering): Promise<Person> =>
  asked('heidi', options, {
    client_id: 'long-named',
    scope: `${EVERYTHING} address phone service_profile ${CHANGING}`,
  })

/** How many pixels of an element are out of the window, above or below. */
const outOfView = ({ page }: Person, name: string): Promise<number> =>
  page.getByRole('button', { name, exact: true }).evaluate((button) => {
    const { bottom, height, top } = button.getBoundingClientRect()
    const shown = Math.min(bottom, button.ownerDocument.documentElement.clientHeight) - Math.max(top, 0)
    return Math.round(height - shown)
  })

/** The element with the focus, whether the bar covers a part of it or of its business, and whether it is in the window. */
const FOCUSED = `(() => {
  const bar = document.querySelector('.stays')
  const focused = document.activeElement
  if (focused === document.body) return undefined
  const name = focused.id || focused.value || focused.textContent.trim()
  if (bar.contains(focused)) return { name, covered: false, seen: true }
  const edge = bar.getBoundingClientRect()
  const boxes = [focused, focused.closest('.choice')].filter(Boolean).map((each) => each.getBoundingClientRect())
  return {
    name,
    covered: boxes.some(({ bottom, top }) => bottom > edge.top && top < edge.bottom),
    seen: boxes[0].top >= 0 && boxes[0].bottom <= innerHeight,
  }
})()`

interface Focused {
  readonly name: string
  readonly covered: boolean
  readonly seen: boolean
}

/** Presses a key until the focus leaves the page. */
async function walk({ page }: Person, key: string): Promise<readonly Focused[]> {
  const met: Focused[] = []
  for (let count = 0; count < 60; count += 1) {
    await page.keyboard.press(key)
    const focused = await page.evaluate<Focused | undefined>(FOCUSED)
    if (focused === undefined) break
    met.push(focused)
  }
  return met
}

describe('C6.2.2 the answers of a long consent page', { timeout: 120_000, ...needing('chromium') }, () => {
  beforeAll(async () => {
    scene = await openScene()
  })
  afterAll(() => scene.close())

  for (const javaScriptEnabled of [true, false])
    for (const viewport of VIEWPORTS)
      it(`C6.2.2 are in view from the start, ${viewport.width} pixels wide, scripts ${javaScriptEnabled ? 'on' : 'off'}, and cover no focus`, async () => {
        const person = await graceAsked({ viewport, javaScriptEnabled })
        const { page } = person
        expect(await page.evaluate('[scrollY, document.documentElement.scrollHeight > innerHeight]')).toEqual(
          [0, true],
        )
        for (const name of ['Allow', 'Do not allow'])
          expect([name, await outOfView(person, name)]).toEqual([name, 0])
        const forward = await walk(person, 'Tab')
        expect(forward.map(({ name }) => name)).toEqual(expect.arrayContaining(['find', 'allow', 'deny']))
        expect(forward.filter(({ covered, seen }) => covered || !seen)).toEqual([])
        const back = await walk(person, 'Shift+Tab')
        expect(back.length).toBeGreaterThan(5)
        expect(back.filter(({ covered, seen }) => covered || !seen)).toEqual([])
        await page.getByRole('radio').first().focus()
        for (let at = 1; at < 20; at += 1) {
          await page.keyboard.press('ArrowDown')
          expect(await page.evaluate(FOCUSED)).toEqual({ name: `business-${at}`, covered: false, seen: true })
        }
      })

  for (const colorScheme of ['light', 'dark'] as const)
    for (const viewport of VIEWPORTS)
      it(`C6.2.3 are seen well ${viewport.width} pixels wide, ${colorScheme}, also where colours are the person's own`, async () => {
        const person = await graceAsked({ viewport, colorScheme })
        const { page } = person
        const photograph = async (name: string): Promise<void> => {
          const path = ALBUM && join(ALBUM, `answers-${name}-${viewport.width}-${colorScheme}.png`)
          await page.screenshot({ ...(path && { path }) })
        }
        expect(await violationsOn(page)).toEqual([])
        expect(await scrollsSideways(page)).toBe(false)
        await photograph('start')
        await page.evaluate('scrollTo(0, document.documentElement.scrollHeight / 3)')
        await photograph('middle')
        expect(await outOfView(person, 'Allow')).toBe(0)
        await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
        await photograph('end')
        expect(await outOfView(person, 'Allow')).toBe(0)
        await page.emulateMedia({ forcedColors: 'active' })
        await page.evaluate('scrollTo(0, document.documentElement.scrollHeight / 3)')
        await photograph('forced')
        expect(await outOfView(person, 'Do not allow')).toBe(0)
      })

  for (const viewport of VIEWPORTS)
    it(`C6.2.2 stay in view where names are very long and much is asked, ${viewport.width} pixels wide`, async () => {
      const person = await heidiAsked({ viewport })
      const { page } = person
      expect(await page.locator('.scopes li').count()).toBeGreaterThan(10)
      for (const part of [0, 0.5, 1]) {
        await page.evaluate(`scrollTo(0, document.documentElement.scrollHeight * ${part})`)
        for (const name of ['Allow', 'Do not allow'])
          expect([part, name, await outOfView(person, name)]).toEqual([part, name, 0])
        const path = ALBUM && join(ALBUM, `answers-long-${part}-${viewport.width}.png`)
        await page.screenshot({ ...(path && { path }) })
      }
      await page.evaluate('scrollTo(0, 0)')
      for (const key of ['Tab', 'Shift+Tab']) {
        const met = await walk(person, key)
        expect(met.map(({ name }) => name)).toEqual(expect.arrayContaining(['find', 'allow', 'deny']))
        expect(met.filter(({ covered, seen }) => covered || !seen)).toEqual([])
      }
      expect(await scrollsSideways(page)).toBe(false)
      expect(await violationsOn(page)).toEqual([])
    })

  it('C6.2.2 stay at the end of the page where the window is low, and of a page that failed', async () => {
    const person = await graceAsked({ viewport: { width: 390, height: 380 } })
    const { page } = person
    const place = "getComputedStyle(document.querySelector('.stays')).position"
    expect(await page.evaluate(place)).toBe('static')
    await page.setViewportSize({ width: 390, height: 844 })
    expect(await page.evaluate(place)).toBe('sticky')
    // The browser itself asks for a choice; without its check the page comes again, and its link leads to a choice.
    await page.evaluate("document.querySelector('form[method=post]').noValidate = true")
    await person.press('Allow')
    expect(await outOfView(person, 'Allow')).toBe(0)
    await page.getByRole('link', { name: 'Choose a business.' }).press('Enter')
    expect(await page.evaluate(FOCUSED)).toMatchObject({ covered: false, seen: true })
  })

  it('C6.2.2 tells how long access without lasting access lasts', async () => {
    const person = await graceAsked({})
    await person.ask({ scope: 'openid fund.read target:b' })
    const text = await person.page.locator('.lasting').innerText()
    expect(text).toContain('Ledgerline has this access for 15 minutes after you allow it.')
  })
})
