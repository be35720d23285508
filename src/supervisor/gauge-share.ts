import { type Block, type Delta, holds, type Plan, rowAlone, seriesAt } from '../operations/metrics/ledger.ts'

/** Something counted by a plan of its own. */
export interface Counted {
  readonly plan: Plan
  readonly delta: Delta
}

/** One series, as a block without a place. */
type Series = Pick<Block, 'family' | 'axes'>

interface Held {
  readonly series: Series
  readonly amount: number
}

/**
 * What one process adds to gauges. They are counted up and down like counters, but tell of what is: when the process
 * has ended, however that came, its part is nothing.
 */
export class GaugeShare {
  #gauges: readonly Block[] = []
  /** By series, since what was counted up by one plan may be counted down by the next; none at zero. */
  readonly #held = new Map<string, Held>()

  /** The plan that the deltas after it follow. */
  follow(plan: Plan): void {
    this.#gauges = plan.filter(({ family }) => family.type === 'gauge')
  }

  add({ cells, amounts }: Delta): void {
    for (const [at, cell] of cells.entries()) {
      const block = this.#gauges.find((gauge) => holds(gauge, cell))
      if (block !== undefined) this.#hold(seriesOf(block, cell), amounts[at] ?? 0)
    }
  }

  /** What brings its part back to zero, by a plan made for it; undefined if it is. Forgets it. */
  takeBack(): Counted | undefined {
    const held = [...this.#held.values()]
    this.#held.clear()
    if (held.length === 0) return undefined
    return {
      plan: held.map(({ series }, at) => ({ ...series, at, count: 1 })),
      delta: { cells: held.map((_, at) => at), amounts: held.map(({ amount }) => -amount) },
    }
  }

  #hold(series: Series, more: number): void {
    const key = JSON.stringify([series.family.name, series.axes])
    const amount = (this.#held.get(key)?.amount ?? 0) + more
    if (amount === 0) this.#held.delete(key)
    else this.#held.set(key, { series, amount })
  }
}

function seriesOf(block: Block, cell: number): Series {
  const rows = seriesAt(block, cell)
  return { family: block.family, axes: block.axes.map((axis, at) => rowAlone(axis, rows[at] ?? 0)) }
}
