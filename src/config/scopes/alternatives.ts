import type { Catalogue } from './catalogue.ts'

/**
 * Of values of which one is enough, those that allow least: the ones that imply no other of them. Of values that imply
 * each other all stay. `fund.read` and `fund.maintain` become `fund.read`.
 */
export const leastOf = (values: ReadonlySet<string>, catalogue: Catalogue): readonly string[] =>
  [...values].filter((value) =>
    [...catalogue.close([value])].every(
      (implied) => !values.has(implied) || catalogue.close([implied]).has(value),
    ),
  )

/** Combinations that are tried before the search settles for what is found step by step. */
const MOST_TRIED = 20_000

/**
 * The fewest scope values that, held together, have one of each group. Of as many, those that imply least. Undefined if
 * nothing can be in a group.
 * @param held values that are held already
 */
export function smallestScopes(
  groups: readonly ReadonlySet<string>[],
  catalogue: Catalogue,
  held: ReadonlySet<string> = new Set(),
): readonly string[] | undefined {
  const open = groups.filter((group) => group.isDisjointFrom(held))
  if (open.some((group) => group.size === 0)) return undefined
  const weight = (value: string): number => catalogue.close([value]).size
  const useful = [...new Set(open.flatMap((group) => [...group]))].sort((a, b) => weight(a) - weight(b))
  return search(open, useful) ?? stepByStep(open, useful)
}

/** Tries one value, then two, and so on. Undefined if that would take too long. */
function search(
  open: readonly ReadonlySet<string>[],
  useful: readonly string[],
): readonly string[] | undefined {
  let tried = 0
  for (let size = 0; size <= open.length; size++)
    for (const chosen of combinations(useful, size)) {
      if ((tried += 1) > MOST_TRIED) return undefined
      if (open.every((group) => chosen.some((value) => group.has(value)))) return chosen
    }
  return undefined
}

/** Those of the first values come first. */
function* combinations(values: readonly string[], size: number): Generator<readonly string[]> {
  if (size === 0) yield []
  else
    for (const [at, value] of values.entries())
      for (const rest of combinations(values.slice(at + 1), size - 1)) yield [value, ...rest]
}

/** At each step the value that satisfies most. */
function stepByStep(open: readonly ReadonlySet<string>[], useful: readonly string[]): readonly string[] {
  const chosen: string[] = []
  let left = open
  while (left.length > 0) {
    const gain = (value: string): number => left.filter((group) => group.has(value)).length
    const [first = '', ...others] = useful
    const best = others.reduce((most, value) => (gain(value) > gain(most) ? value : most), first)
    chosen.push(best)
    left = left.filter((group) => !group.has(best))
  }
  return chosen
}
