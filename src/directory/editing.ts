/** Changes of what a record of the store says. They are planned before they are made, so that a record can say what changes. */
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { didYouMeanOfFew } from '../config/problem-text.ts'
import type { Problem, Problems } from '../config/problems.ts'
import type { Catalogue } from '../config/scopes/catalogue.ts'
import type { Entry, Feed, Page, Store, StoredValue } from '../contracts/store.ts'
import type { Ended, TokenRevoker } from '../contracts/tokens.ts'
import type { Clock } from '../kernel/clock.ts'
import { byKey } from '../kernel/key-order.ts'
import type { ReferableNames } from './compile-records.ts'
import type { Directory } from './compile.ts'
import type { Loss } from './holdings.ts'
import { BUSINESS, ROLE } from './schema.ts'
import { announce, findAll } from './stored-directory.ts'
import { type Claim, claimedByConfiguration } from './uniqueness.ts'

/**
 * Why the directory was not changed: the record has problems; there is no such record; or something that is there stands
 * in the way, such as a record of the configuration.
 */
type RefusalKind = 'problems' | 'missing' | 'conflict'

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
const untilInForce = ({ pause = delay }: EditingParts): Promise<unknown> => pause(SPREAD)

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

/** What a record may name: all of the configuration, and of the store what it does name. */
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

/** A record in the form in which it is written, by key. */
type WrittenRecord = Readonly<Record<string, unknown>>

/** What shall be different. A member that is undefined removes the value of its key. */
export type ChangesOf = (before: WrittenRecord) => WrittenRecord

/** A record before and after a change. */
interface Versions<T> {
  readonly before: T
  readonly after: T
}

/** What a change has ended. */
export interface EndedLoss {
  readonly loss: Loss
  readonly ended: Ended
}

/** Something that is done to one record: it was checked, and is not done yet. */
export interface PlannedStep<T> {
  /** Of the record as it is shown; undefined for one of the configuration, which may hide that of the store. */
  readonly version: number | undefined
  /** As it is written: durations with a unit. */
  readonly written: Pick<Versions<WrittenRecord>, 'before'>
  /**
   * Does it, and ends what was issued beyond it. In force everywhere when this resolves. Undefined, and the record is as it
   * was, if somebody else has changed it since this was planned. Rejects with Fault `identity_unavailable`.
   *
   * @param exactly this version is meant and no other: nothing ends unless it is the latest
   */
  commit(exactly?: boolean): Promise<T | undefined>
}

/** A change that was checked, and is not made yet. */
export interface PlannedChange extends PlannedStep<readonly EndedLoss[]> {
  /** As they are loaded: durations in milliseconds. */
  readonly records: Versions<object>
  readonly written: Versions<WrittenRecord>
  /** The keys whose values differ. */
  readonly keys: readonly string[]
  /** What the record after the change makes useless or dangerous. */
  readonly warnings: readonly Problem[]
}

/** A secret that was drawn and is not in force yet, and the client as it will be with it. */
export interface UnshownSecret {
  readonly secret: string
  readonly client: FoundRecord<object>
}

/** A new record that was checked, and is not in the store yet. */
export interface PlannedAdd<R = object> {
  readonly record: R
  readonly warnings: readonly Problem[]
  /** Of a client that has a secret. */
  readonly unshown?: UnshownSecret
  /**
   * Resolves with the secret of a client, to be shown once. Rejects with DirectoryRefusal if somebody else has taken the name
   * meanwhile, and with Fault `identity_unavailable`.
   */
  commit(): Promise<string | undefined>
}

/** The record with the changes, without the keys that they remove. */
export const merged = (before: WrittenRecord, changes: WrittenRecord): WrittenRecord =>
  Object.fromEntries(Object.entries({ ...before, ...changes }).filter(([, value]) => value !== undefined))

/** As JSON keeps it, so that a record that was read from the store can be compared with one that was just loaded. */
const plain = (record: object): WrittenRecord => JSON.parse(JSON.stringify(record)) as WrittenRecord

function keysThatDiffer(before: WrittenRecord, after: WrittenRecord): readonly string[] {
  const keys = Object.keys({ ...before, ...after })
  return keys.filter((key) => !isDeepStrictEqual(before[key], after[key]))
}

interface Planned {
  readonly at: { readonly kind: string; readonly entry: Entry }
  readonly value: StoredValue
  /** How the change is announced: `{client}`, `{user}` and the like, with the record's key. */
  readonly announced: StoredValue
  readonly records: Versions<object>
  readonly written: Versions<WrittenRecord>
  /** What it takes from whom. */
  readonly losses: readonly Loss[]
  readonly warnings: readonly Problem[]
  readonly via: string
}

/** The change, ready to be made. */
export function planChange(parts: EditingParts, planned: Planned): PlannedChange {
  const { at, value, announced, losses, warnings, via } = planned
  const records = { before: plain(planned.records.before), after: plain(planned.records.after) }
  const written = { before: plain(planned.written.before), after: plain(planned.written.after) }
  const end = (): Promise<readonly Ended[]> => endAll(parts, losses, via)
  return {
    records,
    written,
    warnings,
    version: at.entry.version,
    keys: keysThatDiffer(written.before, written.after),
    async commit(exactly = false) {
      // Before the change, so that nothing is left that the change does not allow if the store fails in between.
      const before = exactly ? [] : await end()
      if (!(await parts.store.replace(at.kind, at.entry.key, at.entry.version, value))) return undefined
      await announce(parts, announced)
      // After it, since a process that did not know it went on issuing. Its rule comes behind the change on the feed.
      const after = await end()
      await untilInForce(parts)
      return losses.map((loss, index) => ({ loss, ended: sum(before[index], after[index]) }))
    },
  }
}

interface Removal {
  readonly at: { readonly kind: string; readonly entry: Entry }
  readonly announced: StoredValue
  readonly shown: Pick<PlannedStep<true>, 'version'> & { readonly written: WrittenRecord }
  /** What it takes from whom. */
  readonly losses: readonly Loss[]
  readonly via: string
  /** Removes what belongs to the record. */
  readonly clear?: () => Promise<unknown>
  /** Frees what nobody else may get before everything has ended. */
  readonly free?: () => Promise<unknown>
}

/** The removal of a record, and of what was issued for it, ready to be made. */
export function planRemoval(parts: EditingParts, removal: Removal): PlannedStep<true> {
  const { at, announced, shown, losses, via, clear, free } = removal
  const { key, version } = at.entry
  const end = async (): Promise<void> => {
    await clear?.()
    await endAll(parts, losses, via)
  }
  return {
    version: shown.version,
    written: { before: shown.written },
    async commit(exactly = false) {
      // Before and after: nothing is left if the store fails in between, and a process that does not know of the removal
      // does not know the rule either.
      if (!exactly) await end()
      const removed = await parts.store.remove(at.kind, key, exactly ? version : undefined)
      if (exactly && !removed) return undefined
      await announce(parts, announced)
      await end()
      await untilInForce(parts)
      await free?.()
      return true
    },
  }
}

async function endAll(
  { tokenRevoker }: EditingParts,
  losses: readonly Loss[],
  via: string,
): Promise<readonly Ended[]> {
  const ended: Ended[] = []
  for (const { tokens, consents } of losses)
    ended.push(await tokenRevoker.end(tokens, { consents, order: { via } }))
  return ended
}

const NOTHING: Ended = { sessions: 0, families: 0, codes: 0, consents: 0 }

const sum = (one = NOTHING, other = NOTHING): Ended => ({
  sessions: one.sessions + other.sessions,
  families: one.families + other.families,
  codes: one.codes + other.codes,
  consents: one.consents + other.consents,
})

// Lists of what stands in the configuration and in the store, in pages, in one order.

/** A record, and where it stands. */
export interface FoundRecord<R> {
  readonly key: string
  readonly source: 'configuration' | 'store'
  readonly record: R
  /** Of the store: grows with each change. */
  readonly version: number | undefined
  /** Of a client: how many secrets are valid now. */
  readonly validSecrets?: number
  /** When the old secret of a rotation ends, in milliseconds since the epoch; undefined without a rotation. */
  readonly oldSecretEndsAt?: number | undefined
}

/** What both layers have of one kind. */
interface Layers<C> {
  /** Those of the configuration, by key. They count where both have one of the same key. */
  readonly configured: ReadonlyMap<string, C>
  readonly store: Pick<Store, 'list'>
  readonly kind: string
}

export type ListedEntry<C> =
  | { readonly source: 'configuration'; readonly key: string; readonly record: C }
  | { readonly source: 'store'; readonly key: string; readonly entry: Entry }

export interface ListedPage<T> {
  readonly items: readonly T[]
  /** The key to go on after; undefined if nothing follows. */
  readonly next: string | undefined
}

/**
 * One page of both layers, in the order of keys: one look into the store, and one at the keys of the configuration.
 * Rejects with Fault `identity_unavailable`.
 */
export async function pageOf<C>(layers: Layers<C>, page: Page): Promise<ListedPage<ListedEntry<C>>> {
  const { configured, store, kind } = layers
  // One more than the page has: it tells whether another page follows.
  const wanted: Page = { ...page, limit: page.limit + 1 }
  const stored = await store.list(kind, wanted)
  const entries = [
    ...keysOn(configured, wanted).flatMap((key): ListedEntry<C>[] => {
      const record = configured.get(key)
      return record === undefined ? [] : [{ source: 'configuration', key, record }]
    }),
    ...stored
      .filter(({ key }) => !configured.has(key))
      .map((entry): ListedEntry<C> => ({ source: 'store', key: entry.key, entry })),
  ]
  const items = entries.sort((one, other) => byKey(one.key, other.key)).slice(0, page.limit)
  return { items, next: entries.length > items.length ? items.at(-1)?.key : undefined }
}

/** The keys of each map in order. A map of a configuration never changes. */
const sorted = new WeakMap<ReadonlyMap<string, unknown>, readonly string[]>()

function inOrder(configured: ReadonlyMap<string, unknown>): readonly string[] {
  const known = sorted.get(configured)
  if (known !== undefined) return known
  const keys = [...configured.keys()].sort(byKey)
  sorted.set(configured, keys)
  return keys
}

/** The keys of the configuration on a page, in order. */
function keysOn(
  configured: ReadonlyMap<string, unknown>,
  { prefix = '', after, limit }: Page,
): readonly string[] {
  const keys: string[] = []
  for (const key of inOrder(configured)) {
    if (keys.length === limit) break
    if (key.startsWith(prefix) && (after === undefined || byKey(key, after) > 0)) keys.push(key)
  }
  return keys
}
