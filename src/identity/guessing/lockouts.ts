import { createHash } from 'node:crypto'
import type { AuditEntry, AuditTrail } from '../../base/contracts/records/audit.ts'
import type {
  AttemptLimiter,
  AttemptStanding,
  Delays,
  EndTurn,
  GuessingKey,
  Lockout,
  LockoutFilter,
  OpenSharedTurns,
  SharedTurns,
  Turn,
} from '../../base/contracts/people/lockouts.ts'
import { networkOf } from '../../base/http/head/addresses.ts'
import { after, type Clock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { GuessingConfig } from '../dependencies/schema.ts'
import { FailureTable, type Tally } from './failures.ts'
import { ACCOUNT_FORGET_MS, noTurn, OneAtATime, systemTimer, type Timer, TURN_WITHIN } from './guessing.ts'

/** Most entries of each table. All five tables together take about 40 MB if they are full. */
const REMEMBERED = 20_000

/** Longest name that is kept whole. Of a longer one, its beginning and its hash are kept. */
const LONGEST_NAME = 128

/** The delay after that many failures, in milliseconds: 0 at first, then `delay`, doubled with each failure up to `longest`. */
const delayAfter = (failures: number, { free, delay, longest }: Delays): number =>
  failures < free || delay === 0 ? 0 : Math.min(longest, delay * 2 ** (failures - free))

/** By name. Invented names are counted apart, so that they displace only each other. */
interface Counts {
  readonly attempts: FailureTable<GuessingKey>
  readonly accounts: FailureTable<string>
}

interface BegunLockout {
  /** What was counted: one name by one client from one network, one name from everywhere, or all from one network. */
  readonly of: 'attempts' | 'accounts' | 'networks'
  /** The name, where it is the lockout of one. */
  readonly user?: string | undefined
  readonly subject?: string | undefined
  readonly client?: string | undefined
  readonly network: string
  readonly failures: number
  /** How long the next attempt waits, in milliseconds. */
  readonly delay: number
}

/** Counts failures in the memory of this process, which may serve others (C6.3.5). */
export class LocalLockouts implements AttemptLimiter {
  #rules: GuessingConfig
  readonly #clock: Clock
  readonly #timer: Timer
  readonly #began: (lockout: BegunLockout) => void
  readonly #turns = new OneAtATime()
  readonly #accountTurns = new OneAtATime()
  /** Running attempts from unfamiliar networks, by name. Each may become one more failure. */
  readonly #running = new Map<string, number>()
  readonly #existing: Counts
  readonly #invented: Counts
  readonly #networks: FailureTable<string>
  #shared: SharedTurns | undefined

  constructor(
    rules: GuessingConfig,
    clock: Clock,
    timer: Timer = systemTimer,
    began: (lockout: BegunLockout) => void = () => undefined,
  ) {
    this.#began = began
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

  /** From now on attempts of other nodes count too. */
  share(open: OpenSharedTurns): void {
    this.#shared = open(this.#timer, this.#clock)
  }

  configure(rules: GuessingConfig): void {
    this.#rules = rules
  }

  async enter(sent: GuessingKey, standing: AttemptStanding): Promise<Turn> {
    const key = { ...sent, user: shortened(sent.user), network: networkOf(sent.network) }
    const { nameExists, familiar } = standing
    const counts = nameExists ? this.#existing : this.#invented
    const id = textOf(key)
    this.#refuseCrowd(id, counts)
    const mayWait = this.#clock.monotonic() + TURN_WITHIN
    const isDelayed =
      delayAfter(counts.attempts.find(id)?.failures ?? 0, this.#rules.attempts) > 0 ||
      (!familiar && this.#isGuessedAt(counts.accounts.find(key.user)))
    const leave = await this.#enterLine(id, isDelayed)
    let leaveAccount: (() => void) | undefined
    try {
      await this.#wait(counts.attempts.find(id), this.#rules.attempts)
      leaveAccount = familiar ? undefined : await this.#enterAccount(key.user, counts)
      const until = isDelayed ? this.#clock.monotonic() + TURN_WITHIN : mayWait
      const endShared = await this.#shared?.enter(key, familiar, this.#rules, until)
      let ended = false
      return {
        end: async (right) => {
          if (ended) return 0
          ended = true
          try {
            return await this.#end(key, counts, right, standing, endShared)
          } finally {
            leaveAccount?.()
            leave()
          }
        },
      }
    } catch (thrown) {
      leaveAccount?.()
      leave()
      throw thrown
    }
  }

  /** The lockouts in force now, the latest first. */
  list(): readonly Lockout[] {
    const { attempts, accounts } = this.#rules
    const lockouts = this.#all().flatMap((counts) => [
      ...counts.attempts.list().map((tally) => ({ ...tally.key, ...lockoutOf(tally, attempts) })),
      ...counts.accounts.list().map((tally) => ({ user: tally.key, ...lockoutOf(tally, accounts) })),
    ])
    return lockouts.filter((lockout) => lockout.delay > 0).sort((a, b) => b.at - a.at)
  }

  count(): number {
    const { attempts, accounts } = this.#rules
    const count = (table: FailureTable<unknown>, rules: Delays): number =>
      table.countWhere(({ failures }) => delayAfter(failures, rules) > 0)
    return this.#all().reduce(
      (sum, counts) => sum + count(counts.attempts, attempts) + count(counts.accounts, accounts),
      0,
    )
  }

  /** Forgets failures, in every process within a second. Resolves with their number. */
  async clear({ user: typed, client, network }: LockoutFilter): Promise<number> {
    const user = typed === undefined ? undefined : shortened(typed)
    const from = network === undefined ? undefined : networkOf(network)
    const fits = (key: GuessingKey): boolean =>
      (user ?? key.user) === key.user &&
      (client ?? key.client) === key.client &&
      (from ?? key.network) === key.network
    // The counts of a network concern all of its users. They are cleared only if no user and no client is given.
    if (user === undefined && client === undefined)
      this.#networks.forgetWhere((name) => (from ?? name) === name)
    const elsewhere = this.#shared?.clear({ user, client, network: from })
    const cleared = this.#all().map(
      ({ attempts, accounts }) =>
        attempts.forgetWhere(fits) +
        (user !== undefined && client === undefined && from === undefined
          ? this.#clearAccount(user, accounts)
          : 0),
    )
    const here = cleared.reduce((sum, count) => sum + count, 0)
    // The count of all nodes together includes what this node knows of.
    return Math.max(here, (await elsewhere) ?? 0)
  }

  /** Returns 1 if the account's attempts were delayed, otherwise 0. */
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

  /** With shared turns, an attempt without a delay waits for others of its key on this node no longer than on another one. */
  async #enterLine(id: string, isDelayed: boolean): Promise<() => void> {
    const entered = this.#turns.enter(id)
    if (this.#shared === undefined || isDelayed) return entered
    const { promise: late, reject } = Promise.withResolvers<never>()
    const cancel = after(TURN_WITHIN, () => {
      void entered.then((leave) => leave())
      reject(noTurn())
    })
    return Promise.race([entered, late]).finally(cancel)
  }

  async #end(
    key: GuessingKey,
    counts: Counts,
    right: boolean | undefined,
    standing: AttemptStanding,
    endShared: EndTurn | undefined,
  ): Promise<number | undefined> {
    const isHeld = endShared === undefined || (await endShared(right))
    return isHeld ? this.#count(key, counts, right, standing) : undefined
  }

  /** Waits until the delay of the failures has passed since the last one. */
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
   * If an account is attacked, only one of its attempts from unfamiliar networks runs at a time. Resolves with the
   * function that ends the attempt. There must be no `await` between reading and counting the running attempts. Otherwise a
   * thousand that are sent at once would all run before the first of them has failed.
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

  /** Counts an outcome. Returns the milliseconds by which a failed answer is delayed. */
  #count(
    key: GuessingKey,
    counts: Counts,
    right: boolean | undefined,
    { familiar, subject }: AttemptStanding,
  ): number {
    if (right === undefined) return 0
    if (right) {
      counts.attempts.forget(textOf(key))
      // A login from a familiar network must not end the delays of an attacker elsewhere.
      if (!familiar) counts.accounts.forget(key.user)
      return 0
    }
    const { network, user } = key
    this.#grow('attempts', counts.attempts.fail(textOf(key), key), { ...key, subject })
    this.#grow('accounts', counts.accounts.fail(user, user), { user, network, subject })
    return this.#grow('networks', this.#networks.fail(network, network), { network })
  }

  /** Returns the delay after that many failures, and reports it if it has just begun. */
  #grow(
    of: BegunLockout['of'],
    { failures }: Tally<unknown>,
    whose: Omit<BegunLockout, 'of' | 'failures' | 'delay'>,
  ): number {
    const rules = this.#rules[of]
    const delay = delayAfter(failures, rules)
    if (delay > 0 && delayAfter(failures - 1, rules) === 0) this.#began({ of, failures, delay, ...whose })
    return delay
  }
}

const textOf = ({ user, client, network }: GuessingKey): string => JSON.stringify([user, client, network])

const lockoutOf = ({ failures, at }: Tally<unknown>, rules: Delays) => ({
  failures,
  delay: delayAfter(failures, rules),
  at,
})

/** An attacker chooses the names, so a long one must not use the memory of a thousand. */
const shortened = (name: string): string =>
  name.length <= LONGEST_NAME
    ? name
    : `${name.slice(0, LONGEST_NAME / 2)}…${createHash('sha256').update(name).digest('base64url')}`

/** Records that a delay began (C12.3). Anybody can cause that, so it counts as a refusal (C12.1.5). */
export function recordLockout(begun: BegunLockout, audit: Pick<AuditTrail, 'refuse'>): void {
  audit.refuse({ event: 'lockout.began', reason: begun.of, address: begun.network }, () => entryOf(begun))
}

/** A name is what somebody typed, so it is a personal value, as the network is (C12.2.3). */
const entryOf = ({ client, delay, failures, network, of, subject, user }: BegunLockout): AuditEntry => ({
  event: 'lockout.began',
  outcome: 'success',
  actor: { kind: 'anonymous' },
  on: { kind: 'lockout', subject, client: client === '' ? undefined : client },
  change: { of, failures, delay },
  personal: { 'actor.address': network, 'on.id': user },
})
