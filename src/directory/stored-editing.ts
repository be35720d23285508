import { setTimeout as delay } from 'node:timers/promises'
import { didYouMeanOfFew } from '../config/problem-text.ts'
import type { Problems } from '../config/problems.ts'
import type { Entry, Feed, Store } from '../contracts/store.ts'
import type { TokenRevoker } from '../contracts/tokens.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Catalogue } from '../config/scopes/catalogue.ts'
import type { Directory } from './compile.ts'
import { claimedByConfiguration, type Claim } from './uniqueness.ts'

/**
 * Why the directory was not changed: the record has problems; there is no such record; or something that is there stands
 * in the way, such as a record of the configuration.
 */
export type RefusalKind = 'problems' | 'missing' | 'conflict'

/** The directory was not changed. The message says why. */
export class DirectoryRefusal extends Error {
  override readonly name = 'DirectoryRefusal'
  readonly kind: RefusalKind
  /** If the record has problems: all of them, by key of the record. */
  readonly problems: Problems | undefined

  constructor(message: string, problems?: Problems, kind: RefusalKind = problems ? 'problems' : 'conflict') {
    super(message)
    this.problems = problems
    this.kind = kind
  }
}

/** What an editor of the store's records needs. */
export interface EditingParts {
  readonly store: Store
  readonly feed: Pick<Feed, 'append'>
  readonly tokenRevoker: Pick<TokenRevoker, 'end'>
  readonly clock: Clock
  /** The directory of the configuration: its names are taken, and new records may refer to it. */
  readonly configured: Directory
  readonly catalogue: Catalogue
  /** Resolves after so many milliseconds. Tests pass their own. */
  readonly pause?: (ms: number) => Promise<unknown>
}

/** Milliseconds within which every process knows of a change. */
const SPREAD = 1000
/** Two changes of one record at the same time are rare; four mean that something is wrong. */
export const ATTEMPTS = 4

/** Resolves when every process that can read the store uses the announced change. */
export const untilInForce = ({ pause = delay }: EditingParts): Promise<unknown> => pause(SPREAD)

/** Throws DirectoryRefusal if the configuration has given the id to another client or user. */
export function refuseTaken({ configured }: EditingParts, claim: Claim): void {
  const taken = claimedByConfiguration(claim, configured)
  if (taken !== undefined) throw new DirectoryRefusal(taken)
}

/** A record of the store, and what to say if there is none. */
interface Place {
  readonly kind: string
  readonly key: string
  readonly missing: () => Promise<string>
}

/** Rejects with DirectoryRefusal if there is no such record. */
export async function foundEntry(store: Store, { kind, key, missing }: Place): Promise<Entry> {
  const entry = await store.find(kind, key)
  if (entry === undefined) throw new DirectoryRefusal(await missing(), undefined, 'missing')
  return entry
}

/**
 * As `foundEntry`, of a record that the configuration may hide. Where there is none, `refuseConfigured` throws if the
 * configuration has one of that name.
 */
export async function foundUnlessConfigured(
  store: Store,
  at: Place,
  refuseConfigured: () => void,
): Promise<Entry> {
  const hidden = await store.find(at.kind, at.key)
  if (hidden !== undefined) return hidden
  refuseConfigured()
  return foundEntry(store, at)
}

/** What to say of a record that is added, and is there already. */
export const alreadyThere = (what: string, key: string): DirectoryRefusal =>
  new DirectoryRefusal(`There is a ${what} "${key}" already.`)

/** Names that are compared with one that is missing. */
const COMPARED = 500

/** `There is no client "tlly" — did you mean "tally"?`. Of a store with more than 500, no name is suggested. */
export async function missingText(
  { store }: EditingParts,
  what: string,
  at: Omit<Place, 'missing'>,
): Promise<string> {
  const entries = await store.list(at.kind, { after: undefined, limit: COMPARED + 1 })
  const hint = didYouMeanOfFew(
    at.key,
    entries.map(({ key }) => key),
  )
  return `There is no ${what} "${at.key}"${hint === undefined ? '.' : ` — ${hint}`}`
}

/** What to say if a record is changed by others all the time. */
export const changedByOthers = (key: string): DirectoryRefusal =>
  new DirectoryRefusal(`"${key}" is being changed by somebody else; try again`)
