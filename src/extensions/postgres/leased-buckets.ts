import type { BucketRate, OpenSharedRates } from '../../base/contracts/calls/admission.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { ONE } from '../../gateway/limits/buckets.ts'

/** The calls of one process under a rate that all nodes share: those used, and those that it asks for. */
export interface BudgetUse {
  readonly key: string
  /** Calls per millisecond. */
  readonly perMs: number
  /** Calls at once, after a rest. */
  readonly burst: number
  /** Calls that were let in and that nobody has taken out of the budget yet; below 0: taken out, and given back. */
  readonly spent: number
  /** Calls to be taken out now, for this process to let in. */
  readonly want: number
}

export interface BudgetGrant {
  readonly key: string
  /** Calls that were taken out for this process: at most what it wanted. */
  readonly granted: number
  /** Calls that are left in the budget; below 0 if more were let in than there were. */
  readonly level: number
}

/** Most keys of one request. */
export const MOST_USES = 500

/** The budgets of rates that several nodes share. A budget fills up by its rate, to its burst. */
export interface Budgets {
  /**
   * Exchanges the uses of several keys, MOST_USES at most. A number that `who` has used before changes nothing, so
   * a request may be repeated: then nothing is granted. A use without a grant in the answer must be sent again. Rejects with
   * Fault `identity_unavailable`.
   */
  exchange(who: string, number: number, uses: readonly BudgetUse[]): Promise<readonly BudgetGrant[]>
}

/** Prefix of the keys of addresses. Anybody can use many, so their budgets may be forgotten after two days. */
export const OF_ADDRESS = 'a:'

/** A part of a budget that this process has taken out, and spends from memory. */
interface Lease {
  readonly key: string
  rate: BucketRate
  /** Calls that may be let in: taken out of the budget already. */
  tokens: number
  /** Calls that may be let in before the budget was asked, and are owed to it then. */
  free: number
  /** Calls that were let in and not taken out of the budget yet. */
  owed: number
  /** Calls since the last exchange, let in or not. */
  asked: number
  /** Calls per millisecond, smoothed. */
  demand: number
  /** The calls that the last answer granted, and the calls that it left. */
  granted: number
  level: number
  /** When the last exchange and the last call were, in monotonic milliseconds. */
  exchangedAt: number
  calledAt: number
  isMoved: boolean
  isUrgent: boolean
}

/** The time between two exchanges of all leases that moved, in milliseconds. */
const LEASE_MS = 250
/** How much more than the demand is asked for, so that a lease lasts until the next answer. */
const RESERVE = 1.5
/** The part of a grant below which more is asked for at once. */
const LOW = 1 / 3
/** After how long without a call a lease is given back, in milliseconds. */
const IDLE = 1000
/** After how long without a call a key is forgotten, in milliseconds. */
const FORGOTTEN = 60_000
/** How many parts of what is left in a budget one process asks for: it has all of it soon, if no other wants it. */
const LEFT_PARTS = 2
/** How much the newest demand counts. */
const NEWEST = 0.5

/**
 * The rates of keys that several nodes share (C4.5). Each process holds calls that it has taken out of the shared
 * budget, and lets them in from memory: so a call never waits for the store. Four times a second it reports what it has
 * used, and takes out what it will need. A process that dies loses what it held: nobody gets more for it.
 *
 * As long as the store is out of reach, each process lets in its part of the rate.
 */
export class LeasedBuckets {
  readonly #leases = new Map<string, Lease>()
  readonly #most: number
  /** Processes that share the budgets. */
  #processes = 1
  #isAlone = false
  /** The part of a burst that all processes together may let in before they have asked: 0 to 1. */
  share: number
  #moved: Lease[] = []
  /** Whether a lease runs low, so that the next exchange should not wait. */
  isUrgent = false
  #sweep: Iterator<Lease> | undefined

  constructor(most: number, share: number) {
    this.#most = most
    this.share = share
  }

  get size(): number {
    return this.#leases.size
  }

  set processes(count: number) {
    this.#processes = Math.max(1, count)
  }

  /** As `Buckets.take`: the calls that are left, or minus the milliseconds until there may be one. */
  take(key: string, rate: BucketRate, now: number): number {
    const lease = this.#leases.get(key) ?? this.#open(key, rate, now)
    lease.rate = rate
    lease.calledAt = now
    lease.asked += 1
    if (!lease.isMoved) this.#move(lease)
    if (this.#isAlone) fillAlone(lease, this.#processes, now)
    if (lease.tokens >= ONE) {
      lease.tokens -= 1
      if (lease.tokens < lease.granted * LOW && lease.isUrgent) this.isUrgent = true
      return leftOf(lease, now)
    }
    if (lease.free >= ONE) {
      lease.free -= 1
      lease.owed += 1
      return leftOf(lease, now)
    }
    return waitOf(lease, now)
  }

  /** What `take` would answer. Takes nothing. */
  peek(key: string, rate: BucketRate, now: number): number {
    const lease = this.#leases.get(key)
    if (lease === undefined) return rate.burst - 1
    return lease.tokens >= ONE || lease.free >= ONE ? Math.max(0, leftOf(lease, now) - 1) : waitOf(lease, now)
  }

  /** What was used, and is asked for now, of all keys that moved. */
  uses(now: number): readonly BudgetUse[] {
    const moved = this.#moved
    this.#moved = []
    this.isUrgent = false
    return moved.map((lease) => this.#useOf(lease, now))
  }

  settle(grants: readonly BudgetGrant[], now: number): void {
    this.#isAlone = false
    for (const { key, granted, level } of grants) {
      const lease = this.#leases.get(key)
      if (lease === undefined) continue
      lease.isUrgent = granted > 0 && level >= ONE
      lease.tokens += granted
      lease.granted = granted
      lease.level = level
      lease.exchangedAt = now
      lease.free = level >= ONE ? this.#freeOf(lease.rate) : 0
    }
  }

  /** Calls that were let in are owed. Calls given back are lost: the store may have taken them, and would take them twice. */
  failed(uses: readonly BudgetUse[], now: number): void {
    for (const { key, spent } of uses) {
      const lease = this.#leases.get(key)
      if (lease === undefined || spent <= 0) continue
      lease.owed += spent
      if (!lease.isMoved) this.#move(lease)
    }
    this.goOnAlone(now)
  }

  /** From now on this process lets in its part of the rates, until the next answer. */
  goOnAlone(now: number): void {
    if (this.#isAlone) return
    for (const lease of this.#leases.values()) lease.exchangedAt = now
    this.#isAlone = true
  }

  /** Gives back what idle keys hold, and forgets them later. Looks at the next `count` keys. */
  sweep(count: number, now: number): void {
    for (let looked = 0; looked < count; looked++) {
      const lease = this.#nextSwept()
      if (lease === undefined) return
      const rested = now - lease.calledAt
      if (rested > IDLE && lease.tokens > 0 && !lease.isMoved) this.#move(lease)
      if (rested > FORGOTTEN && lease.tokens === 0 && lease.owed === 0) this.#leases.delete(lease.key)
    }
  }

  #nextSwept(): Lease | undefined {
    this.#sweep ??= this.#leases.values()
    const entry = this.#sweep.next()
    if (entry.done !== true) return entry.value
    this.#sweep = undefined
    return undefined
  }

  #useOf(lease: Lease, now: number): BudgetUse {
    const { key, rate } = lease
    const elapsed = Math.max(1, now - lease.exchangedAt)
    const latest = lease.asked / elapsed
    lease.demand = lease.demand === 0 ? latest : lease.demand * (1 - NEWEST) + latest * NEWEST
    lease.asked = 0
    lease.isMoved = false
    const isIdle = now - lease.calledAt > IDLE
    const back = isIdle ? lease.tokens : 0
    lease.tokens -= back
    const spent = lease.owed - back
    lease.owed = 0
    const want = isIdle ? 0 : this.#wantOf(lease)
    return { key, perMs: rate.perMs, burst: rate.burst, spent, want }
  }

  /** Each process asks for its part, and for some of what is left: otherwise the first one would get all of it. */
  #wantOf({ rate, demand, tokens, level }: Lease): number {
    const needed = Math.min(rate.burst, Math.max(1, demand * LEASE_MS * RESERVE)) - tokens
    const part = Math.max(1, (rate.perMs * LEASE_MS) / this.#processes)
    const some = (LEFT_PARTS * Math.max(0, level)) / Math.max(LEFT_PARTS, this.#processes)
    return Math.max(0, Math.ceil(Math.min(needed, part + some)))
  }

  #move(lease: Lease): void {
    lease.isMoved = true
    this.#moved.push(lease)
  }

  #freeOf({ burst }: BucketRate): number {
    return Math.max(1, Math.floor((burst * this.share) / this.#processes))
  }

  #open(key: string, rate: BucketRate, now: number): Lease {
    if (this.#leases.size >= this.#most) this.#makeRoom()
    const lease: Lease = {
      key,
      rate,
      tokens: 0,
      free: this.#freeOf(rate),
      owed: 0,
      asked: 0,
      demand: 0,
      granted: 0,
      level: rate.burst,
      exchangedAt: now,
      calledAt: now,
      isMoved: false,
      isUrgent: false,
    }
    // A new key asks at once: it may let in few calls before.
    this.isUrgent = true
    this.#leases.set(key, lease)
    return lease
  }

  /** The oldest of a few makes room. What it held is lost. */
  #makeRoom(): void {
    let oldest: Lease | undefined
    for (let looked = 0; looked < 8; looked++) {
      const lease = this.#nextSwept()
      if (lease !== undefined && (oldest === undefined || lease.calledAt < oldest.calledAt)) oldest = lease
    }
    if (oldest !== undefined) this.#leases.delete(oldest.key)
  }
}

/** Without the store: this process's part of the rate, for the time since it was last reckoned. */
function fillAlone(lease: Lease, processes: number, now: number): void {
  const { perMs, burst } = lease.rate
  const filled = lease.tokens + ((now - lease.exchangedAt) * perMs) / processes
  lease.tokens = Math.min(filled, Math.max(1, burst / processes))
  lease.exchangedAt = now
}

/** What all nodes may let in, as far as this one knows. */
function leftOf({ tokens, free, level, rate, exchangedAt }: Lease, now: number): number {
  const filled = Math.min(rate.burst, level + (now - exchangedAt) * rate.perMs)
  return Math.min(rate.burst, Math.max(0, Math.floor(tokens + Math.max(free, filled))))
}

/** Minus the milliseconds until the budget has a call again, 1 at least. */
const waitOf = ({ level, rate, exchangedAt }: Lease, now: number): number =>
  Math.min(-1, (Math.min(level, ONE - 1) - 1) / rate.perMs + (now - exchangedAt))

/** The time between two exchanges if a lease runs low, in milliseconds. */
const URGENT_MS = 20
/** After how long without an answer this process lets in its part of the rates, in milliseconds. */
const PATIENCE = 300
const ID_BYTES = 9
/** By how much intervals differ: so no process is always the first one. */
const SPREAD = 0.3
/** Prefix of the keys of clients. */
const CLIENT = 'c:'

type Addresses = Parameters<OpenSharedRates>[0]['addresses']

/** Tells the shared budgets what this process has let in, and takes out what it will need. One request at a time. */
export class BudgetExchange {
  readonly #budgets: Budgets
  readonly #clients: LeasedBuckets
  readonly #addresses: Addresses
  readonly #now: () => number
  readonly #who = newSecret(ID_BYTES)
  #number = 0
  #isUnderWay = false
  #exchangedAt = Number.NEGATIVE_INFINITY
  #processes = 1
  #interval = LEASE_MS

  /**
   * @param addresses each process counts addresses for itself, because anybody can use many; those that call much are shared
   * @param now Clock.monotonic()
   */
  constructor(budgets: Budgets, clients: LeasedBuckets, addresses: Addresses, now: () => number) {
    this.#budgets = budgets
    this.#clients = clients
    this.#addresses = addresses
    this.#now = now
  }

  set processes(count: number) {
    this.#processes = Math.max(1, count)
    this.#clients.processes = count
  }

  /** To be called often: begins an exchange when one is due. Never throws. */
  tick(): void {
    const since = this.#now() - this.#exchangedAt
    if (this.#isUnderWay || since < (this.#clients.isUrgent ? URGENT_MS : this.#interval)) return
    this.#exchangedAt = this.#now()
    this.#interval = LEASE_MS * (1 + SPREAD * (Math.random() - 0.5))
    void this.#exchange()
  }

  async #exchange(): Promise<void> {
    const ofClients = this.#clients.uses(this.#now())
    const uses = [...ofClients.map((use) => named(CLIENT, use)), ...this.#usesOfAddresses()]
    if (uses.length === 0) return
    this.#isUnderWay = true
    const late = setTimeout(() => this.#clients.goOnAlone(this.#now()), PATIENCE)
    late.unref()
    let done = 0
    try {
      for (; done < uses.length; done += MOST_USES) {
        const part = uses.slice(done, done + MOST_USES)
        const grants = await this.#budgets.exchange(this.#who, (this.#number += 1), part)
        this.#settle(grants)
        if (grants.length < part.length)
          this.#clients.failed(unanswered(ofClients.slice(done, done + MOST_USES), grants), this.#now())
      }
    } catch {
      // The change feed reports that the store is out of reach. Uses that the store has taken must not be sent again.
      this.#clients.failed(ofClients.slice(done), this.#now())
    } finally {
      clearTimeout(late)
      this.#isUnderWay = false
    }
  }

  /** What addresses have used beyond this process's part of their rate. */
  #usesOfAddresses(): readonly BudgetUse[] {
    const part = LEASE_MS / this.#processes
    return this.#addresses
      .takeUsage((rate) => rate.perMs * part)
      .map(({ key, rate, count }) => ({
        key: OF_ADDRESS + key,
        perMs: rate.perMs,
        burst: rate.burst,
        spent: count,
        want: 0,
      }))
  }

  #settle(grants: readonly BudgetGrant[]): void {
    this.#clients.settle(
      grants.filter(({ key }) => key.startsWith(CLIENT)).map((grant) => unnamed(grant)),
      this.#now(),
    )
    for (const { key, level } of grants)
      if (key.startsWith(OF_ADDRESS)) this.#addresses.limitTo(key.slice(OF_ADDRESS.length), level)
  }
}

function unanswered(uses: readonly BudgetUse[], grants: readonly BudgetGrant[]): readonly BudgetUse[] {
  const answered = new Set(grants.map(({ key }) => key))
  return uses.filter(({ key }) => !answered.has(CLIENT + key))
}

const named = (prefix: string, use: BudgetUse): BudgetUse => ({ ...use, key: prefix + use.key })
const unnamed = (grant: BudgetGrant): BudgetGrant => ({ ...grant, key: grant.key.slice(CLIENT.length) })

/** @param budgets those of the store */
export const openRatesOf =
  (budgets: Budgets): OpenSharedRates =>
  ({ most, share, addresses, now }) => {
    const clients = new LeasedBuckets(most, share)
    return { clients, exchange: new BudgetExchange(budgets, clients, addresses, now) }
  }
