import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openBrowser } from '../../support/browser.ts'
import { needing } from '../../support/machine.ts'
import { scrollsSideways, violationsOn } from '../../support/page-checks.ts'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import { startPostern, type StartedPostern } from '../../support/start-postern.ts'

/** C11.4: the developer pages as a person meets them, in Debian's Chromium. */

/** With a folder here, the photographs stay there to be looked at. */
const ALBUM = process.env['POSTERN_TEST_SCREENSHOTS']

const PATHS = ['', '/fund-data', '/member-data', '/scopes', '/errors', '/xml', '/changes']
const VIEWPORTS = [
  { width: 320, height: 640 },
  { width: 390, height: 800 },
  { width: 1280, height: 860 },
]

describe('C11.4 every developer page', needing('chromium'), () => {
  let service: StartedPostern

  beforeAll(async () => {
    service = await startPostern()
  })
  afterAll(async () => {
    await service.close()
  })

  for (const colorScheme of ['light', 'dark'] as const)
    for (const viewport of VIEWPORTS)
      it(`C11.4 is seen whole ${viewport.width} pixels wide, ${colorScheme}, and axe finds nothing on it`, async () => {
        const { close, context } = await openBrowser({ colorScheme, viewport })
        onTestFinished(close)
        const page = await context.newPage()
        const told: string[] = []
        page.on('console', (message) => {
          // A browser looks for this by itself where a deployment has no logo.
          if (!message.location().url.endsWith('/favicon.ico')) told.push(message.text())
        })
        for (const path of PATHS) {
          await page.goto(`${service.authUrl}/developers${path}`)
          // What is folded away is looked at too.
          for (const summary of await page.locator('summary').all()) await summary.click()
          expect([path, await violationsOn(page)]).toEqual([path, []])
          expect([path, await scrollsSideways(page)]).toEqual([path, false])
          if (ALBUM !== undefined) {
            const name = `developers${path.replace('/', '-')}-${viewport.width}-${colorScheme}.png`
            await page.screenshot({ fullPage: true, path: join(ALBUM, name) })
          }
        }
        expect(told).toEqual([])
      })

  it('C11.4 is read by keyboard and without scripts: past the menu, to an operation, into what is folded', async () => {
    const { close, context } = await openBrowser({
      javaScriptEnabled: false,
      viewport: { width: 320, height: 640 },
    })
    onTestFinished(close)
    const page = await context.newPage()
    await page.goto(`${service.authUrl}/developers/fund-data`)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    expect(page.url()).toMatch(/#content$/)
    await page.getByRole('link', { name: 'List the funds of a business' }).focus()
    await page.keyboard.press('Enter')
    expect(await page.getByRole('heading', { name: 'List the funds of a business' }).isVisible()).toBe(true)
    const folded = page.locator('summary').first()
    await folded.focus()
    await page.keyboard.press('Enter')
    expect(await page.locator('details[open] pre').first().isVisible()).toBe(true)
    expect(await page.getByRole('button').count()).toBe(0)
  })

  it('C11.4 has a button at each block of code that copies it as it is, though long lines are wrapped', async () => {
    const { close, context } = await openBrowser({ viewport: { width: 390, height: 800 } })
    onTestFinished(close)
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: service.authUrl })
    const page = await context.newPage()
    await page.goto(`${service.authUrl}/developers`)
    const blocks = await page.locator('.code').all()
    expect(blocks.length).toBeGreaterThan(5)
    for (const block of blocks) {
      const code = block.locator('pre')
      expect(await code.evaluate((each) => each.scrollWidth > each.clientWidth)).toBe(false)
      await block.getByRole('button', { name: 'Copy' }).click()
      await block.getByRole('button', { name: 'Copied' }).waitFor()
      expect(await page.getByRole('status').innerText()).toBe('Copied')
      const copied = await page.evaluate<string>('navigator.clipboard.readText()')
      expect(copied).toBe(await code.textContent())
      expect(copied).not.toMatch(/^\s|\s$/)
    }
    const names = await page.getByRole('button').allInnerTexts()
    expect(names).toHaveLength(blocks.length)
    expect(await violationsOn(page)).toEqual([])
  })

  it('C11.4 T6.3 runs no script but its own, whose hash the policy has', async () => {
    const { close, context } = await openBrowser()
    onTestFinished(close)
    const page = await context.newPage()
    const refused: string[] = []
    page.on('console', (message) => refused.push(message.text()))
    const answer = await page.goto(`${service.authUrl}/developers/fund-data`)
    expect(answer?.headers()['content-security-policy']).toMatch(/; script-src 'sha256-[\w+/=]+';/)
    expect(await page.getByRole('button', { name: 'Copy' }).count()).toBeGreaterThan(0)
    await page.evaluate(`{
      const own = document.querySelector('body > script').textContent
      for (const text of ['window.ran = 1', own + '\\nwindow.ran = 1']) {
        const script = document.createElement('script')
        script.textContent = text
        document.body.append(script)
      }
      const picture = document.createElement('p')
      picture.setAttribute('onclick', 'window.ran = 1')
      document.body.append(picture)
      picture.click()
    }`)
    expect(await page.evaluate('window.ran')).toBeUndefined()
    expect(
      refused.filter((text) => /violates the following Content Security Policy/.test(text)),
    ).toHaveLength(3)
  })
})

/** An API of 20 areas. */
const withAreas = ({ actions, areas, ...rest }: Configuration): Configuration => {
  const names = Array.from({ length: 18 }, (_, index) => `ledger-${index + 1}`)
  return {
    ...rest,
    areas: { ...areas, ...Object.fromEntries(names.map((name) => [name, areas['fund-data']!])) },
    actions: [...actions, ...names.map((area) => ({ ...actions[0]!, area }))],
  }
}

describe('C11.4 the search of developer pages', needing('chromium'), () => {
  let service: StartedPostern

  beforeAll(async () => {
    service = await startPostern({ change: withAreas })
  })
  afterAll(async () => {
    await service.close()
  })

  const search = async (page: Page, text: string): Promise<string> => {
    const field = page.getByRole('searchbox', { name: 'Find an operation' })
    await field.fill(text)
    await field.press('Enter')
    await page.waitForURL((url) => url.searchParams.get('find') === text)
    expect(await page.getByRole('searchbox').inputValue()).toBe(text)
    return page.getByRole('status').first().innerText()
  }

  it('C11.4 is used by keyboard and without scripts', async () => {
    const { close, context } = await openBrowser({ javaScriptEnabled: false })
    onTestFinished(close)
    const page = await context.newPage()
    await page.goto(`${service.authUrl}/developers/fund-data`)
    expect(await search(page, 'member')).toMatch(/^Found for “member”: \d+ operations in \d+ areas?\.$/)
    await page.getByRole('main').getByRole('link').nth(1).press('Enter')
    expect(page.url()).toMatch(/\/developers\/[a-z-]+#[a-z-]+$/)
  })

  for (const colorScheme of ['light', 'dark'] as const)
    for (const viewport of VIEWPORTS)
      it(`C11.4 is seen whole ${viewport.width} pixels wide, ${colorScheme}, and axe finds nothing on it`, async () => {
        const { close, context } = await openBrowser({ colorScheme, viewport })
        onTestFinished(close)
        const page = await context.newPage()
        await page.goto(`${service.authUrl}/developers`)
        for (const [text, told] of [
          ['member', /^Found for “member”/],
          ['nowhere', /^Nothing was found for “nowhere”\./],
        ] as const) {
          expect(await search(page, text)).toMatch(told)
          expect([text, await violationsOn(page)]).toEqual([text, []])
          expect([text, await scrollsSideways(page)]).toEqual([text, false])
          if (ALBUM !== undefined) {
            const name = `developers-find-${text}-${viewport.width}-${colorScheme}.png`
            await page.screenshot({ path: join(ALBUM, name) })
          }
        }
      })
})
