import { describe, expect, it } from 'vitest'
import { messageOf } from '../../src/kernel/thrown.ts'
import { apply, collect, HOSTILE, READERS, repeated, shapesOf } from '../support/hostile-text.ts'
import { needsSources } from '../support/program.ts'
import { within } from '../support/processor-budget.ts'

/**
 * T2.9: every regular expression of the source, and the functions that read what clients send. What takes time in
 * proportion to the square of the text takes many seconds for each; it is ended within two, and named. How time grows is
 * told by `npm run prove linear-expressions`.
 */

const LONG = 128 * 1024
/** Milliseconds of the processor for all texts of one expression or reader; the slowest needs a fifth. */
const BUDGET = 2_000

/** Throws an Error that names the text at which the work takes more than its part. */
function search(work: (text: string) => unknown, shapes: readonly ((length: number) => string)[]): void {
  let at = ''
  const all = (): void => {
    for (const shape of shapes) {
      at = shape(24)
      work(shape(LONG))
    }
  }
  try {
    within(BUDGET, all)
  } catch (thrown) {
    throw new Error(`128 KiB like ${JSON.stringify(at)}: ${messageOf(thrown)}`, { cause: thrown })
  }
}

const here = needsSources('it reads the expressions out of the source files')

describe('T2.9 regular expressions take time in proportion to the text', here, () => {
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
    expect(slow).toThrow(/^128 KiB like "(eyJ){8}": had not ended after \d+ ms of the processor$/)
  })
})

describe('T2.9 readers of what clients send take time in proportion to it', () => {
  it.each(Object.entries(READERS))('%s, at 128 KiB of each hostile shape', (_name, read) => {
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
