/**
 * What a service is doing now, on one page (C11.5.5). What processes measure is read from the gauges that `/metrics`
 * shows, so that both tell the same; nothing is counted a second time.
 */
import type { ConfigurationStanding } from './configuration-orders.ts'
import type { Readiness } from '../health.ts'
import type { ListedKey } from './key-orders.ts'
import { isInForce, type MaintenanceSwitch, scopeText } from '../../maintenance/maintenance.ts'
import { instantText, type KeptSwitch } from '../../maintenance/records.ts'
import { type GaugeReading, mergeReadings } from '../metrics/gauges.ts'
import { FAMILIES } from '../metrics/families.ts'
import type { GaugeFamily } from '../metrics/families.ts'
import type { KeyStatus, Status, SwitchStatus, UpstreamStatus } from './status.ts'
import { findTroubles } from './troubles.ts'

/** Where a status comes from. */
export interface StatusSources {
  readonly version: string
  readonly node: string
  /** Of the service, milliseconds since the epoch. */
  readonly startedAt: number
  readonly sidecar: boolean
  readonly storeKind: string
  /** Bytes on the disk; undefined where the store has no file. */
  readonly storeSize: () => Promise<number | undefined>
  readonly auditKept: boolean
  readonly now: () => number
  /** What all processes that live have read last. */
  readonly readings: () => readonly GaugeReading[]
  readonly readiness: () => Readiness
  readonly standing: () => ConfigurationStanding
  /** Undefined in a sidecar, and if the keys cannot be read. */
  readonly keys: () => Promise<readonly ListedKey[] | undefined>
  readonly switches: () => readonly KeptSwitch[]
  readonly reportOnlyAreas: () => readonly string[]
}

type Gauge = (family: GaugeFamily, ...labels: readonly string[]) => number | undefined

/** The merged readings of all processes. */
class Gauges {
  readonly #byName: ReadonlyMap<string, readonly GaugeReading[]>

  constructor(readings: readonly GaugeReading[]) {
    this.#byName = Map.groupBy(readings, ({ name }) => name)
  }

  all(family: GaugeFamily): readonly GaugeReading[] {
    return mergeReadings(family, this.#byName.get(family.name) ?? [])
  }

  readonly one: Gauge = (family, ...labels) =>
    this.all(family).find((each) => labels.every((label, at) => each.labels[at] === label))?.value

  /** The values of a family by its only label. */
  byLabel(family: GaugeFamily): Readonly<Record<string, number>> {
    return Object.fromEntries(this.all(family).map(({ labels, value }) => [labels[0] ?? '', value]))
  }
}

/** Seconds since the epoch, as text; undefined for none and for 0, which stands for none. */
const secondsText = (seconds: number | undefined): string | undefined =>
  seconds ? instantText(Math.round(seconds * 1000)) : undefined

const asFlag = (value: number | undefined): boolean | undefined =>
  value === undefined ? undefined : value > 0

function upstreamsOf(gauges: Gauges): readonly UpstreamStatus[] {
  const { one } = gauges
  const families = [
    FAMILIES.upstreamTargets,
    FAMILIES.backendCallsInFlight,
    FAMILIES.upstreamQueue,
    FAMILIES.upstreamConnections,
  ]
  const backends = new Set(
    families.flatMap((family) => gauges.all(family)).map(({ labels }) => labels[0] ?? ''),
  )
  const open = (backend: string): readonly number[] =>
    ['active', 'idle'].flatMap((state) => one(FAMILIES.upstreamConnections, backend, state) ?? [])
  return [...backends].sort().map((backend) => ({
    backend,
    healthy: one(FAMILIES.upstreamTargets, backend, 'healthy'),
    ejected: one(FAMILIES.upstreamTargets, backend, 'ejected'),
    inFlight: one(FAMILIES.backendCallsInFlight, backend),
    waiting: one(FAMILIES.upstreamQueue, backend),
    connections: open(backend).length === 0 ? undefined : open(backend).reduce((sum, each) => sum + each, 0),
  }))
}

const switchOf =
  (now: number) =>
  ({
    scope,
    from,
    until,
    reason,
  }: MaintenanceSwitch & { readonly reason?: string | undefined }): SwitchStatus => ({
    scope: scopeText(scope),
    state: isInForce({ scope, from, until }, now) ? 'on' : 'planned',
    from: instantText(from),
    until: instantText(until),
    reason,
  })

const keyOf = ({ name, state, nextRotationAt, endsAt }: ListedKey): KeyStatus => ({
  name,
  state,
  nextRotation: secondsText(nextRotationAt),
  ends: secondsText(endsAt),
})

function configurationOf({
  file,
  digest,
  loadedAt,
  refused,
}: ConfigurationStanding): Status['configuration'] {
  return {
    file,
    digest,
    loaded: new Date(loadedAt).toISOString(),
    refused: refused && { ...refused, at: new Date(refused.at).toISOString() },
  }
}

const auditOf = (kept: boolean, { one }: Gauges): Status['audit'] => ({
  kept,
  writable: asFlag(one(FAMILIES.auditWritable)),
  openIntents: one(FAMILIES.auditOpenIntents),
  abandonedIntents: one(FAMILIES.auditAbandonedIntents),
  signed: secondsText(one(FAMILIES.auditCheckpoint)),
  anchored: secondsText(one(FAMILIES.auditAnchored)),
})

/** Reads everything once. Never rejects because a part of the service is down: that is what it tells. */
export async function readStatus(sources: StatusSources): Promise<Status> {
  const { version, node, startedAt, sidecar, auditKept, storeKind } = sources
  const now = sources.now()
  const gauges = new Gauges(sources.readings())
  const { one } = gauges
  const keys = await sources.keys().catch(() => undefined)
  const bytes = await sources.storeSize().catch(() => undefined)
  const tunnels = Object.values(gauges.byLabel(FAMILIES.tunnelsOpen))
  const status: Omit<Status, 'troubles'> = {
    ...sources.readiness(),
    ...{ version, node, kind: sidecar ? 'sidecar' : 'service' },
    at: new Date(now).toISOString(),
    started: new Date(startedAt).toISOString(),
    configuration: configurationOf(sources.standing()),
    workers: gauges.byLabel(FAMILIES.workers),
    calls: {
      inFlight: one(FAMILIES.callsInFlight),
      shedding: asFlag(one(FAMILIES.shedding)) ?? false,
      websockets: tunnels.reduce((sum, each) => sum + each, 0),
      passwordChecksWaiting: one(FAMILIES.hashQueue),
    },
    lockouts: one(FAMILIES.lockouts),
    store: {
      kind: storeKind,
      up: asFlag(one(FAMILIES.storeUp)),
      bytes,
      feedAgeSeconds: one(FAMILIES.feedAge),
      nodes: one(FAMILIES.storeNodes),
      nodeConfiguration: gauges.all(FAMILIES.nodeConfiguration)[0]?.labels[0],
    },
    keys: (keys ?? []).map(keyOf),
    certificates: gauges
      .all(FAMILIES.certificateExpiry)
      .flatMap(({ labels, value }) => ({ name: labels[0] ?? '', expires: secondsText(value) ?? '' })),
    upstreams: upstreamsOf(gauges),
    maintenance: sources.switches().map(switchOf(now)),
    reportOnly: sources.reportOnlyAreas(),
    audit: auditOf(auditKept, gauges),
  }
  return { troubles: findTroubles(status, now, keys === undefined && !sidecar), ...status }
}
