import { createPublicKey } from 'node:crypto'
import { type FileHandle, open, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type AuditKeys, PUBLIC_KEY_FILE } from '../keys.ts'
import {
  isSignedLine,
  makeManifestLine,
  MANIFEST_FILE,
  type ManifestLine,
  type ManifestNews,
  readManifestLine,
} from './manifest-line.ts'
import { hasCode } from '../../kernel/thrown.ts'

/** The manifest cannot be continued, so the service must not start. The message says what an operator can do. */
export class ManifestError extends Error {
  override readonly name = 'ManifestError'
}

/** Bytes in which the last line is looked for. The heads of 64 writers take 8 KiB. */
const TAIL = 1024 ** 2
const LINE_FEED = 0x0a

/** The manifest as the one process has it that appends to it. The caller holds the lock of the folder. */
export class ManifestFile {
  readonly #path: string
  readonly #keys: AuditKeys
  #last: ManifestLine | undefined
  /** Bytes of whole, durable lines. */
  #length: number
  #file: FileHandle | undefined

  private constructor(path: string, keys: AuditKeys, { last, length }: ManifestEnd) {
    this.#path = path
    this.#keys = keys
    this.#last = last
    this.#length = length
  }

  /**
   * Opens the manifest of a trail's folder and goes on behind its last line; what a power cut left behind that is cut off.
   * Rejects with ManifestError, or with the system's error.
   */
  static async open(folder: string, keys: AuditKeys): Promise<ManifestFile> {
    const path = join(folder, MANIFEST_FILE)
    const end = await readManifestEnd(path)
    if (end.last !== undefined && !isSignedLine(end.last, createPublicKey(keys.publicPem)))
      throw notOurs(path)
    await writeFile(join(folder, PUBLIC_KEY_FILE), keys.publicPem, { mode: 0o644 })
    return new ManifestFile(path, keys, end)
  }

  get last(): ManifestLine | undefined {
    return this.#last
  }

  /** Appends a line. Resolves when it is durable. Rejects with the system's error; then nothing counts as appended. */
  async append(news: ManifestNews): Promise<ManifestLine> {
    const { line, text } = makeManifestLine(news, this.#last, this.#keys)
    const bytes = Buffer.from(text)
    try {
      this.#file ??= await this.#reopen()
      const { bytesWritten } = await this.#file.write(bytes, 0, bytes.length, this.#length)
      if (bytesWritten < bytes.length) throw new Error(`${this.#path}: the line was not written whole`)
      await this.#file.datasync()
    } catch (error) {
      // After a failed sync the descriptor cannot be relied on (C12.4.3).
      await this.close().catch(() => undefined)
      throw error
    }
    this.#length += bytes.length
    this.#last = line
    return line
  }

  async close(): Promise<void> {
    const file = this.#file
    this.#file = undefined
    await file?.close()
  }

  async #reopen(): Promise<FileHandle> {
    const isNew = this.#length === 0
    const file = await open(this.#path, isNew ? 'w' : 'r+', 0o600)
    await file.truncate(this.#length)
    if (isNew) await file.sync()
    return file
  }
}

interface ManifestEnd {
  readonly last: ManifestLine | undefined
  /** Bytes up to the end of the last line. */
  readonly length: number
}

/** The last line of a manifest. Rejects with ManifestError if the last whole line is none. */
export async function readManifestEnd(path: string): Promise<ManifestEnd> {
  await using file = await open(path, 'r').catch(ignoreMissing)
  if (file === undefined) return { last: undefined, length: 0 }
  const { size } = await file.stat()
  const start = Math.max(0, size - TAIL)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start)
  const tail = buffer.subarray(0, bytesRead)
  const end = tail.lastIndexOf(LINE_FEED)
  if (end === -1 && start === 0) return { last: undefined, length: 0 }
  const last = readManifestLine(
    tail.toString('utf8', end < 1 ? 0 : tail.lastIndexOf(LINE_FEED, end - 1) + 1, end),
  )
  if (last === undefined)
    throw new ManifestError(
      `The last line of the audit manifest ${path} is damaged or was changed. Run \`postern audit verify\`. Then keep ` +
        'the folder as it is and set `audit.folder` to a new one: a new trail begins there.',
    )
  return { last, length: start + end + 1 }
}

const notOurs = (path: string): ManifestError =>
  new ManifestError(
    `The audit manifest ${path} was signed with another key than the one in its folder. Restore that key. Or keep the ` +
      'folder as it is and set `audit.folder` to a new one: a new trail begins there.',
  )

function ignoreMissing(thrown: unknown): undefined {
  if (!hasCode(thrown, 'ENOENT')) throw thrown
}
