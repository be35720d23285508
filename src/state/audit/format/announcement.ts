/**
 * Announcements of writers (C12.4.4): signed with the key of the trail, before a writer's first record counts. So nobody
 * without that key adds a writer. The process that holds the lock announces in its manifest; any other one, by a file of its
 * own, which the holder takes up into the manifest.
 */
import { createPublicKey, hash, type KeyObject } from 'node:crypto'
import { type Dirent, readdirSync, readFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import { hasCode } from '../../../base/kernel/thrown.ts'
import { type AuditKeys, isAuditSignature } from './keys.ts'
import { syncFolder } from './segment.ts'

/** The announcement that the first record of each segment of a writer names. */
export interface Announcement {
  /** The line of the manifest that has the announcement; absent if a file has it. */
  readonly line?: number
  /** The hash of that line, or of the file. */
  readonly hash: string
}

/** A writer that may write. */
export interface AnnouncedWriter {
  readonly writer: string
  readonly announcement: Announcement
  /** The file that is to be written before its first record; absent where the manifest has the announcement. */
  readonly text?: string
}

const FOLDER = 'announced'
const SUFFIX = '.json'
const WITH_TYPES = { withFileTypes: true } as const
const LINE = /^(\{"v":1,.*),"hash":"([A-Za-z0-9_-]{43})","signature":"([A-Za-z0-9_-]{86})"\}\n$/

export const announcementFile = (folder: string, writer: string): string =>
  join(folder, FOLDER, `${writer}${SUFFIX}`)

/** Announces a writer by a file that `writeAnnouncement` writes. `time`: ISO 8601. */
export function announceAside(
  writer: string,
  time: string,
  { sign }: Pick<AuditKeys, 'sign'>,
): AnnouncedWriter {
  const signed = JSON.stringify({ v: 1, time, writer })
  const own = hash('sha256', signed, 'base64url')
  const text = `${signed.slice(0, -1)},"hash":"${own}","signature":"${sign(own)}"}\n`
  return { writer, announcement: { hash: own }, text }
}

/** Makes the file durable, if there is one to be written. Rejects with the system's error. */
export async function writeAnnouncement(folder: string, { writer, text }: AnnouncedWriter): Promise<void> {
  if (text === undefined) return
  const own = join(folder, FOLDER)
  await mkdir(own, { recursive: true, mode: 0o700 })
  const draft = join(own, `.${writer}`)
  await writeFile(draft, text, { mode: 0o600, flush: true })
  await rename(draft, announcementFile(folder, writer))
  for (const each of [own, folder]) await syncFolder(each)
}

/** A file of an announcement. */
interface FoundAnnouncement {
  readonly writer: string
  /** Absent if it is none, was not signed with the key, or is of another writer than its name says. */
  readonly hash?: string
}

/** The files that nobody has taken up yet. Throws the system's error. Blocks: for a thread that verifies. */
export const foundAnnouncements = (folder: string, key: KeyObject): readonly FoundAnnouncement[] =>
  writersIn(orGone(() => readdirSync(join(folder, FOLDER), WITH_TYPES)) ?? []).flatMap((writer) => {
    const text = orGone(() => readFileSync(announcementFile(folder, writer), 'utf8'))
    return text === undefined ? [] : [readAnnouncement(text, writer, key)]
  })

/** The same files, for the process that takes them up. Its methods do not block. */
export class AnnouncementFiles {
  readonly #folder: string
  readonly #key: KeyObject
  readonly #recorder: Pick<Recorder, 'note'>
  /** Files that announce nobody, and that were logged. */
  readonly #logged = new Set<string>()

  constructor({ folder, keys, recorder }: AnnouncementFilesParts) {
    this.#folder = folder
    this.#key = createPublicKey(keys.publicPem)
    this.#recorder = recorder
  }

  /** Announcements that no line has yet. `taken`: the writers that a line has announced. Rejects with the system's error. */
  async awaiting(taken: ReadonlySet<string>): Promise<readonly FoundAnnouncement[]> {
    const awaiting: FoundAnnouncement[] = []
    const entries = await readdir(join(this.#folder, FOLDER), WITH_TYPES).catch(ifGone([]))
    for (const writer of writersIn(entries)) {
      const text = await readFile(announcementFile(this.#folder, writer), 'utf8').catch(ifGone(undefined))
      if (text === undefined) continue
      const found = readAnnouncement(text, writer, this.#key)
      if (found.hash === undefined) this.#logForeign(writer)
      else if (taken.has(writer)) await this.takenUp(writer)
      else awaiting.push(found)
    }
    return awaiting
  }

  /** Removes the file of a writer. Resolves with false if it could not be removed; then it is tried again. */
  async takenUp(writer: string): Promise<boolean> {
    const removed = rm(announcementFile(this.#folder, writer), { force: true })
    return removed.then(
      () => true,
      () => false,
    )
  }

  #logForeign(writer: string): void {
    if (this.#logged.has(writer)) return
    this.#logged.add(writer)
    this.#recorder.note('error', 'audit_foreign_announcement', { writer })
  }
}

interface AnnouncementFilesParts {
  readonly folder: string
  readonly keys: Pick<AuditKeys, 'publicPem'>
  readonly recorder: Pick<Recorder, 'note'>
}

/** Drafts are not among them, nor is what is no file: to open it may wait for ever, as for a named pipe. */
const writersIn = (entries: readonly Dirent[]): readonly string[] =>
  entries
    .filter((entry) => entry.isFile() && entry.name.endsWith(SUFFIX) && !entry.name.startsWith('.'))
    .map(({ name }) => name.slice(0, -SUFFIX.length))

function readAnnouncement(text: string, writer: string, key: KeyObject): FoundAnnouncement {
  const [, members = '', own = '', signature = ''] = LINE.exec(text) ?? []
  if (hash('sha256', `${members}}`, 'base64url') !== own || !isAuditSignature(own, signature, key))
    return { writer }
  const named = (JSON.parse(`${members}}`) as { readonly writer?: unknown }).writer
  return named === writer ? { writer, hash: own } : { writer }
}

/** A file that is gone was taken up meanwhile, or never made. */
const ifGone =
  <T>(instead: T) =>
  (thrown: unknown): T => {
    if (!hasCode(thrown, 'ENOENT')) throw thrown
    return instead
  }

function orGone<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (thrown) {
    if (!hasCode(thrown, 'ENOENT')) throw thrown
    return undefined
  }
}

const NAMED = /[{,]"announced":\{(?:"line":(\d+),)?"hash":"([A-Za-z0-9_-]{43})"\}/

/** The announcement that the first record of a segment names. `text`: its line. */
export function namedAnnouncement(text: string): Announcement | undefined {
  if (!text.includes(',"event":"writer.opened",')) return undefined
  const [, line, named] = NAMED.exec(text) ?? []
  if (named === undefined) return undefined
  return { ...(line !== undefined && { line: Number(line) }), hash: named }
}
