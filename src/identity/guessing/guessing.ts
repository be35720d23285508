import { setTimeout as delay } from 'node:timers/promises'
import type { AttemptLimiter, AttemptStanding, GuessingKey } from '../../contracts/lockouts.ts'
import { timerMs } from '../../kernel/clock.ts'

/** Resolves after so many milliseconds. */
export type Timer = (ms: number) => Promise<void>

export const systemTimer: Timer = (ms) => delay(timerMs(ms), undefined, { ref: false })

/** Makes guessing passwords slow for the one who guesses, and for nobody else (C6.3.5). */
export interface GuessingGuard {
  /**
   * Runs one attempt when the gate lets it in. `verify` answers undefined if it failed; a failed answer is then held
   * back by what its network has earned.
   * @throws Fault invalid_grant or identity_unavailable, if too many attempts wait already
   */
  attempt<T>(
    key: GuessingKey,
    standing: AttemptStanding,
    verify: () => Promise<T | undefined>,
  ): Promise<T | undefined>
}

/** The guard over counts that this process, or another one, keeps. */
export const guardGuessing = (gate: AttemptLimiter, timer: Timer = systemTimer): GuessingGuard => ({
  async attempt(key, standing, verify) {
    const turn = await gate.enter(key, standing)
    let found: Awaited<ReturnType<typeof verify>>
    try {
      found = await verify()
    } catch (thrown) {
      // What broke counts as nothing; the next of its key gets its turn.
      await turn.end(undefined)
      throw thrown
    }
    const hold = await turn.end(found !== undefined)
    if (hold > 0) await timer(hold)
    return found
  },
})

interface Line {
  /** Whose turn it is, and those behind. */
  count: number
  /** Settles when the last in line is through. */
  tail: Promise<unknown>
}

/** Lets those of one key through one after the other, in order. A key that nobody is at takes no dependencies. */
export class OneAtATime {
  readonly #lines = new Map<string, Line>()

  /** How many of the key are in line, the one whose turn it is included. */
  inLine(key: string): number {
    return this.#lines.get(key)?.count ?? 0
  }

  /** Resolves when the turn has come, with what ends it. To be called once. */
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
    const known = this.#lines.get(key)
    if (known !== undefined) return known
    const line: Line = { count: 0, tail: Promise.resolve() }
    this.#lines.set(key, line)
    return line
  }
}
