/** How many connections of clients a process takes, so that descriptors are left for everything else (C11.1.1). */
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import { type Descriptors, countDescriptors, descriptors, isKeptFrom } from '../../base/files/descriptors.ts'
import { type Condition, HEALTHY } from '../../base/kernel/health.ts'

/** After how long without a refusal there is room again, in milliseconds. */
const QUIET = 10_000
/** How many descriptors each connection needs: its own, and that of the connection to a service which its call needs. */
const DESCRIPTORS = 2

interface ConnectionLimitParts {
  /** Counts a connection that was refused. */
  readonly refused: () => void
  readonly note: Recorder['note']
  readonly own?: Descriptors
}

export class ConnectionLimit {
  readonly #parts: ConnectionLimitParts
  readonly #own: Descriptors
  #most = Number.POSITIVE_INFINITY
  /** How many were refused since there was room last. */
  #refused = 0
  #quiet: NodeJS.Timeout | undefined

  constructor(parts: ConnectionLimitParts) {
    this.#parts = parts
    this.#own = parts.own ?? descriptors()
  }

  /** To be called when this process has opened what it serves with, and no connection yet. */
  measure(used = countDescriptors()): void {
    const { limit, kept } = this.#own
    this.#most = Math.max(1, Math.floor((limit - kept - used) / DESCRIPTORS))
  }

  /**
   * Whether a connection is taken. It is closed at once where not.
   * @param descriptor of its socket
   * @param open how many there are, with this one
   */
  takes(descriptor: number, open = 0): boolean {
    if (open <= this.#most && !isKeptFrom('clients', descriptor, this.#own)) return true
    this.#refuse()
    return false
  }

  condition(): Condition {
    if (this.#quiet === undefined) return HEALTHY
    const { limit, kept } = this.#own
    const reason = `new ones are closed at once: a process here may open ${limit} files and connections (\`ulimit -n\`), and ${kept} are kept for operators and its own work. Raise that limit, or find out who opens so many`
    return { failing: [], degraded: [{ name: 'connections', reason }] }
  }

  #refuse(): void {
    this.#parts.refused()
    this.#refused += 1
    if (this.#quiet !== undefined) {
      this.#quiet.refresh()
      return
    }
    this.#parts.note('warn', 'connections_refused', { ...this.#own })
    this.#quiet = setTimeout(() => this.#recover(), QUIET).unref()
  }

  #recover(): void {
    this.#parts.note('info', 'connections_taken_again', { refused: this.#refused })
    this.#refused = 0
    this.#quiet = undefined
  }
}
