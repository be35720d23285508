import { Buffer } from 'node:buffer'
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { PRIVATE_FILE } from '../../../base/files/file-modes.ts'
import { hasCode, messageOf } from '../../../base/kernel/thrown.ts'
import { describeDamage, describeTrouble, StoreError } from '../link/store-error.ts'

/**
 * The marker: a small file next to a store. It says that the folder has a store, and which file that is. Without it, a
 * folder that lost its store looks like one that never had any. Postern would create a new, empty store, in which
 * nothing is revoked (T5.12). Its name differs from those of the database files, so that `rm postern.sqlite*` leaves
 * it there.
 */
export const markerOf = (path: string): string => join(dirname(path), 'store-marker.json')

/** Files of SQLite next to the database. If that is a symbolic link, they are next to the file that it leads to. */
export const logOf = (path: string): string => `${realpathSync(path)}-wal`
const sharedMemoryOf = (path: string): string => `${realpathSync(path)}-shm`

/** Device and inode: no other file has them at the same time. Undefined if there is no file at the path. */
export function identityOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats && `${stats.dev}:${stats.ino}`
}

interface Marker {
  /** The identity of the store's file; empty if the marker is damaged. */
  readonly file: string
  /** The id of the store, the same after its file was put back from a backup. Undefined in a marker of an earlier version. */
  readonly id?: string | undefined
}

/** Undefined if there is none. */
function readMarker(path: string): Marker | undefined {
  try {
    const { file, id } = JSON.parse(readFileSync(markerOf(path), 'utf8')) as Record<string, unknown>
    return { file: String(file), id: typeof id === 'string' ? id : undefined }
  } catch (thrown) {
    if (hasCode(thrown, 'ENOENT')) return undefined
    // Cut short, or changed by hand: the folder had a store nevertheless.
    if (thrown instanceof SyntaxError || thrown instanceof TypeError) return { file: '' }
    throw thrown
  }
}

/** Whose memory a data folder may have (feed/feed-progress.ts). Undefined without a marked store. */
export const idOfStore = (path: string): string | undefined => readMarker(path)?.id

/** Marks the folder of an existing store. The marker appears complete or not at all. Throws as the file system does. */
export function markStore(path: string): void {
  const file = identityOf(path)
  const before = readMarker(path)
  if (file === undefined || (before?.file === file && before.id !== undefined)) return
  const marker = markerOf(path)
  const id = before?.id ?? crypto.randomUUID()
  // The global one: node:crypto takes the thread of the store 8 ms to load, and most openings need no draft.
  const draft = `${marker}.${crypto.randomUUID()}`
  try {
    writeFileSync(draft, `${JSON.stringify({ file, id, means: MEANING })}\n`, {
      mode: PRIVATE_FILE,
      flag: 'wx',
    })
    flush(draft)
    renameSync(draft, marker)
    flush(dirname(marker))
  } finally {
    rmSync(draft, { force: true })
  }
}

const MEANING = 'This folder has a store. Remove this file only to begin with an empty one on purpose.'

/** Waits until a file, or the names in a folder, are on the disk. Throws as the file system does. */
export function flush(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/**
 * Creates a file for its owner only. One that is there is not opened: closing any descriptor of a file ends all POSIX
 * locks that the process has on it (fcntl(2)), so also those of a connection of SQLite. Throws as the file system does.
 */
export function createOnce(path: string): void {
  try {
    closeSync(openSync(path, 'wx', PRIVATE_FILE))
  } catch (thrown) {
    if (!hasCode(thrown, 'EEXIST')) throw thrown
  }
}

interface Kept {
  connections: number
  readonly descriptors: number[]
}

const kept = new Map<string, Kept>()

/** Counts a connection of SQLite to a file until `end`, with the descriptors that the store reads besides. */
export interface CountedConnection {
  keep(descriptors: readonly number[]): void
  end(): void
}

/**
 * Must be called before the connection is opened, and `end` when it is closed. Descriptors are closed behind the last
 * connection that this process has to the file, for the reason that `createOnce` names: otherwise the next foreign program that
 * closes the file would take itself for the last one, and remove the -wal under us.
 */
export function countConnection(path: string): CountedConnection {
  const file = kept.get(path) ?? { connections: 0, descriptors: [] }
  kept.set(path, file)
  file.connections += 1
  return {
    keep: (descriptors) => void file.descriptors.push(...descriptors),
    end: () => {
      file.connections -= 1
      if (file.connections > 0) return
      kept.delete(path)
      for (const descriptor of file.descriptors) closeSync(descriptor)
    },
  }
}

/** How an operator can mend a store that is lost or damaged. */
export const recoveryAdvice = (path: string): string =>
  `Stop every process that uses it and restore a backup to ${path}. To begin with an empty store on purpose, move what ` +
  `is left of it away and remove ${markerOf(path)}. Then users must log in again, and consents, stored clients and stored ` +
  'users are lost. Revocations are lost too, so replace the signing keys (`postern keys rotate --compromised`).'

/** Whether the folder has a store. Throws StoreError if it had one and the file is gone or empty. */
export function requireNotLost(path: string): boolean {
  const marked = readMarker(path) !== undefined || existsSync(`${path}-wal`)
  if (!marked) return false
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size !== undefined && size > 0) return true
  throw new StoreError(
    `The store ${path} is ${size === 0 ? 'empty' : 'gone'}, though this folder had one. ${recoveryAdvice(path)}`,
  )
}

/** Throws StoreError if the file is not the one that the service was started with. */
export function requireSame(path: string): void {
  const marked = readMarker(path)?.file
  if (marked === undefined || marked === identityOf(path)) return
  throw new StoreError(
    `The store ${path} is another file than the one that the service was started with (${basename(markerOf(path))}). ` +
      'If you have just restored a backup, start the service: it examines the file and accepts it.',
  )
}

/** The open files that the guard reads. Others open them, and close them (`countConnection`). */
interface OpenFiles {
  /** Descriptors of the database, and of its -wal. */
  readonly database: number
  readonly log: number
  /** How many frames SQLite believes to be in the -wal. */
  readonly frames: () => number
}

/**
 * Notices when the files of an open store are deleted, replaced, emptied or damaged. SQLite would continue to write to the
 * deleted files, and into the hole of an emptied one, and all of it would be lost when the process ends (T5.12).
 */
export class FileGuard {
  readonly #path: string
  readonly #open: OpenFiles
  readonly #identities: ReadonlyMap<string, string | undefined>
  /** The size of the database, in bytes. */
  #size = 0
  /** Final: only another file can help. */
  #damage: string | undefined
  #missing: string | undefined
  /** Set until a statement succeeds. */
  #failing: string | undefined

  /** The database must be in WAL mode and must have been read: then all its files exist. */
  constructor(path: string, open: OpenFiles) {
    this.#path = path
    this.#open = open
    this.#identities = new Map(
      [path, logOf(path), sharedMemoryOf(path)].map((file) => [file, identityOf(file)]),
    )
  }

  /**
   * Compares the files with those of the start, and looks at their beginnings and sizes: seven system calls. SQLite holds the
   * first page in memory, so it does not notice that the page was overwritten; the next process would find no database.
   */
  check(): void {
    try {
      this.#missing = this.#findMissing()
      if (this.unfit === undefined) this.#damage = this.#findDamage()
    } catch (thrown) {
      this.#missing = `its files cannot be examined: ${messageOf(thrown)}`
    }
  }

  #findMissing(): string | undefined {
    for (const [file, before] of this.#identities) {
      const now = identityOf(file)
      if (now !== before)
        return `${basename(file)} was ${now === undefined ? 'deleted' : 'replaced'} while it was open`
    }
    return undefined
  }

  #findDamage(): string | undefined {
    const name = basename(this.#path)
    const { database, log } = this.#open
    // In this order: VACUUM writes the first page, and makes the file shorter after that.
    const { size } = fstatSync(database)
    const header = beginningOf(database, HEADER)
    if (!header.subarray(0, BEGINNING.length).equals(BEGINNING))
      return `the beginning of ${name} was overwritten while it was open`
    if (size < this.#size && size < sizeIn(header)) return `${name} was cut short while it was open`
    this.#size = size
    if (this.#isLogEmptied()) return `${name}-wal was emptied while it was open`
    const isLog = LOGS.includes(beginningOf(log, 4).toString('hex'))
    return isLog || fstatSync(log).size === 0 ? undefined : `${name}-wal was overwritten while it was open`
  }

  /** A checkpoint may empty it too, but then no frame is in it. Another process may write the next one meanwhile: so twice. */
  #isLogEmptied(): boolean {
    const isEmpty = (): boolean => fstatSync(this.#open.log).size === 0
    const isMissed = (): boolean => isEmpty() && this.#open.frames() > 0 && isEmpty()
    return isMissed() && isMissed()
  }

  /** Why the store cannot be used at all, in words for the log; undefined if it can. */
  get unfit(): string | undefined {
    return this.#damage ?? this.#missing
  }

  /** The same, or why the last statement failed. */
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

/** The first bytes of every SQLite database, and of every -wal (sqlite.org/fileformat2.html, 1.3.1 and 4.1). */
const BEGINNING = Buffer.from('SQLite format 3\0')
const LOGS = ['377f0682', '377f0683']
/** Bytes of the header in which the sizes are. */
const HEADER = 32

/** The size of a database in bytes, as its header says. */
function sizeIn(header: Buffer): number {
  const page = header.readUInt16BE(16)
  return header.readUInt32BE(28) * (page === 1 ? 65_536 : page)
}

function beginningOf(descriptor: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  readSync(descriptor, bytes, 0, length, 0)
  return bytes
}
