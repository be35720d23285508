import type { AttemptGate, GuessingKey, Turn } from '../contracts/lockouts.ts'
import { Fault } from '../kernel/faults.ts'
import type { Notice, Order } from './messages.ts'

type Told = Extract<Order<never>, { type: 'entered' | 'refused' | 'left' }>

interface Waiting {
  readonly resolve: (value: number) => void
  readonly reject: (fault: Fault) => void
}

/** Longer than any turn takes to come: a guess waits for those before it, and each of them for half a minute. */
const LONGEST_TURN_MS = 180_000

/** The worker's end of password attempts (C6.3.5): the supervisor counts them for all worker processes. */
export class RemoteAttempts implements AttemptGate {
  readonly #send: (notice: Notice) => void
  /** By turn: one question at a time is open for each. */
  readonly #waiting = new Map<number, Waiting>()
  #turns = 0
  #ended = false

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

  /** The supervisor is gone: nobody counts, and so nothing may be tried. */
  end(): void {
    this.#ended = true
    for (const turn of [...this.#waiting.keys()]) this.#giveUp(turn, 'the supervisor is gone')
  }

  #ask(turn: number, notice: Notice): Promise<number> {
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
