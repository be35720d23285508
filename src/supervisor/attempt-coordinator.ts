import type { AttemptLimiter, Turn } from '../contracts/lockouts.ts'
import { toFault } from '../kernel/faults.ts'
import type { Notice, Order } from './messages.ts'

type Asked = Extract<Notice, { type: 'enter' | 'leave' }>
type Told = Extract<Order<never>, { type: 'entered' | 'refused' | 'left' }>

/**
 * The supervisor's end of password attempts (C6.3.5): one gate counts for all worker processes. One desk for each
 * process; when it is gone, its turns are over and count as nothing.
 */
export class AttemptCoordinator {
  readonly #gate: AttemptLimiter
  readonly #tell: (told: Told) => void
  readonly #turns = new Map<number, Turn>()
  #closed = false

  constructor(gate: AttemptLimiter, tell: (told: Told) => void) {
    this.#gate = gate
    this.#tell = tell
  }

  hear(asked: Asked): void {
    void (asked.type === 'enter' ? this.#enter(asked) : this.#leave(asked.turn, asked.right))
  }

  /** The process has ended. */
  close(): void {
    this.#closed = true
    for (const turn of this.#turns.values()) void turn.end(undefined)
    this.#turns.clear()
  }

  async #enter({ turn: id, key, standing }: Extract<Asked, { type: 'enter' }>): Promise<void> {
    try {
      const turn = await this.#gate.enter(key, standing)
      if (this.#closed) return void turn.end(undefined)
      this.#turns.set(id, turn)
      this.#tell({ type: 'entered', turn: id })
    } catch (thrown) {
      const { code, facts, message } = toFault(thrown)
      this.#tell({ type: 'refused', turn: id, code, detail: message, retryAfter: facts.retryAfter })
    }
  }

  async #leave(id: number, right: boolean | undefined): Promise<void> {
    const turn = this.#turns.get(id)
    this.#turns.delete(id)
    this.#tell({ type: 'left', turn: id, hold: (await turn?.end(right)) ?? 0 })
  }
}
