/** Intents that writers have left open when they ended: nobody else will write their outcomes (C12.1.3). */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type {
  AuditQuery,
  ReadProgress,
  ScanRequest,
  ScanStep,
  TrailReader,
} from '../../../base/contracts/records/audit-query.ts'
import { type After, after as systemAfter } from '../../../base/kernel/clock.ts'
import { replacePrivateFile } from '../../../base/files/private-folder.ts'
import { tryLock } from './lock.ts'
import { queryTrail } from '../read/read-trail.ts'

const FILE = 'abandoned.json'
/** Milliseconds until the records of a writer that has ended are read: a start and an end come first. */
const PAUSE = 1000
/** Milliseconds between two attempts. */
const RETRY = 60_000
/** Writers that are remembered as read: a start soon after their end finds them again. */
const MOST_READ = 1000

/** How many intents each of these writers has left open, newest records only. Rejects with TrailReadError. */
type CountOpen = (folder: string, writers: readonly string[]) => Promise<ReadonlyMap<string, number>>

interface AbandonedParts {
  readonly after?: After | undefined
  readonly count?: CountOpen | undefined
}

/**
 * The count of a trail's folder. It is in a file of that folder, so that it outlives this process, until somebody has
 * asked for all open intents. The caller holds the lock of the folder.
 */
export class AbandonedIntents {
  readonly #folder: string
  readonly #after: After
  readonly #count: CountOpen
  /** Writers that have ended, and whose records are not read yet. */
  readonly #unread: Set<string>
  /** Writers whose records were read, in that order. */
  readonly #read: Set<string>
  /** By writer; those that have left none are not here. */
  readonly #open: Map<string, number>
  #cancel: (() => void) | undefined
  #reading = false
  #saved: Promise<void> = Promise.resolve()
  #closed = false

  private constructor(folder: string, { unread, read, open }: Kept, parts: AbandonedParts) {
    this.#folder = folder
    this.#unread = new Set(unread)
    this.#read = new Set(read)
    this.#open = new Map(Object.entries(open))
    this.#after = parts.after ?? systemAfter
    this.#count = parts.count ?? countOpen
    if (this.#unread.size > 0) this.#plan(PAUSE)
  }

  /** Continues the count of before. Never rejects: a file that cannot be read counts as none. */
  static async open(folder: string, parts: AbandonedParts = {}): Promise<AbandonedIntents> {
    return new AbandonedIntents(folder, await readKept(join(folder, FILE)), parts)
  }

  /** Intents that were left open, and that nobody has asked for since. */
  get number(): number {
    return this.#open.values().reduce((sum, count) => sum + count, 0)
  }

  /** These write no more. Resolves when that is kept: a process that is killed before it has counted counts later. */
  async ended(writers: readonly string[]): Promise<void> {
    const news = writers.filter((writer) => !this.#read.has(writer))
    if (news.length === 0) return
    for (const writer of news) this.#unread.add(writer)
    this.#plan(PAUSE)
    await this.#save()
  }

  /** The writers that have ended, and have left intents open or were not counted yet. */
  get writers(): readonly string[] {
    return [...this.#open.keys(), ...this.#unread]
  }

  /** Somebody was shown what these have left open. */
  forget(writers: readonly string[]): void {
    for (const writer of writers) {
      this.#open.delete(writer)
      if (this.#unread.delete(writer)) this.#read.add(writer)
    }
    if (writers.length > 0) void this.#save()
  }

  /** Intents that are not counted yet are counted after the next start. */
  async close(): Promise<void> {
    this.#closed = true
    this.#cancel?.()
    await this.#saved
  }

  #plan(ms: number): void {
    if (this.#closed || this.#reading) return
    this.#cancel?.()
    this.#cancel = this.#after(ms, () => void this.#readEnded())
  }

  async #readEnded(): Promise<void> {
    this.#reading = true
    const writers = [...this.#unread]
    const counts = await this.#count(this.#folder, writers).catch(() => undefined)
    this.#reading = false
    if (this.#closed) return
    if (counts !== undefined) this.#take(writers, counts)
    if (this.#unread.size > 0) this.#plan(counts === undefined ? RETRY : PAUSE)
  }

  #take(writers: readonly string[], counts: ReadonlyMap<string, number>): void {
    // Not those that somebody was shown while they were counted.
    for (const writer of writers.filter((each) => this.#unread.delete(each))) {
      this.#read.add(writer)
      const count = counts.get(writer)
      if (count !== undefined) this.#open.set(writer, count)
    }
    void this.#save()
  }

  /** Never rejects: where the folder cannot be written, the trail itself says so, and the numbers stay in memory. */
  #save(): Promise<void> {
    this.#saved = this.#saved
      .then(() => {
        const read = [...this.#read].slice(-MOST_READ)
        const kept: Kept = { unread: [...this.#unread], read, open: Object.fromEntries(this.#open) }
        return replacePrivateFile(this.#folder, FILE, `${JSON.stringify(kept)}\n`)
      })
      .catch(() => undefined)
    return this.#saved
  }
}

interface Kept {
  readonly unread: readonly string[]
  readonly read: readonly string[]
  readonly open: Readonly<Record<string, number>>
}

async function readKept(path: string): Promise<Kept> {
  const text = await readFile(path, 'utf8').catch(() => '')
  try {
    const { unread, read, open } = JSON.parse(text) as Partial<Record<keyof Kept, object>>
    return { unread: textsOf(unread), read: textsOf(read), open: countsOf(open) }
  } catch {
    return { unread: [], read: [], open: {} }
  }
}

const textsOf = (value: object | undefined): readonly string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []

const countsOf = (value: object | undefined): Readonly<Record<string, number>> =>
  Object.fromEntries(
    Object.entries(value ?? {}).filter((entry): entry is [string, number] => Number.isSafeInteger(entry[1])),
  )

/**
 * Reads a trail, and forgets what it has shown: all open intents, up to the last.
 *
 * @param count of that trail; undefined while this process does not hold its lock
 */
export function noticing(reader: TrailReader, count: () => AbandonedIntents | undefined): TrailReader {
  return {
    ...reader,
    async *query(order, onProgress) {
      const before = count()?.writers ?? []
      for await (const step of reader.query(order, onProgress)) {
        if (step.kind === 'end' && step.last === undefined && isForAllOpen(order)) count()?.forget(before)
        yield step
      }
    },
  }
}

/**
 * The same for a command, where no service keeps the trail: all writers have ended then. Where another process takes the
 * lock meanwhile, or the folder cannot be written, nothing is forgotten.
 */
export async function* queryEnded(
  folder: string,
  query: AuditQuery,
  onProgress?: (progress: ReadProgress) => void,
): AsyncGenerator<ScanStep> {
  const { unread, open } = await readKept(join(folder, FILE))
  for await (const step of queryTrail({ folders: [folder], query }, onProgress)) {
    if (step.kind === 'end' && step.last === undefined && isForAllOpen({ query }))
      await forgetEnded(folder, [...unread, ...Object.keys(open)])
    yield step
  }
}

async function forgetEnded(folder: string, writers: readonly string[]): Promise<void> {
  try {
    const lock = tryLock(folder)
    if (lock === undefined) return
    const abandoned = await AbandonedIntents.open(folder)
    abandoned.forget(writers)
    await abandoned.close()
    lock.release()
  } catch {
    // The number stays, until somebody asks where the folder can be written.
  }
}

/** A filter, such as a month, leaves some out; so does a page that is not the first. */
const isForAllOpen = ({ query, after }: Pick<ScanRequest, 'query' | 'after'>): boolean =>
  after === undefined &&
  query.outcome === 'open' &&
  Object.entries(query).every(([name, value]) => name === 'outcome' || value === undefined || value === false)

/** In a thread, which reads the last segments of these writers only. */
const countOpen: CountOpen = async (folder, writers) => {
  const counts = new Map<string, number>()
  const order = { folders: [folder], query: { outcome: 'open' }, lastOf: writers } as const
  for await (const step of queryTrail(order)) {
    if (step.kind === 'end') continue
    for (const line of step.lines) {
      const { writer } = JSON.parse(line) as { readonly writer: string }
      counts.set(writer, (counts.get(writer) ?? 0) + 1)
    }
  }
  return counts
}
