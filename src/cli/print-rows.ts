import type { Terminal } from './verb.ts'

const GAP = '  '

/** Writes rows under their heads, each column as wide as its widest cell. */
export function printRows(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
  { stdout }: Terminal,
): void {
  const all = [heads, ...rows]
  const widths = heads.map((_head, at) => all.reduce((most, row) => Math.max(most, row[at]?.length ?? 0), 0))
  for (const row of all)
    stdout.write(
      `${row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join(GAP)
        .trimEnd()}\n`,
    )
}

/** Writes a value as indented JSON. */
export const printJson = (value: unknown, { stdout }: Terminal): void => {
  stdout.write(`${JSON.stringify(value, null, 2)}\n`)
}

/** `1 code`, `2 codes`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`

export const countedFamilies = (count: number): string =>
  counted(count, 'family of refresh tokens', 'families of refresh tokens')
