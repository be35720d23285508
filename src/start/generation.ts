/** One configuration in force with its call count, and the condition of its parts. */
import type { Exchange } from '../contracts/exchange.ts'
import type { GaugeReading } from '../watch/metrics/gauges.ts'
import type { RecentCalls } from '../maintenance/recent-calls.ts'
import type { Metrics } from '../watch/metrics/metrics.ts'
import { clientCertificates } from './measures.ts'
import type { Parts } from './parts.ts'
import type { Service } from './compile-service.ts'
import type { Backend } from '../contracts/backend.ts'
import type { IssuerCondition, IssuerKeys } from '../keys/issuer-keys.ts'
import { type KeyError, MissingSeal } from '../keys/key-error.ts'
import type { ServiceKeys } from '../keys/service-keys.ts'
import type { Condition, Degradation } from '../watch/health.ts'
import { conditionOfStore, type StoreCondition } from './conditions.ts'

/** What the condition of a process is read from, besides its configuration. */
export interface ConditionParts {
  readonly issuerKeys: Pick<IssuerKeys, 'conditions'>
  readonly keys: Pick<ServiceKeys, 'trouble'> | undefined
  readonly state: StoreCondition
}

export interface GenerationParts {
  readonly parts: Parts
  readonly service: Service
  readonly metrics: Metrics
  readonly recentCalls: RecentCalls
  readonly closeLog: () => void
}

/**
 * One configuration that is or was in force, with its service, metrics and log, and the number of its calls in flight. A
 * call, stream or websocket finishes on the configuration that it began with.
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

  constructor({ parts, service, metrics, recentCalls, closeLog }: GenerationParts) {
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

  /** The number of calls in flight, websockets included. */
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
  { issuerKeys, keys, state }: ConditionParts,
): Condition {
  const issuers = issuerKeys.conditions()
  // Without the keys of any issuer no token can be verified: every call would be 503 (C4.15).
  const withoutKeys =
    issuers.length > 0 && issuers.every(({ state, introspects }) => state === 'unknown' && !introspects)
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
