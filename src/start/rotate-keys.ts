/** Makes and replaces signing keys (C6.3.4): for commands, and for the admin API of a running service (C11.5.3). */
import type { SigningAlgorithm } from '../contracts/people.ts'
import type { Store } from '../contracts/store.ts'
import { endAllFamilies } from '../identity/tokens/token-revoker.ts'
import { FAMILY } from '../identity/tokens/families.ts'
import { type Clock, epochSeconds } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import { keysOf, newestGeneration } from '../keys/key-place.ts'
import type { KeysPlan } from '../keys/service-keys.ts'
import { keyName, type StoredKey } from '../keys/stored-key.ts'
import { rememberKeys } from '../keys/watch-keys.ts'
import { StoreError } from '../stores/store-error.ts'

/** `ES256-3`: the next key of an algorithm. Rejects as KeyPlace does. */
export const nextKeyName = async ({ place }: KeysPlan, algorithm: SigningAlgorithm): Promise<string> =>
  keyName({ algorithm, generation: (await newestGeneration(place, algorithm)) + 1 })

/** Makes the next key of an algorithm, which signs from `signsFrom` (seconds since the epoch) on. Rejects as KeyPlace does. */
export async function makeNextKey(
  { place }: KeysPlan,
  algorithm: SigningAlgorithm,
  signsFrom: number,
  clock: Clock,
): Promise<StoredKey> {
  const generation = (await newestGeneration(place, algorithm)) + 1
  return place.create({ algorithm, generation, signsFrom }, clock)
}

/** When a key that is announced now begins to sign, seconds since the epoch. */
export const signsAfterAnnouncement = ({ rotation }: KeysPlan, clock: Clock): number =>
  epochSeconds(clock) + rotation.announce

/** The refresh tokens that are made with the secret beside the keys. */
export interface DerivedFamilies {
  /** Ends them all. Resolves with their number; undefined if another process does it. */
  readonly end: () => Promise<number | undefined>
  /** Records which keys are the service's own now. */
  readonly remember: (kids: readonly string[]) => Promise<void>
}

/** Those of a store that is open. */
export const familiesOfStore = (
  store: Pick<Store, 'find' | 'create' | 'replace' | 'removeBy'>,
): DerivedFamilies => ({
  end: () => endAllFamilies(store),
  remember: (kids) => rememberKeys(kids, store),
})

export const countFamilies = (store: Pick<Store, 'countBy'>): Promise<number> => store.countBy(FAMILY, {})

export interface ReplacedKeys {
  /** Families that ended; undefined if another process ends them, or that failed. */
  readonly families: number | undefined
  /** Why they could not be ended. */
  readonly trouble: StoreError | Fault | undefined
  readonly made: readonly StoredKey[]
  /** Their names. */
  readonly removed: readonly string[]
}

/**
 * Replaces the keys and the secret of refresh tokens, and ends everything that was issued with the old ones. Every process
 * follows within a second. Families end before the keys are replaced, so that what an attacker still gets by a refresh
 * token is signed by a key that is removed next. If they cannot be ended the keys are replaced anyway: a stolen key must
 * not stay in use. Rejects as KeyPlace does.
 */
export async function replaceKeys(
  plan: KeysPlan,
  families: DerivedFamilies,
  clock: Clock,
): Promise<ReplacedKeys> {
  const ended = await endFamilies(families)
  const { place, algorithms } = plan
  const before = await place.names()
  await place.replaceSecret()
  const made: StoredKey[] = []
  for (const algorithm of algorithms)
    made.push(await makeNextKey(plan, algorithm, epochSeconds(clock), clock))
  for (const name of before) await place.remove(name)
  // Without this, the next start would take the keys for those of another installation.
  const kids = (await keysOf(place)).map(({ kid }) => kid)
  await families.remember(kids).catch(() => undefined)
  return { ...ended, made, removed: before }
}

async function endFamilies({ end }: DerivedFamilies): Promise<Pick<ReplacedKeys, 'families' | 'trouble'>> {
  try {
    return { families: await end(), trouble: undefined }
  } catch (thrown) {
    if (!(thrown instanceof StoreError || thrown instanceof Fault)) throw thrown
    return { families: undefined, trouble: thrown }
  }
}
