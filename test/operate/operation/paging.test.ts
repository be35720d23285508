import { describe, expect, it } from 'vitest'
import { pageBody, pageOf } from '../../../src/operate/operation/paging.ts'

describe('pages of a list', () => {
  it('C11.5 hold 100 rows if nothing else is asked for', () => {
    expect(pageOf({})).toEqual({ after: undefined, limit: 100 })
    expect(pageOf({ after: 'x', limit: '7', prefix: 'p' })).toEqual({ after: 'x', limit: 7, prefix: 'p' })
  })

  it('C11.5 name no next one after the last row', () => {
    expect(pageBody('users', { rows: [1], next: undefined })).toEqual({ users: [1] })
    expect(pageBody('users', { rows: [1], next: 'a' })).toEqual({ users: [1], next: 'a' })
  })
})
