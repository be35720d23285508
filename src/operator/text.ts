/** What answers have in common as people read them. */
import { DIRECTION_CONTROLS } from '../kernel/clean-text.ts'

/** `1 code`, `2 codes`. */
export const countOf = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`

const ACTED_ON = new RegExp(`[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029${DIRECTION_CONTROLS}]`, 'g')

/** Paths, headers and codes are a caller's own text: what would change the terminal is escaped. */
export const printable = (text: string): string =>
  text.replace(ACTED_ON, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

const GAP = '  '

/** Rows below their headings as lines, each column as wide as its widest cell. */
export function rowLines(heads: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [heads, ...rows]
  const widths = heads.map((_head, at) => all.reduce((most, row) => Math.max(most, row[at]?.length ?? 0), 0))
  return all.map((row) => {
    const cells = row.map((cell, at) => cell.padEnd(widths[at] ?? 0))
    return `${cells.join(GAP).trimEnd()}\n`
  })
}

/** A value as indented JSON. */
export const jsonText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

export const countOfFamilies = (count: number): string =>
  countOf(count, 'family of refresh tokens', 'families of refresh tokens')
