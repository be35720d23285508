import { toFault, type Fault } from '../kernel/faults.ts'

/** What a call of a report-only area would have been refused for, had its area enforced anything. */
export class Observation {
  readonly area: string
  #fault: Fault | undefined

  constructor(area: string) {
    this.area = area
  }

  /** The first failure, which would have won (C4). */
  get fault(): Fault | undefined {
    return this.#fault
  }

  /** Makes a check, and keeps what it throws. */
  hold<T>(check: () => T): T | undefined {
    try {
      return check()
    } catch (thrown) {
      this.keep(thrown)
      return undefined
    }
  }

  /** The same of a check that may take time. */
  async holdLater<T>(check: () => Promise<T>): Promise<T | undefined> {
    try {
      return await check()
    } catch (thrown) {
      this.keep(thrown)
      return undefined
    }
  }

  keep(thrown: unknown): void {
    this.#fault ??= toFault(thrown)
  }

  /** For the upstream: `X-Postern-Decision`, which no client can send (C8.2). */
  get header(): string {
    return this.#fault === undefined ? 'allow' : `would-refuse; reason=${this.#fault.code}`
  }
}
