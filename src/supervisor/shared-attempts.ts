import type { AttemptLimiter, AttemptStanding, GuessingKey, Turn } from '../contracts/lockouts.ts'
import { Fault, toFault } from '../kernel/faults.ts'
import type { Notice, Order } from './messages.ts'

type AttemptNotice = Extract<Notice, { type: 'enter' | 'leave' }>
type AttemptOrder = Extract<Order<never>, { type: 'entered' | 'refused' | 'left' }>

/**
 * The supervisor's end of password attempts (C6.3.5): one gate counts for all worker processes. One desk for each
 * process; when it is gone, its turns are over and count as nothing.
 */
export class AttemptCoordinator {
  readonly #gate: AttemptLimiter
  readonly #tell: (order: AttemptOrder) => void
  readonly #turns = new Map<number, Turn>()
  #closed = false

  constructor(gate: AttemptLimiter, tell: (order: AttemptOrder) => void) {
    this.#gate = gate
    this.#tell = tell
  }

  receive(notice: AttemptNotice): void {
    void (notice.type === 'enter' ? this.#enter(notice) : this.#leave(notice.turn, notice.right))
  }

  /** The process has ended. */
  close(): void {
    this.#closed = true
    for (const turn of this.#turns.values()) void turn.end(undefined)
    this.#turns.clear()
  }

  async #enter({ turn: id, key, standing }: Extract<AttemptNotice, { type: 'enter' }>): Promise<void> {
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

interface PendingTurn {
  readonly resolve: (value: number) => void
  readonly reject: (fault: Fault) => void
}

/** No client waits for longer: five attempts at an account that is guessed at take half a minute each. */
const LONGEST_TURN_MS = 180_000

/** The worker's end of password attempts (C6.3.5): the supervisor counts them for all worker processes. */
export class RemoteAttempts implements AttemptLimiter {
  readonly #send: (notice: Notice) => void
  /** By turn: one question at a time is open for each. */
  readonly #waiting = new Map<number, PendingTurn>()
  #turns = 0
  #ended = false

  constructor(send: (notice: Notice) => void) {
    this.#send = send
  }

  async enter(key: GuessingKey, standing: AttemptStanding): Promise<Turn> {
    const turn = (this.#turns += 1)
    await this.#request(turn, { type: 'enter', turn, key, standing })
    // What was verified is answered, whether or not somebody counts it.
    return { end: (right) => this.#request(turn, { type: 'leave', turn, right }).catch(() => 0) }
  }

  receive(order: AttemptOrder): void {
    const waiting = this.#waiting.get(order.turn)
    this.#waiting.delete(order.turn)
    // A turn that nobody waits for any more must be ended all the same: the next of its key waits for that.
    if (waiting === undefined && order.type === 'entered')
      this.#send({ type: 'leave', turn: order.turn, right: undefined })
    if (order.type !== 'refused') return waiting?.resolve(order.type === 'left' ? order.hold : 0)
    const { code, detail, retryAfter } = order
    waiting?.reject(new Fault(code, { detail, ...(retryAfter !== undefined && { retryAfter }) }))
  }

  /** The supervisor is gone: nobody counts, and so nothing may be tried. */
  end(): void {
    this.#ended = true
    for (const turn of [...this.#waiting.keys()]) this.#giveUp(turn, 'the supervisor is gone')
  }

  #request(turn: number, notice: Notice): Promise<number> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(
        () => this.#giveUp(turn, 'the supervisor did not answer'),
        LONGEST_TURN_MS,
      ).unref()
      this.#waiting.set(turn, {
        resolve: (value) => {
          clearTimeout(late)
          resolve(value)
        },
        reject: (fault) => {
          clearTimeout(late)
          reject(fault)
        },
      })
      if (this.#ended) this.#giveUp(turn, 'the supervisor is gone')
      else this.#send(notice)
    })
  }

  #giveUp(turn: number, detail: string): void {
    const waiting = this.#waiting.get(turn)
    this.#waiting.delete(turn)
    waiting?.reject(new Fault('identity_unavailable', { detail }))
  }
}
