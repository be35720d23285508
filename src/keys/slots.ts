/** Limits how many pieces of work go on at once. The others wait in their order, and not more than `mostWaiting`. */
export class Slots {
  readonly #most: number
  readonly #mostWaiting: number
  readonly #waiting = new Set<() => void>()
  #taken = 0

  constructor(most: number, mostWaiting: number) {
    this.#most = most
    this.#mostWaiting = mostWaiting
  }

  /**
   * Resolves when there is room; then `leave` must be called once. Rejects with an Error if too many wait, or with the
   * signal's reason if it aborts.
   */
  async enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#taken < this.#most) {
      this.#taken += 1
      return
    }
    if (this.#waiting.size >= this.#mostWaiting) throw new Error('too many wait')
    await this.#wait(signal)
  }

  /** Hands the place to the one who has waited longest. */
  leave(): void {
    const [next] = this.#waiting
    if (next === undefined) this.#taken -= 1
    else next()
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (settle: () => void): void => {
        this.#waiting.delete(enter)
        signal.removeEventListener('abort', abort)
        settle()
      }
      const enter = (): void => done(resolve)
      const abort = (): void => done(() => reject(signal.reason as Error))
      this.#waiting.add(enter)
      signal.addEventListener('abort', abort)
    })
  }
}
