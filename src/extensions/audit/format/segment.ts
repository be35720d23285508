/** One segment of a trail (C12.4.1): the file of the lines, and the `.personal.jsonl` file with their personal values. */
import {
  closeSync,
  constants,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  type Stats,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join } from 'node:path'

interface SegmentPlace {
  readonly folder: string
  readonly writer: string
  /** `2026-11-22`. */
  readonly day: string
  /** 1 for the first of a writer. */
  readonly number: number
}

const MODE = 0o600
const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants
const EXCLUSIVE = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW

/** The name of a segment below the folder of the trail, as records and findings name it. */
export const segmentName = ({ day, writer, number }: Omit<SegmentPlace, 'folder'>): string =>
  `${day}/${writer}.${number}.jsonl`

/** The `.personal.jsonl` file next to a segment, with the personal values of its records (C12.2.3). */
export const besideOf = (segment: string): string => segment.replace(/\.jsonl$/, '.personal.jsonl')

/** A file that is only appended to. Its methods throw the system's errors. */
class AppendedFile {
  readonly path: string
  readonly #descriptor: number
  readonly #identity: FileIdentity
  #length = 0
  /** How many bytes are durable. */
  #kept = 0

  constructor(path: string) {
    this.path = path
    this.#descriptor = openSync(path, EXCLUSIVE, MODE)
    this.#identity = fstatSync(this.#descriptor)
  }

  /** Whether the file at the path is still the one that was written: nobody has removed, moved, cut or appended to it. */
  get isInPlace(): boolean {
    return isSameFile(lstatIfThere(this.path), this.#identity, this.#length)
  }

  get length(): number {
    return this.#length
  }

  append(bytes: Uint8Array): void {
    for (let written = 0; written < bytes.length;) {
      const more = writeSync(this.#descriptor, bytes, written)
      if (more === 0) throw new Error(`nothing could be written to ${this.path}`)
      written += more
      this.#length += more
    }
  }

  sync(): void {
    if (this.#kept !== this.#length) fdatasyncSync(this.#descriptor)
  }

  /** As `sync`, while this thread continues. */
  syncAside(): Promise<void> {
    if (this.#kept === this.#length) return Promise.resolve()
    return new Promise((resolve, reject) => {
      fdatasync(this.#descriptor, (error) => (error === null ? resolve() : reject(error)))
    })
  }

  /** All that was written so far is durable. */
  keep(): void {
    this.#kept = this.#length
  }

  close(): void {
    closeSync(this.#descriptor)
  }

  /** Whether nothing of it is durable. */
  get isEmpty(): boolean {
    return this.#kept === 0
  }

  /** Cuts off what is not durable, as far as that is possible, and closes the file. */
  cutBack(): void {
    if (this.#kept !== this.#length) attempt(() => ftruncateSync(this.#descriptor, this.#kept))
    attempt(() => this.close())
  }

  remove(): void {
    attempt(() => unlinkSync(this.path))
    attempt(() => this.close())
  }
}

/** A path that cannot be looked at leads to no file of ours. */
function lstatIfThere(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

/** An action that fails here has failed before, and nothing depends on it. */
function attempt(work: () => void): void {
  try {
    work()
  } catch {
    // The reader of the trail leaves out the lines behind the record that the next segment names.
  }
}

/** A segment that is being written. Its methods throw the system's errors; it must be abandoned then. */
export class OpenSegment {
  readonly #lines: AppendedFile
  readonly #beside: AppendedFile

  private constructor(lines: AppendedFile, beside: AppendedFile) {
    this.#lines = lines
    this.#beside = beside
  }

  /** Opens both files, which must not exist. With `durable`, also a power cut leaves them in their folder. */
  static async open(place: SegmentPlace, durable: boolean): Promise<OpenSegment> {
    const path = join(place.folder, segmentName(place))
    const day = dirname(path)
    mkdirSync(day, { recursive: true, mode: 0o700 })
    const lines = new AppendedFile(path)
    let beside: AppendedFile | undefined
    try {
      beside = new AppendedFile(besideOf(path))
      if (durable) for (const folder of [day, place.folder]) await syncFolder(folder)
      return new OpenSegment(lines, beside)
    } catch (error) {
      lines.remove()
      beside?.remove()
      throw error
    }
  }

  /** The length of the lines, in bytes. */
  get length(): number {
    return this.#lines.length
  }

  /** The values go first: whoever reads meanwhile finds those of each line. */
  append(lines: Uint8Array, beside: Uint8Array): void {
    if (beside.length > 0) this.#beside.append(beside)
    this.#lines.append(lines)
  }

  /** Both files at the same time. So a power cut may leave lines without their values; no answer depended on them (C12.4.6). */
  async sync(): Promise<void> {
    const beside = Promise.allSettled([this.#beside.syncAside()])
    try {
      this.#lines.sync()
    } finally {
      // Before the descriptor is closed.
      await beside
    }
    const [result] = await beside
    if (result.status === 'rejected') throw result.reason
  }

  /** As `sync`, for a thread that has other work: longer by the way to another thread and back. */
  async syncAside(): Promise<void> {
    const results = await Promise.allSettled([this.#beside.syncAside(), this.#lines.syncAside()])
    for (const result of results) if (result.status === 'rejected') throw result.reason
  }

  /** All that was written so far is durable. */
  keep(): void {
    this.#beside.keep()
    this.#lines.keep()
  }

  close(): void {
    this.#beside.close()
    this.#lines.close()
  }

  /**
   * Throws DisplacedError if one of its files is not the one at its path any more (C12.4.3): what is written then is in
   * no file of the trail. The number of links proves nothing: that of a file whose folder was moved is 1.
   */
  requireInPlace(): void {
    for (const file of [this.#lines, this.#beside]) if (!file.isInPlace) throw new DisplacedError(file.path)
  }

  /** Leaves it as it is: the file at its path may be somebody else's. */
  leave(): void {
    for (const file of [this.#lines, this.#beside]) attempt(() => file.close())
  }

  /** Leaves it at its last durable record; removes it if it has none. */
  abandon(): 'left' | 'removed' {
    const removed = this.#lines.isEmpty
    for (const file of [this.#lines, this.#beside])
      if (removed) file.remove()
      else file.cutBack()
    return removed ? 'removed' : 'left'
  }
}

/** So that the names in it are durable too. Windows has no such thing. Rejects with the system's error. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  await using handle = await open(folder, constants.O_RDONLY)
  await handle.sync()
}

/** Distinguishes one file of a machine from all others, as long as it is open. */
export interface FileIdentity {
  readonly dev: number
  readonly ino: number
}

/** A file that is being written was removed, moved, cut or changed by somebody else. */
export class DisplacedError extends Error {
  override readonly name = 'DisplacedError'

  constructor(path: string) {
    super(`${path} was removed, moved or changed while it was written`)
  }
}

/** Whether what was found at a path is that file, and has that length. */
export const isSameFile = (
  found: (FileIdentity & { readonly size: number }) | undefined,
  { dev, ino }: FileIdentity,
  length: number,
): boolean => found?.ino === ino && found.dev === dev && found.size === length
