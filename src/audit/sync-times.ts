/** How many of the last syncs are remembered: between two looks there are far fewer. */
const MOST = 256
/** Words before the times: how many syncs there were, and one that is free. */
const HEAD_WORDS = 2

/** Bytes of the memory: a multiple of 8. */
export const SYNC_BYTES = (HEAD_WORDS + MOST) * Int32Array.BYTES_PER_ELEMENT

/** How long the syncs of a trail took, as both of its threads see it: the one that writes adds, the other one looks. */
export class SyncTimes {
  readonly #words: Int32Array
  /** The syncs before this one were told by `take`. */
  #told = 0

  constructor(memory: SharedArrayBuffer, at: number) {
    this.#words = new Int32Array(memory, at, HEAD_WORDS + MOST)
  }

  get #count(): number {
    return Atomics.load(this.#words, 0)
  }

  add(ms: number): void {
    const count = this.#count
    Atomics.store(this.#words, placeOf(count), Math.round(ms * 1000))
    Atomics.store(this.#words, 0, (count + 1) | 0)
  }

  /** Milliseconds of each sync since the last call. Of more than 256 only the last are told. */
  take(): readonly number[] {
    const count = this.#count
    const fresh = Math.min(MOST, (count - this.#told) | 0)
    this.#told = count
    return Array.from({ length: fresh }, (_, at) => this.#timeOf(count - fresh + at))
  }

  #timeOf(sync: number): number {
    return Atomics.load(this.#words, placeOf(sync)) / 1000
  }
}

const placeOf = (sync: number): number => HEAD_WORDS + (sync & (MOST - 1))
