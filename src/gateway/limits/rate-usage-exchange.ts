import type { RateUsage, Tallies } from '../../base/contracts/calls/admission.ts'
import { EXCHANGE_MS } from './load-guard.ts'

/** One worker's link to the others. */
interface RateUsageLink {
  /** The worker has let in so many calls. */
  readonly report: (usage: RateUsage) => void
  /** The worker has ended. The others still count what it let in. */
  readonly leave: () => void
}

type Counts = Map<string, number>

interface Member {
  readonly send: (usage: RateUsage) => void
  /** What the others have let in since the last message to this one. */
  readonly clients: Counts
  readonly addresses: Counts
}

/** In the supervisor: adds up what each worker let in. Sends each worker one message in EXCHANGE_MS at most. */
export class RateUsageExchange {
  readonly #members = new Set<Member>()
  #timer: NodeJS.Timeout | undefined

  /** @param send sends a message to the worker; must not throw */
  join(send: (usage: RateUsage) => void): RateUsageLink {
    const member: Member = { send, clients: new Map(), addresses: new Map() }
    this.#members.add(member)
    return {
      report: (usage) => this.#add(member, usage),
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

  /** To be called every EXCHANGE_MS: sends to each worker what it does not know yet. */
  tick(): void {
    for (const { send, clients, addresses } of this.#members) {
      if (clients.size + addresses.size === 0) continue
      send({ clients: take(clients), addresses: take(addresses) })
    }
  }

  #add(from: Member, usage: RateUsage): void {
    for (const member of this.#members) {
      if (member === from) continue
      add(member.clients, usage.clients)
      add(member.addresses, usage.addresses)
    }
  }
}

function add(sums: Counts, { keys, counts }: Tallies): void {
  keys.forEach((key, at) => sums.set(key, (sums.get(key) ?? 0) + (counts[at] ?? 0)))
}

function take(sums: Counts): Tallies {
  const tallies = { keys: [...sums.keys()], counts: [...sums.values()] }
  sums.clear()
  return tallies
}
