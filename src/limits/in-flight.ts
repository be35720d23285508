/** Calls in flight by key. A key without calls takes no memory. */
export class InFlight {
  readonly #counts = new Map<string, number>()

  /** Counts one more call if there are fewer than `cap`; answers whether. Then `leave` must be called once. */
  enter(key: string, cap: number): boolean {
    const count = this.#counts.get(key) ?? 0
    if (count >= cap) return false
    this.#counts.set(key, count + 1)
    return true
  }

  count(key: string): number {
    return this.#counts.get(key) ?? 0
  }

  leave(key: string): void {
    const count = this.#counts.get(key) ?? 0
    if (count > 1) this.#counts.set(key, count - 1)
    else this.#counts.delete(key)
  }
}

/** Calls in flight to one backend: all of them, and those of each client. */
export class BackendInFlight {
  total = 0
  /** Counted only if there are several backends: one of them may take a part of a client's calls, and no more. */
  readonly byClient = new InFlight()
}
