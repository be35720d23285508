/** How far a node has seen the change feed, and whether its store is as far (C11.7.3). */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import type { FeedPlace } from '../../../base/contracts/records/store.ts'
import { type After, after as systemAfter, type Clock, repeatedly } from '../../../base/kernel/clock.ts'
import { PRIVATE_FILE } from '../../../base/files/file-modes.ts'

/** The facts of the feed that a node remembers when it starts again. */
export interface SeenFeed {
  /** The highest number, which is a time as well (Change.sequence). */
  readonly sequence: number
  /** The store was older than that, and nobody has accepted it yet. */
  readonly doubted: boolean
}

/** The facts that a node remembers of the feed of a store that is its own. */
export interface OwnMemory extends SeenFeed {
  /** The id of the store (sqlite/store-files.ts). */
  readonly store: string
  /** When the node started and had no doubt, or knew of it, and until when it ran at least. Milliseconds since the epoch. */
  readonly since: number
  readonly at: number
  /** The id of the machine’s boot: after another boot, the power may have failed in between. Undefined: nobody knows. */
  readonly boot?: string | undefined
  /** Acts that the trail has and the store lacks, in words. */
  readonly lacks?: readonly string[] | undefined
}

interface SeenNumbers {
  readonly highest: number
  readonly settled: number
}

/** A failover loses the changes of fewer milliseconds than this; a backup that was restored loses more. */
export const LOST_BY_FAILOVER = 5 * 60_000

const SECOND = 1000

export class FeedProgress {
  readonly #clock: Pick<Clock, 'now'>
  #highest: number
  #isDoubted: boolean
  /** Whether the feed of the store was compared before: then all that it has had since was seen. */
  #isFollowing = false
  /** The highest number of each second that a failover may have lost, by that second. */
  readonly #recent = new Map<number, number>()
  /** The highest number of what was older when the store was last read. */
  #settled = 0
  #settledAt = Number.NEGATIVE_INFINITY

  constructor(seen: SeenFeed | undefined, clock: Pick<Clock, 'now'>) {
    this.#clock = clock
    this.#highest = seen?.sequence ?? 0
    this.#isDoubted = seen?.doubted ?? false
  }

  get highest(): number {
    return this.#highest
  }

  /** The highest numbers: of all that was seen, and of what was five minutes old then. */
  get numbers(): SeenNumbers {
    return { highest: this.#highest, settled: this.#settled }
  }

  get isDoubted(): boolean {
    return this.#isDoubted
  }

  /** A number that is ahead of the clock counts as of now. */
  saw(place: Pick<FeedPlace, 'sequence'> | undefined): void {
    if (place === undefined) return
    const { sequence } = place
    const now = this.#clock.now()
    this.#highest = Math.max(this.#highest, sequence)
    const second = Math.floor(Math.min(sequence, now) / SECOND)
    this.#recent.set(second, Math.max(this.#recent.get(second) ?? 0, sequence))
    this.#settle(now)
  }

  /**
   * Compares a store whose whole feed was read. Where changes are rare, the newest one is old though little was lost:
   * so who has followed the feed doubts the store only if it lacks something that was old when the store was last read,
   * however long ago.
   * @param before what was seen before this reading
   * @param newest the highest number that the store has now
   * @param oldestLost the number of a revocation that it lacks: then the newest one may have come after a backup was
   *   restored
   * @returns milliseconds by which the store is older, if it is doubted from now on
   */
  compare(
    { highest, settled }: SeenNumbers,
    { newest = 0, oldestLost }: { readonly newest: number | undefined; readonly oldestLost: number },
  ): number | undefined {
    const lacksRevocation = this.#isFollowing && oldestLost <= settled
    const behind = Math.min(highest, this.#clock.now()) - (lacksRevocation ? oldestLost : newest)
    const lacksOld = lacksRevocation || !this.#isFollowing || settled > newest
    this.#isFollowing = true
    if (behind <= LOST_BY_FAILOVER || !lacksOld || this.#isDoubted) return undefined
    this.#isDoubted = true
    return behind
  }

  /**
   * The store is as it should be. False if it is not doubted.
   * @param sequence what whoever says so had seen: a store that is accepted is no older one that comes later
   */
  accept(sequence: number): boolean {
    if (!this.#isDoubted || this.#highest > sequence + LOST_BY_FAILOVER) return false
    this.#isDoubted = false
    return true
  }

  #settle(now: number): void {
    if (now - this.#settledAt < SECOND) return
    this.#settledAt = now
    for (const [second, number] of this.#recent) {
      if ((second + 1) * SECOND >= now - LOST_BY_FAILOVER) continue
      this.#settled = Math.max(this.#settled, number)
      this.#recent.delete(second)
    }
  }
}

/** Milliseconds between two looks whether there is something new to remember. */
const INTERVAL = 5000

const fileOf = (data: string): string => join(data, 'store-seen.json')

function readMemory(data: string): (Partial<OwnMemory> & SeenFeed) | undefined {
  try {
    const memory = JSON.parse(readFileSync(fileOf(data), 'utf8')) as Partial<OwnMemory>
    const { sequence, doubted } = memory
    return typeof sequence === 'number' ? { ...memory, sequence, doubted: doubted === true } : undefined
  } catch {
    return undefined
  }
}

/**
 * What is remembered of a store that nodes share. Undefined if nothing is, or nobody can read it: then the store is taken as it is.
 */
export function readSeen(data: string): SeenFeed | undefined {
  const memory = readMemory(data)
  if (memory === undefined || memory.store !== undefined) return undefined
  return { sequence: memory.sequence, doubted: memory.doubted }
}

/** The same of the one store with this id. */
export function readOwnMemory(data: string, id: string | undefined): OwnMemory | undefined {
  const memory = readMemory(data)
  if (id === undefined || memory?.store !== id || memory.at === undefined || memory.since === undefined)
    return undefined
  return { ...memory, store: id, at: memory.at, since: memory.since }
}

const textOf = (memory: SeenFeed): string => `${JSON.stringify(memory)}\n`

/** Remembers it before anything else begins. Throws the system's error. */
export function writeOwnMemory(data: string, memory: OwnMemory): void {
  writeFileSync(`${fileOf(data)}.new`, textOf(memory), { mode: PRIVATE_FILE })
  renameSync(`${fileOf(data)}.new`, fileOf(data))
}

interface SeenChangesParts {
  readonly data: string
  /** @param ends whether the service ends: what the store has now, no power cut takes from it */
  readonly seen: (ends: boolean) => SeenFeed
  readonly recorder: Pick<Recorder, 'note'>
  readonly after?: After
}

/** Writes to the data folder how far the feed was seen: a restored store does not know it. One process does. */
export class SeenChanges {
  readonly #parts: SeenChangesParts
  readonly #endWriting: () => void
  #written: string | undefined
  #hasFailed = false
  #stopped = false
  /** One writing at a time: all use one draft. */
  #writing: Promise<void> = Promise.resolve()

  constructor(parts: SeenChangesParts) {
    this.#parts = parts
    this.#endWriting = repeatedly(parts.after ?? systemAfter, 0, () =>
      this.#writeInTurn().then(() => INTERVAL),
    )
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#endWriting()
    await this.#writeInTurn()
  }

  #writeInTurn(): Promise<void> {
    return (this.#writing = this.#writing.then(() => this.#write()))
  }

  async #write(): Promise<void> {
    const { data, seen, recorder } = this.#parts
    const text = textOf(seen(this.#stopped))
    if (text === this.#written) return
    const file = fileOf(data)
    try {
      await writeFile(`${file}.new`, text, { mode: PRIVATE_FILE })
      await rename(`${file}.new`, file)
      this.#written = text
      this.#hasFailed = false
    } catch (thrown) {
      if (!this.#hasFailed) recorder.note('warn', 'store.seen_not_kept', { cause: thrown })
      this.#hasFailed = true
    }
  }
}
