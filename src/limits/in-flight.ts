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
