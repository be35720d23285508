import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { CHECKS } from '../src/gateway/decide/order.ts'
import { type FaultRow, FAULTS } from '../src/base/kernel/fault-table.ts'
import { configFiles } from './support/config-files.ts'
import { SETTINGS } from './support/settings.ts'

const page = readFileSync(new URL('../src/README.md', import.meta.url), 'utf8')

/** The cells of a section's table, without its head; white space and code marks taken away. */
function rowsOf(heading: string): readonly (readonly string[])[] {
  const [, section = ''] = page.split(`\n## ${heading}\n`)
  const [body = ''] = section.split('\n## ')
  const lines = body.split('\n').filter((line) => line.startsWith('|'))
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim().replaceAll('`', '')),
  )
}

describe('src/README.md says what the code does, all of it and nothing else', () => {
  it('C4: lists the checks of the decision in their order, and the faults of each', () => {
    const documented = rowsOf('The decision')
    const expected = CHECKS.map(({ clause, step, title, faults }) => [
      clause,
      step,
      title,
      faults.map((code) => `${String(FAULTS[code].status)} ${code}`).join(', '),
    ])
    expect(documented).toEqual(expected)
  })

  it('C2: lists every fault with its status, codes, text and level', () => {
    const documented = rowsOf('Faults')
    const expected = Object.entries<FaultRow>(FAULTS).map(([code, row]) => [
      code,
      String(row.status),
      row.wire,
      row.oauth,
      row.text.replaceAll('`', ''),
      row.level,
    ])
    expect(documented).toEqual(expected)
  })

  it('C4: every fault of a check is a row of the table, and no fault belongs to two checks', () => {
    const all = CHECKS.flatMap(({ faults }) => faults)
    expect(new Set(all).size).toBe(all.length)
    for (const code of all) expect(FAULTS).toHaveProperty(code)
  })
})

describe('config/README.md', () => {
  it('C10 begins with a configuration that can be served as it is', async () => {
    const text = readFileSync(new URL('../config/README.md', import.meta.url), 'utf8')
    const smallest = /^```yaml\n(.*?)^```/ms.exec(text)?.[1] ?? ''
    const file = configFiles({ 'my.yaml': smallest })
    expect((await SETTINGS.check(file('my.yaml'), {})).list).toEqual([])
    expect(smallest).toContain('actions:')
  })
})

describe('the version of package.json', () => {
  const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
  const { version } = JSON.parse(read('package.json')) as { version: string }
  const shown = (path: string, pattern: RegExp): readonly (string | undefined)[] =>
    [...read(path).matchAll(pattern)].map(([, found]) => found)

  it('comes first among the changes, which say what to do and whether there is a way back', () => {
    const [newest = ''] = read('deploy/CHANGELOG.md').split(/^## /m).slice(1)
    expect(newest.split('\n')[0]).toBe(version)
    for (const part of ['New', 'To do', 'The way back']) expect(newest).toContain(`**${part}**`)
  })

  it.each([
    ['deploy/README.md', /postern-(\d[\d.]*)\.tgz/g],
    ['deploy/kubernetes/sidecar.yaml', /image: postern:(\S+)/g],
    ['deploy/kubernetes/standalone.yaml', /image: postern:(\S+)/g],
  ])('stands in %s', (path, pattern) => {
    const versions = shown(path, pattern)
    expect(versions.length).toBeGreaterThan(0)
    expect(new Set(versions)).toEqual(new Set([version]))
  })
})
