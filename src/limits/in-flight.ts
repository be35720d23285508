/** Calls in flight by key. A key without any takes no room. */
export class InFlight {
  readonly #counts = new Map<string, number>()

  /** Takes a place if fewer than `cap` are taken. Whoever got one calls `leave` once. */
  enter(key: string, cap: number): boolean {
    const count = this.#counts.get(key) ?? 0
    if (count >= cap) return false
    this.#counts.set(key, count + 1)
    return true
  }

  leave(key: string): void {
    const count = this.#counts.get(key) ?? 0
    if (count > 1) this.#counts.set(key, count - 1)
    else this.#counts.delete(key)
  }

  count(key: string): number {
    return this.#counts.get(key) ?? 0
  }
}

/** Calls in flight to one backend: all of them, and those of each client. */
export class BackendInFlight {
  total = 0
  /** Counted only where several backends stand: there one may hold a part of a client's places, and no more. */
  readonly byClient = new InFlight()
}
