/** The signing keys as operators see them. */
import { type Clock, epochSeconds } from '../../../base/kernel/clock.ts'
import { keysOf } from './key-place.ts'
import { nextRotation, type ScheduledKey, scheduleKeys } from './schedule.ts'
import type { KeysPlan } from './service-keys.ts'

/** A signing key: nothing of its private half. Times in seconds since the epoch. */
export interface ListedKey {
  /** `ES256-2` */
  readonly name: string
  /** `ES256-2.jwk`; undefined where keys have no files. */
  readonly file: string | undefined
  readonly kid: string
  readonly algorithm: string
  readonly state: ScheduledKey['state']
  readonly createdAt: number
  readonly signsFrom: number
  /** When it is no longer published; undefined as long as no key follows it. */
  readonly endsAt: number | undefined
  /** When another key will sign instead of this one; undefined if it does not sign now, or none is planned. */
  readonly nextRotationAt: number | undefined
}

/** Every key of a place, oldest first within its algorithm. Rejects as KeyPlace does. */
export async function listKeys({ place, rotation }: KeysPlan, clock: Clock): Promise<readonly ListedKey[]> {
  const schedule = scheduleKeys(await keysOf(place), rotation, epochSeconds(clock))
  return schedule.map(({ key, state, retiresAt: endsAt }) => {
    const { name, kid, algorithm, createdAt, signsFrom } = key
    const nextRotationAt = state === 'signing' ? nextRotation(algorithm, schedule, rotation) : undefined
    const file = place.fileOf(name)
    return { name, file, kid, algorithm, state, createdAt, signsFrom, endsAt, nextRotationAt }
  })
}
