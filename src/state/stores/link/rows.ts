/** The rows of both databases, and their values. */
import type { Change, Entry, StoredValue } from '../../../base/contracts/records/store.ts'

/** A row of `record`, without kind and indexes. A type alias, so that the rows of node:sqlite can be cast to it. */
export type RecordRow = {
  readonly key: string
  /** The whole key, where `key` is shortened (in a store that nodes share). */
  readonly long_key?: string | null
  readonly value: string
  readonly version: number
  readonly expires_at: number | null
  readonly used_at: number | null
}

export type ChangeRow = {
  readonly sequence: number
  /** Only where a store may lose changes while it runs. */
  readonly mark?: string
  readonly topic: string
  readonly value: string
  readonly expires_at: number | null
  readonly runs_until: number | null
}

/** The mark of changes in a store that never loses one while it runs: their numbers alone distinguish them. */
export const NO_MARK = ''

export const toEntry = (row: RecordRow): Entry => ({
  key: JSON.parse(`"${row.long_key ?? row.key}"`) as string,
  value: JSON.parse(row.value) as StoredValue,
  version: row.version,
  expiresAt: row.expires_at ?? undefined,
  usedAt: row.used_at ?? undefined,
})

/** `ran`: how long the service has run on this store, in milliseconds. */
export const toChange = (row: ChangeRow, ran: number): Change => ({
  sequence: row.sequence,
  mark: row.mark ?? NO_MARK,
  topic: row.topic,
  value: JSON.parse(row.value) as StoredValue,
  expiresAt: row.expires_at ?? undefined,
  remaining: row.runs_until === null ? undefined : row.runs_until - ran,
})

/** Times that clients give may have fractions (a NumericDate); columns are whole milliseconds. */
export const wholeTime = (time: number | undefined): number | null =>
  time === undefined ? null : Math.ceil(time)

/** Records removed in one statement: some milliseconds in which no other process can write. */
const BATCH = 500

interface RemovedRows {
  /** Those that had not expired. */
  readonly live: number
  readonly removed: number
}

/** Calls `removeSome` until nothing is left, each time for so many rows at most. Resolves with the number of live ones. */
export async function removeInBatches(removeSome: (most: number) => Promise<RemovedRows>): Promise<number> {
  let live = 0
  for (;;) {
    const batch = await removeSome(BATCH)
    live += batch.live
    if (batch.removed < BATCH) return live
  }
}
