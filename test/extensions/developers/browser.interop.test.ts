import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openBrowser } from '../../support/browser.ts'
import { needing } from '../../support/machine.ts'
import { scrollsSideways, violationsOn } from '../../support/page-checks.ts'
import { startPostern, type StartedPostern } from '../../support/start-postern.ts'

/** C11.4: the developer pages as a person meets them, in Debian's Chromium. */

/** With a folder here, the photographs stay there to be looked at. */
const ALBUM = process.env['POSTERN_TEST_SCREENSHOTS']

const PATHS = ['', '/fund-data', '/member-data', '/scopes', '/errors', '/xml', '/changes']
const VIEWPORTS = [
  { width: 320, height: 640 },
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

  it('C11.4 is read by keyboard and without scripts: past the menu, through long code, into what is folded', async () => {
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
  })
})
