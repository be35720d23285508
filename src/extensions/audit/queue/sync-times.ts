/** How many of the last syncs are remembered: between two looks there are far fewer. */
const MOST_SYNCS = 256
/** Words before the times: how many syncs there were, and one that is free. */
const SYNC_HEAD_WORDS = 2

/** The size of the memory in bytes: a multiple of 8. */
export const SYNC_BYTES = (SYNC_HEAD_WORDS + MOST_SYNCS) * Int32Array.BYTES_PER_ELEMENT

/** How long the syncs of a trail took, as both of its threads see it: the one that writes adds, the other one looks. */
export class SyncTimes {
  readonly #words: Int32Array
  /** The syncs before this one were returned by `take`. */
  #taken = 0

  constructor(memory: SharedArrayBuffer, at: number) {
    this.#words = new Int32Array(memory, at, SYNC_HEAD_WORDS + MOST_SYNCS)
  }

  get #count(): number {
    return Atomics.load(this.#words, 0)
  }

  add(ms: number): void {
    const count = this.#count
    Atomics.store(this.#words, syncPlace(count), Math.round(ms * 1000))
    Atomics.store(this.#words, 0, (count + 1) | 0)
  }

  /** How long each sync since the last call took, in milliseconds. Of more than 256 only the last are here. */
  take(): readonly number[] {
    const count = this.#count
    const fresh = Math.min(MOST_SYNCS, (count - this.#taken) | 0)
    this.#taken = count
    return Array.from({ length: fresh }, (_, at) => this.#timeOf(count - fresh + at))
  }

  #timeOf(sync: number): number {
    return Atomics.load(this.#words, syncPlace(sync)) / 1000
  }
}

const syncPlace = (sync: number): number => SYNC_HEAD_WORDS + (sync & (MOST_SYNCS - 1))
