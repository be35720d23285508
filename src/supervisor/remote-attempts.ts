import type { AttemptGate, GuessingKey, Turn } from '../contracts/lockouts.ts'
import { Fault } from '../kernel/faults.ts'
import type { Notice, Order } from './messages.ts'

type Told = Extract<Order<never>, { type: 'entered' | 'refused' | 'left' }>

interface Waiting {
  readonly resolve: (value: number) => void
  readonly reject: (fault: Fault) => void
}

/** The worker's end of password attempts (C6.3.5): the supervisor counts them for all worker processes. */
export class RemoteAttempts implements AttemptGate {
  readonly #send: (notice: Notice) => void
  /** By turn: one question at a time is open for each. */
  readonly #waiting = new Map<number, Waiting>()
  #turns = 0

  constructor(send: (notice: Notice) => void) {
    this.#send = send
  }

  async enter(key: GuessingKey): Promise<Turn> {
    const turn = (this.#turns += 1)
    await this.#ask(turn, { type: 'enter', turn, key })
    return { end: (right) => this.#ask(turn, { type: 'leave', turn, right }) }
  }

  hear(told: Told): void {
    const waiting = this.#waiting.get(told.turn)
    this.#waiting.delete(told.turn)
    if (told.type !== 'refused') return waiting?.resolve(told.type === 'left' ? told.hold : 0)
    const { code, detail, retryAfter } = told
    waiting?.reject(new Fault(code, { detail, ...(retryAfter !== undefined && { retryAfter }) }))
  }

  #ask(turn: number, notice: Notice): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(turn, { resolve, reject })
      this.#send(notice)
    })
  }
}
