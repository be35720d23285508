import { describe, expect, it } from 'vitest'
import { onlyLessens } from '../../../src/base/config/lessens.ts'
import { flag, list, mapOf, opaque, section, text, viewOf } from '../../../src/base/config/schema.ts'

const item = (description: string) => text({ description })

const schema = viewOf(
  section({
    items: list(item('Less.'), { takesAway: 'less', description: 'May be fewer.' }),
    closed: list(item('More.'), { takesAway: 'more', description: 'May be more.' }),
    off: flag({ takesAway: { to: true }, description: 'May become true.' }),
    entries: mapOf(
      section({ names: list(item('Less.'), { takesAway: 'less', description: 'May be fewer.' }) }),
      { takesAway: 'less', description: 'Entries may go.' },
    ),
    others: mapOf(section({ names: list(item('Less.'), { takesAway: 'less', description: '.' }) }), {
      description: 'No entry may go.',
    }),
    free: opaque<object>({ description: 'Unknown to the schema.' }),
    note: item('Says nothing.'),
  }),
)

const BEFORE = {
  items: ['a', 'b'],
  closed: ['x'],
  off: false,
  entries: { one: { names: ['n', 'm'] }, two: { names: [] } },
  others: { one: { names: ['n'] } },
  free: new Map([['a', 1]]),
  note: 'a',
}

describe('C12.1.4 a change that only takes away', () => {
  it.each([
    ['of nothing', {}, true],
    ['of an item that goes', { items: ['b'] }, true],
    ['of an item that comes', { items: ['a', 'b', 'c'] }, false],
    ['of an item that is replaced', { items: ['a', 'c'] }, false],
    ['of a list that closes more', { closed: ['x', 'y'] }, true],
    ['of a list that closes less', { closed: [] }, false],
    ['of a value that becomes the one named', { off: true }, true],
    ['of an entry that goes, and one with less', { entries: { one: { names: ['m'] } } }, true],
    ['of an entry that comes', { entries: { ...BEFORE.entries, three: { names: [] } } }, false],
    ['of an entry with the name of an inherited member', { entries: { constructor: { names: [] } } }, false],
    ['of an entry of a map that does not say so', { others: {} }, false],
    ['of less within a map that does not say so', { others: { one: { names: [] } } }, false],
    ['of what the schema does not know', { free: new Map() }, false],
    ['of a value that says nothing', { note: 'b' }, false],
    ['of a member that goes', { note: undefined }, false],
  ])('C12.1.4 is told by the schema: %s', (_title, change, expected) => {
    expect(onlyLessens(schema, BEFORE, { ...BEFORE, ...change })).toBe(expected)
  })

  it('C12.1.4 is no way back: what is switched off and comes on again gives', () => {
    expect(onlyLessens(schema, { ...BEFORE, off: true }, BEFORE)).toBe(false)
  })
})
