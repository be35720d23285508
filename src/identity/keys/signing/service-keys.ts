import { setTimeout as delay } from 'node:timers/promises'
import type {
  Claims,
  PublicKeys,
  SecretDeriver,
  Signed,
  Signer,
} from '../../../base/contracts/people/keys.ts'
import type { SigningAlgorithm } from '../../../base/contracts/people/people.ts'
import { type Clock, epochSeconds } from '../../../base/kernel/clock.ts'
import { Fault, type FaultCode } from '../../../base/kernel/faults.ts'
import { aheadOfRequests } from '../../../base/kernel/store-budget.ts'
import { KeyError } from '../../../base/kernel/key-error.ts'
import { type KeyPlace, keysOf, SuccessorSecret } from './key-place.ts'
import { KeyRing } from './key-ring.ts'
import {
  dueGeneration,
  keySetOf,
  type Rotation,
  type RotationPlan,
  rotationsOf,
  type ScheduledKey,
  scheduleKeys,
} from './schedule.ts'
import type { StoredKey } from './stored-key.ts'
import type { KeyFinder, TrustedKey } from '../verify/token-verifier.ts'

export interface KeysPlan {
  readonly place: KeyPlace
  /** Each gets a key at the first start. */
  readonly algorithms: readonly SigningAlgorithm[]
  readonly rotation: RotationPlan
  /** Absent for a place that only this machine changes: there, keys that cannot be read again are used for ever. */
  readonly unread?: UnreadKeys
}

interface OpenedPlace {
  readonly keys: readonly StoredKey[]
  readonly made: boolean
  readonly secret: SuccessorSecret
}

/** How long a token with an unknown key waits for a reading of a place that other nodes change, in milliseconds. */
const LONGEST_WAIT = 300
/** Most tokens with unknown keys that wait for such a reading. Further ones are refused at once. */
const MAX_WAITING = 1_000

/**
 * The service's own keys, kept in step with their place (C6.3.4). Any number of processes may share the place. Each
 * notices within a second what was added or removed. All agree on which key signs, because the keys say when.
 *
 * If a key is removed, it and every token that it signed are no longer accepted (T3.10). If it was the last one, a new
 * key is made. But a place that is gone, or replaced by an empty one, is an error: it is logged, and the keys in memory
 * stay in use.
 */
export class ServiceKeys implements Signer, PublicKeys, KeyFinder, SecretDeriver {
  readonly #plan: KeysPlan
  readonly #clock: Clock
  readonly #secret: SuccessorSecret
  readonly #lastReading: LastReading
  readonly #ring: KeyRing
  /** The highest generation that ever existed: the number of a removed key is not used again. */
  readonly #newest = new Map<SigningAlgorithm, number>()
  #keys: readonly StoredKey[] = []
  #states = ''
  #refreshedAt: number
  #refreshing: Promise<void> | undefined
  #nextRefresh: Promise<void> | undefined
  #waiting = 0
  #rotating: Promise<void> | undefined

  /** Why the keys or the secret cannot be read, if two readings in a row have failed alike (watch-keys.ts). */
  trouble: KeyError | undefined

  /** Whether the place had no keys when it was opened. */
  readonly made: boolean

  /** Signs what goes with a call to an upstream. */
  readonly forCalls: Signer = { sign: (claims, how) => this.#signAs('calls', claims, how) }

  constructor(plan: KeysPlan, clock: Clock, { keys, made, secret }: OpenedPlace) {
    this.made = made
    this.#plan = plan
    this.#clock = clock
    this.#secret = secret
    this.#lastReading = new LastReading(clock, plan.unread)
    this.#ring = new KeyRing({ signing: new Map(), published: [] })
    this.#use(keys)
    this.#refreshedAt = clock.monotonic()
  }

  get place(): KeyPlace {
    return this.#plan.place
  }

  get kids(): readonly string[] {
    return this.#keys.map((key) => key.kid)
  }

  /** Every key and its state, for people. The text differs after every change. */
  get states(): string {
    return this.#states
  }

  schedule(): readonly ScheduledKey[] {
    return scheduleKeys(this.#keys, this.#plan.rotation, epochSeconds(this.#clock))
  }

  /** The key that signs now, for each algorithm, and when another one is to follow. */
  rotations(): readonly Rotation[] {
    return rotationsOf(this.schedule(), this.#plan.rotation)
  }

  /** Rejects with Fault `identity_unavailable` if the keys were not read for too long, or none can be made. */
  sign(claims: Claims, how: HowToSign): Promise<Signed> {
    return this.#signAs('tokens', claims, how)
  }

  async #signAs(use: keyof UnreadKeys, claims: Claims, how: HowToSign): Promise<Signed> {
    this.#lastReading.requireFor(use)
    // The last key was removed a moment ago: make the next one at once.
    if (!this.#ring.signs(how.algorithm)) await this.rotateIfDue().catch(unavailable(FAULT_OF[use]))
    return this.#ring.sign(claims, how)
  }

  jwks(): ReturnType<PublicKeys['jwks']> {
    return this.#ring.jwks()
  }

  get secretId(): string {
    return this.#secret.secretId
  }

  isOf(secretId: string): boolean {
    return this.#secret.isOf(secretId)
  }

  derive(secret: string): string {
    return this.#secret.derive(secret)
  }

  /**
   * Another process may have just made the key. So the place is read once more before a token with an unknown key is
   * refused. All callers share that reading, and there is a pause between two of them, so a flood of unknown keys costs
   * little (T3.5). Rejects with Fault `token_judge_unavailable` if another node may have made the key, but the place
   * cannot be read in time (C4.15).
   */
  async find(kid: string | undefined, algorithm: string): Promise<readonly TrustedKey[] | undefined> {
    const known = await this.#ring.find(kid, algorithm)
    if (known !== undefined || kid === undefined) return known
    const asked = this.#clock.monotonic()
    if (this.#waiting >= MAX_WAITING) {
      this.#lastReading.requireSince(asked - 2 * this.place.every)
      return undefined
    }
    this.#waiting += 1
    await this.#reading()
    this.#waiting -= 1
    const found = await this.#ring.find(kid, algorithm)
    if (found === undefined) this.#lastReading.requireSince(asked)
    return found
  }

  /** Ends with a reading that begins after this call, or after LONGEST_WAIT. Never rejects. */
  async #reading(): Promise<void> {
    // If it fails, the known keys stay in use; watch-keys.ts logs the failure.
    const read = this.#refreshSoon().catch(() => undefined)
    const { unread } = this.#plan
    await (unread === undefined ? read : Promise.race([read, delay(LONGEST_WAIT, undefined, { ref: false })]))
  }

  findLocally(kid: string | undefined, algorithm: string): Promise<readonly TrustedKey[] | undefined> {
    return this.#ring.find(kid, algorithm)
  }

  /** A reading that begins after this call. */
  #refreshSoon(): Promise<void> {
    this.#nextRefresh ??= this.#untilDue().then(async () => {
      await this.#refreshing?.catch(() => undefined)
      this.#nextRefresh = undefined
      return this.refresh()
    })
    return this.#nextRefresh
  }

  async #untilDue(): Promise<void> {
    const due = this.#refreshedAt + this.place.pause - this.#clock.monotonic()
    if (due > 0) await delay(due, undefined, { ref: false })
  }

  /** Rejects as KeyPlace does; keys that still exist stay in use then. */
  refresh(): Promise<void> {
    // Many wait for it: it has a time of its own, and not that of the request which begins it.
    this.#refreshing ??= aheadOfRequests(() => this.#read()).finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  async #read(): Promise<void> {
    const done = this.#lastReading.begin()
    this.#refreshedAt = this.#clock.monotonic()
    const { keys, trouble } = await this.place.read(this.#keys)
    this.#use(keys)
    if (trouble !== undefined) throw trouble
    done()
  }

  #use(keys: readonly StoredKey[]): void {
    this.#keys = keys
    for (const { algorithm, generation } of keys)
      this.#newest.set(algorithm, Math.max(generation, this.#newest.get(algorithm) ?? 0))
    const schedule = this.schedule()
    const states = statesOf(schedule)
    if (states === this.#states) return
    this.#states = states
    this.#ring.replace(keySetOf(schedule))
  }

  /**
   * Nothing was written in the place since the last reading: the states of the keys are updated to the current time. False if
   * something is to be made or removed there.
   *
   * @param age milliseconds since it was known that nothing was written
   */
  confirm(age: number): boolean {
    this.#lastReading.confirm(age)
    this.#use(this.#keys)
    const { algorithms, rotation } = this.#plan
    const now = epochSeconds(this.#clock)
    const isMissing = algorithms.some((each) => dueGeneration(this.#keys, each, rotation, now) !== undefined)
    return !isMissing && !this.schedule().some(({ state }) => state === 'retired')
  }

  /** As `SuccessorSecret.refresh`. */
  refreshSecret(): Promise<boolean> {
    return this.#secret.refresh()
  }

  /** Makes due keys, removes retired ones. One process is enough; more do no harm. Rejects as KeyPlace does. */
  rotateIfDue(): Promise<void> {
    this.#rotating ??= this.#rotate().finally(() => {
      this.#rotating = undefined
    })
    return this.#rotating
  }

  /** Resolves when no reading is under way that has begun before this call. */
  async settled(): Promise<void> {
    await Promise.allSettled([this.#rotating, this.#refreshing])
  }

  async #rotate(): Promise<void> {
    await this.refresh()
    const { algorithms, place, rotation } = this.#plan
    const now = epochSeconds(this.#clock)
    for (const algorithm of algorithms) {
      const due = dueGeneration(this.#keys, algorithm, rotation, now)
      if (due === undefined) continue
      const generation = Math.max(due, (this.#newest.get(algorithm) ?? 0) + 1)
      // Without another key that signs meanwhile, the new key signs at once.
      const signsFrom = this.#ring.signs(algorithm) ? now + rotation.announce : now
      const made = await place.create({ algorithm, generation, signsFrom }, this.#clock)
      this.#use([...this.#keys, made])
    }
    const retired = this.schedule().filter(({ state }) => state === 'retired')
    for (const { key } of retired) await place.remove(key.name)
    if (retired.length > 0) await this.refresh()
  }
}

type HowToSign = Parameters<Signer['sign']>[1]

/** Keys that cannot be read or made are no defect: it works again when they can. */
const unavailable =
  (code: FaultCode) =>
  (thrown: unknown): never => {
    throw thrown instanceof KeyError ? new Fault(code, { detail: thrown.message, cause: thrown }) : thrown
  }

const statesOf = (schedule: readonly ScheduledKey[]): string =>
  schedule.map(({ key, state }) => `${key.algorithm}-${key.generation} ${key.kid} ${state}`).join(', ')

/** The first start makes them; later only `refresh` and `rotateIfDue` change them. Rejects as KeyPlace does. */
export async function openKeys(plan: KeysPlan, clock: Clock): Promise<ServiceKeys> {
  const { algorithms, place } = plan
  await place.open()
  const found = await keysOf(place)
  const missing = algorithms.filter((algorithm) => !found.some((key) => key.algorithm === algorithm))
  const made = await Promise.all(
    missing.map((algorithm) => place.create({ algorithm, generation: 1 }, clock)),
  )
  return new ServiceKeys(plan, clock, {
    keys: [...found, ...made],
    made: found.length === 0,
    secret: await SuccessorSecret.open(place),
  })
}

/** How long keys are used without a new reading, in milliseconds. Another node may make or remove a key meanwhile. */
interface UnreadKeys {
  /** For tokens that are issued. */
  readonly tokens: number
  /** For tokens that go with a call to an upstream. */
  readonly calls: number
}

const FAULT_OF = {
  tokens: 'identity_unavailable',
  calls: 'token_judge_unavailable',
} as const satisfies Readonly<Record<keyof UnreadKeys, FaultCode>>

interface Times {
  readonly now: number
  readonly monotonic: number
}

/** When the keys were read last, and for what they may still be used. */
class LastReading {
  readonly #clock: Clock
  readonly #unread: UnreadKeys | undefined
  /** By both clocks, because one of them may stop while the machine sleeps. */
  #at: Times

  /** @param unread absent for a place that only this machine changes: there, its keys are used for ever */
  constructor(clock: Clock, unread: UnreadKeys | undefined) {
    this.#clock = clock
    this.#unread = unread
    this.#at = this.#times()
  }

  #times(): Times {
    return { now: this.#clock.now(), monotonic: this.#clock.monotonic() }
  }

  /** Call this when a reading begins, and the result when it has found no trouble. */
  begin(): () => void {
    const at = this.#times()
    return () => {
      this.#at = at
    }
  }

  /** It is known that nothing has changed since. @param age milliseconds since that was read in the store */
  confirm(age: number): void {
    const { now, monotonic } = this.#times()
    if (monotonic - age > this.#at.monotonic) this.#at = { now: now - age, monotonic: monotonic - age }
  }

  /** @throws Fault if the keys were not read for too long */
  requireFor(use: keyof UnreadKeys): void {
    if (this.#unread === undefined) return
    const { now, monotonic } = this.#times()
    const age = Math.max(now - this.#at.now, monotonic - this.#at.monotonic)
    if (age > this.#unread[use])
      throw new Fault(FAULT_OF[use], { detail: `the signing keys were not read for ${Math.round(age)} ms` })
  }

  /**
   * A key is not known here.
   *
   * @param since Clock.monotonic()
   * @throws Fault `token_judge_unavailable` if another node may know it, and the last reading began before `since` (C4.15)
   */
  requireSince(since: number): void {
    if (this.#unread !== undefined && this.#at.monotonic < since)
      throw new Fault('token_judge_unavailable', { detail: 'the signing keys cannot be read' })
  }
}
