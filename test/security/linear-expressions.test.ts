import { describe, expect, it } from 'vitest'
import { apply, collect, HOSTILE, READERS, repeated, shapesOf } from '../support/hostile-text.ts'

/**
 * T2.9: every regular expression of the source, and the functions that read what clients send. Nothing is measured
 * here: what takes time in proportion to the square of the text would not end within the time of a test. How time grows
 * is told by `npm run prove linear-expressions`.
 */

const LONG = 128 * 1024

describe('T2.9 regular expressions take time in proportion to the text', () => {
  const expressions = collect()

  it.each([
    [/=+$/, '========\u0001'],
    [/^[\t\n\r ]+|[\t\n\r ]+$/g, 'a        \n\u0001'],
    [/\s+$/, '        \u0001'],
    [/[^/]+;$/, 'aaaaaaaa\u0001'],
    [/\.+\/$/, '........\u0001'],
    [/eyJ[\w-]+\.[\w-]+/g, 'eyJeyJeyJ'],
  ])('T2.9 of %s the text that is slow is among the shapes', (regex, slow) => {
    expect(shapesOf(regex, false).map((shape) => shape(8))).toContain(slow)
  })

  it('are found', () => {
    expect(expressions.length).toBeGreaterThan(100)
  })

  it.each(expressions)('$where', ({ regex }) => {
    const search = apply(regex)
    for (const shape of shapesOf(regex, false)) search(shape(LONG))
  })
})

describe('T2.9 readers of what clients send take time in proportion to it', () => {
  it.each(Object.entries(READERS))('%s, at 128 KiB of each hostile shape', (_name, read) => {
    for (const pump of HOSTILE)
      try {
        read(repeated(pump, LONG))
      } catch {
        // Refused: that is an end too.
      }
  })
})
