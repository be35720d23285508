import { setTimeout as delay } from 'node:timers/promises'
import type { AttemptLimiter, AttemptStanding, GuessingKey } from '../../base/contracts/people/lockouts.ts'
import { timerMs } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { DAY_MS } from '../../base/kernel/units.ts'

export type Timer = (ms: number) => Promise<void>

/** An attempt whose turn had lapsed is made again. */
const TRIES = 3

/** How long an attempt waits for its turn, without the delay of failures, and for each answer of a store that nodes share, in milliseconds. */
export const TURN_WITHIN = 2000
/** Failures of an account over all networks are kept for a day, because an attacker may be patient. */
export const ACCOUNT_FORGET_MS = DAY_MS

export const noTurn = (): Fault =>
  new Fault('identity_unavailable', {
    detail: `no turn for the attempt within ${TURN_WITHIN} ms: another one of the user is under way`,
    retryAfter: 1,
  })

export const systemTimer: Timer = (ms) => delay(timerMs(ms), undefined, { ref: false })

/** Delays only the attempts of somebody who guesses passwords (C6.3.5). */
export interface GuessingGuard {
  /**
   * Runs one attempt when the limiter allows it. A failed answer is delayed because of earlier failures from its network.
   * @param verify resolves with undefined if the attempt failed
   * @throws Fault `invalid_grant` or `identity_unavailable` if too many attempts are waiting, and everything that `verify` throws
   */
  attempt<T>(
    key: GuessingKey,
    standing: AttemptStanding,
    verify: () => Promise<T | undefined>,
  ): Promise<T | undefined>
}

export const guardGuessing = (limiter: AttemptLimiter, timer: Timer = systemTimer): GuessingGuard => ({
  async attempt(key, standing, verify) {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const turn = await limiter.enter(key, standing)
      let found: Awaited<ReturnType<typeof verify>>
      try {
        found = await verify()
      } catch (thrown) {
        // An attempt that broke is not counted. The next one of its key may run.
        await turn.end(undefined).catch(() => undefined)
        throw thrown
      }
      const hold = await turn.end(found !== undefined)
      if (hold === undefined) continue
      if (hold > 0) await timer(hold)
      return found
    }
    throw new Fault('identity_unavailable', {
      detail: 'the turn of the attempt lapsed each time',
      retryAfter: 1,
    })
  },
})

interface Line {
  /** Attempts that wait or run. */
  count: number
  /** Resolves when the last in the line has finished. */
  tail: Promise<unknown>
}

/** Runs the attempts of one key one after another, in order. A key without attempts uses no memory. */
export class OneAtATime {
  readonly #lines = new Map<string, Line>()

  inLine(key: string): number {
    return this.#lines.get(key)?.count ?? 0
  }

  /** Resolves when the attempt may run, with the function that ends it. That must be called once. */
  async enter(key: string): Promise<() => void> {
    const line = this.#lineOf(key)
    const before = line.tail
    const { promise, resolve } = Promise.withResolvers<undefined>()
    line.tail = promise
    line.count += 1
    await before
    return () => {
      line.count -= 1
      if (line.count === 0) this.#lines.delete(key)
      resolve(undefined)
    }
  }

  #lineOf(key: string): Line {
    const existing = this.#lines.get(key)
    if (existing !== undefined) return existing
    const line: Line = { count: 0, tail: Promise.resolve() }
    this.#lines.set(key, line)
    return line
  }
}
