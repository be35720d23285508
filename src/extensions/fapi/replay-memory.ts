import type { Proof } from './proof.ts'
import type { Clock } from '../../base/kernel/clock.ts'

/** The proofs that this process has seen, as long as they would be accepted again. */
export interface ReplayMemory {
  /** False if it was seen before. */
  isFirst(proof: Pick<Proof, 'id' | 'expiresAt'>): boolean
}

/** How many proofs are remembered: about 25 MB. */
const LIMIT = 200_000

/** How long a proof without a nonce can live at most, in seconds. Those with one live for minutes. */
const SHORT = 70

/** By their id: when each expires, seconds since the epoch. The oldest comes first. */
type Seen = Map<string, number>

interface Parts {
  readonly clock: Pick<Clock, 'now'>
  /** A proof was forgotten, and could be used once more. Called for each one: it must only count. */
  readonly onForgotten?: () => void
  /** For tests. */
  readonly limit?: number
}

/**
 * Remembers proofs until they expire. Beyond the limit the oldest are forgotten, so that a flood of proofs costs no more
 * memory than that.
 */
export function openReplayMemory({ clock, limit = LIMIT, onForgotten }: Parts): ReplayMemory {
  // Two, so that expired proofs are at the front of each.
  const short: Seen = new Map()
  const long: Seen = new Map()
  const makeRoom = (): void => {
    if (short.size + long.size < limit) return
    const fuller = short.size > long.size ? short : long
    const [oldest] = fuller.keys()
    if (oldest !== undefined) fuller.delete(oldest)
    onForgotten?.()
  }
  return {
    isFirst({ id, expiresAt }) {
      const now = clock.now() / 1000
      for (const seen of [short, long]) dropExpired(seen, now)
      if ((short.get(id) ?? long.get(id) ?? 0) > now) return false
      short.delete(id)
      long.delete(id)
      makeRoom()
      const until = Math.ceil(expiresAt / 1000)
      const seen = until - now > SHORT + 1 ? long : short
      seen.set(id, until)
      return true
    },
  }
}

function dropExpired(seen: Seen, now: number): void {
  for (const [id, until] of seen) {
    if (until > now) return
    seen.delete(id)
  }
}
