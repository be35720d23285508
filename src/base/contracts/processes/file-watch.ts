import { type FSWatcher, statSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import type { Recorder } from '../records/recorder.ts'

/** Milliseconds without an event after which a save is over: editors cause several events. */
const SETTLED_MS = 200
/** The longest wait after an event, for folders that are never silent (a log or a database next to the files). */
const LONGEST_WAIT_MS = 2000

/** A text that changes when the file is written, replaced or removed. Follows symbolic links. */
function signatureOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false })
  return found === undefined ? 'absent' : `${found.ino} ${found.size} ${found.mtimeMs}`
}

/**
 * Watches the folders of files: editors and deployments replace files, and mounts change a symbolic link next to them.
 */
export class FileWatch {
  readonly #recorder: Pick<Recorder, 'note'>
  readonly #changed: () => void
  readonly #signatures = new Map<string, string>()
  readonly #folders = new Map<string, FSWatcher>()
  #settling: NodeJS.Timeout | undefined
  /** Set from the first event until the files are compared. */
  #latest: NodeJS.Timeout | undefined
  #closed = false

  /** @param changed called once for changes that come close together */
  constructor(recorder: Pick<Recorder, 'note'>, changed: () => void) {
    this.#recorder = recorder
    this.#changed = changed
  }

  watch(files: ReadonlySet<string>): void {
    if (this.#closed) return
    for (const file of this.#signatures.keys()) if (!files.has(file)) this.#signatures.delete(file)
    // A file that is watched already keeps its signature, so that a change that is not reported yet is not lost.
    for (const file of files) if (!this.#signatures.has(file)) this.#signatures.set(file, signatureOf(file))
    this.#watchFolders(new Set([...files].map((file) => dirname(file))))
  }

  close(): void {
    this.#closed = true
    this.#forgetTimers()
    for (const watcher of this.#folders.values()) watcher.close()
    this.#folders.clear()
  }

  #watchFolders(folders: ReadonlySet<string>): void {
    for (const [folder, watcher] of this.#folders)
      if (!folders.has(folder)) {
        watcher.close()
        this.#folders.delete(folder)
      }
    for (const folder of folders) if (!this.#folders.has(folder)) this.#watchFolder(folder)
  }

  #watchFolder(folder: string): void {
    try {
      const watcher = watch(folder, { persistent: false }, () => this.#stir())
      watcher.on('error', (cause) => this.#fail(folder, cause))
      this.#folders.set(folder, watcher)
    } catch (cause) {
      this.#fail(folder, cause)
    }
  }

  #stir(): void {
    clearTimeout(this.#settling)
    this.#settling = setTimeout(() => this.#look(), SETTLED_MS).unref()
    this.#latest ??= setTimeout(() => this.#look(), LONGEST_WAIT_MS).unref()
  }

  #forgetTimers(): void {
    clearTimeout(this.#settling)
    clearTimeout(this.#latest)
    this.#latest = undefined
  }

  #look(): void {
    this.#forgetTimers()
    let changed = false
    for (const [file, before] of this.#signatures) {
      const now = signatureOf(file)
      if (now === before) continue
      this.#signatures.set(file, now)
      changed = true
    }
    if (changed && !this.#closed) this.#changed()
  }

  /** The service continues. A reload then needs a signal or the admin API. */
  #fail(folder: string, cause: unknown): void {
    this.#folders.get(folder)?.close()
    this.#folders.delete(folder)
    this.#recorder.note('warn', 'folder_not_watched', { folder, cause })
  }
}
