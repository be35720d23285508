import type { Claims, PublicKeys, SecretDeriver, Signer } from '../contracts/keys.ts'
import type { SigningAlgorithm } from '../contracts/people.ts'
import type { Recorder } from '../contracts/recorder.ts'
import { type Clock, epochSeconds } from '../kernel/clock.ts'
import type { KeyFinder } from './key-finder.ts'
import { createKey, readKeyFolder, removeKey, type StoredKey } from './key-folder.ts'
import { KeyRing } from './key-ring.ts'
import { reasonOf } from './private-folder.ts'
import { dueGeneration, keySetOf, scheduleKeys, type RotationPlan, type ScheduledKey } from './schedule.ts'

export interface KeysPlan {
  /** Absolute path of the folder with the private keys. */
  readonly folder: string
  /** Each gets a key on first start. */
  readonly algorithms: readonly SigningAlgorithm[]
  readonly rotation: RotationPlan
}

/** What the folder holds when the service opens it. */
export interface OpenedFolder {
  readonly keys: readonly StoredKey[]
  readonly made: boolean
  readonly deriver: SecretDeriver
}

/** Milliseconds between two looks at the folder: some 50 µs each. */
const LOOK_EVERY = 1000

export interface Watching {
  /** Whether this process makes new keys and removes retired ones; more than one may. */
  readonly tends: boolean
  /** Told of every change. A rejection is noted, and tried again at the next change. */
  readonly changed?: (kids: readonly string[]) => Promise<void>
}

/**
 * The service's own keys, as the folder has them from moment to moment (C6.3.4). Any number of processes may share the
 * folder: each sees new files within a second, and all agree on what signs, since the files say when.
 */
export class ServiceKeys implements Signer, PublicKeys, KeyFinder, SecretDeriver {
  readonly #plan: KeysPlan
  readonly #clock: Clock
  readonly #deriver: SecretDeriver
  readonly #ring: KeyRing
  #keys: readonly StoredKey[]
  /** What was told of the keys last: `kid state` of each. */
  #told: string
  #lookedAt: number
  #looking: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #trouble: string | undefined

  /** Whether the folder had no keys when it was opened. */
  readonly made: boolean

  constructor(plan: KeysPlan, clock: Clock, { keys, made, deriver }: OpenedFolder) {
    this.made = made
    this.#plan = plan
    this.#clock = clock
    this.#keys = keys
    this.#deriver = deriver
    const schedule = this.schedule()
    this.#ring = new KeyRing(keySetOf(schedule))
    this.#told = statesOf(schedule)
    this.#lookedAt = clock.monotonic()
  }

  get folder(): string {
    return this.#plan.folder
  }

  get kids(): readonly string[] {
    return this.#keys.map((key) => key.kid)
  }

  /** Where each key stands now. */
  schedule(): readonly ScheduledKey[] {
    return scheduleKeys(this.#keys, this.#plan.rotation, epochSeconds(this.#clock))
  }

  sign(claims: Claims, how: Parameters<Signer['sign']>[1]): Promise<string> {
    return this.#ring.sign(claims, how)
  }

  jwks(): ReturnType<PublicKeys['jwks']> {
    return this.#ring.jwks()
  }

  derive(secret: string): string {
    return this.#deriver.derive(secret)
  }

  /**
   * A key that is not known may be one that another process has just made: the folder is looked at again, by all who
   * ask at once together and at most once a second, so that a flood of unknown keys costs nothing (T3.5).
   */
  async find(kid: string | undefined, algorithm: string): Promise<CryptoKey | undefined> {
    const known = await this.#ring.find(kid, algorithm)
    if (known !== undefined || kid === undefined) return known
    await this.#lookOnce()
    return this.#ring.find(kid, algorithm)
  }

  async #lookOnce(): Promise<void> {
    const since = this.#clock.monotonic() - this.#lookedAt
    if (this.#looking === undefined && since < LOOK_EVERY) return
    // Where the folder can't be read, the keys that are known go on; `tend` tells of it.
    await this.look().catch(() => undefined)
  }

  /** Reads what is new in the folder, and moves to what the time demands. Rejects with KeyFolderError; the keys stay then. */
  look(): Promise<void> {
    this.#looking ??= this.#read().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #read(): Promise<void> {
    this.#lookedAt = this.#clock.monotonic()
    const keys = await readKeyFolder(this.#plan.folder, this.#keys)
    // An emptied folder is trouble, not an instruction: what is in memory goes on until `tend` has made new keys.
    if (keys.length > 0) this.#use(keys)
  }

  #use(keys: readonly StoredKey[]): void {
    this.#keys = keys
    const schedule = this.schedule()
    const states = statesOf(schedule)
    if (states === this.#told) return
    this.#told = states
    this.#ring.replace(keySetOf(schedule))
  }

  /** Makes the keys that are due and removes the retired ones. For one process of several, though more do no harm. */
  async tend(): Promise<void> {
    await this.look()
    const { algorithms, folder, rotation } = this.#plan
    const now = epochSeconds(this.#clock)
    for (const algorithm of algorithms) {
      const generation = dueGeneration(this.#keys, algorithm, rotation, now)
      if (generation === undefined) continue
      const signsFrom = now + rotation.announce
      const made = await createKey(folder, { algorithm, generation, signsFrom }, this.#clock)
      this.#use([...this.#keys, made])
    }
    const retired = this.schedule().filter(({ state }) => state === 'retired')
    for (const { key } of retired) await removeKey(folder, key)
    if (retired.length > 0) await this.look()
  }

  /**
   * Looks at the folder once a second until `close`. Every change is noted; trouble is noted once, and the keys in
   * memory go on meanwhile.
   */
  watch(recorder: Pick<Recorder, 'note'>, watching: Watching): void {
    let running = false
    this.#timer = setInterval(() => {
      if (running) return
      running = true
      void this.#turn(recorder, watching).finally(() => {
        running = false
      })
    }, LOOK_EVERY).unref()
  }

  async #turn(recorder: Pick<Recorder, 'note'>, { tends, changed }: Watching): Promise<void> {
    const before = this.#told
    try {
      await (tends ? this.tend() : this.look())
      if (this.#told !== before) {
        recorder.note('info', 'signing_keys_changed', { keys: this.#told.split(', ') })
        await changed?.(this.kids)
      }
      this.#trouble = undefined
    } catch (thrown) {
      this.#tellTrouble(reasonOf(thrown), recorder)
    }
  }

  #tellTrouble(reason: string, recorder: Pick<Recorder, 'note'>): void {
    if (this.#trouble !== reason) recorder.note('error', 'signing_keys_unreadable', { reason })
    this.#trouble = reason
  }

  close(): void {
    clearInterval(this.#timer)
  }
}

const statesOf = (schedule: readonly ScheduledKey[]): string =>
  schedule.map(({ key, state }) => `${key.algorithm}-${key.generation} ${key.kid} ${state}`).join(', ')
