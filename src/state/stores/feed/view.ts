import type { View } from '../../../base/contracts/records/store.ts'
import {
  type After,
  after as systemAfter,
  type Clock,
  repeatedly,
  systemClock,
} from '../../../base/kernel/clock.ts'
import { Fault } from '../../../base/kernel/faults.ts'
import type { ClockOffset } from '../../../base/kernel/store-clock.ts'
import type { ChangeFeed } from './change-feed.ts'

interface ViewParts {
  readonly feed: Pick<ChangeFeed, 'age' | 'isBehind' | 'seen' | 'refresh'>
  /** Milliseconds after which tokens can no longer be judged by it. */
  readonly maxAge: number
  /** The offset of a store whose clock is used. It is moved forward after a suspension, in which Clock.monotonic() stops. */
  readonly offset?: Pick<ClockOffset, 'advance'> | undefined
  /** The clock of this machine, never that of the store. */
  readonly machine?: Clock
  readonly after?: After
}

/** Milliseconds between two looks at the clocks. */
const INTERVAL = 250
/** Milliseconds that a clock may have moved between two looks; more than that was a pause. */
const PAUSE = INTERVAL + 1000
/** How old a view may be to issue tokens, in milliseconds. */
const CURRENT = 1000
/** How long a call waits for a reading, in milliseconds. */
const PATIENCE = 300
/** How many readings one wait makes at most, if the process is paused meanwhile. */
const MOST_READINGS = 2
/** The value of Retry-After, in seconds. */
const RETRY_AFTER = 1

interface Moment {
  readonly wall: number
  readonly monotonic: number
}

/**
 * The view of a process that follows the change feed.
 *
 * A process may be paused, or its machine suspended. When it runs again, calls arrive before any timer runs: measured, 9 of
 * 10 first answers would be given by what was known before. So each call compares the clock with the last look at it. Both
 * clocks are looked at, because Clock.monotonic() stops in a suspended machine, and a wall clock can be set back.
 */
export class FeedView implements View {
  readonly #parts: ViewParts
  readonly #machine: Clock
  readonly #after: After
  /** When the clocks were last looked at: wall time and Clock.monotonic(). */
  #wall: number
  #monotonic: number
  #isOutdated = false
  #settling: Promise<void> | undefined
  readonly stop: () => void

  constructor(parts: ViewParts) {
    this.#parts = parts
    this.#machine = parts.machine ?? systemClock
    this.#after = parts.after ?? systemAfter
    this.#wall = this.#machine.now()
    this.#monotonic = this.#machine.monotonic()
    this.stop = repeatedly(this.#after, INTERVAL, () => this.#tick())
  }

  get isOutdated(): boolean {
    return this.#isOutdated
  }

  isSettled(): boolean {
    const moved = this.#machine.now() - this.#wall
    return moved < PAUSE && moved > -PAUSE
  }

  settle(): Promise<void> {
    this.#settling ??= this.#read().finally(() => {
      this.#settling = undefined
    })
    return this.#settling
  }

  async requireCurrent(): Promise<void> {
    if (this.#parts.feed.seen.doubted)
      throw new Fault('identity_unavailable', {
        detail: 'the store is older than what this node has seen, and nobody has accepted that',
      })
    if (this.isSettled() && this.#isCurrent()) return
    await this.settle()
    if (this.#isCurrent()) return
    throw new Fault('identity_unavailable', {
      detail: 'the change feed was not read for more than a second, so revoked tokens might be issued again',
      retryAfter: RETRY_AFTER,
    })
  }

  /** While the store lacks rules that this process knows, another one may not know them. */
  #isCurrent(): boolean {
    const { feed } = this.#parts
    return feed.age <= CURRENT && !feed.isBehind
  }

  #tick(): number {
    // Calls that arrive before the reading has ended wait for it, as those do that came before this timer.
    if (this.isSettled() && this.#machine.monotonic() - this.#monotonic < PAUSE) this.#look()
    else void this.settle()
    return INTERVAL
  }

  /** A process that is paused while it reads, reads once more: the answer may be one from before the pause. */
  async #read(): Promise<void> {
    let before = { wall: this.#wall, monotonic: this.#monotonic }
    for (let readings = 1; ; readings += 1) {
      this.#addSuspension(before)
      before = { wall: this.#machine.now(), monotonic: this.#machine.monotonic() }
      await this.#readOnce()
      if (readings === MOST_READINGS || !this.#hasPaused(before)) break
    }
    this.#look()
  }

  async #readOnce(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<undefined>()
    const cancel = this.#after(PATIENCE, () => resolve(undefined))
    await Promise.race([this.#parts.feed.refresh(), promise])
    cancel()
  }

  #hasPaused({ wall, monotonic }: Moment): boolean {
    return Math.abs(this.#machine.now() - wall) >= PAUSE || this.#machine.monotonic() - monotonic >= PAUSE
  }

  /** Until a reading says otherwise, a suspension took as long as the wall clock says. */
  #addSuspension(before: Moment): void {
    const wall = this.#machine.now() - before.wall
    const ran = this.#machine.monotonic() - before.monotonic
    if (wall - ran > PAUSE) this.#parts.offset?.advance(wall - ran)
  }

  #look(): void {
    this.#wall = this.#machine.now()
    this.#monotonic = this.#machine.monotonic()
    this.#isOutdated = this.#parts.feed.age > this.#parts.maxAge
  }
}
