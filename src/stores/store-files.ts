import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { newSecret } from '../kernel/ids.ts'
import { describeDamage, describeTrouble, StoreError } from './store-error.ts'

/**
 * The marker: a small file beside a store that tells that the folder has one, and which file it is. Without it nobody
 * could tell a folder that never had a store from one that has lost it, and a new, empty store would take its place, in
 * which nothing is revoked (T5.12). It is not named like the files of the database, so that it is not removed with them.
 */
export const markerOf = (path: string): string => join(dirname(path), 'store-marker.json')

/** Tells a file from every other that exists at the same time; undefined if there is none at the path. */
export function identityOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats && `${stats.dev}:${stats.ino}`
}

/** What a marker says: the identity of the store's file. Undefined if there is none. */
function readMarker(path: string): string | undefined {
  try {
    return String((JSON.parse(readFileSync(markerOf(path), 'utf8')) as { file?: unknown }).file)
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    // Cut short, or changed by hand: there was one all the same.
    if (thrown instanceof SyntaxError || thrown instanceof TypeError) return ''
    throw thrown
  }
}

/** Marks the folder of a store that is there. The marker appears whole or not at all. */
export function markStore(path: string): void {
  const file = identityOf(path)
  if (file === undefined || readMarker(path) === file) return
  const marker = markerOf(path)
  const draft = `${marker}.${newSecret(9)}`
  try {
    writeFileSync(draft, `${JSON.stringify({ file, means: MEANING })}\n`, { mode: 0o600, flag: 'wx' })
    flush(draft)
    renameSync(draft, marker)
    flush(dirname(marker))
  } finally {
    rmSync(draft, { force: true })
  }
}

const MEANING = 'This folder has a store. Remove this file only to begin with an empty one on purpose.'

/** To the disk. */
function flush(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** What to do about a store that is lost or damaged. */
export const recoveryAdvice = (path: string): string =>
  `Stop every process that uses it and restore a backup to ${path}. To begin with an empty store on purpose, move what ` +
  `is left of it away and remove ${markerOf(path)}: then users log in again, consents and stored clients and users are ` +
  'lost, and so is every revocation: replace the signing keys too (`postern keys rotate --compromised`).'

/** Throws StoreError if the folder had a store and its file is gone, or was emptied. True if there was one. */
export function requireNotLost(path: string): boolean {
  const marked = readMarker(path) !== undefined || existsSync(`${path}-wal`)
  if (!marked) return false
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size !== undefined && size > 0) return true
  throw new StoreError(
    `The store ${path} is ${size === 0 ? 'empty' : 'gone'}, though this folder had one. ${recoveryAdvice(path)}`,
  )
}

/** Throws StoreError if the file is another than the one that the service was started with. */
export function requireSame(path: string): void {
  const marked = readMarker(path)
  if (marked === undefined || marked === identityOf(path)) return
  throw new StoreError(
    `The store ${path} is another file than the one that the service was started with (${basename(markerOf(path))}). ` +
      'If you have just restored a backup, start the service: it examines the file, and takes it over.',
  )
}

/** What every database of SQLite begins with (sqlite.org/fileformat2.html, 1.3.1). */
const BEGINNING = 'SQLite format 3\0'

/**
 * Watches over the files of a store that is open: SQLite itself goes on writing to files that were deleted or replaced,
 * and all of that is lost with the process (T5.12).
 */
export class FileGuard {
  readonly #path: string
  readonly #identities: ReadonlyMap<string, string | undefined>
  /** Not taken back: only another file is better. */
  #damage: string | undefined
  #missing: string | undefined
  /** Until a statement succeeds. */
  #failing: string | undefined

  /** Of a database in WAL mode that has been read from: all its files are there then. */
  constructor(path: string) {
    this.#path = path
    this.#identities = new Map([path, `${path}-wal`, `${path}-shm`].map((file) => [file, identityOf(file)]))
  }

  /** Compares the files with those of the beginning: three system calls. */
  checkFiles(): void {
    this.#missing = undefined
    for (const [file, before] of this.#identities) {
      const now = identityOf(file)
      if (now === before) continue
      this.#missing = `${basename(file)} was ${now === undefined ? 'deleted' : 'replaced'} while it was open`
      return
    }
  }

  /**
   * Looks into the file too: of a first page that was overwritten nobody hears as long as it stands in SQLite's memory,
   * and then the next process finds no database.
   */
  checkContents(): void {
    this.checkFiles()
    if (this.unfit === undefined && beginningOf(this.#path) !== BEGINNING)
      this.#damage = `the beginning of ${basename(this.#path)} was overwritten while it was open`
  }

  /** What keeps the store from being used at all, in words for the log. */
  get unfit(): string | undefined {
    return this.#damage ?? this.#missing
  }

  /** The same, and what made the last statement fail. */
  get trouble(): string | undefined {
    return this.unfit ?? this.#failing
  }

  succeeded(): void {
    this.#failing = undefined
  }

  failed(thrown: unknown): void {
    const damage = describeDamage(thrown)
    if (damage === 'lasting') this.#damage = describeTrouble(thrown)
    else if (damage === 'passing') this.#failing = describeTrouble(thrown)
  }
}

function beginningOf(path: string): string {
  const bytes = Buffer.alloc(BEGINNING.length)
  const file = openSync(path, 'r')
  try {
    return bytes.toString('latin1', 0, readSync(file, bytes, 0, bytes.length, 0))
  } finally {
    closeSync(file)
  }
}
