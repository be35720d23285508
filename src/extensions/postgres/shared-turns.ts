import { createHash } from 'node:crypto'
import type {
  Delays,
  EndTurn,
  GuessingKey,
  LockoutFilter,
  SharedTurns,
} from '../../base/contracts/people/lockouts.ts'
import { after, type Clock, repeatedly } from '../../base/kernel/clock.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { withStoreBudget } from '../../base/kernel/store-budget.ts'
import { ACCOUNT_FORGET_MS, noTurn, type Timer, TURN_WITHIN } from '../../identity/guessing/guessing.ts'

/** With the time for which failures count. */
export interface SharedDelays extends Delays {
  /** After that time without a failure, earlier ones count no more. */
  readonly forget: number
}

export interface TakenTurn {
  /** Whether the attempt may run. */
  readonly taken: boolean
  /** Whether nobody else may run meanwhile. */
  readonly alone: boolean
  /** Why it may not run: true if somebody else has the turn, false if the delay of the failures has not passed. */
  readonly isBusy: boolean
  /** How long to wait before it may be tried again, in milliseconds; 0 if it was taken. */
  readonly wait: number
}

export interface AttemptTurns {
  /** Drawn for each attempt. */
  readonly by: string
  /** The key that `take` was called with. */
  readonly key: string
  /** The key that `count` was called with, and whether it has the turn alone. */
  readonly account?: { readonly key: string; readonly alone: boolean } | undefined
}

/**
 * Turns of attempts that several nodes share. Their keys are digests: names and addresses are not stored. A turn is a
 * lease by the store's clock. Every method has the same effect when it is called twice by one attempt. Methods reject
 * with Fault `identity_unavailable` if the store cannot be reached.
 */
export interface LockoutTurns {
  /** Takes the turn of a key for `ms` milliseconds, if nobody has it and the delay for its failures has passed. */
  take(key: string, by: string, ms: number, delays: SharedDelays): Promise<TakenTurn>
  /** As `take`, but attempts run at the same time until there are `free` failures. Each counts as one until it has ended. */
  count(key: string, by: string, ms: number, delays: SharedDelays): Promise<TakenTurn>
  /** The turns last `ms` milliseconds from now on, those that have not gone to another attempt. */
  renew(held: AttemptTurns, ms: number): Promise<void>
  /**
   * Ends an attempt. `right`: true forgets failures, false counts one, undefined leaves them as they were. Resolves with
   * false if another attempt has had a turn of it meanwhile; then it counts as `undefined` does.
   * @param forget milliseconds after which failures of the key and of the account are forgotten
   */
  end(
    held: AttemptTurns,
    right: boolean | undefined,
    forget: { readonly key: number; readonly account: number },
  ): Promise<boolean>
  /** Forgets the failures of all keys that fit one of the patterns (`%`: any part). Resolves with their number. */
  clear(patterns: readonly string[]): Promise<number>
}

/** How long a turn lasts if its node does not renew it (it died, or the store is out of reach), in milliseconds. */
const LEASE = 2000
const RENEW_EVERY = 500
/** The time before the end of a turn is sent again, in milliseconds. */
const END_AGAIN = 100
const ID_BYTES = 9
/** The length of a digest, in characters: 96 bits. */
const DIGEST = 16

/** The store has no names and no addresses, because somebody may type a password where the name belongs. */
const digest = (text: string): string =>
  createHash('sha256').update(text).digest('base64url').replaceAll('_', '.').slice(0, DIGEST)

const keyOf = ({ user, client, network }: GuessingKey): string =>
  `${digest(user)}/${digest(client)}/${digest(network)}`
const accountOf = (user: string): string => `${digest(user)}/`

/**
 * The turns of attempts over all nodes of a shared store, behind those of this node (C6.3.5). A turn is a lease that this
 * node renews while the attempt runs. An attempt that cannot be counted is not made, so every method rejects with Fault
 * `identity_unavailable` if the store is out of reach.
 */
export class TurnsOfNodes implements SharedTurns {
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
  async enter(
    key: GuessingKey,
    familiar: boolean,
    rules: Parameters<SharedTurns['enter']>[2],
    until: number,
  ): Promise<EndTurn> {
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
