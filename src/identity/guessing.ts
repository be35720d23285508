import type { AttemptGate, GuessingKey } from '../contracts/lockouts.ts'
import { systemTimer, type Timer } from './lockouts.ts'

/** Makes guessing passwords slow for the one who guesses, and for nobody else (C6.3.5). */
export interface GuessingGuard {
  /**
   * Runs one attempt, alone of its key and after the delay that the key's failures have earned. `verify` answers
   * undefined if it failed; a failed answer is then held back by what its network has earned.
   * @throws Fault invalid_grant or identity_unavailable, if too many attempts of the key wait already
   */
  attempt<T>(key: GuessingKey, verify: () => Promise<T | undefined>): Promise<T | undefined>
}

/** The guard over counts that this process, or another one, keeps. */
export const guardGuessing = (gate: AttemptGate, timer: Timer = systemTimer): GuessingGuard => ({
  async attempt(key, verify) {
    const turn = await gate.enter(key)
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
