import type { SecretDeriver } from '../../base/contracts/people/keys.ts'
import type { Clock } from '../../base/kernel/clock.ts'

/**
 * The nonces of DPoP proofs (RFC 9449 §8). There is one a minute: the HMAC of the minute, by the secret that the keys of
 * the service are kept with. So every node knows them all, and none is stored.
 */
export interface Nonces {
  current(): string
  /** Until when a nonce is good, milliseconds since the epoch; undefined for one that is not. */
  goodUntil(nonce: string): number | undefined
}

/** How long one nonce is the current one, in milliseconds. */
const SLOT = 60_000
/** A nonce is good for 5 minutes from the beginning of its minute. */
const SLOTS = 5

type Deriver = Pick<SecretDeriver, 'derive' | 'secretId'>

export function openNonces(deriver: Deriver, clock: Pick<Clock, 'now'>): Nonces {
  /** The latest nonces, with the slot and the secret that they were made for. */
  let made = { slot: Number.NaN, secret: '', nonces: [''] }
  /** The oldest one comes last. */
  const nonces = (): typeof made => {
    const slot = Math.floor(clock.now() / SLOT)
    if (slot !== made.slot || deriver.secretId !== made.secret)
      made = { slot, secret: deriver.secretId, nonces: noncesOf(slot, deriver) }
    return made
  }
  return {
    current: () => nonces().nonces[1] ?? '',
    goodUntil(nonce) {
      const { nonces: good, slot } = nonces()
      const at = good.indexOf(nonce)
      return at === -1 ? undefined : (slot + 1 - at + SLOTS) * SLOT
    },
  }
}

/** The first one is that of the next minute: the clock of the node that gave it may be a little ahead. */
const noncesOf = (slot: number, deriver: Deriver): string[] =>
  Array.from({ length: SLOTS + 1 }, (_, at) => deriver.derive(`dpop nonce ${slot + 1 - at}`))
