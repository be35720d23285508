/** For the preview of a switch (C11.5.6): businesses are too many for metrics. Costs each call one look-up. */
import type { Principal } from '../../base/contracts/people/principal.ts'
import type { DecisionEvent, Recorder } from '../../base/contracts/records/recorder.ts'
import { scopeText } from './switch.ts'
import type { CallCount } from '../../base/contracts/processes/reports.ts'

/** How many pairs of client and business one process counts apart. */
const MOST_ROWS = 5000

class Row {
  readonly client: string
  readonly business: string
  readonly counts: number[]
  isTouched = false

  constructor(client: string, business: string, places: number) {
    this.client = client
    this.business = business
    this.counts = new Array<number>(places).fill(0)
  }
}

export class RecentCalls implements Pick<Recorder, 'decision'> {
  /** The name of each area, then `service`, then `identity`. */
  readonly #places: readonly string[]
  readonly #placeOf: readonly number[]
  readonly #byPrincipal = new WeakMap<Principal, Row>()
  readonly #rows = new Map<string, Row>()
  readonly #others: Row
  #touched: Row[] = []

  /** @param actions in the order of the slots of decision events */
  constructor(actions: readonly { readonly area: string }[]) {
    const areas = [...new Set(actions.map(({ area }) => area))]
    this.#places = [...areas.map((name) => scopeText({ kind: 'area', name })), 'service', 'identity']
    this.#placeOf = actions.map(({ area }) => areas.indexOf(area))
    this.#others = new Row('', '', this.#places.length)
  }

  decision({ door, principal, slot }: DecisionEvent): void {
    const row =
      principal === undefined ? this.#others : (this.#byPrincipal.get(principal) ?? this.#rowOf(principal))
    const last = this.#places.length - 1
    const noAction = last - 1
    const place =
      door === 'identity' ? last : slot === undefined ? noAction : (this.#placeOf[slot] ?? noAction)
    row.counts[place] = (row.counts[place] ?? 0) + 1
    if (row.isTouched) return
    row.isTouched = true
    this.#touched.push(row)
  }

  /** Returns what was counted since the last call, and resets it. */
  take(): readonly CallCount[] {
    const touched = this.#touched
    this.#touched = []
    return touched.flatMap((row) => {
      const { client, business, counts } = row
      const taken = counts.flatMap((calls, at) =>
        calls === 0 ? [] : [{ client, business, place: this.#places[at] ?? '', calls }],
      )
      counts.fill(0)
      row.isTouched = false
      return taken
    })
  }

  /** Called once for each token that is verified. */
  #rowOf(principal: Principal): Row {
    const { clientKey, target } = principal
    const business = target?.business ?? ''
    const key = JSON.stringify([clientKey, business])
    const known = this.#rows.get(key)
    const row =
      known ??
      (this.#rows.size < MOST_ROWS ? new Row(clientKey, business, this.#places.length) : this.#others)
    if (known === undefined && row !== this.#others) this.#rows.set(key, row)
    this.#byPrincipal.set(principal, row)
    return row
  }
}
