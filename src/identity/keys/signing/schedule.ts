import type { SigningAlgorithm } from '../../../base/contracts/people/people.ts'
import type { StoredKey } from './stored-key.ts'
import type { KeySet } from './key-ring.ts'

/** How keys follow each other (C6.3.4). All times in seconds. */
export interface RotationPlan {
  /** False: keys change only when an operator runs a command. */
  readonly automatic: boolean
  /** How long a key signs. */
  readonly every: number
  /** How long a key is published before it signs: longer than clients keep the key set. */
  readonly announce: number
  /** The longest life of any token. A key stays published for that long after its last signature. */
  readonly longestLife: number
}

/**
 * `announced`: published, but it does not sign yet. `signing`: it signs. `retiring`: it signs no more, but its tokens
 * are still valid. `retired`: its last token has expired, so it is neither published nor accepted.
 */
type KeyState = 'announced' | 'signing' | 'retiring' | 'retired'

export interface ScheduledKey {
  readonly key: StoredKey
  readonly state: KeyState
  /** When it is no longer published, seconds since the epoch; undefined as long as no key follows it. */
  readonly retiresAt: number | undefined
}

/** How long it takes until every process notices, by its own clock, that another key signs, in seconds. */
export const NOTICED_WITHIN = 60

const ofAlgorithm = (keys: readonly StoredKey[], algorithm: SigningAlgorithm): readonly StoredKey[] =>
  keys.filter((key) => key.algorithm === algorithm).sort((a, b) => a.generation - b.generation)

/** The newest key whose time has come. If there is none (a clock may have been set back), the one that comes first. */
const signerOf = (keys: readonly StoredKey[], now: number): StoredKey | undefined =>
  keys.findLast((key) => key.signsFrom <= now) ?? keys.toSorted((a, b) => a.signsFrom - b.signsFrom)[0]

/** `now` in seconds since the epoch. Only keys, time and plan count: all processes come to the same result. */
export function scheduleKeys(
  keys: readonly StoredKey[],
  plan: RotationPlan,
  now: number,
): readonly ScheduledKey[] {
  // A process that has just made a key has it last; one that reads them has it in the order of names.
  const algorithms = [...new Set(keys.map((key) => key.algorithm))].toSorted()
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
    const retiresAt = next === undefined ? undefined : next.signsFrom + longestLife + NOTICED_WITHIN
    if (at === signing) return { key, state: 'signing', retiresAt }
    if (at > signing) return { key, state: 'announced', retiresAt }
    return { key, state: retiresAt !== undefined && retiresAt <= now ? 'retired' : 'retiring', retiresAt }
  })
}

export function keySetOf(schedule: readonly ScheduledKey[]): KeySet {
  const signing = schedule.filter(({ state }) => state === 'signing')
  return {
    signing: new Map(signing.map(({ key }) => [key.algorithm, key])),
    published: schedule.filter(({ state }) => state !== 'retired').map(({ key }) => key),
  }
}

/** The generation of the key that should be made now; undefined if none is due. `now` in seconds since the epoch. */
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

/** When the next key signs, in seconds since the epoch; undefined if none is to follow. @param schedule that of all keys */
export function nextRotation(
  algorithm: SigningAlgorithm,
  schedule: readonly ScheduledKey[],
  { automatic, every }: RotationPlan,
): number | undefined {
  const own = schedule.filter(({ key }) => key.algorithm === algorithm)
  const announced = own.find(({ state }) => state === 'announced')
  if (announced !== undefined) return announced.key.signsFrom
  const signing = own.find(({ state }) => state === 'signing')
  return automatic && signing !== undefined ? signing.key.signsFrom + every : undefined
}

/** The key of an algorithm that signs now. Times in seconds since the epoch. */
export interface Rotation {
  readonly algorithm: SigningAlgorithm
  readonly createdAt: number
  /** As `nextRotation` returns it. It is past if that key was not made in time. */
  readonly nextAt: number | undefined
}

export const rotationsOf = (schedule: readonly ScheduledKey[], plan: RotationPlan): readonly Rotation[] =>
  [...keySetOf(schedule).signing].map(([algorithm, { createdAt }]) => ({
    algorithm,
    createdAt,
    nextAt: nextRotation(algorithm, schedule, plan),
  }))
