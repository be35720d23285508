/** Lists and rotates the signing keys as operators order it, while the service runs (C11.5.3). */
import { type AuditedChange, type Operator, recordTaking } from '../audit/audited-change.ts'
import type { AuditTrail } from '../contracts/audit.ts'
import type { SigningAlgorithm } from '../contracts/people.ts'
import type { Recorder } from '../contracts/recorder.ts'
import type { Store } from '../contracts/store.ts'
import { type Clock, epochSeconds } from '../kernel/clock.ts'
import { KeyError } from '../keys/key-error.ts'
import { keysOf } from '../keys/key-place.ts'
import { nextRotation, type ScheduledKey, scheduleKeys } from '../keys/schedule.ts'
import type { KeysPlan } from '../keys/service-keys.ts'
import type { StoredKey } from '../keys/stored-key.ts'
import { AdminError } from '../operator/errors.ts'
import type { KeyOrders, ListedKey, RotateOptions, Rotation } from '../watch/status/key-orders.ts'
import {
  countFamilies,
  familiesOfStore,
  makeNextKey,
  nextKeyName,
  replaceKeys,
  signsAfterAnnouncement,
} from './rotate-keys.ts'

export interface KeyControlParts {
  readonly plan: KeysPlan
  readonly store: Pick<Store, 'find' | 'create' | 'replace' | 'removeBy' | 'countBy'>
  readonly audit: AuditTrail
  readonly recorder: Pick<Recorder, 'note'>
  readonly clock: Clock
  /** Told of each act before it is done, so that what it changes is not recorded a second time (KeyEvents). */
  readonly reported: (act: AuditedChange) => void
}

const listedKey =
  (schedule: readonly ScheduledKey[], { rotation }: KeysPlan) =>
  ({ key, state, retiresAt: endsAt }: ScheduledKey): ListedKey => {
    const { name, kid, algorithm, createdAt, signsFrom } = key
    const nextRotationAt = state === 'signing' ? nextRotation(algorithm, schedule, rotation) : undefined
    return { name, kid, algorithm, state, createdAt, signsFrom, endsAt, nextRotationAt }
  }

/** Every key of a place. Rejects as KeyPlace does. */
export async function listKeys(plan: KeysPlan, clock: Clock): Promise<readonly ListedKey[]> {
  const keys = await keysOf(plan.place)
  const schedule = scheduleKeys(keys, plan.rotation, epochSeconds(clock))
  return schedule.map(listedKey(schedule, plan))
}

const namesOf = (keys: readonly StoredKey[]): readonly string[] => keys.map(({ name }) => name)

const UNUSABLE = 'the signing keys cannot be read or written'

export class KeyControl implements KeyOrders {
  readonly #parts: KeyControlParts
  /** Settles when no rotation is under way. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(parts: KeyControlParts) {
    this.#parts = parts
  }

  list(): Promise<readonly ListedKey[]> {
    return orAdminError(listKeys(this.#parts.plan, this.#parts.clock))
  }

  rotate({ compromised, preview }: RotateOptions, operator: Operator): Promise<Rotation> {
    const work = (): Promise<Rotation> => {
      if (preview) return this.#preview(compromised)
      return compromised ? this.#replace(operator) : this.#announce(operator)
    }
    const done = this.#last.then(() => orAdminError(work()))
    this.#last = done.catch(() => undefined)
    return done
  }

  async #preview(compromised: boolean): Promise<Rotation> {
    const { plan, store } = this.#parts
    const made = await Promise.all(plan.algorithms.map((algorithm) => nextKeyName(plan, algorithm)))
    const removed = compromised ? namesOf(await keysOf(plan.place)) : []
    return { outcome: 'previewed', made, removed, families: compromised ? await countFamilies(store) : 0 }
  }

  async #announce(operator: Operator): Promise<Rotation> {
    const made: StoredKey[] = []
    for (const algorithm of this.#parts.plan.algorithms)
      made.push(await this.#announceOne(algorithm, operator))
    this.#note({ made: namesOf(made) }, operator)
    return { outcome: 'rotated', made: namesOf(made), removed: [], families: 0 }
  }

  async #announceOne(algorithm: SigningAlgorithm, operator: Operator): Promise<StoredKey> {
    const { plan, clock, audit, reported } = this.#parts
    const act: AuditedChange = {
      event: 'keys.announced',
      on: { kind: 'key', id: await nextKeyName(plan, algorithm) },
    }
    reported(act)
    const make = (): Promise<StoredKey> =>
      makeNextKey(plan, algorithm, signsAfterAnnouncement(plan, clock), clock)
    return recordTaking(audit, operator, act, make, ({ kid }) => ({ kid }))
  }

  async #replace(operator: Operator): Promise<Rotation> {
    const { plan, store, clock, audit } = this.#parts
    const act: AuditedChange = { event: 'keys.compromised', on: { kind: 'key' } }
    const replace = () => replaceKeys(plan, familiesOfStore(store), clock)
    const { families, made, removed } = await recordTaking(audit, operator, act, replace, (done) => ({
      ...(done.families !== undefined && { families: done.families }),
      made: [...namesOf(done.made)],
      removed: [...done.removed],
    }))
    const told = { made: namesOf(made), removed, families }
    this.#note(told, operator)
    return { outcome: 'rotated', ...told }
  }

  #note(facts: object, operator: Operator): void {
    this.#parts.recorder.note('info', 'signing_keys_rotated', { ...facts, ...operator })
  }
}

function orAdminError<T>(work: Promise<T>): Promise<T> {
  return work.catch((thrown: unknown) => {
    if (!(thrown instanceof KeyError)) throw thrown
    throw new AdminError(503, UNUSABLE, [thrown.message])
  })
}
