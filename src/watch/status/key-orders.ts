/** What operators may ask of the signing keys. */
import type { Operator } from '../../audit/audited-change.ts'

/** A signing key as operators see it: nothing of its private half. Times in seconds since the epoch. */
export interface ListedKey {
  /** `ES256-2`: the name of its file. */
  readonly name: string
  readonly kid: string
  readonly algorithm: string
  readonly state: 'announced' | 'signing' | 'retiring' | 'retired'
  readonly createdAt: number
  readonly signsFrom: number
  /** When it is no longer published; undefined as long as no key follows it. */
  readonly endsAt: number | undefined
  /** Of the key that signs: when another one does; undefined where none is planned. */
  readonly nextRotationAt: number | undefined
}

/** A rotation that was done, or what it would do. */
export interface Rotation {
  readonly outcome: 'rotated' | 'previewed'
  /** Names of the keys that were made. */
  readonly made: readonly string[]
  /** Names of the keys that were removed. */
  readonly removed: readonly string[]
  /** Families of refresh tokens that ended; undefined if they could not be ended. */
  readonly families: number | undefined
}

export interface RotateOptions {
  /** Replace the keys and the secret of refresh tokens now: all that they gave is refused. */
  readonly compromised: boolean
  /** Change nothing. */
  readonly preview: boolean
}

/** All methods reject with AdminError 503 if the folder of the keys cannot be used. */
export interface KeyOrders {
  /** Oldest first within its algorithm. */
  list(): Promise<readonly ListedKey[]>
  /** One rotation at a time. */
  rotate(options: RotateOptions, operator: Operator): Promise<Rotation>
}
