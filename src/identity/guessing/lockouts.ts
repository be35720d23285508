import { createHash } from 'node:crypto'
import type {
  AttemptLimiter,
  AttemptStanding,
  GuessingKey,
  Lockout,
  LockoutFilter,
  Lockouts,
  Turn,
} from '../../contracts/lockouts.ts'
import { networkOf } from '../../http/addresses.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/faults.ts'
import type { GuessingConfig } from '../config.ts'
import { FailureTable, type Tally } from './failures.ts'
import { OneAtATime, systemTimer, type Timer } from './guessing.ts'

/** Entries of each table. All five full are some 40 MB. */
const REMEMBERED = 20_000

/** Failures at an account are counted over many networks, and an attacker has time: they are kept for a day. */
const ACCOUNT_FORGET_MS = 24 * 60 * 60 * 1000

/** Characters of a name that are kept; a longer one is told apart by its hash. */
const LONGEST_NAME = 128

interface Delays {
  readonly free: number
  readonly delay: number
  readonly longest: number
}

/** What so many failures cost: nothing at first, then doubling from `delay` up to `longest`. Milliseconds. */
export const delayAfter = (failures: number, { free, delay, longest }: Delays): number =>
  failures < free || delay === 0 ? 0 : Math.min(longest, delay * 2 ** (failures - free))

/** Failures at names. There are two of these: whoever invents names fills only the one. */
interface Counts {
  readonly attempts: FailureTable<GuessingKey>
  /** By name alone. */
  readonly accounts: FailureTable<string>
}

/** The lockouts in the memory of the process that owns them. */
export class LocalLockouts implements AttemptLimiter, Lockouts {
  #rules: GuessingConfig
  readonly #clock: Clock
  readonly #timer: Timer
  readonly #turns = new OneAtATime()
  readonly #accountTurns = new OneAtATime()
  /** Attempts that run, by name, from networks that are not familiar: each may be one more failure. */
  readonly #running = new Map<string, number>()
  readonly #existing: Counts
  readonly #invented: Counts
  readonly #networks: FailureTable<string>

  constructor(rules: GuessingConfig, clock: Clock, timer: Timer = systemTimer) {
    this.#rules = rules
    this.#clock = clock
    this.#timer = timer
    const forget = (): number => this.#rules.forget
    const counts = (): Counts => ({
      attempts: new FailureTable({ clock, most: REMEMBERED, forget }),
      accounts: new FailureTable({ clock, most: REMEMBERED, forget: () => ACCOUNT_FORGET_MS }),
    })
    this.#existing = counts()
    this.#invented = counts()
    this.#networks = new FailureTable({ clock, most: REMEMBERED, forget })
  }

  /** Other rules, from now on; what was counted stays counted. */
  configure(rules: GuessingConfig): void {
    this.#rules = rules
  }

  async enter(sent: GuessingKey, { nameExists, familiar }: AttemptStanding): Promise<Turn> {
    const key = { ...sent, user: shortened(sent.user), network: networkOf(sent.network) }
    const counts = nameExists ? this.#existing : this.#invented
    const id = textOf(key)
    this.#refuseCrowd(id, counts)
    const leave = await this.#turns.enter(id)
    try {
      await this.#wait(counts.attempts.find(id), this.#rules.attempts)
      const leaveAccount = familiar ? undefined : await this.#enterAccount(key.user, counts)
      let ended = false
      return {
        end: (right) => {
          if (ended) return Promise.resolve(0)
          ended = true
          const hold = this.#count(key, counts, right, familiar)
          leaveAccount?.()
          leave()
          return Promise.resolve(hold)
        },
      }
    } catch (thrown) {
      leave()
      throw thrown
    }
  }

  list(): readonly Lockout[] {
    const { attempts, accounts } = this.#rules
    const told = this.#all().flatMap((counts) => [
      ...counts.attempts.list().map((tally) => ({ ...tally.key, ...lockoutOf(tally, attempts) })),
      ...counts.accounts.list().map((tally) => ({ user: tally.key, ...lockoutOf(tally, accounts) })),
    ])
    return told.filter((lockout) => lockout.delay > 0).sort((a, b) => b.at - a.at)
  }

  clear({ user: typed, client, network }: LockoutFilter): Promise<number> {
    const user = typed === undefined ? undefined : shortened(typed)
    const from = network === undefined ? undefined : networkOf(network)
    const fits = (key: GuessingKey): boolean =>
      (user ?? key.user) === key.user &&
      (client ?? key.client) === key.client &&
      (from ?? key.network) === key.network
    // A network's failures are everybody's in it, an account's are of all networks: they go only where no less is meant.
    if (user === undefined && client === undefined)
      this.#networks.forgetWhere((name) => (from ?? name) === name)
    const cleared = this.#all().map(
      ({ attempts, accounts }) =>
        attempts.forgetWhere(fits) +
        (user !== undefined && client === undefined && from === undefined
          ? this.#clearAccount(user, accounts)
          : 0),
    )
    return Promise.resolve(cleared.reduce((sum, count) => sum + count, 0))
  }

  /** Counts as one only where it made somebody wait. */
  #clearAccount(user: string, accounts: FailureTable<string>): number {
    const slowed = this.#isGuessedAt(accounts.find(user))
    accounts.forget(user)
    return slowed ? 1 : 0
  }

  #all(): readonly Counts[] {
    return [this.#existing, this.#invented]
  }

  #isGuessedAt(tally: Tally<string> | undefined, running = 0): boolean {
    return (tally?.failures ?? 0) + running >= this.#rules.accounts.free
  }

  #run(user: string, more: 1 | -1): void {
    const running = (this.#running.get(user) ?? 0) + more
    if (running > 0) this.#running.set(user, running)
    else this.#running.delete(user)
  }

  /** Waits until what the failures have earned has passed since the last one. */
  async #wait(tally: Tally<unknown> | undefined, rules: Delays): Promise<void> {
    if (tally === undefined) return
    const wait = tally.last + delayAfter(tally.failures, rules) - this.#clock.monotonic()
    if (wait > 0) await this.#timer(wait)
  }

  #refuseCrowd(id: string, { attempts }: Counts): void {
    if (this.#turns.inLine(id) < this.#rules.waiting) return
    throw (attempts.find(id)?.failures ?? 0) < this.#rules.attempts.free
      ? new Fault('identity_unavailable', { detail: 'too many logins of one user at once', retryAfter: 1 })
      : new Fault('invalid_grant', { detail: 'too many attempts are waiting' })
  }

  /**
   * Where an account is guessed at: one at a time of all who were never seen to log in where they come from. Answers
   * how to leave. Nothing is waited for between asking and counting those that run: else whoever sends a thousand at
   * once is let in before the first of them has failed.
   */
  async #enterAccount(user: string, { accounts }: Counts): Promise<() => void> {
    let leave: (() => void) | undefined
    if (this.#isGuessedAt(accounts.find(user), this.#running.get(user))) {
      if (this.#accountTurns.inLine(user) > this.#rules.accounts.waiting)
        throw new Fault('invalid_grant', { detail: 'too many attempts at an account that is guessed at' })
      leave = await this.#accountTurns.enter(user)
      try {
        await this.#wait(accounts.find(user), this.#rules.accounts)
      } catch (thrown) {
        leave()
        throw thrown
      }
    }
    this.#run(user, 1)
    return () => {
      this.#run(user, -1)
      leave?.()
    }
  }

  /** Answers how long a failed answer is held back. */
  #count(key: GuessingKey, counts: Counts, right: boolean | undefined, familiar: boolean): number {
    if (right === undefined) return 0
    if (right) {
      counts.attempts.forget(textOf(key))
      // Somebody at home must not end what slows the guesser down who is elsewhere.
      if (!familiar) counts.accounts.forget(key.user)
      return 0
    }
    counts.attempts.fail(textOf(key), key)
    counts.accounts.fail(key.user, key.user)
    const { failures } = this.#networks.fail(key.network, key.network)
    return delayAfter(failures, this.#rules.networks)
  }
}

const textOf = ({ user, client, network }: GuessingKey): string => JSON.stringify([user, client, network])

const lockoutOf = ({ failures, at }: Tally<unknown>, rules: Delays) => ({
  failures,
  delay: delayAfter(failures, rules),
  at,
})

/** Names are the guesser's to choose: a long one must not take the dependencies of a thousand. */
const shortened = (name: string): string =>
  name.length <= LONGEST_NAME
    ? name
    : `${name.slice(0, LONGEST_NAME / 2)}…${createHash('sha256').update(name).digest('base64url')}`
