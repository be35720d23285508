/**
 * Reads how the service is (C11.5.5), mostly from the gauges that `/metrics` shows: both say the same. Imported only by a
 * service: commands need nothing of what it reads.
 */
import { stat } from 'node:fs/promises'
import { everyMark } from '../../identity/directory/records/marks.ts'
import { type ListedKey, listKeys } from '../../identity/keys/signing/listed-keys.ts'
import { instantText } from '../../base/kernel/units.ts'
import type { KeptSwitch } from '../../gateway/maintenance/records.ts'
import { isInForce, scopeText } from '../../gateway/maintenance/switch.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import type { Configuration } from '../settings/configuration.ts'
import { reportOnlyAreas } from '../settings/dangers.ts'
import { sqliteFile } from '../../state/stores/schema.ts'
import { logOf } from '../../state/stores/sqlite/store-files.ts'
import { FAMILIES, type GaugeFamily } from '../watch/metrics/families.ts'
import { mergeReadings, valuesByLabel } from '../watch/metrics/gauges.ts'
import {
  findTroubles,
  type MarkStatus,
  type ProcessStatus,
  type Status,
  type UpstreamStatus,
} from '../watch/status/status.ts'
import { configurationDigest } from './compare-configuration.ts'
import type { ServiceContext } from '../operation/context.ts'
import type { GaugeReading } from '../../base/contracts/processes/reports.ts'

/**
 * The bytes of the store's file and of its -wal, which holds the latest writes. Rejects with the system's error if there is
 * no file.
 */
async function sizeOnDisk(data: string): Promise<number> {
  const file = sqliteFile(data)
  const { size } = await stat(file)
  const log = await stat(logOf(file)).catch(() => undefined)
  return size + (log?.size ?? 0)
}

/** How many rows of marks are told. */
const MOST_MARKS = 100

/** Rejects with Fault `identity_unavailable`. */
async function marksOf(store: ServiceContext['store']): Promise<readonly MarkStatus[]> {
  const rows: MarkStatus[] = []
  for await (const { what, name, subjects, since: at } of everyMark(store)) {
    const since = new Date(at).toISOString()
    rows.push(
      ...(what === 'client' ? [{ client: name, since }] : subjects.map((subject) => ({ subject, since }))),
    )
    if (rows.length >= MOST_MARKS) break
  }
  return rows
}

/** Undefined in a sidecar. Rejects with KeyError or StoreError if they cannot be read. */
async function keysOf(service: ServiceContext): Promise<readonly ListedKey[] | undefined> {
  const work = await service.keys()
  return work && listKeys(work.plan, work.clock)
}

type Gauge = (family: GaugeFamily, ...labels: readonly string[]) => number | undefined

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

  byLabel(family: GaugeFamily): Readonly<Record<string, number>> {
    return valuesByLabel(family, this.#byName.get(family.name) ?? [])
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

const processesOf = (gauges: Gauges): readonly ProcessStatus[] =>
  gauges
    .all(FAMILIES.processMemory)
    .map(({ labels: [name = ''], value }) => ({
      name,
      memoryBytes: value,
      eventLoopDelaySeconds: gauges.one(FAMILIES.processDelay, name),
    }))
    .sort((one, other) => one.name.localeCompare(other.name, 'en', { numeric: true }))

const memoryOf = (gauges: Gauges): Status['memory'] => {
  const each = gauges.all(FAMILIES.processMemory)
  return {
    bytes: each.length === 0 ? undefined : each.reduce((sum, { value }) => sum + value, 0),
    limitBytes: gauges.one(FAMILIES.memoryLimit),
  }
}

const switchOf =
  (now: number) =>
  ({ scope, from, until, reason }: KeptSwitch): Status['maintenance'][number] => ({
    scope: scopeText(scope),
    state: isInForce({ scope, from, until }, now) ? 'on' : 'planned',
    from: instantText(from),
    until: instantText(until),
    reason,
  })

const keyOf = ({ name, state, nextRotationAt, endsAt }: ListedKey): Status['keys'][number] => ({
  name,
  state,
  nextRotation: secondsText(nextRotationAt),
  ends: secondsText(endsAt),
})

const configurationOf = (
  configuration: Configuration,
  { file, loads: { loadedAt, refused }, settings }: ServiceContext,
): Status['configuration'] => ({
  file,
  digest: configurationDigest(configuration, settings),
  loaded: new Date(loadedAt).toISOString(),
  refused: refused && { ...refused, at: new Date(refused.at).toISOString() },
})

const auditOf = (kept: boolean, { one }: Gauges): Status['audit'] => ({
  kept,
  writable: asFlag(one(FAMILIES.auditWritable)),
  openIntents: one(FAMILIES.auditOpenIntents),
  abandonedIntents: one(FAMILIES.auditAbandonedIntents),
  signed: secondsText(one(FAMILIES.auditCheckpoint)),
  anchored: secondsText(one(FAMILIES.auditAnchored)),
})

/** Reads everything once. Never rejects because a part of the service is down: that is what it reports. */
export async function statusOf(service: ServiceContext): Promise<Status> {
  const { version, startedAt, clock, maintenance, audit } = service
  const configuration = service.configuration()
  const { store, data } = configuration
  const sidecar = isSidecar(configuration)
  const onDisk = !sidecar && store.kind === 'sqlite'
  const now = clock.now()
  const gauges = new Gauges(service.readings())
  const { one } = gauges
  const keys = await keysOf(service).catch(() => undefined)
  const bytes = onDisk ? await sizeOnDisk(data).catch(() => undefined) : undefined
  const tunnels = Object.values(gauges.byLabel(FAMILIES.tunnelsOpen))
  const status: Omit<Status, 'troubles'> = {
    ...service.readiness(),
    version,
    node: process.version,
    kind: sidecar ? 'sidecar' : 'service',
    at: new Date(now).toISOString(),
    started: new Date(startedAt).toISOString(),
    configuration: configurationOf(configuration, service),
    workers: gauges.byLabel(FAMILIES.workers),
    processes: processesOf(gauges),
    memory: memoryOf(gauges),
    data: { bytes: one(FAMILIES.dataSize), freeBytes: one(FAMILIES.dataFree) },
    calls: {
      inFlight: one(FAMILIES.callsInFlight),
      shedding: asFlag(one(FAMILIES.shedding)) ?? false,
      websockets: tunnels.reduce((sum, each) => sum + each, 0),
      passwordChecksWaiting: one(FAMILIES.hashQueue),
    },
    lockouts: one(FAMILIES.lockouts),
    store: {
      kind: sidecar ? 'memory' : store.kind,
      up: asFlag(one(FAMILIES.storeUp)),
      bytes,
      feedAgeSeconds: one(FAMILIES.feedAge),
      nodes: one(FAMILIES.storeNodes),
      nodeConfigurations: one(FAMILIES.storeConfigurations),
      nodeConfiguration: gauges.all(FAMILIES.nodeConfiguration)[0]?.labels[0],
    },
    keys: (keys ?? []).map(keyOf),
    certificates: gauges
      .all(FAMILIES.certificateExpiry)
      .flatMap(({ labels, value }) => ({ name: labels[0] ?? '', expires: secondsText(value) ?? '' })),
    upstreams: upstreamsOf(gauges),
    maintenance: maintenance.list().map(switchOf(now)),
    reportOnly: reportOnlyAreas(configuration),
    disabled: sidecar ? [] : await marksOf(service.store).catch(() => undefined),
    audit: auditOf(audit.on, gauges),
  }
  return { troubles: findTroubles(status, now, keys === undefined && !sidecar), ...status }
}
