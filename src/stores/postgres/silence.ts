/** Silences that are remembered. A database that fails more often than that within a grace has failed for that client. */
const REMEMBERED = 100

interface Interval {
  readonly from: number
  /** Undefined: it goes on. */
  until: number | undefined
}

/**
 * When the database did not answer this process. Times are those of `performance.now()`. Only
 * the times without an answer count, and not those between them: else a database that fails now and then would lengthen
 * the grace of a refresh token by as long as it goes on so.
 */
export class Silence {
  readonly #intervals: Interval[] = []

  /** @param sentAt when the request was sent that got no answer: what it wrote may have been written from then on */
  failed(sentAt: number): void {
    const last = this.#intervals.at(-1)
    if (last !== undefined && last.until === undefined) return
    this.#intervals.push({ from: Math.max(sentAt, last?.until ?? sentAt), until: undefined })
    if (this.#intervals.length > REMEMBERED) this.#intervals.shift()
  }

  answered(now: number): void {
    const last = this.#intervals.at(-1)
    if (last !== undefined) last.until ??= Math.max(now, last.from)
  }

  /** Milliseconds without an answer since a time. */
  since(time: number, now: number): number {
    return this.#intervals.reduce(
      (sum, { from, until = now }) => sum + Math.max(0, until - Math.max(from, time)),
      0,
    )
  }
}
