import type {
  Admission,
  AdmissionPreview,
  BackendPreview,
  EarlyAdmission,
  EarlyPreview,
  RateLeft,
  RateUsage,
  Release,
  Tallies,
  Use,
  Verdict,
} from '../contracts/admission.ts'
import type { Budgets } from '../contracts/budgets.ts'
import type { Exchange } from '../contracts/exchange.ts'
import type { Principal } from '../contracts/principal.ts'
import type { Recorder } from '../contracts/recorder.ts'
import { networkOf } from '../http/addresses.ts'
import type { Clock } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import { Buckets, type Rate, rateHeaders } from './buckets.ts'
import type { ClientLimits, CompiledLoad } from './schema.ts'
import { BudgetExchange } from './budget-exchange.ts'
import { BackendInFlight, InFlight } from './in-flight.ts'
import { LeasedBuckets } from './leased-buckets.ts'
import { Shedding, TICK_MS } from './shedding.ts'

export interface LoadGuardParts {
  readonly clock: Clock
  /** Processes that share the rates, this one included. */
  readonly workers: number
  /** Sends to the other workers, through the supervisor. Must not throw. Not called where there is one worker. */
  readonly sendUsage: (usage: RateUsage) => void
  readonly note: Recorder['note']
  /** Of rates that several nodes share. Then each process has a part of them of its own, and `sendUsage` is not called. */
  readonly budgets?: Budgets | undefined
}

/** How often workers send each other what they let in; README.md says what that means for a rate. */
export const EXCHANGE_MS = 100
const TICKS_PER_EXCHANGE = EXCHANGE_MS / TICK_MS

/** Most clients, and most addresses, that are remembered: some 200 bytes each. */
const MOST_KEYS = 50_000
/** Entries examined per tick: a full table takes five seconds. */
const SWEPT_PER_TICK = 500

/** Seconds that clients are told to wait where the time cannot be computed. */
const RETRY_AFTER = { inFlight: 1, overloaded: 5 }

/**
 * Limits what this process lets in: rates and calls in flight of clients (C4.5), calls in flight of backends, rates of
 * addresses, and the load of the event loop. A reload changes its limits; what was counted stays.
 */
export class LoadGuard implements Admission, EarlyAdmission {
  readonly #parts: LoadGuardParts
  readonly #clients: Buckets | LeasedBuckets
  readonly #exchange: BudgetExchange | undefined
  readonly #addresses: Buckets
  readonly #clientCalls = new InFlight()
  /** By name: those of the configuration, few and known. */
  readonly #backendCalls = new Map<string, BackendInFlight>()
  readonly #shedding = new Shedding()
  #load: CompiledLoad
  #ticks = 0
  #timer: NodeJS.Timeout | undefined

  constructor(load: CompiledLoad, parts: LoadGuardParts) {
    const { workers, budgets } = parts
    const shared = workers > 1 || budgets !== undefined
    this.#parts = parts
    this.#addresses = new Buckets(MOST_KEYS, shared)
    const leased = budgets && new LeasedBuckets(MOST_KEYS, load.share)
    this.#clients = leased ?? new Buckets(MOST_KEYS, shared)
    this.#exchange =
      leased &&
      new BudgetExchange({ budgets, clients: leased, addresses: this.#addresses, now: () => this.#now() })
    this.#load = load
    this.configure(load)
  }

  /** New limits, which apply from the next call on. */
  configure(load: CompiledLoad): void {
    this.#load = load
    this.#shedding.threshold = load.sheddingDelay
    if (this.#clients instanceof LeasedBuckets) this.#clients.share = load.share
  }

  /** Processes that are alive on all nodes that share the rates, this one included. */
  set processes(count: number) {
    if (this.#exchange !== undefined) this.#exchange.processes = count
  }

  /** Begins to measure, and to send to the other workers. */
  start(): void {
    this.#timer ??= setInterval(() => this.tick(), TICK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Whether new calls are refused at the moment because the event loop is late. */
  get isShedding(): boolean {
    return this.#shedding.share > 0
  }

  // Called for each request

  refuse(clientAddress: string): Fault | undefined {
    const { addresses } = this.#load
    if (addresses !== undefined) {
      const left = this.#addresses.take(networkOf(clientAddress), addresses, this.#now())
      if (left < 0) return addressLimited(left)
    }
    if (this.#shedding.share === 0 || !this.#shedding.refuses()) return undefined
    return overloaded()
  }

  admit({ clientKey: client }: Principal, exchange: Exchange): Verdict | undefined {
    const limits = this.#limitsOf(client)
    const { rate } = limits
    const left = rate === undefined ? 0 : this.#clients.take(client, rate, this.#now())
    const headers = rate === undefined ? undefined : rateHeaders(rate, left)
    if (left < 0) return { headers, refusal: rateLimited(left) }
    if (!this.#clientCalls.enter(client, limits.inFlight)) return { headers, refusal: tooManyCalls() }
    exchange.onEnd(() => this.#clientCalls.leave(client))
    return headers === undefined ? undefined : { headers, refusal: undefined }
  }

  occupy(backend: string, client?: string): Release {
    const { backends, backendsByName, severalBackends } = this.#load
    const calls = this.#callsOf(backend)
    if (calls.total >= (backendsByName.get(backend) ?? backends)) throw refusal('backend_busy', backend)
    const counted = severalBackends ? client : undefined
    if (counted !== undefined && !calls.byClient.enter(counted, this.#limitsOf(counted).perBackend))
      throw refusal('too_many_backend_calls', backend)
    calls.total += 1
    let inFlight = true
    return () => {
      if (!inFlight) return
      inFlight = false
      calls.total -= 1
      if (counted !== undefined) calls.byClient.leave(counted)
    }
  }

  // Called to explain a call: nothing is counted

  previewAddress(clientAddress: string): EarlyPreview {
    const { addresses } = this.#load
    const left =
      addresses === undefined ? 0 : this.#addresses.peek(networkOf(clientAddress), addresses, this.#now())
    const { share: shed } = this.#shedding
    const shedNow = shed > 0 && this.#shedding.wouldRefuse()
    return {
      refusal: left < 0 ? addressLimited(left) : shedNow ? overloaded() : undefined,
      rate: addresses && rateLeft(addresses, left),
      shed,
    }
  }

  preview({ clientKey: client }: Principal): AdmissionPreview {
    const { rate, inFlight: most } = this.#limitsOf(client)
    const left = rate === undefined ? 0 : this.#clients.peek(client, rate, this.#now())
    const headers = rate === undefined ? undefined : rateHeaders(rate, left)
    const now = this.#clientCalls.count(client)
    const refusal = left < 0 ? rateLimited(left) : now >= most ? tooManyCalls() : undefined
    return {
      verdict: headers === undefined && refusal === undefined ? undefined : { headers, refusal },
      rate: rate && rateLeft(rate, left),
      inFlight: useOf(now, most),
    }
  }

  previewBackend(backend: string, client?: string): BackendPreview {
    const { backends, backendsByName, severalBackends } = this.#load
    const calls = this.#backendCalls.get(backend)
    const most = backendsByName.get(backend) ?? backends
    const inFlight = useOf(calls?.total ?? 0, most)
    const mine = client === undefined ? 0 : (calls?.byClient.count(client) ?? 0)
    const share = client === undefined || !severalBackends ? undefined : this.#limitsOf(client).perBackend
    const code =
      inFlight.now >= most
        ? 'backend_busy'
        : share !== undefined && mine >= share
          ? 'too_many_backend_calls'
          : undefined
    return {
      refusal: code && refusal(code, backend),
      inFlight,
      ofClient: share === undefined ? undefined : useOf(mine, share),
    }
  }

  #callsOf(backend: string): BackendInFlight {
    const known = this.#backendCalls.get(backend)
    if (known !== undefined) return known
    const calls = new BackendInFlight()
    this.#backendCalls.set(backend, calls)
    return calls
  }

  // Called between requests

  /** Counts the calls that other workers let in. */
  applyRemoteUsage({ clients, addresses }: RateUsage): void {
    const now = this.#now()
    forEach(clients, (client, count) => {
      const { rate } = this.#limitsOf(client)
      if (rate !== undefined && this.#clients instanceof Buckets)
        this.#clients.charge(client, rate, count, now)
    })
    const { addresses: rate } = this.#load
    if (rate !== undefined)
      forEach(addresses, (network, count) => this.#addresses.charge(network, rate, count, now))
  }

  /** To be called every TICK_MS: measures the loop's delay, forgets whose bucket is full, sends to the other workers. */
  tick(): void {
    const now = this.#now()
    this.#measure(now)
    this.#clients.sweep(SWEPT_PER_TICK, now)
    this.#addresses.sweep(SWEPT_PER_TICK, now)
    this.#ticks += 1
    if (this.#exchange !== undefined) this.#exchange.tick()
    else if (this.#parts.workers > 1 && this.#ticks % TICKS_PER_EXCHANGE === 0) this.#sendUsage()
  }

  #measure(now: number): void {
    const before = this.#shedding.share
    this.#shedding.tick(now)
    const { share } = this.#shedding
    if (before === 0 && share > 0)
      this.#parts.note('warn', 'shedding_started', { threshold: this.#shedding.threshold })
    if (before > 0 && share === 0) this.#parts.note('info', 'shedding_ended')
  }

  #sendUsage(): void {
    if (!(this.#clients instanceof Buckets)) return
    const clients = this.#clients.takeUnreported(() => 0)
    // Anybody can use many addresses: only those above a worker's part of their rate are sent.
    const part = EXCHANGE_MS / this.#parts.workers
    const addresses = this.#addresses.takeUnreported((rate: Rate) => rate.perMs * part)
    if (clients.keys.length + addresses.keys.length > 0) this.#parts.sendUsage({ clients, addresses })
  }

  #limitsOf(client: string): ClientLimits {
    const { clients, clientsById } = this.#load
    return clientsById.size === 0 ? clients : (clientsById.get(client) ?? clients)
  }

  #now(): number {
    return this.#parts.clock.monotonic()
  }
}

const refusal = (code: 'backend_busy' | 'too_many_backend_calls', backend: string): Fault =>
  new Fault(code, { retryAfter: RETRY_AFTER.inFlight, detail: `backend ${backend}` })

const addressLimited = (left: number): Fault =>
  new Fault('address_rate_limited', { retryAfter: -left / 1000 })

const overloaded = (): Fault =>
  new Fault('overloaded', { retryAfter: RETRY_AFTER.overloaded, detail: 'the event loop is late' })

const rateLimited = (left: number): Fault => new Fault('rate_limited', { retryAfter: -left / 1000 })

const tooManyCalls = (): Fault => new Fault('too_many_calls', { retryAfter: RETRY_AFTER.inFlight })

/** @param left what `Buckets.peek` answered: what is left behind the next call */
const rateLeft = ({ requests, perMs, burst }: Rate, left: number): RateLeft => ({
  requests,
  per: Math.round(requests / perMs / 1000),
  burst,
  left: left < 0 ? 0 : Math.floor(left) + 1,
})

const useOf = (now: number, most: number): Use => ({
  now,
  most: Number.isFinite(most) ? most : undefined,
})

function forEach({ keys, counts }: Tallies, act: (key: string, count: number) => void): void {
  keys.forEach((key, at) => act(key, counts[at] ?? 0))
}
