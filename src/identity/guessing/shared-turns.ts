import { createHash } from 'node:crypto'
import type { GuessingKey, LockoutFilter, LockoutTurns, TakenTurn } from '../../contracts/lockouts.ts'
import { newSecret } from '../../kernel/ids.ts'
import type { GuessingConfig } from '../config.ts'
import type { Timer } from './guessing.ts'

/** Milliseconds for which an attempt has its turn, if its node dies. No attempt takes longer. */
const TURN_MS = 30_000
const ID_BYTES = 9
/** Characters of a digest: 96 bits. */
const DIGEST = 16
/** Failures of an account over all networks are kept for a day, because an attacker may be patient. */
const ACCOUNT_FORGET_MS = 24 * 60 * 60 * 1000

/** Neither names nor addresses stand in the store: somebody may type a password where the name belongs. */
const digest = (text: string): string =>
  createHash('sha256').update(text).digest('base64url').replaceAll('_', '.').slice(0, DIGEST)

const keyOf = ({ user, client, network }: GuessingKey): string =>
  `${digest(user)}/${digest(client)}/${digest(network)}`
const accountOf = (user: string): string => `${digest(user)}/`

/** Ends a turn that was taken, with the outcome of the attempt. */
export type EndTurn = (right: boolean | undefined) => Promise<void>

/**
 * The turns of attempts over all nodes of a shared store, behind those of this node (C6.3.5). While the store is out of
 * reach, those of this node alone count.
 */
export class SharedTurns {
  readonly #turns: LockoutTurns
  readonly #timer: Timer

  constructor(turns: LockoutTurns, timer: Timer) {
    this.#turns = turns
    this.#timer = timer
  }

  /**
   * Resolves when the attempt may run on this node as far as the others are concerned.
   * @param familiar whether failures elsewhere are not to delay it
   */
  async enter(key: GuessingKey, familiar: boolean, rules: GuessingConfig): Promise<EndTurn> {
    const by = newSecret(ID_BYTES)
    const id = keyOf(key)
    const account = accountOf(key.user)
    const ofKey = { ...rules.attempts, forget: rules.forget }
    const ofAccount = { ...rules.accounts, forget: ACCOUNT_FORGET_MS }
    const hasKey = await this.#wait(() => this.#turns.take(id, by, TURN_MS, ofKey))
    const hasAccount =
      !familiar && (await this.#wait(() => this.#turns.count(account, by, TURN_MS, ofAccount)))
    return async (right) => {
      await Promise.all([
        hasKey ? this.#orNothing(this.#turns.end(id, by, right, ofKey.forget)) : undefined,
        hasAccount ? this.#orNothing(this.#turns.settle(account, by, right, ofAccount.forget)) : undefined,
      ])
    }
  }

  /** Resolves with the number of what was forgotten. */
  clear({ user, client, network }: LockoutFilter): Promise<number> {
    const part = (value: string | undefined): string => (value === undefined ? '%' : digest(value))
    const patterns = [`${part(user)}/${part(client)}/${part(network)}`]
    if (user !== undefined && client === undefined && network === undefined) patterns.push(accountOf(user))
    return this.#turns.clear(patterns)
  }

  /** True when the turn is taken; false if the store is out of reach. */
  async #wait(take: () => Promise<TakenTurn>): Promise<boolean> {
    for (;;) {
      const turn = await take().catch(() => undefined)
      if (turn === undefined) return false
      if (turn.taken) return true
      await this.#timer(turn.wait)
    }
  }

  /** What the store could not count is counted by this node, and its turn ends by itself. */
  async #orNothing(ended: Promise<void>): Promise<void> {
    await ended.catch(() => undefined)
  }
}
