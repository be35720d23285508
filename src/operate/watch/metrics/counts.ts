/**
 * What one process counts. Every call counts in a dozen series, so they are numbers in arrays, whose places are computed.
 * Labels combine to far more series than are ever counted (each fault at each action): so a family is given its axes only,
 * and a series is named by its labels when it is handed over.
 */
import { CLIENT_RESULTS, type ClientTally } from '../../../base/contracts/people/principal.ts'
import { BUCKETS, type CountedFamily, FAMILIES } from './families.ts'
import type { Delta } from '../../../base/contracts/processes/reports.ts'

/** Labels that vary together, each with its column of values. */
export type Axis = Readonly<Record<string, readonly string[]>>

export class Counts {
  readonly #families: FamilyCounts[] = []

  /**
   * Makes a series for each combination of the axes' rows, of which there are three at most. They are handed over at 0 the
   * first time, so that they are shown from the start; those of a sparse family are not.
   */
  plan(family: CountedFamily, ...axes: readonly Axis[]): FamilyCounts {
    const planned = new FamilyCounts(family, axes)
    this.#families.push(planned)
    return planned
  }

  /** Returns what was counted since the last call, and resets it. */
  take(): readonly Delta[] {
    return this.#families.map((family) => family.take()).filter(({ series }) => series.length > 0)
  }
}

const SUM = BUCKETS.length + 1

/** How many numbers a series has. */
export const widthOf = ({ type }: CountedFamily): number => (type === 'histogram' ? SUM + 1 : 1)

const rowsOf = (axis: Axis | undefined): number => Object.values(axis ?? {})[0]?.length ?? 1

/** The counts of one family. A series is given by its row on each axis. */
class FamilyCounts {
  readonly #family: CountedFamily
  readonly #axes: readonly Axis[]
  readonly #width: number
  /** Rows of the second and the third axis. */
  readonly #second: number
  readonly #third: number
  readonly #numbers: Float64Array
  /** By series: 1 if it is to be handed over. */
  readonly #isTouched: Uint8Array
  #touched: number[] = []

  constructor(family: CountedFamily, axes: readonly Axis[]) {
    this.#family = family
    this.#axes = axes
    this.#width = widthOf(family)
    this.#second = rowsOf(axes[1])
    this.#third = rowsOf(axes[2])
    const series = rowsOf(axes[0]) * this.#second * this.#third
    this.#numbers = new Float64Array(series * this.#width)
    this.#isTouched = new Uint8Array(series)
    if (family.sparse !== true) for (let at = 0; at < series; at++) this.#touch(at)
  }

  /** Hands this series of a sparse family over at 0. */
  show(first: number, second: number): void {
    this.#touch(this.#seriesAt(first, second, 0))
  }

  add(amount: number, first = 0, second = 0, third = 0): void {
    const series = this.#seriesAt(first, second, third)
    if (this.#isTouched[series] === 0) this.#touch(series)
    this.#numbers[series] = (this.#numbers[series] ?? 0) + amount
  }

  observe(seconds: number, first = 0, second = 0): void {
    const series = this.#seriesAt(first, second, 0)
    if (this.#isTouched[series] === 0) this.#touch(series)
    let bucket = 0
    while (bucket < BUCKETS.length && seconds > (BUCKETS[bucket] ?? 0)) bucket += 1
    const start = series * this.#width
    this.#numbers[start + bucket] = (this.#numbers[start + bucket] ?? 0) + 1
    this.#numbers[start + SUM] = (this.#numbers[start + SUM] ?? 0) + seconds
  }

  /** As `Counts.take`. Costs time for the series that were counted, not for all of them. */
  take(): Delta {
    const series = this.#touched
    this.#touched = []
    const labels = series.flatMap((at) => this.#labelsOf(at))
    const amounts: number[] = []
    for (const at of series) {
      this.#isTouched[at] = 0
      for (let cell = at * this.#width; cell < (at + 1) * this.#width; cell++) {
        amounts.push(this.#numbers[cell] ?? 0)
        this.#numbers[cell] = 0
      }
    }
    return { name: this.#family.name, series, labels, amounts }
  }

  #seriesAt(first: number, second: number, third: number): number {
    return (first * this.#second + second) * this.#third + third
  }

  #touch(series: number): void {
    this.#isTouched[series] = 1
    this.#touched.push(series)
  }

  #labelsOf(series: number): readonly string[] {
    const rows = [
      Math.floor(series / this.#third / this.#second),
      Math.floor(series / this.#third) % this.#second,
      series % this.#third,
    ]
    return this.#family.labels.map((label) => {
      const axis = this.#axes.findIndex((each) => label in each)
      return this.#axes[axis]?.[label]?.[rows[axis] ?? 0] ?? ''
    })
  }
}

export const UNKNOWN = 'other'

/** The position of a known word; for all other words the last position. */
export function positionsOf(words: readonly string[]): (word: string) => number {
  const places = new Map(words.map((word, at) => [word, at]))
  const last = words.length - 1
  return (word) => places.get(word) ?? last
}

/** Clients in the order in which they come, before all together; `amounts` in the order of `CLIENT_RESULTS`. */
export const countsOfClient = (client: string, amounts: readonly number[]): Delta => ({
  name: FAMILIES.clientDecisions.name,
  series: CLIENT_RESULTS.map(() => -1),
  labels: CLIENT_RESULTS.flatMap((result) => [client, result]),
  amounts,
})

/** How many tallies are found by the client's name. More are made anew, and added up by name nevertheless. */
const MOST_KEPT = 10_000

/** The tallies of one process. It counts each client by name: the supervisor decides which have series of their own. */
export class ClientTallies {
  #byClient = new Map<string, Tally>()
  /** The tallies that have counted since the last `take`. */
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
