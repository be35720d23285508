import { describe, expect, it } from 'vitest'
import { FailureTable } from '../../../src/identity/guessing/failures.ts'
import { ManualClock } from '../../support/identity-under-test.ts'

function open(most: number) {
  const clock = new ManualClock()
  const table = new FailureTable<string>({ clock, most, forget: () => 60_000 })
  const fail = (id: string, times = 1): void => {
    for (let at = 0; at < times; at++) table.fail(id, id)
  }
  const left = () => table.list().map(({ key }) => key)
  return { clock, table, fail, left }
}

describe('C6.3.5 counts of failures', () => {
  it('have an entry only for who failed, and no more of them than their bound', () => {
    const { table, fail } = open(3)
    expect(table.find('a')).toBeUndefined()
    expect(table.size).toBe(0)
    for (const id of ['a', 'b', 'c', 'd', 'e']) fail(id)
    expect(table.size).toBe(3)
  })

  it('forget who failed least first, the oldest of those', () => {
    const { fail, left } = open(3)
    fail('often', 70)
    fail('more', 2)
    fail('once')
    fail('new')
    expect(left()).toEqual(['often', 'more', 'new'])
    for (let at = 0; at < 1000; at++) fail(`invented-${at}`)
    expect(left()).toEqual(['often', 'more', 'invented-999'])
  })

  it('forget before them whoever’s last failure is too long ago', () => {
    const { clock, fail, left, table } = open(2)
    fail('long ago', 10)
    clock.at += 59_000
    fail('once')
    clock.at += 1_000
    expect(left()).toEqual(['once'])
    fail('new')
    expect(left()).toEqual(['once', 'new'])
    clock.at += 60_000
    expect(table.find('new')).toBeUndefined()
    fail('new')
    expect(table.find('new')?.failures).toBe(1)
  })

  it('forget what they are told to, and say how many that were', () => {
    const { fail, table } = open(5)
    for (const id of ['a', 'b', 'c']) fail(id, 2)
    expect(table.forget('a')).toBe(true)
    expect(table.forget('a')).toBe(false)
    expect(table.forgetWhere((key) => key === 'b')).toBe(1)
    fail('c')
    expect(table.find('c')?.failures).toBe(3)
  })
})
