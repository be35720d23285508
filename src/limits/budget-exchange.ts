import {
  type BudgetGrant,
  type BudgetUse,
  type Budgets,
  MOST_REPORTS,
  OF_ADDRESS,
} from '../contracts/budgets.ts'
import { newSecret } from '../kernel/ids.ts'
import type { Buckets } from './buckets.ts'
import { LEASE_MS, type LeasedBuckets } from './leased-buckets.ts'

export interface BudgetExchangeParts {
  readonly budgets: Budgets
  readonly clients: LeasedBuckets
  /** Each process counts addresses for itself, since anybody can use many: it tells those that call much. */
  readonly addresses: Buckets
  /** Clock.monotonic(). */
  readonly now: () => number
}

/** Milliseconds between two exchanges if a lease runs low. */
const URGENT_MS = 20
/** Milliseconds without an answer, after which this process goes on with its part of the rates. */
const PATIENCE = 300
const ID_BYTES = 9
/** By how much intervals differ: so no process is always the first one. */
const SPREAD = 0.3
/** Clients and addresses are told apart by the first two characters of their keys. */
const CLIENT = 'c:'

/** Tells the shared budgets what this process has let in, and takes out what it will need. One request at a time. */
export class BudgetExchange {
  readonly #parts: BudgetExchangeParts
  readonly #who = newSecret(ID_BYTES)
  #number = 0
  #isUnderWay = false
  #exchangedAt = Number.NEGATIVE_INFINITY
  #processes = 1
  #interval = LEASE_MS

  constructor(parts: BudgetExchangeParts) {
    this.#parts = parts
  }

  /** Processes that are alive on all nodes, this one included. */
  set processes(count: number) {
    this.#processes = Math.max(1, count)
    this.#parts.clients.processes = count
  }

  /** To be called often: begins an exchange when one is due. Never throws. */
  tick(): void {
    const { clients, now } = this.#parts
    const since = now() - this.#exchangedAt
    if (this.#isUnderWay || since < (clients.isUrgent ? URGENT_MS : this.#interval)) return
    this.#exchangedAt = now()
    this.#interval = LEASE_MS * (1 + SPREAD * (Math.random() - 0.5))
    void this.#exchange()
  }

  async #exchange(): Promise<void> {
    const { budgets, clients, now } = this.#parts
    const ofClients = clients.reports(now())
    const reports = [...ofClients.map((report) => named(CLIENT, report)), ...this.#addresses()]
    if (reports.length === 0) return
    this.#isUnderWay = true
    const late = setTimeout(() => clients.goOnAlone(now()), PATIENCE)
    late.unref()
    let done = 0
    try {
      for (; done < reports.length; done += MOST_REPORTS) {
        const part = reports.slice(done, done + MOST_REPORTS)
        const grants = await budgets.exchange(this.#who, (this.#number += 1), part)
        this.#settle(grants)
        if (grants.length < part.length)
          clients.failed(unanswered(ofClients.slice(done, done + MOST_REPORTS), grants), now())
      }
    } catch {
      // The change feed tells operators that the store is out of reach. What it has taken must not be told again.
      clients.failed(ofClients.slice(done), now())
    } finally {
      clearTimeout(late)
      this.#isUnderWay = false
    }
  }

  /** What addresses have used beyond this process's part of their rate. */
  #addresses(): readonly BudgetUse[] {
    const part = LEASE_MS / this.#processes
    return this.#parts.addresses
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
    const { clients, addresses, now } = this.#parts
    clients.settle(
      grants.filter(({ key }) => key.startsWith(CLIENT)).map((grant) => unnamed(grant)),
      now(),
    )
    for (const { key, level } of grants)
      if (key.startsWith(OF_ADDRESS)) addresses.limitTo(key.slice(OF_ADDRESS.length), level)
  }
}

/** Of reports of clients those that must be told again. */
function unanswered(reports: readonly BudgetUse[], grants: readonly BudgetGrant[]): readonly BudgetUse[] {
  const answered = new Set(grants.map(({ key }) => key))
  return reports.filter(({ key }) => !answered.has(CLIENT + key))
}

const named = (prefix: string, report: BudgetUse): BudgetUse => ({
  ...report,
  key: prefix + report.key,
})
const unnamed = (grant: BudgetGrant): BudgetGrant => ({ ...grant, key: grant.key.slice(CLIENT.length) })
