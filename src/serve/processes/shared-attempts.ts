import type {
  AttemptLimiter,
  AttemptStanding,
  GuessingKey,
  Turn,
} from '../../base/contracts/people/lockouts.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import type { Notice, SupervisorMessage } from './messages.ts'

type AttemptNotice = Extract<Notice, { type: 'enter' | 'leave' }>
type AttemptMessage = Extract<SupervisorMessage<never>, { type: 'entered' | 'refused' | 'left' }>

/**
 * Counts password attempts of all workers (C6.3.5): the supervisor's end, one for each process. All share one limiter.
 * When the process ends, its open turns end without a result.
 */
export class AttemptCoordinator {
  readonly #limiter: AttemptLimiter
  readonly #send: (message: AttemptMessage) => void
  readonly #turns = new Map<number, Turn>()
  #closed = false

  constructor(limiter: AttemptLimiter, send: (message: AttemptMessage) => void) {
    this.#limiter = limiter
    this.#send = send
  }

  receive(notice: AttemptNotice): void {
    void (notice.type === 'enter' ? this.#enter(notice) : this.#leave(notice.turn, notice.right))
  }

  close(): void {
    this.#closed = true
    for (const turn of this.#turns.values()) turn.end(undefined).catch(() => undefined)
    this.#turns.clear()
  }

  async #enter({ turn: id, key, standing }: Extract<AttemptNotice, { type: 'enter' }>): Promise<void> {
    try {
      const turn = await this.#limiter.enter(key, standing)
      if (this.#closed) return void turn.end(undefined).catch(() => undefined)
      this.#turns.set(id, turn)
      this.#send({ type: 'entered', turn: id })
    } catch (thrown) {
      this.#refuse(id, thrown)
    }
  }

  async #leave(id: number, right: boolean | undefined): Promise<void> {
    const turn = this.#turns.get(id)
    this.#turns.delete(id)
    try {
      this.#send({ type: 'left', turn: id, hold: turn === undefined ? 0 : await turn.end(right) })
    } catch (thrown) {
      this.#refuse(id, thrown)
    }
  }

  #refuse(turn: number, thrown: unknown): void {
    const { code, facts, message } = toFault(thrown)
    this.#send({ type: 'refused', turn, code, detail: message, retryAfter: facts.retryAfter })
  }
}

interface PendingTurn {
  readonly resolve: (value: number | undefined) => void
  readonly reject: (fault: Fault) => void
  /** Whether its attempt has been made, with the right password. */
  readonly isRight: boolean
}

/** No client waits longer: at most five attempts wait for one account, and each takes half a minute at most. */
const LONGEST_TURN_MS = 180_000

/**
 * The worker's end. If the supervisor does not answer, `enter` rejects with Fault `identity_unavailable`, and so does the
 * end of a turn, but for a right password.
 */
export class RemoteAttempts implements AttemptLimiter {
  readonly #send: (notice: Notice) => void
  /** By turn, which has one open request at a time. */
  readonly #waiting = new Map<number, PendingTurn>()
  #turns = 0
  #ended = false

  constructor(send: (notice: Notice) => void) {
    this.#send = send
  }

  async enter(key: GuessingKey, standing: AttemptStanding): Promise<Turn> {
    const turn = (this.#turns += 1)
    await this.#request(turn, { type: 'enter', turn, key, standing })
    return { end: (right) => this.#request(turn, { type: 'leave', turn, right }) }
  }

  receive(message: AttemptMessage): void {
    const waiting = this.#waiting.get(message.turn)
    this.#waiting.delete(message.turn)
    // A turn that was given up must end too: the next attempt with the same key waits for it.
    if (waiting === undefined && message.type === 'entered')
      this.#send({ type: 'leave', turn: message.turn, right: undefined })
    if (message.type !== 'refused') return waiting?.resolve(message.type === 'left' ? message.hold : 0)
    const { code, detail, retryAfter } = message
    waiting?.reject(new Fault(code, { detail, ...(retryAfter !== undefined && { retryAfter }) }))
  }

  /** Refuses all attempts: the supervisor is gone and cannot count them. */
  end(): void {
    this.#ended = true
    for (const turn of [...this.#waiting.keys()]) this.#giveUp(turn, 'the supervisor is gone')
  }

  #request(turn: number, notice: AttemptNotice): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(
        () => this.#giveUp(turn, 'the supervisor did not answer'),
        LONGEST_TURN_MS,
      ).unref()
      this.#waiting.set(turn, {
        isRight: notice.type === 'leave' && notice.right === true,
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
    // A right password is answered nevertheless. A wrong one that nobody counts is not: it would be a guess for nothing.
    if (waiting?.isRight === true) waiting.resolve(0)
    else waiting?.reject(new Fault('identity_unavailable', { detail }))
  }
}
