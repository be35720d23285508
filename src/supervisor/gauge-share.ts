import type { Child, Delta } from '../operations/ledger.ts'

/** Something counted by a plan of its own. */
export interface Counted {
  readonly children: readonly Child[]
  readonly delta: Delta
}

interface Held {
  readonly child: Child
  readonly amount: number
}

/**
 * What one process adds to gauges. They are counted up and down like counters, but tell of what is: when the process
 * has ended, however that came, its part is nothing.
 */
export class GaugeShare {
  #gauges: ReadonlyMap<number, Child> = new Map()
  /** By series, since what was counted up by one plan may be counted down by the next; none at zero. */
  readonly #held = new Map<string, Held>()

  /** The plan that the deltas after it follow. */
  follow(children: readonly Child[]): void {
    const gauges = children.filter(({ family }) => family.type === 'gauge')
    this.#gauges = new Map(gauges.map((child) => [child.at, child]))
  }

  add({ cells, amounts }: Delta): void {
    for (const [at, cell] of cells.entries()) {
      const child = this.#gauges.get(cell)
      if (child !== undefined) this.#hold(child, amounts[at] ?? 0)
    }
  }

  /** What brings its part back to zero, by a plan made for it; undefined if it is. Forgets it. */
  takeBack(): Counted | undefined {
    const held = [...this.#held.values()]
    this.#held.clear()
    if (held.length === 0) return undefined
    return {
      children: held.map(({ child }, at) => ({ ...child, at })),
      delta: { cells: held.map((_, at) => at), amounts: held.map(({ amount }) => -amount) },
    }
  }

  #hold(child: Child, more: number): void {
    const key = JSON.stringify([child.family.name, child.values])
    const amount = (this.#held.get(key)?.amount ?? 0) + more
    if (amount === 0) this.#held.delete(key)
    else this.#held.set(key, { child, amount })
  }
}
