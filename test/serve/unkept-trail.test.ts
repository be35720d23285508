import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { unkeptTrail } from '../../src/serve/parts/data-folder.ts'
import { dataFolder } from '../support/data-folder.ts'

/** Where no extension keeps a trail, a data folder that has one is not used: what cannot be seen counts as one. */
describe('a data folder where no trail can be kept', () => {
  const point = (data: string, text: string): void => writeFileSync(join(data, 'trail-folder'), text)
  const having = async (make: (data: string) => void): Promise<string | undefined> => {
    const data = await dataFolder()
    make(data)
    return unkeptTrail(data)
  }

  it('is used if it is missing, is new, or has an empty folder for a trail', async () => {
    expect(await having((data) => rmSync(data, { recursive: true }))).toBeUndefined()
    expect(await having(() => undefined)).toBeUndefined()
    expect(await having((data) => mkdirSync(join(data, 'audit')))).toBeUndefined()
  })

  it.each<[what: string, make: (data: string) => void]>([
    ['a trail', (data) => mkdirSync(join(data, 'audit', 'keys'), { recursive: true })],
    ['a file in its place', (data) => writeFileSync(join(data, 'audit'), '')],
    ['a link that leads nowhere', (data) => symlinkSync(join(data, 'gone'), join(data, 'audit'))],
    ['a link to itself', (data) => symlinkSync('audit', join(data, 'audit'))],
    ['a trail elsewhere whose disk is not mounted', (data) => point(data, `${join(data, 'gone')}\n`)],
    [
      'a trail elsewhere whose mount is empty',
      (data) => {
        mkdirSync(join(data, 'mount'))
        point(data, `${join(data, 'mount')}\n`)
      },
    ],
    ['a damaged pointer', (data) => point(data, '\u{1b}[2Jx')],
    ['an empty pointer', (data) => point(data, '')],
    ['a pointer that cannot be read', (data) => mkdirSync(join(data, 'trail-folder'))],
  ])('is refused with %s', async (_, make) => {
    expect(await having(make)).toMatch(/^The data folder, .*, has an audit trail \([ -~]+\), and this/)
  })
})
