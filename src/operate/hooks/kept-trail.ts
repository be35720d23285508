/** The audit trail (C12), which an extension keeps. Without it nothing is recorded. */
import type { RecordedWay } from '../../base/contracts/processes/recorded-way.ts'
import type { GaugeReading } from '../../base/contracts/processes/reports.ts'
import type { TrailReader } from '../../base/contracts/records/audit-query.ts'
import type { AuditTrail } from '../../base/contracts/records/audit.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { Store } from '../../base/contracts/records/store.ts'
import type { After, Clock } from '../../base/kernel/clock.ts'
import type { Condition } from '../../base/kernel/health.ts'
import type { EverywhereEraser, ServiceContext } from '../operation/context.ts'
import type { Configuration } from '../settings/configuration.ts'
import type { ServiceAnnouncement, TrailLock } from '../trail/lock.ts'
import type { TrailMetrics } from '../watch/metrics/metrics.ts'

/** The trail of a process. */
export interface KeptTrail {
  readonly trail: AuditTrail
  /** Its gauges. */
  readings(): readonly GaugeReading[]
  /** Its part of `/health/ready` (C12.4.3). */
  condition(): Condition
  close(): Promise<void>
}

/** The trail of the process that writes it. */
export interface OwnedTrail extends KeptTrail, EverywhereEraser {
  /** Answers the questions of operations (C12.5). */
  readonly queried: NonNullable<ServiceContext['trail']>
  /** Takes the records of a worker process. */
  take(way: RecordedWay): void
  /** Tells commands of this service, as long as it has the lock. */
  announce(service: ServiceAnnouncement): void
  /**
   * Compares its beginning with the one that the store remembers; a store that remembers none remembers this one (C12.4.5). Never
   * rejects.
   */
  compare(store: Store, configuration: Configuration): Promise<void>
}

export interface KeptTrailParts {
  readonly clock: Clock
  readonly recorder: Pick<Recorder, 'note'>
  readonly after?: After | undefined
  readonly metrics?: TrailMetrics | undefined
}

export interface OwnedTrailParts extends KeptTrailParts {
  /** It is released when the trail is closed, or cannot be opened. */
  readonly lock: TrailLock
  /** Whether a command writes it, which serves nobody and waits for its record only. */
  readonly here?: boolean
  /** The name of this node, where several share a store. */
  readonly node?: string | undefined
}

/** Opens the trail of a configuration that keeps one. */
export interface TrailOpener {
  /**
   * Takes the lock of the trail's folder; waits for it, at most a minute. Rejects with AuditFolderError, and with the system's
   * error.
   *
   * @param waits called once, before it waits: who has the lock, for people, and where that process can be found, for the log
   */
  readonly lock: (
    configuration: Configuration,
    waits: (holder: string, place: string) => Promise<void>,
  ) => Promise<TrailLock>
  /** Opens the trail that this process writes. Rejects with KeyError, AuditFolderError, ManifestError or the system's error. */
  readonly open: (configuration: Configuration, parts: OwnedTrailParts) => Promise<OwnedTrail>
  /** Opens the trail of a worker process, whose supervisor writes it. Rejects with KeyError if the keys of its folder cannot be used. */
  readonly openSent: (configuration: Configuration, parts: KeptTrailParts) => Promise<KeptTrail>
  /** In a copied store, turns the trails of the machine that it comes from into those of the node with this configuration. */
  readonly rehost: (store: Store, configuration: Configuration) => Promise<void>
  /** As `TrailReader.query`, without the lock. */
  readonly query: (
    configuration: Configuration,
    ...request: Parameters<TrailReader['query']>
  ) => ReturnType<TrailReader['query']>
}
