/** Serves in one process: doors, the public listener, and the configurations that calls are decided by. */
import type { KeptTrail } from '../../operate/hooks/kept-trail.ts'
import type { RateUsage } from '../../base/contracts/calls/admission.ts'
import type { TestTokenAnswer, TestTokenRequest } from '../../base/contracts/people/claimed-callers.ts'
import type { Door } from '../../base/contracts/calls/exchange.ts'
import type { DescribedCall, Explanation } from '../../base/contracts/calls/explanation.ts'
import type { FoundPerson } from '../../base/contracts/people/people.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { FeedReading, Store, View } from '../../base/contracts/records/store.ts'
import { CLIENT } from '../../identity/directory/records/stored-directory.ts'
import { takesUpgrade } from '../../gateway/decide/checks.ts'
import { apiDoor } from '../../gateway/decide/door.ts'
import { explainCall } from '../../gateway/explain/explain.ts'
import { descriptionDoor, type ServedDescription } from '../../gateway/openapi/door.ts'
import type { ReadyDocument } from '../../base/http/head/entity-tag.ts'
import { answerTestToken } from '../../identity/claimed-callers.ts'
import { type Identity, identityDoor } from '../../identity/identity.ts'
import { after } from '../../base/kernel/clock.ts'
import type { RecalledCall, WorkerMessages, WorkerPool } from '../../base/contracts/processes/worker-pool.ts'
import type { ConnectionLimit } from '../../gateway/server/connection-limit.ts'
import type { PublicListener } from '../../gateway/server/public-listener.ts'
import { serviceUrls, type ServiceUrls } from '../../gateway/server/schema.ts'
import { type Configuration, configuredSwitches } from '../../operate/settings/configuration.ts'
import { type Condition, HEALTHY, mergeConditions } from '../../base/kernel/health.ts'
import { PastCalls } from '../../operate/watch/past-calls.ts'
import type { RelayRecorder } from '../../operate/watch/recorders.ts'
import type { Service } from './compile-service.ts'
import { loadOf, type WorkerDependencies } from './dependencies.ts'
import { explainPartsOf, recallCall } from './explain.ts'
import { compileGeneration, conditionOf, type Generation, readProcess } from './generation.ts'
import { digestOfHoldings, servedHoldings } from '../parts/holdings-record.ts'
import { type ClosableResource, closablesOf, closeAll, openParts, type Parts } from '../parts/parts.ts'
import type { GaugeReading } from '../../base/contracts/processes/reports.ts'

/** Milliseconds between two checks whether a replaced configuration still has calls in flight. */
const RETIRE_MS = 1000

const FLUSH_MS = 500

interface ServingParts {
  readonly dependencies: WorkerDependencies
  readonly relay: RelayRecorder
  readonly listener: PublicListener
  readonly connectionLimit: ConnectionLimit
  readonly reports: WorkerMessages
  /** The part of the trail that is this process's own. */
  readonly trail: KeptTrail | undefined
}

/** A worker whose parts are open: it serves one configuration after another until it is closed. */
export class ServingWorker implements WorkerPool<Configuration> {
  readonly urls: ServiceUrls
  readonly port: number
  readonly dependencies: WorkerDependencies
  readonly recorder: Recorder
  readonly #fixtures: ServingParts
  readonly #flusher: NodeJS.Timeout
  /** Outlives configurations, because a call may be asked about after a reload. */
  readonly #past: PastCalls
  #current: Generation
  #prepared: Generation | undefined
  #closed: Promise<number> | undefined
  /** Changes with each order, so that a long `prepare` notices that it was aborted. */
  #order = 0
  /** Replaced configurations on which calls may still be in flight. */
  readonly #retiring = new Set<Generation>()

  constructor(parts: Parts, fixtures: ServingParts) {
    const { dependencies, relay, listener } = fixtures
    this.#fixtures = fixtures
    this.dependencies = dependencies
    this.#past = new PastCalls(dependencies.clock)
    this.recorder = relay
    this.port = listener.port
    this.urls = serviceUrls(parts.configuration.server, listener.port)
    this.#current = this.#compile(parts)
    this.#activate(this.#current)
    dependencies.admission.start()
    dependencies.processes.changed = () => this.#limit(this.#current.parts.configuration)
    this.flush()
    this.#flusher = setInterval(() => this.flush(), FLUSH_MS).unref()
  }

  condition(): Condition {
    return mergeConditions([
      conditionOf(this.#current.parts, this.dependencies),
      this.#fixtures.trail?.condition() ?? HEALTHY,
      this.#fixtures.connectionLimit.condition(),
    ])
  }

  get holdingsDigest(): string {
    return openedBy(this.#current.parts)
  }

  /** The identity part of the configuration in force; undefined in a sidecar. */
  get identity(): Identity | undefined {
    return this.#current.service.identity
  }

  /** The OpenAPI document of the configuration in force; undefined where there is none. */
  get document(): ReadyDocument | undefined {
    return this.#current.service.document
  }

  async prepare(configuration: Configuration): Promise<string> {
    await this.abort()
    const order = this.#order
    const prepared = this.#compile(await openParts(configuration, this.dependencies, this.#current.parts))
    if (order !== this.#order) {
      await this.#discard(prepared)
      throw new Error('the order was taken back while it was carried out')
    }
    this.#prepared = prepared
    return openedBy(prepared.parts)
  }

  commit(): Promise<void> {
    const next = this.#prepared
    if (next === undefined) return Promise.resolve()
    this.#prepared = undefined
    const before = this.#current
    this.#current = next
    this.#activate(next)
    this.#fixtures.listener.renewCertificate()
    this.#retiring.add(before)
    const { drain } = before.parts.configuration.server.timeouts
    after(drain, () => this.#retireWhenIdle(before))
    return Promise.resolve()
  }

  async abort(): Promise<void> {
    this.#order += 1
    const prepared = this.#prepared
    this.#prepared = undefined
    if (prepared === undefined) return
    this.dependencies.issuerKeys.keepOnly(this.#current.parts.configuration.issuers)
    await this.#discard(prepared)
  }

  explain(call: DescribedCall): Promise<Explanation> {
    return explainCall(explainPartsOf(this.#current.service, this.dependencies.admission), call)
  }

  issueTestToken(order: TestTokenRequest): Promise<TestTokenAnswer> {
    return issueTestToken(order, this.#current.service, this.dependencies.state)
  }

  async findPerson(subject: string): Promise<FoundPerson | undefined> {
    const user = await this.#current.service.identity?.dependencies.people.findPerson(subject)
    return user && { username: user.username, claims: user.claims }
  }

  async recall(requestId: string): Promise<RecalledCall | undefined> {
    const kept = this.#past.find(requestId)
    return kept && recallCall(explainPartsOf(this.#current.service, this.dependencies.admission), kept)
  }

  async followKeys(): Promise<void> {
    await this.dependencies.keyWatch?.follow()
  }

  gauges(): readonly GaugeReading[] {
    return readProcess(this.#serving(), this.#current, this.dependencies)
  }

  applyRemoteUsage(usage: RateUsage): void {
    this.dependencies.admission.applyRemoteUsage(usage)
  }

  pollChanges(): void {
    void this.dependencies.feed.refresh()
  }

  takeReading(reading: FeedReading): void {
    this.dependencies.state.take(reading)
  }

  flush(): void {
    const { reports } = this.#fixtures
    const { metrics: own, tallies } = this.dependencies
    reports.metrics([...own.take(), ...tallies.take()])
    for (const { metrics, recentCalls } of this.#serving()) {
      reports.metrics(metrics.take())
      reports.calls(recentCalls.take())
    }
  }

  drain(): void {
    this.#fixtures.listener.drain()
  }

  close(lameDuck?: number): Promise<number> {
    return (this.#closed ??= this.#close(lameDuck))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close(0)
  }

  async #close(lameDuck: number | undefined): Promise<number> {
    const cut = await this.#fixtures.listener.close(lameDuck)
    clearInterval(this.#flusher)
    this.dependencies.admission.stop()
    this.flush()
    await this.abort()
    for (const { closeLog } of this.#serving()) closeLog()
    await closeAll(this.#closablesInUse())
    return cut
  }

  /** A configuration's log, metrics and backends must exist as long as its calls are in flight. */
  #retireWhenIdle(generation: Generation): void {
    if (generation.isIdle) void this.#retire(generation)
    else setTimeout(() => this.#retireWhenIdle(generation), RETIRE_MS).unref()
  }

  async #retire(generation: Generation): Promise<void> {
    this.flush()
    this.#retiring.delete(generation)
    await this.#discard(generation)
  }

  /** All configurations on which calls may be in flight. */
  #serving(): readonly Generation[] {
    return [...this.#retiring, this.#current]
  }

  #closablesInUse(): ReadonlySet<ClosableResource> {
    return new Set(this.#serving().flatMap(({ parts }) => closablesOf(parts)))
  }

  /** Closes the log, and the backends and modules that no other generation uses. */
  async #discard({ parts, closeLog }: Generation): Promise<void> {
    const used = this.#closablesInUse()
    closeLog()
    await closeAll(closablesOf(parts).filter((closable) => !used.has(closable)))
  }

  #compile(parts: Parts): Generation {
    const { dependencies, reports } = this.#fixtures
    return compileGeneration(parts, { dependencies, reports, urls: this.urls, past: this.#past })
  }

  #activate({ service, parts }: Generation): void {
    const { keys } = this.dependencies
    this.#fixtures.relay.to = service.runtime.recorder
    this.dependencies.issuerKeys.keepOnly(parts.configuration.issuers)
    this.dependencies.openedFunds.attach(parts.directory.places)
    keys?.place.adopt?.(parts.configuration.store)
    this.#limit(parts.configuration)
    this.dependencies.maintenance.configure(configuredSwitches(parts.configuration))
  }

  #limit(configuration: Configuration): void {
    const { admission, processes } = this.dependencies
    admission.processes = processes.count
    admission.configure(loadOf(configuration, processes.count))
  }

  /** A sidecar has none. A reload cannot make it one or end it (`fixedChanges`). */
  #identityDoor(api: Door): Door | undefined {
    const { identity } = this.#current.service
    return identity && identityDoor(() => this.#current.service.identity ?? identity, api)
  }

  /** The door reads the configuration in force in the same turn, so a call is counted on the one that serves it. */
  #counted(door: Door): Door {
    return (exchange) => {
      this.#current.enter(exchange)
      return door(exchange)
    }
  }

  open(): Promise<void> {
    const { authorities } = this.#current.service
    const { view } = this.dependencies.state
    const api = apiDoor(
      () => this.#current.service.runtime,
      () => this.#current.service.renderFault,
    )
    const identity = this.#identityDoor(api)
    const description = descriptionDoor(() => describedBy(this.#current.service), api)
    this.#fixtures.listener.open({
      doors: {
        api: settledDoor(view, this.#counted(api)),
        description: this.#counted(description),
        identity: identity && settledDoor(view, this.#counted(identity)),
      },
      authorities,
      // Read at each call: a reload may change the vendor or the default format.
      renderFault: (...args) => this.#current.service.renderFault(...args),
      takesUpgrade: (...asked) => takesUpgrade(this.#current.service.runtime, ...asked),
    })
    return Promise.resolve()
  }
}

const describedBy = ({ runtime, document, renderFault }: Service): ServedDescription => ({
  document,
  renderFault,
  cors: runtime.cors,
  clock: runtime.clock,
  recorder: runtime.recorder,
})

const openedBy = (parts: Parts): string => digestOfHoldings(servedHoldings(parts))

/** Clients of each layer that are tried where none is named. */
const MOST_TRIED = 1000

/** Clients of the configuration in its order, then those of the store in the order of their ids. */
async function* clientsOf(
  configured: ReadonlyMap<string, unknown>,
  store: Pick<Store, 'list'>,
): AsyncGenerator<string> {
  yield* [...configured.keys()].slice(0, MOST_TRIED)
  for (const { key } of await store.list(CLIENT, { after: undefined, limit: MOST_TRIED }))
    if (!configured.has(key)) yield key
}

/** By the configuration in force. Rejects with TypeError in a sidecar. */
async function issueTestToken(
  order: TestTokenRequest,
  { identity, parts }: Service,
  { store }: { readonly store: Pick<Store, 'list'> },
): Promise<TestTokenAnswer> {
  if (identity === undefined) throw new TypeError('a sidecar issues no tokens')
  return answerTestToken(order, () => clientsOf(parts.directory.clients, store), identity.dependencies)
}

/**
 * In the first turn after this process was paused, a call waits until the change feed was read: otherwise it would be answered
 * by what was known before, and a token that was revoked meanwhile would be accepted.
 */
const settledDoor =
  (view: View, door: Door): Door =>
  (exchange) =>
    view.isSettled() ? door(exchange) : view.settle().then(() => door(exchange))
