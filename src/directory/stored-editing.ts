import type { Report } from '../config/report.ts'
import { setTimeout as delay } from 'node:timers/promises'
import type { Entry, Feed, Store, StoredValue } from '../contracts/store.ts'
import type { TokenRevoker } from '../contracts/tokens.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Catalogue } from '../scopes/catalogue.ts'
import type { Directory } from './compile.ts'
import { DIRECTORY_TOPIC } from './stored-directory.ts'
import { claimedByConfiguration, everyRecord, type Claim } from './uniqueness.ts'

/** The directory is left as it is, and why. */
export class DirectoryRefusal extends Error {
  override readonly name = 'DirectoryRefusal'
  /** Where it is the record that does not fit: every problem, by key of the record. */
  readonly report: Report | undefined

  constructor(message: string, report?: Report) {
    super(message)
    this.report = report
  }
}

/** What editing the records of the store needs, whoever edits: a command beside the service, or the service itself. */
export interface EditingParts {
  readonly store: Store
  readonly feed: Pick<Feed, 'append'>
  readonly tokenRevoker: Pick<TokenRevoker, 'end'>
  readonly clock: Clock
  /** Of the configuration: its names are taken, and it is what new records may refer to. */
  readonly configured: Directory
  readonly catalogue: Catalogue
  /** Waits; tests hand in their own. */
  readonly pause?: (ms: number) => Promise<unknown>
}

/** Milliseconds within which every process has heard of a change. */
const SPREAD = 1000
/** Milliseconds: far longer than any process keeps a record that it has read (stored-directory.ts). */
const TOLD_FOR = 60 * 60 * 1000
/** Two who change one record at once is rare, four an accident. */
const ATTEMPTS = 4

/** Tells every process that a record has changed. */
export const announce = ({ feed, clock }: EditingParts, changed: StoredValue): Promise<void> =>
  feed.append(DIRECTORY_TOPIC, changed, clock.now() + TOLD_FOR)

/** Resolves when every process that can read the store judges by what was announced. */
export const untilInForce = ({ pause = delay }: EditingParts): Promise<unknown> => pause(SPREAD)

/** Every record of a kind, however many. */
export const recordsOf = ({ store }: EditingParts, kind: string): AsyncGenerator<Entry> =>
  everyRecord(store, kind)

/** Throws DirectoryRefusal if the configuration has given the id to somebody else. */
export function refuseTaken({ configured }: EditingParts, claim: Claim): void {
  const taken = claimedByConfiguration(claim, configured)
  if (taken !== undefined) throw new DirectoryRefusal(taken)
}

/** Changes one record by what it is now, however many others do the same. Refuses if there is none. */
export async function changeRecord<T extends StoredValue>(
  { store }: EditingParts,
  at: { readonly kind: string; readonly key: string; readonly missing: string },
  change: (value: StoredValue) => T,
): Promise<T> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const entry = await store.find(at.kind, at.key)
    if (entry === undefined) throw new DirectoryRefusal(at.missing)
    const value = change(entry.value)
    if (await store.replace(at.kind, at.key, entry.version, value)) return value
  }
  throw new DirectoryRefusal(`"${at.key}" is being changed by somebody else; try again`)
}
