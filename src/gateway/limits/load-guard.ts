import type {
  Admission,
  AdmissionPreview,
  BackendPreview,
  EarlyAdmission,
  EarlyPreview,
  OpenSharedRates,
  RateLeft,
  RateUsage,
  Release,
  SharedRates,
  Tallies,
  Use,
  AdmissionVerdict,
} from '../../base/contracts/calls/admission.ts'
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import type { CheckDescription, CheckResult } from '../../base/contracts/calls/explanation.ts'
import type { Principal } from '../../base/contracts/people/principal.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import { networkOf } from '../../base/http/head/addresses.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { Buckets, type Rate, rateHeaders } from './buckets.ts'
import type { ClientLimits, CompiledLoad } from './schema.ts'

interface LoadGuardParts {
  readonly clock: Clock
  /** How many processes share the rates, this one included. */
  readonly workers: number
  /** Sends to the other workers, through the supervisor. Must not throw. Not called where there is one worker. */
  readonly sendUsage: (usage: RateUsage) => void
  readonly note: Recorder['note']
  /**
   * Opens the rates that several nodes share. Then each process has a part of them of its own, and `sendUsage` is not
   * called.
   */
  readonly openRates?: OpenSharedRates | undefined
}

/** How often `Shedding.tick` is to be called, in milliseconds. If it is called later, the difference is the loop's delay. */
export const TICK_MS = 50
/** How often workers send each other what they let in; README.md says what that means for a rate. */
export const EXCHANGE_MS = 100
const TICKS_PER_EXCHANGE = EXCHANGE_MS / TICK_MS

/** Most clients, and most addresses, that are remembered: some 200 bytes each. */
const MOST_KEYS = 50_000
/** Entries examined per tick: a full table takes five seconds. */
const SWEPT_PER_TICK = 500

/** The value of `Retry-After` where the time cannot be computed, in seconds. */
const RETRY_AFTER = { inFlight: 1, overloaded: 5 }

/** Limits what this process lets in (C4.5). A reload changes its limits; what was counted stays. */
export class LoadGuard implements Admission, EarlyAdmission {
  readonly #parts: LoadGuardParts
  readonly #clients: Buckets | SharedRates['clients']
  readonly #shared: SharedRates | undefined
  readonly #addresses: Buckets
  readonly #clientCalls = new InFlight()
  /** Calls in flight by the backend's name: those of the configuration, few and known. */
  readonly #backendCalls = new Map<string, BackendInFlight>()
  readonly #shedding = new Shedding()
  #load: CompiledLoad
  #ticks = 0
  #timer: NodeJS.Timeout | undefined

  constructor(load: CompiledLoad, parts: LoadGuardParts) {
    const { workers, openRates } = parts
    const shared = workers > 1 || openRates !== undefined
    this.#parts = parts
    const addresses = new Buckets(MOST_KEYS, shared)
    this.#addresses = addresses
    this.#shared = openRates?.({ most: MOST_KEYS, share: load.share, addresses, now: () => this.#now() })
    this.#clients = this.#shared?.clients ?? new Buckets(MOST_KEYS, shared)
    this.#load = load
    this.configure(load)
  }

  configure(load: CompiledLoad): void {
    this.#load = load
    this.#shedding.threshold = load.sheddingDelay
    if (this.#shared !== undefined) this.#shared.clients.share = load.share
  }

  /** Processes that are alive on all nodes that share the rates, this one included. */
  set processes(count: number) {
    if (this.#shared !== undefined) this.#shared.exchange.processes = count
  }

  start(): void {
    this.#timer ??= setInterval(() => this.tick(), TICK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

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

  admit({ clientKey: client }: Principal, exchange: Exchange): AdmissionVerdict | undefined {
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

  /** To be called every TICK_MS: measures the loop's delay, forgets keys whose bucket is full, sends to the other workers. */
  tick(): void {
    const now = this.#now()
    this.#measure(now)
    this.#clients.sweep(SWEPT_PER_TICK, now)
    this.#addresses.sweep(SWEPT_PER_TICK, now)
    this.#ticks += 1
    if (this.#shared !== undefined) this.#shared.exchange.tick()
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
    const addresses = this.#addresses.takeUnreported((rate) => rate.perMs * part)
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

/** @param left the answer of `Buckets.peek`: what is left after the next call */
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

export const rateText = ({ left, burst, requests, per }: RateLeft): string =>
  `${left} of ${burst} calls are left at once (${requests} in ${per} s)`

const useText = ({ now, most }: Use, of: string): string =>
  most === undefined ? `${now} ${of}` : `${now} of ${most} ${of}`

/** Describes the result of C4.5. @param preview undefined if it is not known who calls */
export function explainRate(
  client: string | undefined,
  preview: AdmissionPreview | undefined,
  { fault }: CheckResult,
): CheckDescription {
  if (preview === undefined) return { facts: {}, words: 'Nobody is known to call, so no rate is known.' }
  const { rate, inFlight } = preview
  const left = rate === undefined ? 'has no rate' : rateText(rate)
  return {
    facts: { client, rate, inFlight, retryAfter: fault?.facts.retryAfter },
    words: `Client ${client}: ${left}, ${useText(inFlight, 'calls in flight')} in this process.`,
  }
}

/** Describes the result of the rest of C4.5. @param preview undefined if the backend has no limit */
export function explainBackend(
  backend: string | undefined,
  preview: BackendPreview | undefined,
): CheckDescription {
  if (backend === undefined) return { facts: {}, words: 'The backend is not known without the action.' }
  if (preview === undefined) return { facts: { backend }, words: `Backend ${backend} has no limit.` }
  const { inFlight, ofClient } = preview
  const share = ofClient === undefined ? '' : `, ${useText(ofClient, 'of the client')}`
  return {
    facts: { backend, inFlight, ofClient },
    words: `Backend ${backend}: ${useText(inFlight, 'calls in flight')}${share}, in this process.`,
  }
}

function forEach({ keys, counts }: Tallies, act: (key: string, count: number) => void): void {
  keys.forEach((key, at) => act(key, counts[at] ?? 0))
}

/** The median of so many delays counts, so that one long pause decides nothing. */
const KEPT = 7
/** The time between two steps in milliseconds, so that one can be seen to work before the next. */
const STEP_MS = 500
const MORE = 0.25
const LESS = 0.05

/**
 * Refuses a share of the new calls while the event loop is late, so that those let in are answered in time. The share
 * grows by quarters while the median delay is over the threshold, and shrinks by twentieths once it is under half of
 * it: it settles where the loop keeps up, and does not swing between all and nothing.
 */
export class Shedding {
  readonly #delays = new Float64Array(KEPT)
  #next = 0
  #last: number | undefined
  #steppedAt = -Infinity
  /** The share of calls that are refused: 0 to 1. Only `tick` changes it. */
  share = 0
  /** Part of a call that is still to be refused. */
  #due = 0
  /** The delay above which calls are refused, in milliseconds; 0 refuses none. */
  threshold = 0

  /** Measures, and steps if it is time. @param now milliseconds, monotonic */
  tick(now: number): void {
    if (this.#last !== undefined) this.#measure(Math.max(0, now - this.#last - TICK_MS))
    this.#last = now
    if (this.threshold === 0) this.share = 0
    else if (now - this.#steppedAt >= STEP_MS) this.#step(now)
  }

  wouldRefuse(): boolean {
    return this.#due + this.share >= 1
  }

  /** Whether this call is one to refuse. Spread evenly: of a share of a quarter every fourth. */
  refuses(): boolean {
    this.#due += this.share
    if (this.#due < 1) return false
    this.#due -= 1
    return true
  }

  #measure(delay: number): void {
    this.#delays[this.#next] = delay
    this.#next = (this.#next + 1) % KEPT
  }

  #step(now: number): void {
    const delay = this.#delays.toSorted()[(KEPT - 1) / 2] ?? 0
    if (delay > this.threshold) this.share = Math.min(1, this.share + MORE)
    else if (delay < this.threshold / 2) this.share = Math.max(0, this.share - LESS)
    else return
    // Twentieths do not add up in binary: the remainder of the last one counts as 0.
    if (this.share < LESS / 2) this.share = 0
    this.#steppedAt = now
  }
}

/** Calls in flight by key. A key without calls takes no memory. */
class InFlight {
  readonly #counts = new Map<string, number>()

  /** Counts one more call if there are fewer than `cap`; answers whether. Then `leave` must be called once. */
  enter(key: string, cap: number): boolean {
    const count = this.#counts.get(key) ?? 0
    if (count >= cap) return false
    this.#counts.set(key, count + 1)
    return true
  }

  count(key: string): number {
    return this.#counts.get(key) ?? 0
  }

  leave(key: string): void {
    const count = this.#counts.get(key) ?? 0
    if (count > 1) this.#counts.set(key, count - 1)
    else this.#counts.delete(key)
  }
}

class BackendInFlight {
  total = 0
  /** Counted only if there are several backends: one of them may take a part of a client's calls, and no more. */
  readonly byClient = new InFlight()
}
