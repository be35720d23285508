import type { AttemptLimiter, AttemptStanding, GuessingKey } from '../../contracts/lockouts.ts'
import { systemTimer, type Timer } from './lockouts.ts'

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
