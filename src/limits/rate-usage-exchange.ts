import type { RateUsage, Tallies } from '../contracts/admission.ts'
import { EXCHANGE_MS } from './load-guard.ts'

/** One worker's end of the board. */
export interface RateUsageLink {
  /** The worker has let in so much. */
  readonly report: (spending: RateUsage) => void
  /** The worker is gone: what it let in stays counted with the others. */
  readonly leave: () => void
}

type Ledger = Map<string, number>

interface Member {
  readonly send: (spending: RateUsage) => void
  /** What the others have let in since this one was last told. */
  readonly clients: Ledger
  readonly addresses: Ledger
}

/**
 * The supervisor's part of rates that several workers share: collects what each let in, and tells every other one,
 * in one message each EXCHANGE_MS at most.
 */
export class RateUsageExchange {
  readonly #members = new Set<Member>()
  #timer: NodeJS.Timeout | undefined

  /** @param send takes a message to the worker; must not throw */
  join(send: (spending: RateUsage) => void): RateUsageLink {
    const member: Member = { send, clients: new Map(), addresses: new Map() }
    this.#members.add(member)
    return {
      report: (spending) => this.#enter(member, spending),
      leave: () => this.#members.delete(member),
    }
  }

  start(): void {
    this.#timer ??= setInterval(() => this.tick(), EXCHANGE_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** What is due every EXCHANGE_MS: tells who has something to hear. */
  tick(): void {
    for (const { send, clients, addresses } of this.#members) {
      if (clients.size + addresses.size === 0) continue
      send({ clients: take(clients), addresses: take(addresses) })
    }
  }

  #enter(from: Member, spending: RateUsage): void {
    for (const member of this.#members) {
      if (member === from) continue
      add(member.clients, spending.clients)
      add(member.addresses, spending.addresses)
    }
  }
}

function add(ledger: Ledger, { keys, counts }: Tallies): void {
  keys.forEach((key, at) => ledger.set(key, (ledger.get(key) ?? 0) + (counts[at] ?? 0)))
}

function take(ledger: Ledger): Tallies {
  const tallies = { keys: [...ledger.keys()], counts: [...ledger.values()] }
  ledger.clear()
  return tallies
}
