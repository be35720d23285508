/** Reads a store file without opening it for service: nothing is created, changed or migrated. */
import { closeSync, existsSync, linkSync, openSync, rmSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Store, StoredValue } from '../../base/contracts/records/store.ts'
import { systemClock } from '../../base/kernel/clock.ts'
import { PRIVATE_FILE } from '../../base/files/file-modes.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { escapedKey } from '../../base/kernel/key-order.ts'
import { hasCode } from '../../base/kernel/thrown.ts'
import type { AddedStoreKind } from './added-kinds.ts'
import { planSqlite, sqliteFile, type StoreConfig } from './schema.ts'
import { openReadOnly } from './sqlite/sqlite-file.ts'
import { checkSchema } from './sqlite/sqlite-schema.ts'
import { columnsOf, partOf, verbsOf } from './sqlite/sqlite-verbs.ts'
import { toEntry } from './link/rows.ts'
import { cannotRead, quickCheck, troubleInWords, StoreError } from './link/store-error.ts'
import { STORE_VERBS, type StoreVerb } from './measured-store.ts'
import { flush, requireNotLost } from './sqlite/store-files.ts'

type StoreReader = Pick<Store, 'find' | 'list'>

/** Does the work with an open file. Throws StoreError if that cannot be read. */
type Reading = <T>(work: (db: DatabaseSync) => T) => T

const readerOf = (reading: Reading): StoreReader => ({
  find: (kind, key) =>
    Promise.try(() =>
      reading((db) => {
        const row = verbsOf(db).find(systemClock.now(), kind, escapedKey(key))
        return row && toEntry(row)
      }),
    ),
  list: (kind, page) =>
    Promise.try(() =>
      reading((db) => verbsOf(db).pageBy(systemClock.now(), kind, columnsOf({}), partOf(page)).map(toEntry)),
    ),
})

/** Throws StoreError if the file is no store, or one of a newer Postern, and SQLite's errors. */
function openFile(path: string): DatabaseSync {
  const db = openReadOnly(path)
  try {
    checkSchema(db, path)
    return db
  } catch (thrown) {
    db.close()
    throw thrown
  }
}

/**
 * The highest number that a store has given to a change, which is a time as well; undefined if there is no store, or none that can
 * be read: whoever opens it reports why. Blocks the thread for a moment.
 */
export function newestChangeOf(path: string): number | undefined {
  if (!existsSync(path)) return undefined
  try {
    using db = openFile(path)
    return Number(db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'change'").get()?.['seq'] ?? 0)
  } catch {
    return undefined
  }
}

/** @throws StoreError in place of every error */
function orCannotRead<T>(path: string, read: () => T): T {
  try {
    return read()
  } catch (thrown) {
    throw cannotRead(path, thrown)
  }
}

const refuse = (): Promise<never> => Promise.reject(new StoreError('The store is open to be read only.'))

const REFUSING = Object.fromEntries(STORE_VERBS.map((verb) => [verb, refuse])) as Record<
  StoreVerb,
  typeof refuse
>

/**
 * A store of this machine, to be read only: nothing is made next to its file, so that its folder need not be writable. Where
 * there is no file, it is empty. Each reading opens the file anew, because a service may start meanwhile. Rejects with
 * StoreError if it cannot be read. Blocks the thread: for the command line.
 */
export function openSqliteToRead(data: string): Store {
  const path = sqliteFile(data)
  requireNotLost(path)
  const reader = readerOf((work) =>
    orCannotRead(path, () => {
      using db = openFile(path)
      return work(db)
    }),
  )
  return {
    ...REFUSING,
    find: async (kind, key) => (existsSync(path) ? reader.find(kind, key) : undefined),
    list: async (kind, page) => (existsSync(path) ? reader.list(kind, page) : []),
    close: () => Promise.resolve(),
  }
}

/** The store of a configuration. */
interface NamedStore {
  readonly config: StoreConfig
  /** The folder for keys and state. */
  readonly data: string
  /** The kinds that extensions add. */
  readonly kinds: ReadonlyMap<string, AddedStoreKind>
}

interface OpenedReader {
  readonly store: StoreReader
  /** For people. */
  readonly place: string
  readonly close: () => Promise<void> | void
}

/** Undefined if there is no store, or one in the memory of a service. Nothing is made or changed. Rejects with StoreError. */
async function openToRead({ config, data, kinds }: NamedStore): Promise<OpenedReader | undefined> {
  const added = kinds.get(config.kind)
  if (added !== undefined) {
    const store = await added.openToRead(config, systemClock)
    return { store, place: added.location(config), close: () => store.close() }
  }
  if (config.kind !== 'sqlite') return undefined
  const { path } = planSqlite(config, data)
  if (!existsSync(path)) return undefined
  const db = orCannotRead(path, () => openFile(path))
  const store = readerOf((work) => orCannotRead(path, () => work(db)))
  return { store, place: path, close: () => db.close() }
}

/**
 * Hands the store of a configuration to `inspect`. Does nothing if there is no store, or none that can be read:
 * whoever opens it reports why. Rejects with what `inspect` throws, and with StoreError if a record is damaged. Blocks the thread:
 * for the command line.
 */
export async function inspectStore(
  named: NamedStore,
  inspect: (store: StoreReader) => Promise<void>,
): Promise<void> {
  const opened = await openToRead(named).catch(() => undefined)
  try {
    if (opened !== undefined) await inspect(opened.store)
  } catch (thrown) {
    const isOfFile =
      thrown instanceof StoreError && thrown.cause instanceof Error && 'errcode' in thrown.cause
    if (!isOfFile) throw thrown
  } finally {
    await opened?.close()
  }
}

interface StoredKinds<K extends string> {
  readonly place: string
  readonly records: Readonly<Record<K, readonly StoredValue[]>>
}

/**
 * The live records of some kinds; undefined if there is no store, or one in the memory of a service. The service may run
 * meanwhile. Rejects with StoreError if the store cannot be read. Blocks the thread: for the command line.
 */
export async function readStoredRecords<K extends string>(
  named: NamedStore,
  kinds: readonly K[],
): Promise<StoredKinds<K> | undefined> {
  const opened = await openToRead(named)
  if (opened === undefined) return undefined
  try {
    return { place: opened.place, records: await valuesOf(opened.store, kinds) }
  } finally {
    await opened.close()
  }
}

async function valuesOf<K extends string>(
  store: StoreReader,
  kinds: readonly K[],
): Promise<Readonly<Record<K, readonly StoredValue[]>>> {
  const records: Partial<Record<K, readonly StoredValue[]>> = {}
  for (const kind of kinds) records[kind] = (await store.list(kind)).map(({ value }) => value)
  return records as Record<K, StoredValue[]>
}

// How long a backup may wait for a lock, in milliseconds: longer than a call may.
const TIMEOUT = 10_000

/**
 * VACUUM INTO reads everything in one transaction, so the copy shows one moment. In WAL mode, others can write
 * meanwhile. It accepts an existing file only if that file is empty: we create it first, to give it its mode.
 */
function copyInto(source: string, draft: string): void {
  const db = new DatabaseSync(source, { timeout: TIMEOUT })
  try {
    checkSchema(db, source)
    closeSync(openSync(draft, 'wx', PRIVATE_FILE))
    db.prepare('VACUUM INTO ?').run(draft)
  } finally {
    db.close()
  }
}

function verify(path: string): void {
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    const damage = quickCheck(db)
    if (damage !== undefined) throw new StoreError(`the copy is damaged: ${damage}`)
  } finally {
    db.close()
  }
}

function explain(thrown: unknown, source: string, target: string): StoreError {
  if (thrown instanceof StoreError) return thrown
  if (hasCode(thrown, 'EEXIST'))
    return new StoreError(`${target} exists already, and is left as it is. Name a new file.`)
  return new StoreError(`The store ${source} cannot be copied to ${target}: ${troubleInWords(thrown)}`, {
    cause: thrown,
  })
}

/**
 * Copies a store into a new file that only its owner may read, and checks the copy. The service may run meanwhile.
 * The file appears complete or not at all, and nothing is overwritten. Throws StoreError and leaves nothing behind
 * then. Blocks the thread: for the command line.
 */
export function backUpSqlite(source: string, file: string): void {
  if (!existsSync(source)) throw new StoreError(`There is no store at ${source}: nothing to back up.`)
  const target = resolve(file)
  const draft = `${target}.${newSecret(9)}.part`
  try {
    if (existsSync(target)) throw Object.assign(new Error('there is a file'), { code: 'EEXIST' })
    copyInto(source, draft)
    verify(draft)
    flush(draft)
    // Fails if another file has taken the name meanwhile.
    linkSync(draft, target)
    flush(dirname(target))
  } catch (thrown) {
    throw explain(thrown, source, target)
  } finally {
    rmSync(draft, { force: true })
  }
}
