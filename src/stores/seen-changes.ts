/** What a node remembers of the change feed of a shared store, in its data folder: a store that was restored forgets. */
import { readFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Recorder } from '../contracts/recorder.ts'
import { type After, after as systemAfter } from '../kernel/clock.ts'
import type { ChangeFeed } from './change-feed.ts'
import type { SeenFeed } from './feed-progress.ts'

/** Milliseconds between two looks whether there is something new to remember. */
const INTERVAL = 5000

const fileOf = (data: string): string => join(data, 'store-seen.json')

/** Undefined if nothing is remembered, or nobody can read it: then the store is taken as it is. */
export function readSeen(data: string): SeenFeed | undefined {
  try {
    const { sequence, doubted } = JSON.parse(readFileSync(fileOf(data), 'utf8')) as Partial<SeenFeed>
    return typeof sequence === 'number' ? { sequence, doubted: doubted === true } : undefined
  } catch {
    return undefined
  }
}

export interface SeenChangesParts {
  readonly data: string
  readonly feed: Pick<ChangeFeed, 'seen'>
  readonly recorder: Pick<Recorder, 'note'>
  readonly after?: After
}

/** Writes it down while the service runs. One process of a node does. */
export class SeenChanges {
  readonly #parts: SeenChangesParts
  readonly #after: After
  #written: string | undefined
  #hasFailed = false
  #stopped = false
  /** One writing at a time: all use one draft. */
  #writing: Promise<void> = Promise.resolve()
  #cancel: () => void = () => undefined

  constructor(parts: SeenChangesParts) {
    this.#parts = parts
    this.#after = parts.after ?? systemAfter
    this.#next(0)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancel()
    await this.#writeInTurn()
  }

  #next(ms: number): void {
    if (this.#stopped) return
    this.#cancel = this.#after(ms, () => void this.#writeInTurn().then(() => this.#next(INTERVAL)))
  }

  #writeInTurn(): Promise<void> {
    return (this.#writing = this.#writing.then(() => this.#write()))
  }

  async #write(): Promise<void> {
    const { data, feed, recorder } = this.#parts
    const text = `${JSON.stringify(feed.seen)}\n`
    if (text === this.#written) return
    const file = fileOf(data)
    try {
      await writeFile(`${file}.new`, text, { mode: 0o600 })
      await rename(`${file}.new`, file)
      this.#written = text
      this.#hasFailed = false
    } catch (thrown) {
      if (!this.#hasFailed) recorder.note('warn', 'store.seen_not_kept', { cause: thrown })
      this.#hasFailed = true
    }
  }
}
