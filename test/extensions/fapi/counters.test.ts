import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { COUNTERS } from '../../../src/extensions/fapi/schema.ts'
import { familiesWith } from '../../../src/operate/watch/metrics/families.ts'

it('C11.1 the page documents every counter and its labels, and nothing else', () => {
  const page = readFileSync(new URL('../../../src/extensions/fapi/protocol.md', import.meta.url), 'utf8')
  const documented = [...page.matchAll(/^\| `(postern_\w+)` +\| counter +\| ([^|]*) \|/gm)].map(
    ([, name, labels]) => [name, [...(labels ?? '').matchAll(/`(\w+)`/g)].map((match) => match[1])],
  )
  expect(documented).toEqual(COUNTERS.map(({ name, labels }) => [name, Object.keys(labels)]))
})

it('C11.1 each is shown behind the family that it names', () => {
  const shown = familiesWith(COUNTERS).map(({ name }) => name)
  for (const { name, after } of COUNTERS) expect(shown[shown.indexOf(after) + 1]).toBe(name)
  expect(() => familiesWith([{ ...COUNTERS[0]!, after: 'gone' }])).toThrow('"gone"')
})
