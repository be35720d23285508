/** One configuration in force with its call count, and the condition of its parts. */
import type { Backend, UpstreamTraffic } from '../../base/contracts/calls/backend.ts'
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import { GRANTS } from '../../identity/grants/grants.ts'
import { FAULTS } from '../../base/kernel/fault-table.ts'
import type { IssuerCondition, IssuerKeys } from '../../identity/keys/issuers/issuer-keys.ts'
import { type KeyError, MissingSeal } from '../../base/kernel/key-error.ts'
import type { ServiceKeys } from '../../identity/keys/signing/service-keys.ts'
import { RecentCalls } from '../../gateway/maintenance/recent-calls.ts'
import type { WorkerMessages } from '../../base/contracts/processes/worker-pool.ts'
import type { ServiceUrls } from '../../gateway/server/schema.ts'
import type { Condition, Degradation } from '../../base/kernel/health.ts'
import { openLog } from '../../operate/watch/log/log.ts'
import { waitingSignatures } from '../../identity/keys/verify/signatures.ts'
import { FAMILIES } from '../../operate/watch/metrics/families.ts'
import { reading, readingOf } from '../../operate/watch/metrics/gauges.ts'
import { compileMetrics, type Metrics } from '../../operate/watch/metrics/metrics.ts'
import type { PastCalls } from '../../operate/watch/past-calls.ts'
import { fanOut } from '../../operate/watch/recorders.ts'
import { compileService, type Service } from './compile-service.ts'
import { conditionOfStore, type StoreCondition } from './conditions.ts'
import type { WorkerDependencies } from './dependencies.ts'
import { clientCertificates } from '../parts/measures.ts'
import { nodeIdOf } from './node.ts'
import { ADDED_COUNTERS } from './settings.ts'
import type { Parts } from '../parts/parts.ts'
import type { GaugeReading } from '../../base/contracts/processes/reports.ts'

/**
 * One configuration that is or was in force, with its service, metrics and log, and the number of its calls in flight. A
 * call, stream or tunnel finishes on the configuration that it began with.
 */
export class Generation {
  readonly parts: Parts
  readonly service: Service
  readonly metrics: Metrics
  readonly recentCalls: RecentCalls
  /** When the certificates expire that its backends show. */
  readonly certificates: readonly GaugeReading[]
  readonly closeLog: () => void
  #calls = 0
  /** One function for all calls, so that a call allocates none. */
  readonly #leave = (): void => {
    this.#calls -= 1
  }

  constructor({
    parts,
    service,
    metrics,
    recentCalls,
    closeLog,
  }: Pick<Generation, 'parts' | 'service' | 'metrics' | 'recentCalls' | 'closeLog'>) {
    this.parts = parts
    this.service = service
    this.metrics = metrics
    this.recentCalls = recentCalls
    this.certificates = clientCertificates(parts.configuration)
    this.closeLog = closeLog
  }

  /** Counts the exchange as in flight until it ends. */
  enter(exchange: Exchange): void {
    this.#calls += 1
    exchange.onEnd(this.#leave)
  }

  /** The number of calls in flight, tunnels included. */
  get calls(): number {
    return this.#calls
  }

  get isIdle(): boolean {
    return this.#calls === 0
  }
}

/**
 * The condition of the parts, for /health/ready (C11.1). Never throws, never waits. A backend that does not answer is a
 * degradation: calls to the other backends are still served.
 */
export function conditionOf(
  { backends }: Pick<Parts, 'backends'>,
  {
    issuerKeys,
    keys,
    state,
  }: {
    readonly issuerKeys: Pick<IssuerKeys, 'conditions'>
    readonly keys: Pick<ServiceKeys, 'trouble'> | undefined
    readonly state: StoreCondition
  },
): Condition {
  const issuers = issuerKeys.conditions()
  // Without the keys of any issuer no token can be verified: every call would be 503 (C4.15).
  const withoutKeys =
    issuers.length > 0 && issuers.every(({ state, worksWithout }) => state === 'unknown' && !worksWithout)
  const store = conditionOfStore(state)
  return {
    failing: [...(withoutKeys ? ['issuer keys'] : []), ...store.failing],
    degraded: [
      ...store.degraded,
      ...(keys?.trouble === undefined ? [] : [unreadableKeys(keys.trouble)]),
      ...[...backends.values()].filter(isUnwell).map(degradedBackend),
      ...issuers.filter(({ state }) => state !== 'fresh').map(degradedIssuer),
    ],
  }
}

const unreadableKeys = (trouble: KeyError): Degradation => ({
  name: 'signing keys',
  reason:
    trouble instanceof MissingSeal
      ? `some are sealed with the seal ${trouble.seal}, which store.seal does not have here: logins fail, or will soon`
      : 'some cannot be read; the others go on, and the log tells why (signing_keys_unreadable)',
})

const isUnwell = (backend: Backend): boolean => backend.healthy?.() === false

const degradedBackend = ({ name }: Backend): Degradation => ({
  name: `backend ${name}`,
  reason: 'it does not answer as it should; its calls may fail',
})

const degradedIssuer = ({ issuer, state }: IssuerCondition): Degradation => ({
  name: `issuer ${issuer}`,
  reason:
    state === 'unknown'
      ? 'its keys could not be fetched yet; calls with its signed tokens are 503'
      : 'its keys could not be fetched the last time; those that are known go on',
})

/** The parts that outlive a configuration. */
interface Lasting {
  readonly dependencies: WorkerDependencies
  readonly reports: Pick<WorkerMessages, 'lines'>
  readonly urls: ServiceUrls
  readonly past: PastCalls
}

/** Compiles what serves one configuration, with its log, metrics and call counts. Nothing of it is in force yet. */
export function compileGeneration(parts: Parts, { dependencies, reports, urls, past }: Lasting): Generation {
  const { configuration, actions, backends } = parts
  const named = actions.actions.map(({ area, name }) => ({ area, action: name }))
  const metrics = compileMetrics({
    actions: named,
    backends: [...backends.keys()],
    reportOnly: [...actions.reportOnly.keys()],
    reasons: Object.keys(FAULTS),
    grants: [...GRANTS.keys()],
    counters: ADDED_COUNTERS,
  })
  const destination = { write: (line: string) => reports.lines(line, 0) }
  const log = openLog(configuration.log, {
    clock: dependencies.machine,
    actions: named,
    destination,
    node: nodeIdOf(configuration),
  })
  const recentCalls = new RecentCalls(named)
  const recorder = fanOut(metrics.recorder, log, past, recentCalls)
  const service = compileService(parts, dependencies, urls, recorder)
  return new Generation({ parts, service, metrics, recentCalls, closeLog: () => log.close() })
}

type Serving = Pick<Generation, 'parts' | 'calls'>
type Loaded = Pick<WorkerDependencies, 'admission' | 'hasher'>

/**
 * All gauges of a process that serves: how much it is doing at the moment (C11.1). Nothing is counted for them. The
 * parameters are as those of `readTraffic`.
 */
export const readProcess = (
  serving: readonly (Serving & Pick<Generation, 'metrics'>)[],
  current: Serving & Pick<Generation, 'certificates'>,
  dependencies: Loaded & Pick<WorkerDependencies, 'gauges'>,
): readonly GaugeReading[] => [
  ...dependencies.gauges.read(),
  ...serving.flatMap(({ metrics }) => [...metrics.gauges()]),
  ...current.certificates,
  ...readTraffic(serving, current, dependencies),
]

/**
 * @param serving all configurations on which calls may be in flight. Their backends have connections and waiting calls;
 *   one that a reload has kept is of several of them, and is read once.
 * @param current the one in force, whose targets get calls
 */
function* readTraffic(
  serving: readonly Serving[],
  current: Serving,
  { admission, hasher }: Loaded,
): Iterable<GaugeReading> {
  yield reading(FAMILIES.callsInFlight, sum(serving.map(({ calls }) => calls)))
  const people = new Set(serving.map(({ parts }) => parts.people?.source))
  const waiting = [...people].map((source) => source?.waiting() ?? 0)
  yield reading(FAMILIES.hashQueue, hasher.waiting + sum(waiting))
  yield reading(FAMILIES.signatureQueue, waitingSignatures())
  yield readingOf(FAMILIES.shedding, admission.isShedding)
  const backends = new Set(serving.flatMap(({ parts }) => [...parts.backends.values()]))
  for (const name of new Set([...backends].map((backend) => backend.name)))
    yield reading(FAMILIES.backendCallsInFlight, admission.previewBackend(name).inFlight.now, name)
  for (const backend of backends) yield* readUpstream(backend, current)
}

function* readUpstream(backend: Backend, { parts }: Serving): Iterable<GaugeReading> {
  const { name } = backend
  const traffic = backend.traffic?.()
  if (traffic === undefined) return
  yield reading(FAMILIES.upstreamQueue, traffic.waiting, name)
  for (const state of CONNECTIONS) yield reading(FAMILIES.upstreamConnections, traffic[state], name, state)
  if (parts.backends.get(name) !== backend) return
  for (const state of TARGETS) yield reading(FAMILIES.upstreamTargets, traffic[state], name, state)
}

const CONNECTIONS = ['active', 'idle'] as const satisfies readonly (keyof UpstreamTraffic)[]
const TARGETS = ['healthy', 'ejected'] as const satisfies readonly (keyof UpstreamTraffic)[]

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
