import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Page } from 'playwright-core'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What axe finds: of WCAG 2.2 A and AA, and of good practice. */
export async function violationsOn(page: Page): Promise<unknown> {
  // Run through the protocol, which the pages' own policy does not bind.
  await page.evaluate(AXE)
  return page.evaluate(`axe.run(document).then(({ violations }) =>
    violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => html) })))`)
}

export const scrollsSideways = (page: Page): Promise<boolean> =>
  page.evaluate<boolean>('document.documentElement.scrollWidth > document.documentElement.clientWidth')

const ALBUM = process.env['POSTERN_TEST_SCREENSHOTS']
const SCHEMES = ['light', 'dark'] as const

/** What is wrong with a page as people see it: on a desk and a telephone, light and dark; and photographs of it. */
export async function troublesOf(page: Page, name: string): Promise<unknown[]> {
  const troubles: unknown[] = []
  for (const width of [1280, 390, 320]) {
    await page.setViewportSize({ width, height: 844 })
    if (await scrollsSideways(page)) troubles.push({ name, width, sideways: true })
    for (const colorScheme of width === 320 ? [] : SCHEMES) {
      await page.emulateMedia({ colorScheme })
      if (ALBUM !== undefined)
        await page.screenshot({ path: join(ALBUM, `${name}-${width}-${colorScheme}.png`), fullPage: true })
      // Colours are those of the scheme, and places those of the width: each is looked at once.
      if ((width === 390) !== (colorScheme === 'dark')) continue
      const found = await violationsOn(page)
      if (!isDeepStrictEqual(found, [])) troubles.push({ name, colorScheme, width, found })
    }
  }
  return troubles
}
