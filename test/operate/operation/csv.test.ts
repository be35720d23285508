import { describe, expect, it } from 'vitest'
import { csvLine } from '../../../src/operate/operation/csv.ts'

describe('csvLine', () => {
  it('writes a line of cells, an undefined one empty, and its end', () => {
    expect(csvLine(['a', 2, undefined, 'b c'])).toBe('a,2,,b c\r\n')
  })

  it.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1'])(
    'C14.5 puts a quote before %j, which a spreadsheet would carry out',
    (text) => {
      expect(csvLine([text]).replace(/^"/, '')).toMatch(/^'/)
    },
  )

  it('C14.5 leaves numbers as they are, negative ones too', () => {
    expect(csvLine([-1, 0.5])).toBe('-1,0.5\r\n')
  })

  it.each([
    ['a "word"', '"a ""word"""'],
    ['a,b', '"a,b"'],
    ['a;=1+1', '"a;=1+1"'],
    ['a\tb', '"a\tb"'],
    ['two\nlines', '"two\nlines"'],
    ['two\r\nlines', '"two\r\nlines"'],
    [' ', '" "'],
    ['=cmd|"x"', '"\'=cmd|""x"""'],
  ])('quotes a cell that holds a divider, a quote or a line end: %j', (text, written) => {
    expect(csvLine([text, 'z'])).toBe(`${written},z\r\n`)
  })
})
