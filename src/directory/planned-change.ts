/** Changes of what a record of the store says. They are planned before they are made, so that a record can say what changes. */
import { isDeepStrictEqual } from 'node:util'
import type { Problem } from '../config/problems.ts'
import type { Entry, StoredValue } from '../contracts/store.ts'
import type { Ended } from '../contracts/tokens.ts'
import type { Loss } from './losses.ts'
import { announce } from './stored-directory.ts'
import { type EditingParts, untilInForce } from './stored-editing.ts'

/** A record in the form in which it is written, by key. */
export type WrittenRecord = Readonly<Record<string, unknown>>

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
  readonly client: {
    readonly key: string
    readonly record: object
    readonly source: 'store' | 'configuration'
    readonly version: number | undefined
    readonly validSecrets: number
    readonly oldSecretEndsAt: number | undefined
  }
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

export function keysThatDiffer(before: WrittenRecord, after: WrittenRecord): readonly string[] {
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
    ...{ records, written, warnings, version: at.entry.version },
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
    ...{ version: shown.version, written: { before: shown.written } },
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
