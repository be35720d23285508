import type { Entry } from '../../contracts/store.ts'
import type { FamilyRecord } from './families.ts'

/** Families that are remembered: about 1 kB each. */
const LIMIT = 5000

/**
 * The families that this process has rotated last: their clients often come back to it, and then the store needs to be asked
 * only for the write. Another process may have changed or ended such a family meanwhile. So what is remembered serves to
 * use a token, which fails in the store then, and for nothing else.
 */
export class RotatedFamilies {
  /** By id, the one rotated last at the end. */
  readonly #entries = new Map<string, Entry>()

  /** The record of a family after it was written. */
  remember(entry: Entry): void {
    this.forget(entry.key)
    this.#entries.set(entry.key, entry)
    if (this.#entries.size <= LIMIT) return
    const [oldest] = this.#entries.keys()
    if (oldest !== undefined) this.forget(oldest)
  }

  forget(id: string): void {
    this.#entries.delete(id)
  }

  /** The record of a family, if this is the number of its token in use, as far as this process knows. */
  recall(id: string, number: number, now: number): Entry | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined || (entry.value as FamilyRecord).generation !== number) return undefined
    return entry.expiresAt === undefined || entry.expiresAt > now ? entry : undefined
  }
}
