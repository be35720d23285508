import type { Clock } from '../kernel/clock.ts'
import { Fault, type FaultCode } from '../kernel/faults.ts'

/**
 * For how long keys that could not be read again are used, in milliseconds. Meanwhile another node may have made a key
 * that signs, or removed one.
 */
export interface UnreadKeys {
  /** For tokens that are issued. */
  readonly tokens: number
  /** For tokens that go with a call to an upstream. */
  readonly calls: number
}

/** What a caller is told who needs keys for this. */
export const FAULT_OF = {
  tokens: 'identity_unavailable',
  calls: 'token_judge_unavailable',
} as const satisfies Readonly<Record<keyof UnreadKeys, FaultCode>>

interface Times {
  readonly now: number
  readonly monotonic: number
}

/** When the keys were read last, and what may still be done with them. */
export class LastReading {
  readonly #clock: Clock
  readonly #unread: UnreadKeys | undefined
  /** By both clocks, since one of them may stand still while the machine sleeps. */
  #at: Times

  /** @param unread absent for a place that only this machine changes: there, its keys are used for ever */
  constructor(clock: Clock, unread: UnreadKeys | undefined) {
    this.#clock = clock
    this.#unread = unread
    this.#at = this.#times()
  }

  #times(): Times {
    return { now: this.#clock.now(), monotonic: this.#clock.monotonic() }
  }

  /** A reading begins. To be called back when it has found no trouble. */
  begin(): () => void {
    const at = this.#times()
    return () => {
      this.#at = at
    }
  }

  /** It is known that nothing has changed since. @param age milliseconds since that was read in the store */
  confirm(age: number): void {
    const { now, monotonic } = this.#times()
    if (monotonic - age > this.#at.monotonic) this.#at = { now: now - age, monotonic: monotonic - age }
  }

  /** @throws Fault if the keys were not read for too long */
  requireFor(use: keyof UnreadKeys): void {
    if (this.#unread === undefined) return
    const { now, monotonic } = this.#times()
    const age = Math.max(now - this.#at.now, monotonic - this.#at.monotonic)
    if (age > this.#unread[use])
      throw new Fault(FAULT_OF[use], { detail: `the signing keys were not read for ${Math.round(age)} ms` })
  }

  /**
   * A key is not known here.
   *
   * @param since Clock.monotonic()
   * @throws Fault `token_judge_unavailable` if another node may know it, and the last reading began before `since` (C4.15)
   */
  requireSince(since: number): void {
    if (this.#unread !== undefined && this.#at.monotonic < since)
      throw new Fault('token_judge_unavailable', { detail: 'the signing keys cannot be read' })
  }
}
