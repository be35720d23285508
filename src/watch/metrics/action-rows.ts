/** Which actions have series of their own. */
import type { Axis } from './metric-counts.ts'

export interface NamedAction {
  readonly area: string
  readonly action: string
}

/** The actions that have series of their own: the first of the configuration. */
export const MOST_ACTIONS = 500

/** The name under which the further actions of an area are counted together. No path of an action has a bracket there. */
export const FURTHER = '(others)'

/** The rows of an axis of areas and actions. */
export interface ActionRows {
  readonly rows: readonly NamedAction[]
  /** By slot: the number of its row. */
  readonly bySlot: Uint32Array
}

export const axisOf = (rows: readonly NamedAction[]): Axis => ({
  area: rows.map(({ area }) => area),
  action: rows.map(({ action }) => action),
})

/**
 * One row for each name up to `MOST_ACTIONS`, then one for each area that has further actions. Slots whose area and
 * action are the same (one per level) share a row.
 */
export function rowsOfActions(actions: readonly NamedAction[]): ActionRows {
  const names = new Map<string, NamedAction>()
  for (const named of actions) if (names.size < MOST_ACTIONS) names.set(keyOf(named), named)
  const shown = actions.map((named) => (names.has(keyOf(named)) ? named : { ...named, action: FURTHER }))
  const rows = [...new Map(shown.map((named) => [keyOf(named), named])).values()]
  const places = new Map(rows.map((named, at) => [keyOf(named), at]))
  return { rows, bySlot: Uint32Array.from(shown, (named) => places.get(keyOf(named)) ?? 0) }
}

/** An area has no slash. An action may have some. */
const keyOf = ({ area, action }: NamedAction): string => `${area}/${action}`
