import { createHash, createHmac } from 'node:crypto'
import type { SealedText, Sealer, SecretDeriver } from '../../../base/contracts/people/keys.ts'
import type { SigningAlgorithm } from '../../../base/contracts/people/people.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import type { Diagnosis } from '../../../base/kernel/diagnosis.ts'
import { Fault } from '../../../base/kernel/faults.ts'
import { messageOf } from '../../../base/kernel/thrown.ts'
import { KeyError } from '../../../base/kernel/key-error.ts'
import type { Seals } from './seal.ts'
import { inOrder, type NewKey, parseKeyName, type StoredKey } from './stored-key.ts'

export interface FoundKeys {
  /** Oldest generation first. */
  readonly keys: readonly StoredKey[]
  /** Why a key cannot be read; undefined if all can. */
  readonly trouble: Error | undefined
}

export interface KeptSecret {
  /** 43 characters, base64url. */
  readonly text: string
  /** Differs after it was replaced. */
  readonly stamp: string
}

/** Something that is sealed. */
export interface SealedTitle {
  /** How messages call it. */
  readonly title: string
  /** The id of its seal. */
  readonly seal: string
}

/** What `rewrap` did. Both lists have the names of keys, and of the secret. */
export interface Rewrapped {
  readonly sealed: readonly string[]
  /** They were sealed with the first seal already. */
  readonly already: readonly string[]
}

/**
 * Where the signing keys and the secret of refresh tokens are kept (C6.3.4): in a folder, or in a store that several
 * nodes share. Any number of processes may use it at once. Every method rejects with KeyError if the place, or what is
 * asked of it, cannot be used; a store rejects with Fault `identity_unavailable` if it cannot be reached.
 */
export interface KeyPlace extends Sealer {
  /** For messages: `the folder /var/lib/postern/keys`. */
  readonly name: string
  /** How often it is read, in milliseconds: every process notices a change within that time. */
  readonly every: number
  /** The shortest time between two readings because of unknown keys, in milliseconds. */
  readonly pause: number
  /** Makes the place ready. The first start creates it. */
  open(): Promise<void>
  /**
   * Reads what is new since `known`. A key that is gone is gone, even if others cannot be read. A key that cannot be
   * read stays as it was known. Rejects also if the place was replaced by an empty one.
   */
  read(known: readonly StoredKey[]): Promise<FoundKeys>
  /** The names of all keys, also of those that cannot be read; sorted. */
  names(): Promise<readonly string[]>
  /** Makes the key of a generation, or reads the one that another process made at the same time. */
  create(key: NewKey, clock: Clock): Promise<StoredKey>
  /** Nothing happens if the key is gone already. */
  remove(name: string): Promise<void>
  /**
   * The secret of refresh tokens. It is made if there is none; of several processes that do it at once one wins.
   * `known`: as it was read before; the same object if nothing has changed.
   */
  secret(known?: KeptSecret): Promise<KeptSecret>
  /** Running processes notice it. */
  replaceSecret(): Promise<void>
  /** The name of a key's file; undefined where keys have none. */
  fileOf(name: string): string | undefined
  readonly secretTitle: string
  /** Seals anew, with the first seal; nothing if something cannot be opened. Absent where nothing is sealed. */
  rewrap?(): Promise<Rewrapped>
  /** From now on the seals of this section `store` seal and open. Absent where none are configured. */
  adopt?(store: { readonly kind: string }): void
  /** Warns of what is sealed, and not with the first seal. Absent where there is one seal only. */
  olderSeals?(sealed: readonly SealedTitle[]): readonly Diagnosis[]
  /** Whether the place exists, and what an operator should know about it. Changes nothing. */
  examine(): Promise<{ readonly exists: boolean; readonly findings: readonly Diagnosis[] }>
}

export const SECRET_FORM = /^[A-Za-z0-9_-]{43}$/

/** The content of a place, from the readings of each name: a key that cannot be read stays as it was known. */
export function foundKeys(
  names: readonly string[],
  read: readonly PromiseSettledResult<StoredKey | undefined>[],
  known: ReadonlyMap<string, StoredKey>,
): FoundKeys {
  const keys = read.map((result, at) =>
    result.status === 'fulfilled' ? result.value : known.get(names[at] ?? ''),
  )
  const failed = read.find((result) => result.status === 'rejected')
  return {
    keys: inOrder(keys.filter((key) => key !== undefined)),
    trouble:
      failed && (failed.reason instanceof Error ? failed.reason : new KeyError(messageOf(failed.reason))),
  }
}

/** Undefined if it cannot be opened with these seals. */
export function openedOrNot(seals: Seals, sealed: SealedText, place: readonly string[]): string | undefined {
  try {
    return seals.open(sealed, place)
  } catch (thrown) {
    if (thrown instanceof KeyError) return undefined
    throw thrown
  }
}

/** How messages call a key: by its file, if it has one. */
export const titleOf = (place: KeyPlace, name: string): string => place.fileOf(name) ?? name

/** Every key of a place, oldest generation first. Rejects also if one of them cannot be used. */
export async function keysOf(place: KeyPlace): Promise<readonly StoredKey[]> {
  const { keys, trouble } = await place.read([])
  if (trouble !== undefined) throw trouble
  return keys
}

/** The highest generation of an algorithm; 0 if there is none. */
export async function newestGeneration(place: KeyPlace, algorithm: SigningAlgorithm): Promise<number> {
  const names = (await place.names()).map(parseKeyName)
  return Math.max(0, ...names.map((name) => (name?.algorithm === algorithm ? name.generation : 0)))
}

const ID_LENGTH = 8

/** Deterministic, one-way, 256 bits, base64url. */
export function createDeriver(secret: string): SecretDeriver {
  const secretId = createHash('sha256').update(secret).digest('base64url').slice(0, ID_LENGTH)
  return {
    secretId,
    isOf: (id) => id === secretId,
    derive: (text) => createHmac('sha256', secret).update(text).digest('base64url'),
  }
}

/**
 * The secret that refresh tokens are made with (C6.1.7). It is kept as the signing keys are, and not as other records:
 * so nobody who has the store alone can make a token. If it is lost, all refresh tokens are refused, and people log in
 * again. If it is stolen, `postern keys rotate --compromised` replaces it and ends all families.
 */
export class SuccessorSecret implements SecretDeriver {
  readonly #place: KeyPlace
  #kept: KeptSecret
  #deriver: SecretDeriver
  #failure: unknown

  private constructor(place: KeyPlace, kept: KeptSecret) {
    this.#place = place
    this.#kept = kept
    this.#deriver = createDeriver(kept.text)
  }

  /** The first start makes the secret. Several processes that start at once agree on one. Rejects as KeyPlace does. */
  static async open(place: KeyPlace): Promise<SuccessorSecret> {
    return new SuccessorSecret(place, await place.secret())
  }

  get secretId(): string {
    return this.#deriver.secretId
  }

  isOf(secretId: string): boolean {
    if (this.#deriver.isOf(secretId)) return true
    if (this.#failure === undefined) return false
    throw new Fault('identity_unavailable', {
      detail: 'the secret of refresh tokens cannot be read, and this one is of another secret',
      cause: this.#failure,
    })
  }

  derive(text: string): string {
    return this.#deriver.derive(text)
  }

  /** Makes a new one if it is lost. True if it has changed. Rejects as KeyPlace does; the known one stays then. */
  async refresh(): Promise<boolean> {
    const before = this.#kept
    this.#kept = await this.#place.secret(before).catch((thrown: unknown) => {
      this.#failure = thrown
      throw thrown
    })
    this.#failure = undefined
    if (this.#kept.text === before.text) return false
    this.#deriver = createDeriver(this.#kept.text)
    return true
  }
}
