import type { Entry } from '../../contracts/store.ts'

/** Records that are remembered: about 1 kB each. */
const LIMIT = 5000

/**
 * The records that this process has written last. Their clients often come to it again, and then the store needs to be asked
 * only for the write. Another process may have changed or removed such a record meanwhile. So what is remembered serves for
 * a write that fails in the store then, and for nothing else.
 */
export class RememberedRecords {
  /** By key, the one written last at the end. */
  readonly #entries = new Map<string, Entry>()

  /** A record after it was written. */
  remember(entry: Entry): void {
    this.forget(entry.key)
    this.#entries.set(entry.key, entry)
    if (this.#entries.size <= LIMIT) return
    const [oldest] = this.#entries.keys()
    if (oldest !== undefined) this.forget(oldest)
  }

  forget(key: string): void {
    this.#entries.delete(key)
  }

  /** @param now milliseconds since the epoch: a record that has expired is not found */
  recall(key: string, now: number): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    return entry.expiresAt === undefined || entry.expiresAt > now ? entry : undefined
  }
}
