/**
 * What a service is doing now, on one page (C11.5.5), read from the gauges that `/metrics` shows: both say the same.
 */
import { DAY_MS, instantText } from '../../../base/kernel/units.ts'
import type { ListedKey } from '../../../identity/keys/signing/listed-keys.ts'
import type { KeptSwitch } from '../../../gateway/maintenance/records.ts'
import { isInForce, type MaintenanceSwitch, scopeText } from '../../../gateway/maintenance/switch.ts'
import type { Readiness } from '../../../base/kernel/health.ts'
import { FAMILIES, type GaugeFamily } from '../metrics/families.ts'
import { mergeReadings } from '../metrics/gauges.ts'
import type { GaugeReading } from '../../../base/contracts/processes/reports.ts'

export interface UpstreamStatus {
  readonly backend: string
  readonly healthy: number | undefined
  readonly ejected: number | undefined
  readonly inFlight: number | undefined
  readonly waiting: number | undefined
  readonly connections: number | undefined
}

export interface ProcessStatus {
  /** `main`, or `worker-N`. */
  readonly name: string
  readonly memoryBytes: number | undefined
  readonly eventLoopDelaySeconds: number | undefined
}

interface SwitchStatus {
  readonly scope: string
  readonly state: 'on' | 'planned'
  readonly from: string | undefined
  readonly until: string | undefined
  readonly reason: string | undefined
}

/** A client or user that a command has disabled by a mark. */
export interface MarkStatus {
  readonly client?: string
  /** The `sub` of a user, in place of the name, which is personal. */
  readonly subject?: string
  readonly since: string
}

interface KeyStatus {
  readonly name: string
  readonly state: ListedKey['state']
  readonly nextRotation: string | undefined
  readonly ends: string | undefined
}

/** Plain data. A value that no process has measured is undefined. Times are texts of RFC 3339. */
export interface Status {
  /** What is wrong, the worst first; empty if nothing is known to be. */
  readonly troubles: readonly string[]
  readonly ready: boolean
  readonly failing: readonly string[]
  readonly degraded: readonly { readonly name: string; readonly reason: string }[]
  readonly version: string
  readonly node: string
  readonly at: string
  readonly started: string
  readonly kind: 'service' | 'sidecar'
  readonly configuration: {
    readonly file: string | undefined
    readonly digest: string
    readonly loaded: string
    readonly refused:
      | {
          readonly at: string
          readonly via: string
          readonly problems: readonly string[]
          readonly cause: string | undefined
        }
      | undefined
  }
  /** How many processes are in each state. */
  readonly workers: Readonly<Record<string, number>>
  readonly processes: readonly ProcessStatus[]
  /** All processes together. */
  readonly memory: { readonly bytes: number | undefined; readonly limitBytes: number | undefined }
  /** The data folder, and what its disk has left. */
  readonly data: { readonly bytes: number | undefined; readonly freeBytes: number | undefined }
  readonly calls: {
    readonly inFlight: number | undefined
    readonly shedding: boolean
    readonly websockets: number
    readonly passwordChecksWaiting: number | undefined
  }
  readonly lockouts: number | undefined
  readonly store: {
    readonly kind: string
    readonly up: boolean | undefined
    readonly bytes: number | undefined
    readonly feedAgeSeconds: number | undefined
    /** How many nodes the store counts; undefined where it is of one machine. */
    readonly nodes: number | undefined
    /** How many different configurations those nodes have. */
    readonly nodeConfigurations: number | undefined
    /** A digest of the configuration, which other nodes compare with their own. */
    readonly nodeConfiguration: string | undefined
  }
  readonly keys: readonly KeyStatus[]
  readonly certificates: readonly { readonly name: string; readonly expires: string }[]
  readonly upstreams: readonly UpstreamStatus[]
  readonly maintenance: readonly SwitchStatus[]
  readonly reportOnly: readonly string[]
  /** Who is disabled by a mark (`client disable`, `user disable`); undefined if nobody can tell. */
  readonly disabled: readonly MarkStatus[] | undefined
  readonly audit: {
    readonly kept: boolean
    readonly writable: boolean | undefined
    readonly openIntents: number | undefined
    /** Open intents of processes that have ended. */
    readonly abandonedIntents: number | undefined
    readonly signed: string | undefined
    readonly anchored: string | undefined
  }
}

/**
 * Why a configuration without a mistake is refused: the store or the audit trail cannot be reached, its files change while
 * they are read, or something else, which is in the log.
 */
export const PASSING_CAUSES = ['store', 'trail', 'files', 'unknown'] as const
export type PassingCause = (typeof PASSING_CAUSES)[number]

/** How the configuration in force came to be. Times in milliseconds since the epoch. */
export interface ConfigurationStanding {
  /** Undefined if it does not come from a file. */
  readonly file: string | undefined
  /** SHA-256 of it, without its secrets. */
  readonly digest: string
  readonly loadedAt: number
  /** The last reload, if it was refused: the configuration before stays in force. */
  readonly refused:
    | {
        readonly at: number
        readonly via: string
        readonly problems: readonly string[]
        /** Undefined for a mistake in its files; any other is tried again by itself. */
        readonly cause: PassingCause | undefined
      }
    | undefined
}

export interface StatusSources {
  readonly version: string
  readonly node: string
  /** When the service started, in milliseconds since the epoch. */
  readonly startedAt: number
  readonly sidecar: boolean
  readonly storeKind: string
  /** The size on the disk, in bytes; undefined where the store has no file. */
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
  readonly marks: () => Promise<readonly MarkStatus[]>
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

/** Reads everything once. Never rejects because a part of the service is down: that is what it reports. */
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
    version,
    node,
    kind: sidecar ? 'sidecar' : 'service',
    at: new Date(now).toISOString(),
    started: new Date(startedAt).toISOString(),
    configuration: configurationOf(sources.standing()),
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
      kind: storeKind,
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
    maintenance: sources.switches().map(switchOf(now)),
    reportOnly: sources.reportOnlyAreas(),
    disabled: await sources.marks().catch(() => undefined),
    audit: auditOf(auditKept, gauges),
  }
  return { troubles: findTroubles(status, now, keys === undefined && !sidecar), ...status }
}

type Facts = Omit<Status, 'troubles'>

/** After how many seconds the change feed is too old, as the alert rules have it. */
const OLD_FEED = 10
/** How long before its end a certificate is a trouble, in milliseconds. */
const SOON = 14 * DAY_MS
/** How late a planned key may be, in milliseconds. */
const LATE_KEY = 3_600_000

const isBefore = (time: string | undefined, limit: number): boolean =>
  time !== undefined && Date.parse(time) < limit

const storeTroubles = ({
  store: { up, feedAgeSeconds = 0, nodes, nodeConfigurations = 0 },
}: Facts): string[] => [
  ...(nodeConfigurations > 1
    ? [
        `The ${nodes ?? 0} nodes of the store have ${nodeConfigurations} different configurations: \`postern nodes\` tells which.`,
      ]
    : []),
  ...(up === false ? ['The store is out of reach: nobody can log in, and nothing can be revoked.'] : []),
  ...(feedAgeSeconds > OLD_FEED
    ? [
        `The change feed was last read ${Math.round(feedAgeSeconds)} s ago: what was revoked since may still be accepted.`,
      ]
    : []),
]

/** The troubles of the audit trail. If it cannot be written, that is among `degraded`. */
const auditTroubles = ({ audit: { abandonedIntents = 0 } }: Facts): string[] =>
  abandonedIntents > 0
    ? [
        `Changes of unknown outcome, as their processes ended: ${abandonedIntents}. To see them: postern audit open.`,
      ]
    : []

const upstreamTroubles = ({ upstreams }: Facts): string[] =>
  upstreams.flatMap(({ backend, healthy, ejected = 0 }) => {
    if (ejected === 0) return []
    return healthy === 0
      ? [`Backend ${backend} has no target left: all ${ejected} failed.`]
      : [`Backend ${backend}: ${ejected} of ${ejected + (healthy ?? 0)} targets failed and get no calls.`]
  })

const reloadTroubles = ({ configuration: { loaded, refused } }: Facts): string[] =>
  refused === undefined
    ? []
    : [
        `A reload was refused at ${refused.at} (${refused.via}); the configuration of ${loaded} stays in force.`,
        ...refused.problems.map((problem) => `  ${problem}`),
      ]

const certificateTroubles = ({ certificates }: Facts, now: number): string[] =>
  certificates.flatMap(({ name, expires }) => {
    if (isBefore(expires, now)) return [`The certificate ${name} expired at ${expires}.`]
    return isBefore(expires, now + SOON) ? [`The certificate ${name} expires at ${expires}.`] : []
  })

const keyTroubles = ({ keys }: Facts, now: number): string[] =>
  keys
    .filter(({ nextRotation }) => isBefore(nextRotation, now - LATE_KEY))
    .map(({ name, nextRotation = '' }) => `The key that follows ${name} should sign since ${nextRotation}.`)

const maintenanceTroubles = ({ maintenance }: Facts): string[] =>
  maintenance
    .filter(({ state }) => state === 'on')
    .map(({ scope, from, until }) => {
      const since = from === undefined ? '' : ` since ${from}`
      return `Closed for maintenance${since}: ${scope}, ${until === undefined ? 'until somebody opens it' : `until ${until}`}.`
    })

/** What is wrong, in sentences, in the order in which somebody is to read it. */
export function findTroubles(status: Facts, now: number, keysUnreadable: boolean): readonly string[] {
  const { failing, degraded, calls, reportOnly } = status
  return [
    ...failing.map((name) => `Not ready: ${name}.`),
    ...storeTroubles(status),
    ...auditTroubles(status),
    ...upstreamTroubles(status),
    ...(keysUnreadable ? ['The signing keys cannot be read.'] : []),
    ...(calls.shedding ? ['Calls are refused because of overload.'] : []),
    ...degraded.map(({ name, reason }) => `Works badly: ${name}: ${reason}.`),
    ...reloadTroubles(status),
    ...certificateTroubles(status, now),
    ...keyTroubles(status, now),
    ...maintenanceTroubles(status),
    ...reportOnly.map((area) => `Area ${area} is report-only: it refuses nothing.`),
  ]
}
