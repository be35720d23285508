import { createHash } from 'node:crypto'
import type {
  GuessingKey,
  AttemptTurns,
  LockoutFilter,
  LockoutTurns,
  TakenTurn,
} from '../../base/contracts/people/lockouts.ts'
import { after, type Clock, repeatedly } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { withStoreBudget } from '../../base/kernel/store-budget.ts'
import { DAY_MS } from '../../base/kernel/units.ts'
import type { GuessingConfig } from '../dependencies/schema.ts'
import type { Timer } from './guessing.ts'

/** How long a turn lasts if its node does not renew it (it died, or the store is out of reach), in milliseconds. */
const LEASE = 2000
const RENEW_EVERY = 500
/** How long an attempt waits for its turn, without the delay of failures, and for each answer of the store, in milliseconds. */
export const TURN_WITHIN = 2000
/** The time before the end of a turn is sent again, in milliseconds. */
const END_AGAIN = 100
const ID_BYTES = 9
/** The length of a digest, in characters: 96 bits. */
const DIGEST = 16
/** Failures of an account over all networks are kept for a day, because an attacker may be patient. */
export const ACCOUNT_FORGET_MS = DAY_MS
/** The value of `Retry-After`, in seconds. */
const RETRY_AFTER = 1

/** The store has no names and no addresses, because somebody may type a password where the name belongs. */
const digest = (text: string): string =>
  createHash('sha256').update(text).digest('base64url').replaceAll('_', '.').slice(0, DIGEST)

const keyOf = ({ user, client, network }: GuessingKey): string =>
  `${digest(user)}/${digest(client)}/${digest(network)}`
const accountOf = (user: string): string => `${digest(user)}/`

export const noTurn = (): Fault =>
  new Fault('identity_unavailable', {
    detail: `no turn for the attempt within ${TURN_WITHIN} ms: another one of the user is under way`,
    retryAfter: RETRY_AFTER,
  })

/** Ends a turn that was taken, with the outcome of the attempt. Resolves with false if others may have had it meanwhile. */
export type EndTurn = (right: boolean | undefined) => Promise<boolean>

/**
 * The turns of attempts over all nodes of a shared store, behind those of this node (C6.3.5). A turn is a lease that this
 * node renews while the attempt runs. An attempt that cannot be counted is not made, so every method rejects with Fault
 * `identity_unavailable` if the store is out of reach.
 */
export class SharedTurns {
  readonly #turns: LockoutTurns
  readonly #timer: Timer
  readonly #clock: Clock

  constructor(turns: LockoutTurns, timer: Timer, clock: Clock) {
    this.#turns = turns
    this.#timer = timer
    this.#clock = clock
  }

  /**
   * Resolves when the attempt may run on this node as far as the others are concerned.
   * @param familiar whether failures elsewhere are not to delay it
   * @param until time of Clock.monotonic() until which it may wait for other attempts
   */
  async enter(key: GuessingKey, familiar: boolean, rules: GuessingConfig, until: number): Promise<EndTurn> {
    const by = newSecret(ID_BYTES)
    const ofKey = { ...rules.attempts, forget: rules.forget }
    const ofAccount = { ...rules.accounts, forget: ACCOUNT_FORGET_MS }
    const forget = { key: ofKey.forget, account: ofAccount.forget }
    let held: AttemptTurns = { by, key: keyOf(key) }
    await this.#wait(() => this.#turns.take(held.key, by, LEASE, ofKey), until)
    const stop = this.#keep(() => held)
    const end: EndTurn = (right) => this.#end(held, right, forget).finally(stop)
    if (familiar) return end
    const account = accountOf(key.user)
    try {
      const { alone } = await this.#wait(() => this.#turns.count(account, by, LEASE, ofAccount), until)
      held = { ...held, account: { key: account, alone } }
    } catch (thrown) {
      end(undefined).catch(() => undefined)
      throw thrown
    }
    return end
  }

  clear({ user, client, network }: LockoutFilter): Promise<number> {
    const part = (value: string | undefined): string => (value === undefined ? '%' : digest(value))
    const patterns = [`${part(user)}/${part(client)}/${part(network)}`]
    if (user !== undefined && client === undefined && network === undefined) patterns.push(accountOf(user))
    return this.#turns.clear(patterns)
  }

  /** The delay of failures is waited for, however long; other attempts are not. */
  async #wait(take: () => Promise<TakenTurn>, until: number): Promise<TakenTurn> {
    for (let end = until; ;) {
      const turn = await withStoreBudget(take, TURN_WITHIN)
      if (turn.taken) return turn
      if (turn.isBusy && this.#clock.monotonic() + turn.wait >= end) throw noTurn()
      await this.#timer(turn.wait)
      if (!turn.isBusy) end = this.#clock.monotonic() + TURN_WITHIN
    }
  }

  /** Renews the turns until the returned function is called. A turn that lapses meanwhile is found out when it ends. */
  #keep(held: () => AttemptTurns): () => void {
    const renew = async (): Promise<number> => {
      await withStoreBudget(() => this.#turns.renew(held(), LEASE), TURN_WITHIN).catch(() => undefined)
      return RENEW_EVERY
    }
    return repeatedly(after, RENEW_EVERY, renew)
  }

  /** Sends the end again while the turn may last. If it fails, the turn lapses, and the outcome of the attempt is unknown. */
  async #end(
    held: AttemptTurns,
    right: boolean | undefined,
    forget: Parameters<LockoutTurns['end']>[2],
  ): Promise<boolean> {
    for (const late = this.#clock.monotonic() + TURN_WITHIN; ;) {
      const left = Math.max(END_AGAIN, late - this.#clock.monotonic())
      try {
        return await withStoreBudget(() => this.#turns.end(held, right, forget), left)
      } catch (thrown) {
        if (this.#clock.monotonic() + END_AGAIN >= late) throw thrown
        await this.#timer(END_AGAIN)
      }
    }
  }
}
