import type { SigningAlgorithm } from '../contracts/people.ts'
import type { KeySet } from './key-ring.ts'
import type { StoredKey } from './key-folder.ts'

/** How keys follow each other (C6.3.4). Seconds. */
export interface RotationPlan {
  /** False: keys change only when an operator says so. */
  readonly automatic: boolean
  /** How long a key signs. */
  readonly every: number
  /** How long a key is published before it signs: longer than anybody keeps the key set. */
  readonly announce: number
  /** The longest life of anything that is signed: so long a key stays published after its last signature. */
  readonly longestLife: number
}

/**
 * `announced`: published, not signing yet. `signing`. `retiring`: does not sign any more, but its tokens still live.
 * `retired`: its last token has expired, so it is neither published nor believed.
 */
export type KeyState = 'announced' | 'signing' | 'retiring' | 'retired'

export interface ScheduledKey {
  readonly key: StoredKey
  readonly state: KeyState
  /** When it leaves `published`, seconds since the epoch; undefined as long as nothing follows it. */
  readonly retiresAt: number | undefined
}

/** Seconds that a process may need to see that another key signs now, and that clocks may differ. */
const MARGIN = 60

const ofAlgorithm = (keys: readonly StoredKey[], algorithm: SigningAlgorithm): readonly StoredKey[] =>
  keys.filter((key) => key.algorithm === algorithm).sort((a, b) => a.generation - b.generation)

/** The youngest whose time has come; where that is none (a clock set back, say), the first that will be. */
const signerOf = (keys: readonly StoredKey[], now: number): StoredKey | undefined =>
  keys.findLast((key) => key.signsFrom <= now) ?? keys.toSorted((a, b) => a.signsFrom - b.signsFrom)[0]

/**
 * Where each key stands at a time. A function of the files, the clock and the plan alone, so that every process that
 * shares the folder comes to the same result without asking another.
 */
export function scheduleKeys(
  keys: readonly StoredKey[],
  plan: RotationPlan,
  now: number,
): readonly ScheduledKey[] {
  const algorithms = [...new Set(keys.map((key) => key.algorithm))]
  return algorithms.flatMap((algorithm) => scheduleOne(ofAlgorithm(keys, algorithm), plan, now))
}

function scheduleOne(
  keys: readonly StoredKey[],
  { longestLife }: RotationPlan,
  now: number,
): readonly ScheduledKey[] {
  const signer = signerOf(keys, now)
  const signing = signer === undefined ? -1 : keys.indexOf(signer)
  return keys.map((key, at) => {
    const next = keys[at + 1]
    const retiresAt = next === undefined ? undefined : next.signsFrom + longestLife + MARGIN
    if (at === signing) return { key, state: 'signing', retiresAt }
    if (at > signing) return { key, state: 'announced', retiresAt }
    return { key, state: retiresAt !== undefined && retiresAt <= now ? 'retired' : 'retiring', retiresAt }
  })
}

/** What signs, and what is published: everything but the retired. */
export function keySetOf(schedule: readonly ScheduledKey[]): KeySet {
  const signing = schedule.filter(({ state }) => state === 'signing')
  return {
    signing: new Map(signing.map(({ key }) => [key.algorithm, key])),
    published: schedule.filter(({ state }) => state !== 'retired').map(({ key }) => key),
  }
}

/** The generation that is to be made now: the first of an algorithm, or the one that follows; undefined for none yet. */
export function dueGeneration(
  keys: readonly StoredKey[],
  algorithm: SigningAlgorithm,
  { automatic, every, announce }: RotationPlan,
  now: number,
): number | undefined {
  const newest = ofAlgorithm(keys, algorithm).at(-1)
  if (newest === undefined) return 1
  return automatic && newest.signsFrom + every - announce <= now ? newest.generation + 1 : undefined
}
