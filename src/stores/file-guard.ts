import { closeSync, openSync, readSync } from 'node:fs'
import { basename } from 'node:path'
import { describeDamage, describeTrouble } from './sqlite-trouble.ts'
import { identityOf } from './store-marker.ts'

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
  look(): void {
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
  lookInside(): void {
    this.look()
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
