import { describe, expect, it } from 'vitest'
import { messageOf } from '../../src/base/kernel/thrown.ts'
import { apply, collect, HOSTILE, READERS, repeated, shapesOf } from '../support/hostile-text.ts'
import { sized } from '../support/long.ts'
import { within } from '../support/processor-budget.ts'

/**
 * T2.9: every regular expression of the source, and the functions that read what clients send. What takes time in
 * proportion to the square of the text takes many times as long; it is ended, and named. How time grows is
 * told by `npm run prove linear-expressions`.
 */

const LONG = sized(32, 128) * 1024
const SIZE = `${LONG / 1024} KiB`
/** Milliseconds of the processor for one text; the slowest needs a tenth. */
const BUDGET = sized(60, 1_000)

/** Throws an Error that names the first text at which the work takes more than its part. */
function search(work: (text: string) => unknown, shapes: readonly ((length: number) => string)[]): void {
  const isQuick = (some: typeof shapes): boolean => {
    try {
      within(BUDGET, () => some.forEach((shape) => work(shape(LONG))))
      return true
    } catch {
      return false
    }
  }
  if (isQuick(shapes)) return
  // Each alone, and twice: the processor may have collected garbage, or compiled. What is slow is slow again.
  for (const shape of shapes.filter((each) => !isQuick([each]))) {
    try {
      within(BUDGET, () => work(shape(LONG)))
    } catch (thrown) {
      throw new Error(`${SIZE} like ${JSON.stringify(shape(24))}: ${messageOf(thrown)}`, { cause: thrown })
    }
  }
}

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
    search(apply(regex), shapesOf(regex, false))
  })

  it('one that does not is ended, and the text that it is slow for is told', () => {
    const slow = (): void => search(apply(/eyJ[\w-]+\.[\w-]+/g), [(length) => repeated('eyJ', length)])
    expect(slow).toThrow(/^\d+ KiB like "(eyJ){8}": had not ended after \d+ ms of the processor$/)
  })
})

describe('T2.9 readers of what clients send take time in proportion to it', () => {
  it.each(Object.entries(READERS))(`%s, at ${SIZE} of each hostile shape`, (_name, read) => {
    const orRefused = (text: string): void => {
      try {
        read(text)
      } catch {
        // Refused: that is an end too.
      }
    }
    search(
      orRefused,
      HOSTILE.map((pump) => (length: number) => repeated(pump, length)),
    )
  })
})
