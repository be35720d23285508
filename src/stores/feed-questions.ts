/** What a process asks the store for the change feed, and how old its newest answer is. */
import type { FeedPage, FeedPlace, FeedReading, Store } from '../contracts/store.ts'
import type { Clock } from '../kernel/clock.ts'

export interface FeedQuestionsParts {
  readonly store: Pick<Store, 'changes'>
  readonly machine: Clock
  /** Called with each page that this process has read. */
  readonly hasRead?: ((reading: FeedReading) => void) | undefined
}

/** A page that was asked for. */
export interface PendingPage {
  readonly from: FeedPlace | undefined
  /** Clock.monotonic(), and the wall time. */
  readonly askedAt: number
  readonly askedAtWall: number
  readonly reading: Promise<FeedPage>
}

/** Changes that one request to the store reads at most. */
export const PAGE = 5000
/** Milliseconds. If the reading that was handed over last is older, this process reads itself. */
const HANDED_FOR = 600
/** Milliseconds. An older reading tells nothing of the keys. */
const CURRENT = 1000

export class FeedQuestions {
  readonly #parts: FeedQuestionsParts
  #askedAt = 0
  #askedAtWall = 0
  #handedAt = Number.NEGATIVE_INFINITY
  #keys: string | undefined

  constructor(parts: FeedQuestionsParts) {
    this.#parts = parts
  }

  /**
   * Milliseconds since the store was asked for what was read last: about 250, unless it cannot be reached. The larger one by
   * both clocks: Clock.monotonic() stands still while the machine is suspended, and a wall clock can be set back.
   */
  get age(): number {
    const { machine } = this.#parts
    return Math.max(machine.monotonic() - this.#askedAt, machine.now() - this.#askedAtWall)
  }

  /** What tells whether the keys in the store have changed, and its age; undefined if it is not known now. */
  get keys(): { readonly mark: string; readonly age: number } | undefined {
    const { age } = this
    return this.#keys === undefined || age > CURRENT ? undefined : { mark: this.#keys, age }
  }

  /** Whether another process of the machine hands its readings over. */
  get areHandedOver(): boolean {
    return this.#parts.machine.monotonic() - this.#handedAt < HANDED_FOR
  }

  ask(from: FeedPlace | undefined): PendingPage {
    const { store, machine } = this.#parts
    const times = { askedAt: machine.monotonic(), askedAtWall: machine.now() }
    const asked = { from, ...times, reading: store.changes(from, PAGE) }
    // Whoever applies the page before it learns of a failure when this one is its turn.
    asked.reading.catch(() => undefined)
    return asked
  }

  /** A page has come. */
  came({ from, askedAt, askedAtWall }: PendingPage, page: FeedPage): void {
    const { machine, hasRead } = this.#parts
    hasRead?.({ from, page, askedAt, askedAtWall, answeredAt: machine.monotonic() })
  }

  /** The feed was read to its end. Not the time of the answer counts: it may have lain in the socket while this process was paused. */
  applied(
    { askedAt, askedAtWall }: Pick<PendingPage, 'askedAt' | 'askedAtWall'>,
    keys: string | undefined,
  ): void {
    this.#askedAt = askedAt
    this.#askedAtWall = askedAtWall
    this.#keys = keys
  }

  /** What another process has read was applied. */
  appliedHanded(reading: FeedReading): void {
    this.#handedAt = reading.askedAt
    if (!reading.page.more && reading.askedAt > this.#askedAt) this.applied(reading, reading.page.keys)
  }
}
