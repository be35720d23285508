/** Copies a SQLite store into a Postgres one: everything that is live, with its numbers, versions and times. */
import type { Store } from '../../contracts/store.ts'
import { systemClock } from '../../kernel/clock.ts'
import { SqliteSource } from '../sqlite-source.ts'
import type { PostgresConfig } from './connection-schema.ts'
import { CopiedStore } from './copied-store.ts'
import { migrate } from './migrations.ts'
import { requireTables, withLongStatements } from './open.ts'
import { PostgresStore } from './store.ts'

/** Rows, and characters of their values, that one statement writes at most. */
const BATCH = { rows: 500, characters: 1_000_000 }
/** Milliseconds for one statement. */
const ANSWER_WITHIN = 60_000

export interface CopyRequest {
  /** The file of the SQLite store. */
  readonly from: string
  readonly to: PostgresConfig
  /** Told after each part. */
  readonly progress: (progress: { readonly done: number; readonly total: number }) => void
  /** Adds what is not in a SQLite store, before the copy counts as whole. */
  readonly add: (store: Store) => Promise<void>
}

export interface CopiedSize {
  readonly records: number
  readonly changes: number
}

/**
 * No service may use either store. The tables are made first, unless that is another's task. Rejects with StoreError if
 * one of the stores cannot be used, or if the new one holds something already.
 */
export async function copyStore({ from, to, progress, add }: CopyRequest): Promise<CopiedSize> {
  const source = new SqliteSource(from, systemClock.now())
  try {
    if (to.migrate === 'auto') await withLongStatements(to, (link) => migrate(link))
    return await withLongStatements(
      to,
      async (link) => {
        await requireTables(link, to)
        const copy = new CopiedStore(link)
        try {
          await copy.begin()
          await copyRows(source, copy, progress)
          await add(await PostgresStore.open(link, systemClock))
          await copy.end()
        } catch (thrown) {
          await copy.release().catch(() => undefined)
          throw thrown
        }
        return source.size
      },
      ANSWER_WITHIN,
    )
  } finally {
    source.close()
  }
}

/** The changes come first: among them is what was revoked. */
async function copyRows(
  source: SqliteSource,
  copy: CopiedStore,
  progress: CopyRequest['progress'],
): Promise<void> {
  const total = source.size.records + source.size.changes
  let done = 0
  const told = (rows: number): void => progress({ done: (done += rows), total })
  for (const rows of inBatches(source.changes())) {
    await copy.addChanges(rows)
    told(rows.length)
  }
  for (const rows of inBatches(source.records())) {
    await copy.addRecords(rows)
    told(rows.length)
  }
  await copy.settle(source)
}

function* inBatches<R extends { readonly value: string }>(rows: Iterable<R>): Generator<readonly R[]> {
  let batch: R[] = []
  let characters = 0
  for (const row of rows) {
    batch.push(row)
    characters += row.value.length
    if (batch.length < BATCH.rows && characters < BATCH.characters) continue
    yield batch
    batch = []
    characters = 0
  }
  if (batch.length > 0) yield batch
}
