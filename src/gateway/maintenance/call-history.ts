/** What all processes counted of the last hour, in steps of five minutes. Only the supervising process keeps it. */
import type { Clock } from '../../base/kernel/clock.ts'
import type { CallCount } from '../../base/contracts/processes/reports.ts'

const STEP = 300_000
/** The step that is under way, and the hour before it. */
const STEPS = 13
/** How many rows of one step are kept apart; the rest counts as of no known client. */
const MOST_ROWS = 5000

interface Step {
  /** When the step began, in milliseconds since the epoch. */
  readonly begin: number
  readonly rows: Map<string, CallCount>
}

const keyOf = ({ client, business, place }: CallCount): string => JSON.stringify([client, business, place])

export class CallHistory {
  readonly #clock: Pick<Clock, 'now'>
  readonly #startedAt: number
  #steps: readonly Step[] = []

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
    this.#startedAt = clock.now()
  }

  absorb(counts: readonly CallCount[]): void {
    if (counts.length === 0) return
    const { rows } = this.#step()
    for (const count of counts) {
      const kept =
        rows.size < MOST_ROWS || rows.has(keyOf(count)) ? count : { ...count, client: '', business: '' }
      const key = keyOf(kept)
      rows.set(key, { ...kept, calls: (rows.get(key)?.calls ?? 0) + kept.calls })
    }
  }

  /** Since when calls are counted here, milliseconds since the epoch: an hour ago, or since the start. */
  get since(): number {
    return Math.max(this.#startedAt, this.#oldest())
  }

  /** What was counted since then; a client, business and place may come several times. */
  *counts(): Generator<CallCount> {
    const oldest = this.#oldest()
    for (const { begin, rows } of this.#steps) if (begin >= oldest) yield* rows.values()
  }

  #oldest(): number {
    return (Math.floor(this.#clock.now() / STEP) - STEPS + 1) * STEP
  }

  #step(): Step {
    const begin = Math.floor(this.#clock.now() / STEP) * STEP
    const known = this.#steps.find((step) => step.begin === begin)
    if (known !== undefined) return known
    const step = { begin, rows: new Map<string, CallCount>() }
    const oldest = this.#oldest()
    this.#steps = [...this.#steps.filter((each) => each.begin >= oldest), step]
    return step
  }
}
