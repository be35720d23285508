import { CLIENT_RESULTS, type ClientTally } from '../../contracts/principal.ts'
import type { Delta } from './counts.ts'
import { FAMILIES } from './families.ts'

/**
 * What was counted for a client, in the order of `CLIENT_RESULTS`. Clients are shown in the order in which they come, and
 * before all others together.
 */
export const countsOfClient = (client: string, amounts: readonly number[]): Delta => ({
  name: FAMILIES.clientDecisions.name,
  series: CLIENT_RESULTS.map(() => -1),
  labels: CLIENT_RESULTS.flatMap((result) => [client, result]),
  amounts,
})

/** Tallies that are found by the client's name. More are made anew, and added up by name all the same. */
const MOST_KEPT = 10_000

/**
 * The tallies of one process, for as long as it runs. A process does not know which clients have series of their own: the
 * supervisor decides that for all processes. So each client is counted by its name.
 */
export class ClientTallies {
  #byClient = new Map<string, Tally>()
  /** Those that have counted since the last `take`. */
  #touched: Tally[] = []

  /** The tally of a client of the directory that has proved who it is. */
  of(client: string): ClientTally {
    const known = this.#byClient.get(client)
    if (known !== undefined) return known
    if (this.#byClient.size >= MOST_KEPT) this.#byClient.clear()
    const made = new Tally(client, (tally) => this.#touched.push(tally))
    this.#byClient.set(client, made)
    return made
  }

  /** Returns what was counted since the last call, and resets it. In the order in which clients first called. */
  take(): readonly Delta[] {
    const touched = this.#touched
    this.#touched = []
    return touched.map((tally) => tally.take())
  }
}

class Tally implements ClientTally {
  readonly #client: string
  readonly #touch: (tally: Tally) => void
  #isTouched = false
  readonly #amounts = CLIENT_RESULTS.map(() => 0)

  constructor(client: string, touch: (tally: Tally) => void) {
    this.#client = client
    this.#touch = touch
  }

  count(result: number): void {
    if (!this.#isTouched) {
      this.#isTouched = true
      this.#touch(this)
    }
    this.#amounts[result] = (this.#amounts[result] ?? 0) + 1
  }

  take(): Delta {
    const counted = countsOfClient(this.#client, [...this.#amounts])
    this.#isTouched = false
    this.#amounts.fill(0)
    return counted
  }
}
