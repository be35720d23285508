/** The parts of a service that the handlers of operations use. */
import type { Operator } from '../../base/contracts/records/audited-change.ts'
import type { Environment } from '../../base/config/validate.ts'
import type {
  ErasedEverywhere,
  RecordedErasure,
  Redacted,
  TrailReader,
} from '../../base/contracts/records/audit-query.ts'
import type { AuditEntry, AuditTrail } from '../../base/contracts/records/audit.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { Doubted, Store } from '../../base/contracts/records/store.ts'
import type { Editors } from '../../identity/directory/editors/editors.ts'
import type { Holdings } from '../../identity/directory/records/holdings.ts'
import type { LocalLockouts } from '../../identity/guessing/lockouts.ts'
import type { LogoutNotices } from '../../identity/dependencies/logouts.ts'
import type { StoreTokenRevoker } from '../../identity/stored/token-revoker.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import type { CallHistory } from '../../gateway/maintenance/call-history.ts'
import type { MaintenanceRecords } from '../../gateway/maintenance/records.ts'
import type { WorkerPool } from '../../base/contracts/processes/worker-pool.ts'
import type { Configuration } from '../settings/configuration.ts'
import type { Settings } from '../settings/settings.ts'
import type { RevocationRules } from '../../state/stores/feed/revocations.ts'
import type { StoreDoubts } from '../../state/stores/feed/store-doubts.ts'
import type { Readiness } from '../../base/kernel/health.ts'
import type { ConfigurationStanding, PassingCause } from '../watch/status/status.ts'
import type { KeyWork } from './key-work.ts'
import type { OpenIntents } from './open-intents.ts'
import type { GaugeReading } from '../../base/contracts/processes/reports.ts'

/** The context of operations that are carried out with the service up or down: in it, or in the process of a command. */
export interface OperationContext {
  readonly audit: AuditTrail
  readonly recorder: Pick<Recorder, 'note'>
  readonly clock: Clock
  /** `{auth_url}`, where people open the pages. */
  readonly authUrl: () => string
  /**
   * The editors for the configuration in force, opened when they are first asked for. Rejects with AdminError or
   * ConfigurationError if the directory cannot be opened.
   */
  readonly editors: () => Promise<Editors>
  /**
   * Rejects with Fault `audit_unavailable` if an operation that gives something could not be recorded now. Absent where
   * nobody knows before.
   */
  readonly canRecord?: () => Promise<void>
  readonly intents: OpenIntents
  /** Undefined in a sidecar, which signs nothing. Rejects with KeyError or StoreError if the keys cannot be used. */
  keys(): Promise<KeyWork | undefined>
  /** The trail that is asked. Absent where none is kept. */
  readonly trail: QueriedTrail | undefined
  /** Absent where no trail is kept. */
  readonly trailOwner: TrailEraser | undefined
  /** The processes that serve. Absent where none do. */
  readonly pool?: Pick<WorkerPool<Configuration>, 'followKeys'>
}

/** The trail that is asked, and where the question is recorded. */
export interface QueriedTrail extends Pick<TrailReader, 'query'> {
  /** Records a question. Never rejects: what cannot be recorded stops no question. */
  note(entry: AuditEntry): void | Promise<void>
}

/** The context of operations of a running service, in the process that holds everything that exists only once. */
export interface ServiceContext extends OperationContext {
  readonly store: Store
  readonly rules: Pick<RevocationRules, 'asOf' | 'hasEnded'>
  readonly tokenRevoker: Pick<StoreTokenRevoker, 'end' | 'preview'>
  readonly logouts: LogoutNotices
  readonly maintenance: Pick<MaintenanceRecords, 'list' | 'set' | 'end' | 'now'>
  readonly doubts: Pick<StoreDoubts, Doubted | 'accept'>
  readonly trail: (QueriedTrail & Pick<TrailReader, 'verify'>) | undefined
  readonly trailOwner: EverywhereEraser | undefined
  readonly pool: WorkerPool<Configuration>
  readonly lockouts: Pick<LocalLockouts, 'list' | 'clear'>
  readonly environment: Environment
  readonly settings: Settings
  /** The version of Postern. */
  readonly version: string
  /** The file of the configuration; undefined if it does not come from one. */
  readonly file: string | undefined
  /** How the configuration in force was read, and what was refused since. */
  readonly loads: Pick<ConfigurationStanding, 'loadedAt' | 'refused'>
  /** The configuration in force. */
  readonly configuration: () => Configuration
  /** The people and their rights in the configuration in force. */
  readonly holdings: () => Holdings
  /** The gauges of all processes that live. */
  readonly readings: () => readonly GaugeReading[]
  readonly readiness: () => Readiness
  readonly callHistory: Pick<CallHistory, 'since' | 'counts'>
  /** When the service started, in milliseconds since the epoch. */
  readonly startedAt: number
  /** Reads the configuration anew. Never rejects. */
  readonly reload: (operator: Operator) => Promise<ReloadOutcome>
  /** Replaces every worker process, one after the other, without losing a call. Never rejects. */
  readonly restart: (operator: Operator) => Promise<RestartOutcome>
}

/** Each line of `problems` says where the problem is, what it is and what to do. It holds no secret. */
export type ReloadOutcome =
  | { readonly outcome: 'reloaded'; readonly warnings: readonly string[]; readonly revoked: number }
  | {
      readonly outcome: 'refused'
      readonly problems: readonly string[]
      /** Why it was refused, if its files have no mistake. It is tried again by itself. */
      readonly cause?: PassingCause | undefined
    }

export type RestartOutcome =
  | { readonly outcome: 'restarted'; readonly workers: number }
  | { readonly outcome: 'refused'; readonly problems: readonly string[] }

/** The owner of the trail, which erases personal values of it. */
export interface TrailEraser {
  /** Rejects as `recorded` does, and with Fault `audit_unavailable` if the segment cannot be ended: nothing is erased then. */
  redact(subject: string, recorded: RecordedErasure): Promise<Redacted>
}

/** The same of a running service, whose store other nodes may share. */
export interface EverywhereEraser extends TrailEraser {
  /**
   * As `redact`, and by an order in the store every node does it that shares it: also one that runs again later. Rejects also with
   * Fault `identity_unavailable`.
   */
  redactEverywhere(subject: string, recorded: RecordedErasure, operator: Operator): Promise<ErasedEverywhere>
}
