import { CLIENT_RESULTS, type ClientTally } from '../../contracts/principal.ts'

/** What one process counted for one client since it last told. Plain data. */
export interface ClientCounts {
  readonly client: string
  /** In the order of `CLIENT_RESULTS`. */
  readonly amounts: readonly number[]
}

/** Tallies that are found by the client's name. More are made anew, and added up by name all the same. */
const MOST_KEPT = 10_000

/**
 * The tallies of one process, for as long as it runs. A process does not know which clients have series of their own: the
 * supervisor decides that for all processes. So counts are told by name, those that are not zero.
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
  take(): readonly ClientCounts[] {
    const touched = this.#touched
    this.#touched = []
    return touched.map((tally) => tally.take())
  }
}

class Tally implements ClientTally {
  readonly #client: string
  readonly #touch: (tally: Tally) => void
  #isTouched = false
  #amounts = nothing()

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

  take(): ClientCounts {
    const counted = { client: this.#client, amounts: this.#amounts }
    this.#isTouched = false
    this.#amounts = nothing()
    return counted
  }
}

const nothing = (): number[] => CLIENT_RESULTS.map(() => 0)
