import { describe, expect, it } from 'vitest'
import { pageBody, pageOf, pageOfAll } from '../../../src/operate/operation/paging.ts'

const same = (key: string): string => key

describe('pages of a list', () => {
  it('C11.5 come in the order of code points, behind a key, with a prefix', () => {
    const all = ['b', 'a', '\u{1F600}', '\uFB01', 'ab', 'B']
    const pages: string[][] = []
    for (let after: string | undefined, more = true; more;) {
      const { rows, next } = pageOfAll(all, same, { after, limit: 2 })
      pages.push([...rows])
      after = next
      more = next !== undefined
    }
    expect(pages).toEqual([
      ['B', 'a'],
      ['ab', 'b'],
      ['\uFB01', '\u{1F600}'],
    ])
    expect(pageOfAll(all, same, { after: undefined, limit: 9, prefix: 'a' })).toEqual({
      rows: ['a', 'ab'],
      next: undefined,
    })
    expect(pageOfAll(all, same, { after: 'a', limit: 9, prefix: 'a' }).rows).toEqual(['ab'])
    expect(pageOfAll(all, same, { after: 'aa', limit: 9, prefix: 'a' }).rows).toEqual(['ab'])
  })

  it('C11.5 hold 100 rows if nothing else is asked for', () => {
    expect(pageOf({})).toEqual({ after: undefined, limit: 100 })
    expect(pageOf({ after: 'x', limit: '7', prefix: 'p' })).toEqual({ after: 'x', limit: 7, prefix: 'p' })
  })

  it('C11.5 name no next one after the last row', () => {
    expect(pageBody('users', { rows: [1], next: undefined })).toEqual({ users: [1] })
    expect(pageBody('users', { rows: [1], next: 'a' })).toEqual({ users: [1], next: 'a' })
  })
})
