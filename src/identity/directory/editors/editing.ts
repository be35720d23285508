/** Changes of the store's records. They are planned before they are made, so that the trail can say what changes. */
import type { Problem, Problems } from '../../../base/config/problems.ts'
import type { Catalogue } from '../../../base/config/scopes/catalogue.ts'
import type { ProblemsOfValues } from '../../../base/contracts/people/places.ts'
import type { Feed, Store } from '../../../base/contracts/records/store.ts'
import type { Sealer } from '../../../base/contracts/people/keys.ts'
import type { Ended, TokenRevoker } from '../../../base/contracts/records/tokens.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import type { ReferableNames } from '../records/references.ts'
import type { Directory } from '../records/compile.ts'
import type { Loss } from '../records/holdings.ts'
import type { Hasher } from '../hashing/hasher.ts'
import { BUSINESS, ROLE } from '../records/schema.ts'
import { findAll } from '../records/stored-directory.ts'

/** `problems`: the record has some. `missing`: there is no such record. `conflict`: something else is in the way. */
type RefusalKind = 'problems' | 'missing' | 'conflict'

export class DirectoryRefusal extends Error {
  override readonly name = 'DirectoryRefusal'
  readonly kind: RefusalKind
  readonly problems: Problems | undefined

  constructor(message: string, problems?: Problems, kind: RefusalKind = problems ? 'problems' : 'conflict') {
    super(message)
    this.problems = problems
    this.kind = kind
  }
}

/** Resolves after so many milliseconds. */
export type Pause = (ms: number) => Promise<unknown>

export interface EditingParts {
  readonly store: Store
  readonly feed: Pick<Feed, 'append'>
  readonly tokenRevoker: TokenRevoker
  readonly clock: Clock
  /** The directory of the configuration: its names are taken, and new records may refer to it. */
  readonly configured: Directory
  readonly catalogue: Catalogue
  readonly hasher: Pick<Hasher, 'hash'>
  /** Whether `directory.people` finds further users. */
  readonly peopleElsewhere?: boolean
  /** Seals what no copy of the store may tell. Absent where nothing is written. */
  readonly sealer?: Sealer | undefined
  /** The values of a business that operations name (C8.7), each with what names it first. */
  readonly namedValues?: ReadonlyMap<string, string>
  /** What is wrong with values, by name: some say where calls go (C8.7). */
  readonly problemsOfValues?: ProblemsOfValues
  /** Waits until every process knows of a change. Tests pass their own. */
  readonly pause?: Pause | undefined
}

/** Two changes of one record at the same time are rare; four mean that something is wrong. */
export const ATTEMPTS = 4

/** The names that a record may use: all of the configuration, and those of the given ones that the store has. */
export async function referable(
  { store, configured }: Pick<EditingParts, 'store' | 'configured'>,
  { businesses, roles }: { readonly businesses: readonly string[]; readonly roles: readonly string[] },
): Promise<Pick<ReferableNames, 'businesses' | 'roles'>> {
  const withStored = async (
    kind: string,
    known: ReadonlyMap<string, unknown>,
    names: readonly string[],
  ): Promise<ReadonlyMap<string, unknown>> => {
    const unknown = names.filter((name) => !known.has(name))
    if (unknown.length === 0) return known
    const stored = await findAll(store, kind, unknown)
    return new Map([...known, ...stored.map(({ key }) => [key, true] as const)])
  }
  return {
    businesses: await withStored(BUSINESS, configured.businesses, businesses),
    roles: await withStored(ROLE, configured.roles, roles),
  }
}

export const changedByOthers = (key: string): DirectoryRefusal =>
  new DirectoryRefusal(`"${key}" is being changed by somebody else; try again`)

/** A record, or some of its members, in the form in which it is written: durations have units. */
export type Written = Readonly<Record<string, unknown>>

/** The members to change. A member that is undefined removes the value of its key. */
export type ChangesOf = (before: Written) => Written

export interface Versions<T> {
  readonly before: T
  readonly after: T
}

export interface EndedLoss {
  readonly loss: Loss
  readonly ended: Ended
}

/** Something that is done to one record: it was checked, and is not done yet. */
export interface PlannedStep<T> {
  /** The version of the record as it is shown; undefined for one of the configuration, which may hide that of the store. */
  readonly version: number | undefined
  readonly written: Pick<Versions<Written>, 'before'>
  /**
   * Does it, and ends everything issued that it no longer allows. It is in force everywhere when this resolves. Resolves with
   * undefined, and the record is as it was, if somebody else has changed it since this was planned. Rejects with Fault
   * `identity_unavailable`.
   *
   * @param exactly this version is meant and no other: nothing ends unless it is the latest
   */
  commit(exactly?: boolean): Promise<T | undefined>
}

export interface PlannedChange extends PlannedStep<readonly EndedLoss[]> {
  /** As they are loaded: durations in milliseconds. */
  readonly records: Versions<object>
  readonly written: Versions<Written>
  readonly keys: readonly string[]
  /** Warnings about anything in the record after the change that makes it useless or dangerous. */
  readonly warnings: readonly Problem[]
  /** The record to show after a change of a client or user that neither layer has. */
  readonly shown?: FoundRecord<object>
  /** What happens to the mark that disables it; undefined where the record of the store is changed. */
  readonly mark?: 'set' | 'removed'
}

/** A secret that was drawn and is not in force yet, and the client as it will be with it. */
export interface UnshownSecret {
  readonly secret: string
  readonly client: FoundRecord<object>
}

export interface PlannedAdd<R = object> {
  readonly record: R
  /** As it was given, with the members that the kind of record adds. */
  readonly written: Written
  readonly warnings: readonly Problem[]
  readonly unshown?: UnshownSecret
  /**
   * Resolves with the secret of a client, to be shown once. Rejects with DirectoryRefusal if somebody else has taken the name
   * meanwhile, and with Fault `identity_unavailable`.
   */
  commit(): Promise<string | undefined>
}

/** How many secrets of a client are valid now, and when the old one of a rotation ends, in milliseconds since the epoch. */
export interface SecretFacts {
  readonly validSecrets: number
  readonly oldSecretEndsAt?: number | undefined
}

export interface FoundRecord<R> extends Partial<SecretFacts> {
  readonly key: string
  /** `mark`: neither layer has it, only a mark: it is gone, or code of the operator's finds this user. */
  readonly source: 'configuration' | 'store' | 'mark'
  readonly record: R
  /** Grows with each change: that of the record in the store, or of the mark over a record of the configuration. */
  readonly version: number | undefined
  /** A mark disables it, even if the record does not. */
  readonly disabledByCommand?: true
}

export interface ListedPage<T> {
  readonly items: readonly T[]
  /** The key after which the next page begins; undefined if nothing follows. */
  readonly next: string | undefined
}
