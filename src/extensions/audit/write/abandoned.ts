/** Intents that processes have left open when they ended: nobody else will write their outcomes (C12.1.3). */
import type { AuditEntry } from '../../../base/contracts/records/audit.ts'
import { type After, after as systemAfter } from '../../../base/kernel/clock.ts'
import { isQuestionForAllOpen, type OpenEnd } from '../read/left-open.ts'
import { countLeftOpen } from '../read/read-trail.ts'

/** The pause before the records from before the start are read, in milliseconds: the start itself comes first. */
const PAUSE = 1000
/** The time until the next attempt, where they could not be read, in milliseconds. */
const RETRY = 60_000

interface AbandonedParts {
  readonly after?: After | undefined
  /** Rejects with TrailReadError. Tests pass their own. */
  readonly count?: ((end: OpenEnd) => Promise<number>) | undefined
}

/** The intents that were left open, and that nobody has asked for since. */
export class AbandonedIntents {
  readonly #after: After
  readonly #count: (end: OpenEnd) => Promise<number>
  #number = 0
  #isAsked = false
  #isClosed = false
  #cancel: () => void = () => undefined

  constructor({ after = systemAfter, count = countLeftOpen }: AbandonedParts = {}) {
    this.#after = after
    this.#count = count
  }

  get number(): number {
    return this.#number
  }

  /** Counts, a moment later, those that stand in the trail from before the start, up to the end that it had then. */
  countBefore(end: OpenEnd, ms = PAUSE): void {
    this.#cancel = this.#after(ms, () => void this.#read(end))
  }

  /** A process has left these open. */
  add(open: number): void {
    this.#number += open
  }

  /** A question is recorded: that for all open intents shows these, so the number begins at 0 again. */
  asked({ event, change }: Pick<AuditEntry, 'event' | 'change'>): void {
    if (!isQuestionForAllOpen(event, change?.['asked'])) return
    this.#number = 0
    this.#isAsked = true
  }

  close(): void {
    this.#isClosed = true
    this.#cancel()
  }

  async #read(end: OpenEnd): Promise<void> {
    try {
      const open = await this.#count(end)
      // Somebody who has asked meanwhile has been shown these too.
      if (!this.#isAsked) this.add(open)
    } catch {
      if (!this.#isClosed) this.countBefore(end, RETRY)
    }
  }
}
