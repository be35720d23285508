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
