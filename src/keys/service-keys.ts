import { setTimeout as delay } from 'node:timers/promises'
import type { Claims, PublicKeys, SecretDeriver, Signed, Signer } from '../contracts/keys.ts'
import type { SigningAlgorithm } from '../contracts/people.ts'
import { type Clock, epochSeconds } from '../kernel/clock.ts'
import { createKey, followKeyFolder, readKeyFolder, removeKey, type StoredKey } from './key-folder.ts'
import { KeyRing } from './key-ring.ts'
import { createPrivateFolder, identifyFolder, KeyFolderError } from './private-folder.ts'
import {
  dueGeneration,
  keySetOf,
  type Rotation,
  rotationsOf,
  scheduleKeys,
  type RotationPlan,
  type ScheduledKey,
} from './schedule.ts'
import { SuccessorSecret } from './successor-secret.ts'
import type { KeyFinder, TrustedKey } from './token-verifier.ts'

export interface KeysPlan {
  /** Absolute path of the folder with the private keys. */
  readonly folder: string
  /** Each gets a key at the first start. */
  readonly algorithms: readonly SigningAlgorithm[]
  readonly rotation: RotationPlan
}

/** What the folder contains when the service opens it. */
export interface OpenedFolder {
  readonly keys: readonly StoredKey[]
  readonly made: boolean
  readonly secret: SuccessorSecret
  /** The identity of the folder, see `identifyFolder`. */
  readonly identity: string
}

/** Milliseconds between two readings of the folder because of unknown keys. One takes about 50 µs. */
const REFRESH_INTERVAL = 100
/** Most tokens with unknown keys that wait for such a reading. Further ones are refused at once. */
const MAX_WAITING = 1_000

/**
 * The service's own keys, kept in step with their folder (C6.3.4). Any number of processes may share the folder. Each
 * notices within a second what was added or removed. All agree on which key signs, since the files say when.
 *
 * If a key file is removed, the key and every token that it signed are no longer accepted (T3.10). If it was the last
 * one, a new key is made. But a folder that is gone, or replaced by an empty one (an unmounted volume leaves one), is
 * an error: it is logged, and the keys in memory stay in use.
 */
export class ServiceKeys implements Signer, PublicKeys, KeyFinder, SecretDeriver {
  readonly #plan: KeysPlan
  readonly #clock: Clock
  readonly #secret: SuccessorSecret
  readonly #ring: KeyRing
  /** The highest generation that ever existed: the number of a removed key is not used again. */
  readonly #newest = new Map<SigningAlgorithm, number>()
  #identity: string
  #keys: readonly StoredKey[] = []
  #states = ''
  #refreshedAt: number
  #refreshing: Promise<void> | undefined
  #nextRefresh: Promise<void> | undefined
  #waiting = 0
  #rotating: Promise<void> | undefined

  /** Whether the folder had no keys when it was opened. */
  readonly made: boolean

  constructor(plan: KeysPlan, clock: Clock, { keys, made, secret, identity }: OpenedFolder) {
    this.made = made
    this.#plan = plan
    this.#clock = clock
    this.#secret = secret
    this.#identity = identity
    this.#ring = new KeyRing({ signing: new Map(), published: [] })
    this.#use(keys)
    this.#refreshedAt = clock.monotonic()
  }

  get folder(): string {
    return this.#plan.folder
  }

  get kids(): readonly string[] {
    return this.#keys.map((key) => key.kid)
  }

  /** Every key and its state, for people. The text differs after every change. */
  get states(): string {
    return this.#states
  }

  /** The state of each key now. */
  schedule(): readonly ScheduledKey[] {
    return scheduleKeys(this.#keys, this.#plan.rotation, epochSeconds(this.#clock))
  }

  /** The key that signs now, for each algorithm, and when another one is to follow. */
  rotations(): readonly Rotation[] {
    return rotationsOf(this.schedule(), this.#plan.rotation)
  }

  /** Rejects with KeyFolderError if there is no signing key and none can be made. */
  async sign(claims: Claims, how: Parameters<Signer['sign']>[1]): Promise<Signed> {
    // The last key was removed a moment ago: make the next one at once.
    if (!this.#ring.signs(how.algorithm)) await this.rotateIfDue()
    return this.#ring.sign(claims, how)
  }

  jwks(): ReturnType<PublicKeys['jwks']> {
    return this.#ring.jwks()
  }

  get secretId(): string {
    return this.#secret.secretId
  }

  derive(secret: string): string {
    return this.#secret.derive(secret)
  }

  /**
   * Another process may have just made the key. So the folder is read once more before a token with an unknown key is
   * refused. All callers share that reading, and there are at most ten a second, so a flood of unknown keys costs
   * little (T3.5). Never rejects.
   */
  async find(kid: string | undefined, algorithm: string): Promise<readonly TrustedKey[] | undefined> {
    const known = await this.#ring.find(kid, algorithm)
    if (known !== undefined || kid === undefined) return known
    if (this.#waiting >= MAX_WAITING) return undefined
    this.#waiting += 1
    // If the folder can't be read, the known keys stay in use; watch-keys.ts logs the failure.
    await this.#refreshSoon().catch(() => undefined)
    this.#waiting -= 1
    return this.#ring.find(kid, algorithm)
  }

  findLocally(kid: string | undefined, algorithm: string): Promise<readonly TrustedKey[] | undefined> {
    return this.#ring.find(kid, algorithm)
  }

  /** A reading of the folder that begins after this call. */
  #refreshSoon(): Promise<void> {
    this.#nextRefresh ??= this.#untilDue().then(async () => {
      await this.#refreshing?.catch(() => undefined)
      this.#nextRefresh = undefined
      return this.refresh()
    })
    return this.#nextRefresh
  }

  async #untilDue(): Promise<void> {
    const due = this.#refreshedAt + REFRESH_INTERVAL - this.#clock.monotonic()
    if (due > 0) await delay(due, undefined, { ref: false })
  }

  /**
   * Reads what has changed in the folder, and updates the states of the keys to the current time. Rejects with
   * KeyFolderError; keys whose files still exist stay in use then.
   */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#read().finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  async #read(): Promise<void> {
    const { folder } = this.#plan
    this.#refreshedAt = this.#clock.monotonic()
    const before = await identifyFolder(folder)
    const { keys, trouble } = await followKeyFolder(folder, this.#keys)
    const identity = await identifyFolder(folder)
    if (keys.length === 0 && (identity !== this.#identity || before !== identity)) throw emptied(folder)
    this.#identity = identity
    this.#use(keys)
    if (trouble !== undefined) throw trouble
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
   * Reads the secret again. Resolves with whether it was replaced. Rejects with KeyFolderError; the one in memory
   * stays then.
   */
  async refreshSecret(): Promise<boolean> {
    // Another folder in the place of ours has no secret, and must not get one.
    if ((await identifyFolder(this.#plan.folder)) !== this.#identity) return false
    return this.#secret.refresh()
  }

  /**
   * Makes the keys that are due and removes the retired ones. One process is enough; more do no harm. Rejects with
   * KeyFolderError.
   */
  rotateIfDue(): Promise<void> {
    this.#rotating ??= this.#rotate().finally(() => {
      this.#rotating = undefined
    })
    return this.#rotating
  }

  async #rotate(): Promise<void> {
    await this.refresh()
    const { algorithms, folder, rotation } = this.#plan
    const now = epochSeconds(this.#clock)
    for (const algorithm of algorithms) {
      const due = dueGeneration(this.#keys, algorithm, rotation, now)
      if (due === undefined) continue
      const generation = Math.max(due, (this.#newest.get(algorithm) ?? 0) + 1)
      // Without another key that signs meanwhile, the new key signs at once.
      const signsFrom = this.#ring.signs(algorithm) ? now + rotation.announce : now
      const made = await createKey(folder, { algorithm, generation, signsFrom }, this.#clock)
      this.#use([...this.#keys, made])
    }
    const retired = this.schedule().filter(({ state }) => state === 'retired')
    for (const { key } of retired) await removeKey(folder, key.file)
    if (retired.length > 0) await this.refresh()
  }
}

const emptied = (folder: string): KeyFolderError =>
  new KeyFolderError(
    `The folder of the signing keys, ${folder}, was replaced by an empty one. Is its volume mounted? The keys in ` +
      'memory stay in use. To withdraw them, remove the key files from their folder, or restart.',
  )

const statesOf = (schedule: readonly ScheduledKey[]): string =>
  schedule.map(({ key, state }) => `${key.algorithm}-${key.generation} ${key.kid} ${state}`).join(', ')

/**
 * Opens the service's keys; the first start makes them. Rejects with KeyFolderError if the folder cannot be used
 * (T7). The keys change only by `refresh` and `rotateIfDue`.
 */
export async function openKeys(plan: KeysPlan, clock: Clock): Promise<ServiceKeys> {
  const { algorithms, folder } = plan
  await createPrivateFolder(folder)
  const found = await readKeyFolder(folder)
  const missing = algorithms.filter((algorithm) => !found.some((key) => key.algorithm === algorithm))
  const made = await Promise.all(
    missing.map((algorithm) => createKey(folder, { algorithm, generation: 1 }, clock)),
  )
  return new ServiceKeys(plan, clock, {
    keys: [...found, ...made],
    made: found.length === 0,
    secret: await SuccessorSecret.open(folder),
    identity: await identifyFolder(folder),
  })
}
