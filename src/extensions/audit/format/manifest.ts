/** The manifest, `manifest.jsonl` (C12.4.4): each line signs the last record of the trail, and the line before it. */
import { Buffer } from 'node:buffer'
import { createPublicKey, hash, type KeyObject } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../base/http/body/json.ts'
import { hasCode } from '../../../base/kernel/thrown.ts'
import { type AuditKeys, isAuditSignature, PUBLIC_KEY_FILE, restoreAuditKeys } from './keys.ts'
import { DisplacedError, type FileIdentity, isSameFile, syncFolder } from './segment.ts'

export const MANIFEST_FILE = 'manifest.jsonl'

/** The last record that a line vouches for. */
export interface SignedHead {
  /** The name of the trail, which all of its records and segments have. */
  readonly writer: string
  /** 0 before the first record. */
  readonly seq: number
  /** The hash of that record; empty before the first. */
  readonly hash: string
  /** It was read from the disk: the process that wrote it had ended before it could sign it. */
  readonly found?: true | undefined
}

/** A segment that retention has removed. */
export interface RemovedSegment {
  readonly number: number
  /** The `seq` and the hash of the last record up to its end, as the next segment names it. */
  readonly seq: number
  readonly hash: string
}

export interface ManifestNews {
  /** ISO 8601, UTC, milliseconds. */
  readonly time: string
  readonly head: SignedHead
  readonly removed?: readonly RemovedSegment[] | undefined
  /** The writer has ended: no record stands behind the head until a later line has begun again. */
  readonly closed?: true | undefined
  /**
   * The highest number of a segment that its start has found: none up to there has a record behind the head. Absent where the head is
   * a record of that start.
   */
  readonly begins?: number | undefined
}

export interface ManifestLine extends ManifestNews {
  /** 1, 2, … */
  readonly n: number
  /** The hash of the line before; empty in the first. */
  readonly before: string
  /** SHA-256 of the line up to `before`, base64url. */
  readonly hash: string
  /** Ed25519, of the hash, base64url. */
  readonly signature: string
}

/** The version of a trail's files. Version 1, of Postern 0.2 and before, had a chain for each process. */
export const TRAIL_VERSION = 2
const LINE = /^(\{"v":2,.*),"hash":"([A-Za-z0-9_-]{43})","signature":"([A-Za-z0-9_-]{86})"\}$/

/** Makes the line behind another. Its text is a whole line, with its end. */
export function makeManifestLine(
  { time, head, removed, closed, begins }: ManifestNews,
  last: Pick<ManifestLine, 'n' | 'hash'> | undefined,
  { sign }: AuditKeys,
): { readonly line: ManifestLine; readonly text: string } {
  const { n, hash: before } = last ?? { n: 0, hash: '' }
  const more = {
    ...(removed && { removed }),
    ...(closed && { closed }),
    ...(begins !== undefined && { begins }),
  }
  const members = { n: n + 1, time, head, ...more, before }
  const signed = JSON.stringify({ v: TRAIL_VERSION, ...members })
  const lineHash = hash('sha256', signed, 'base64url')
  const proof = { hash: lineHash, signature: sign(lineHash) }
  return {
    line: { ...members, ...proof },
    text: `${signed.slice(0, -1)},"hash":"${proof.hash}","signature":"${proof.signature}"}\n`,
  }
}

/** Reads a line without its end; undefined if it is none, or its hash is not its own. Does not check the signature. */
export function readManifestLine(text: string): ManifestLine | undefined {
  const [, members, lineHash, signature] = LINE.exec(text) ?? []
  if (members === undefined || lineHash === undefined || signature === undefined) return undefined
  const signed = `${members}}`
  if (hash('sha256', signed, 'base64url') !== lineHash) return undefined
  const line = parsed(signed)
  if (!isWhole(line)) return undefined
  return { ...(line as unknown as Omit<ManifestLine, 'hash' | 'signature'>), hash: lineHash, signature }
}

/** The hash is no secret: anybody can make a line that has its own, with anything in it. */
function parsed(signed: string): JsonValue | undefined {
  try {
    return JSON.parse(signed) as JsonValue
  } catch {
    return undefined
  }
}

function isWhole(value: JsonValue | undefined): boolean {
  if (!isJsonObject(value)) return false
  const { n, time, before, head, removed = [], begins = 0 } = value
  return (
    Number.isSafeInteger(n) &&
    typeof time === 'string' &&
    typeof before === 'string' &&
    isPlace(head) &&
    typeof head['writer'] === 'string' &&
    Number.isSafeInteger(begins) &&
    Array.isArray(removed) &&
    removed.every((each) => isPlace(each) && Number.isSafeInteger(each['number']))
  )
}

const isPlace = (value: JsonValue | undefined): value is JsonObject =>
  isJsonObject(value) && Number.isSafeInteger(value['seq']) && typeof value['hash'] === 'string'

/** Whether the hash of a line, or of an anchor, was signed with this key. */
export const isSignedLine = (
  { hash: lineHash, signature }: Pick<ManifestLine, 'hash' | 'signature'>,
  key: KeyObject,
): boolean => isAuditSignature(lineHash, signature, key)

/** The manifest cannot be continued, so the service must not start. The message says what an operator can do. */
class ManifestError extends Error {
  override readonly name = 'ManifestError'
}

/** Bytes in which the last line is looked for: one that names removed segments may be long. */
const TAIL = 1024 ** 2
const LINE_FEED = 0x0a
const { O_CREAT, O_RDWR } = constants

/** The manifest as the one process has it that appends to it. The caller holds the lock of the folder. */
export class ManifestFile {
  readonly #folder: string
  readonly #path: string
  readonly #keys: AuditKeys
  #last: ManifestLine | undefined
  /** Bytes of the lines that are whole and durable. */
  #length: number
  #file: FileHandle | undefined
  /** The identity of the file that has these lines; undefined until it is opened to be written. */
  #identity: FileIdentity | undefined

  private constructor(folder: string, path: string, keys: AuditKeys, { last, length }: ManifestEnd) {
    this.#folder = folder
    this.#path = path
    this.#keys = keys
    this.#last = last
    this.#length = length
  }

  /**
   * Opens the manifest of a trail's folder and continues behind its last line; what a power cut left behind that is cut off.
   * Rejects with ManifestError, or with the system's error.
   */
  static async open(folder: string, keys: AuditKeys): Promise<ManifestFile> {
    const path = join(folder, MANIFEST_FILE)
    const end = await readManifestEnd(path)
    if (end.last !== undefined && !isSignedLine(end.last, createPublicKey(keys.publicPem)))
      throw notOurs(path)
    await writePublicKey(folder, keys)
    return new ManifestFile(folder, path, keys, end)
  }

  get last(): ManifestLine | undefined {
    return this.#last
  }

  /**
   * Appends a line. Resolves when it is durable, and is in the file at the path of the manifest. Rejects with
   * DisplacedError or the system's error; then nothing counts as appended.
   */
  async append(news: ManifestNews): Promise<ManifestLine> {
    const { line, text } = makeManifestLine(news, this.#last, this.#keys)
    const bytes = Buffer.from(text)
    try {
      const file = this.#file ?? (await this.#reopen())
      const { bytesWritten } = await file.write(bytes, 0, bytes.length, this.#length)
      if (bytesWritten < bytes.length) throw new Error(`${this.#path}: the line was not written whole`)
      await file.datasync()
      await this.#requireInPlace(this.#length + bytes.length)
    } catch (error) {
      // After a failed sync the descriptor cannot be relied on (C12.4.3).
      await this.close().catch(() => undefined)
      throw error
    }
    this.#length += bytes.length
    this.#last = line
    return line
  }

  /**
   * Looks whether the manifest is still the file that this process writes. If it is not, the next line begins a file anew,
   * or is behind the lines found there, with the number that follows the last line: it never begins at 1 again. Rejects
   * with DisplacedError then.
   */
  async look(): Promise<void> {
    if (this.#file !== undefined) await this.#requireInPlace(this.#length)
  }

  async #requireInPlace(length: number): Promise<void> {
    const found = await stat(this.#path).catch(() => undefined)
    if (this.#identity !== undefined && !isSameFile(found, this.#identity, length)) await this.#displaced()
  }

  async #displaced(): Promise<never> {
    this.#identity = undefined
    this.#length = DISPLACED
    await this.close().catch(() => undefined)
    throw new DisplacedError(this.#path)
  }

  async close(): Promise<void> {
    const file = this.#file
    this.#file = undefined
    await file?.close()
  }

  async #reopen(): Promise<FileHandle> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    if (this.#length === DISPLACED) await this.#restoreKeys()
    const file = (this.#file = await open(this.#path, O_RDWR | O_CREAT, 0o600))
    const found = await file.stat()
    if (this.#length === DISPLACED) this.#length = await endLine(file, found.size)
    else if (found.size < this.#length || !isSameFile(found, this.#identity ?? found, found.size))
      await this.#displaced()
    // Cuts off what a power cut or a failed write has left behind the last line.
    else await file.truncate(this.#length)
    if (found.size === 0) {
      await file.sync()
      await syncFolder(this.#folder)
    }
    this.#identity = found
    return file
  }

  /** With the folder its keys may be gone: what is signed from now on is proven with the same ones. */
  async #restoreKeys(): Promise<void> {
    await restoreAuditKeys(this.#folder, this.#keys)
    await writePublicKey(this.#folder, this.#keys)
  }
}

/** A write that fails, such as on a full disk, must not take away the one that is there. */
async function writePublicKey(folder: string, { publicPem }: AuditKeys): Promise<void> {
  const path = join(folder, PUBLIC_KEY_FILE)
  const found = await readFile(path, 'utf8').catch(() => undefined)
  if (found !== publicPem) await writeFile(path, publicPem, { mode: 0o644 })
}

/** Instead of a length: the file at the path is not the one with the lines of this process, or there is none. */
const DISPLACED = -1

/** Ends the last line of a file that somebody has put here: what is in it is left as it is. Returns its length. */
async function endLine(file: FileHandle, size: number): Promise<number> {
  if (size === 0) return 0
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1)
  if (buffer[0] === LINE_FEED) return size
  await file.write(Buffer.from([LINE_FEED]), 0, 1, size)
  return size + 1
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
  const { tail, start } = await readTail(file)
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

async function readTail(file: FileHandle): Promise<{ readonly tail: Buffer; readonly start: number }> {
  const { size } = await file.stat()
  const start = Math.max(0, size - TAIL)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start)
  return { tail: buffer.subarray(0, bytesRead), start }
}

const notOurs = (path: string): ManifestError =>
  new ManifestError(
    `The audit manifest ${path} was signed with another key than the one in its folder. Restore that key. Or keep the ` +
      'folder as it is and set `audit.folder` to a new one: a new trail begins there.',
  )

function ignoreMissing(thrown: unknown): undefined {
  if (!hasCode(thrown, 'ENOENT')) throw thrown
}
