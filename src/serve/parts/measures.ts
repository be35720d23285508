/** The counts and readings of one process for the metrics, apart from those that belong to a configuration. */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { clientCertificateOf } from '../../gateway/backends/schema.ts'
import type { LocalLockouts } from '../../identity/guessing/lockouts.ts'
import type { ConfigurationLoads } from './reload.ts'
import type { ServiceKeys } from '../../identity/keys/signing/service-keys.ts'
import type { MaintenanceRecords } from '../../gateway/maintenance/records.ts'
import { PASSING_CAUSES } from '../../operate/watch/status/status.ts'
import { GaugeSources, reading, readingOf } from '../../operate/watch/metrics/gauges.ts'
import { FAMILIES } from '../../operate/watch/metrics/families.ts'
import { compileProcessMetrics, type ProcessMetrics } from '../../operate/watch/metrics/metrics.ts'
import { ProcessLoad } from '../../operate/watch/metrics/process-load.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import { type MeasuredStore, STORE_VERBS } from '../../state/stores/measured-store.ts'
import type { ChangeFeed } from '../../state/stores/feed/change-feed.ts'
import type { ClockDrift } from '../../state/stores/feed/store-doubts.ts'
import type { LiveNodes } from '../../base/contracts/records/store.ts'
import type { WorkerStates } from '../../base/contracts/processes/worker-pool.ts'
import type { GaugeReading } from '../../base/contracts/processes/reports.ts'

export interface Measures {
  readonly metrics: ProcessMetrics
  readonly gauges: GaugeSources
}

/**
 * A sidecar keeps no state that must last, so there are no metrics of its store.
 * @param keepsTrail whether there are metrics of a trail
 * @param name of this process, whose memory and processor time are shown under it; undefined to show none
 */
export const openMeasures = (configuration: Configuration, keepsTrail: boolean, name?: string): Measures => {
  const sidecar = isSidecar(configuration)
  const load = name === undefined ? undefined : new ProcessLoad(name)
  const metrics = compileProcessMetrics(sidecar ? [] : STORE_VERBS, keepsTrail, load)
  const gauges = new GaugeSources()
  if (load !== undefined) gauges.add(() => load.readings())
  return { metrics, gauges }
}

type Readings = readonly GaugeReading[]

export const readStore = (store: Pick<MeasuredStore, 'isUp'>, feed: Pick<ChangeFeed, 'age'>): Readings => [
  readingOf(FAMILIES.storeUp, store.isUp),
  reading(FAMILIES.feedAge, feed.age / 1000),
]

/** Absent where the store has no clock of its own. */
export const readClock = (drift: Pick<ClockDrift, 'seconds'> | undefined): Readings =>
  drift === undefined ? [] : [reading(FAMILIES.clockOffset, drift.seconds)]

/**
 * A node among those that share a store.
 * @param digest that of the configuration in force
 * @param live the nodes that were alive at the last look; undefined before that
 */
export const readNode = (digest: string, live: LiveNodes | undefined): Readings => [
  reading(FAMILIES.nodeConfiguration, 1, digest),
  ...(live === undefined
    ? []
    : [reading(FAMILIES.storeNodes, live.nodes), reading(FAMILIES.storeConfigurations, live.configs)]),
]

export const readKeys = (keys: Pick<ServiceKeys, 'rotations'>): Readings =>
  keys
    .rotations()
    .flatMap(({ algorithm, createdAt, nextAt }) => [
      reading(FAMILIES.signingKeyCreated, createdAt, algorithm),
      ...(nextAt === undefined ? [] : [reading(FAMILIES.signingKeyNextRotation, nextAt, algorithm)]),
    ])

/** @param validTo milliseconds since the epoch; undefined if there is no certificate */
export const readCertificateExpiry = (name: string, validTo: number | undefined): Readings =>
  validTo === undefined ? [] : [reading(FAMILIES.certificateExpiry, validTo / 1000, name)]

/** The expiry of the certificates that the backends of a configuration show to their upstreams. Reads their files at once. */
export const clientCertificates = ({ backends }: Pick<Configuration, 'backends'>): Readings =>
  Object.entries(backends).flatMap(([name, config]) =>
    readCertificateExpiry(`backend/${name}`, validToOf(clientCertificateOf(config))),
  )

/** A file that was there a moment ago when the backend was opened, and is none any more, is not worth an error. */
function validToOf(file: string | undefined): number | undefined {
  try {
    return file === undefined ? undefined : new X509Certificate(readFileSync(file)).validToDate.getTime()
  } catch {
    return undefined
  }
}

export const readMaintenance = (records: Pick<MaintenanceRecords, 'closedSince'>): Readings =>
  records.closedSince().map(({ kind, since }) => reading(FAMILIES.maintenanceSince, since / 1000, kind))

/** One process that serves and supervises has no states. */
export const readWorkers = (states: WorkerStates = { serving: 1 }): Readings =>
  Object.entries(states).map(([state, number]) => reading(FAMILIES.workers, number, state))

export const readLockouts = (lockouts: Pick<LocalLockouts, 'count'>): Readings => [
  reading(FAMILIES.lockouts, lockouts.count()),
]

export const readLoads = ({ loadedAt, refused }: ConfigurationLoads): Readings => [
  reading(FAMILIES.configurationLoaded, loadedAt / 1000),
  readingOf(FAMILIES.configurationReloaded, refused === undefined),
  ...['file', ...PASSING_CAUSES].map((cause) =>
    reading(FAMILIES.configurationRefused, refused && (refused.cause ?? 'file') === cause ? 1 : 0, cause),
  ),
]
