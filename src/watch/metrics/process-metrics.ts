/** What a process counts from its start to its end, whatever configurations come and go. */
import { AUDIT_GROUPS, type AuditEvent, groupOf } from '../../kernel/audit-events.ts'
import { Counts, type Delta } from './counts.ts'
import { FAMILIES } from './families.ts'

/** As `Metrics`, for all of a process's life. Each function counts one event. */
export interface ProcessMetrics {
  readonly take: () => readonly Delta[]
  /** A call to the store has ended. `seconds`: how long it took. */
  readonly storeCalled: (verb: string, seconds: number, failed: boolean) => void
  readonly workerDied: () => void
  readonly peopleThreadReplaced: () => void
  readonly recorded: (event: AuditEvent) => void
  readonly refusedUnrecorded: () => void
  readonly recordDropped: () => void
  readonly trailSynced: (seconds: number) => void
  readonly anchorFailed: () => void
  readonly fileDisplaced: () => void
}

/**
 * Families of parts that the service does not have are not shown.
 * @param storeVerbs the names of the store's verbs; none in a sidecar, which keeps no state
 * @param audit whether it keeps an audit trail
 */
export function compileProcessMetrics(storeVerbs: readonly string[], audit: boolean): ProcessMetrics {
  const counts = new Counts()
  const verbs = { verb: storeVerbs }
  const verbAt = new Map(storeVerbs.map((verb, at) => [verb, at]))
  const durations = counts.plan(FAMILIES.storeVerbDuration, verbs)
  const errors = counts.plan(FAMILIES.storeErrors, verbs)
  const deaths = counts.plan(FAMILIES.workerDeaths)
  const peopleThreads = storeVerbs.length > 0 ? counts.plan(FAMILIES.peopleThreadReplacements) : undefined
  const trail = audit ? planTrail(counts) : undefined
  return {
    take: () => counts.take(),
    storeCalled: (verb, seconds, failed) => {
      const at = verbAt.get(verb)
      if (at === undefined) return
      durations.observe(seconds, at)
      if (failed) errors.add(1, at)
    },
    workerDied: () => deaths.add(1),
    peopleThreadReplaced: () => peopleThreads?.add(1),
    recorded: (event) => trail?.records.add(1, AUDIT_GROUPS.indexOf(groupOf(event))),
    refusedUnrecorded: () => trail?.refused.add(1),
    recordDropped: () => trail?.dropped.add(1),
    trailSynced: (seconds) => trail?.syncs.observe(seconds),
    anchorFailed: () => trail?.anchorFailures.add(1),
    fileDisplaced: () => trail?.displaced.add(1),
  }
}

const planTrail = (counts: Counts) => ({
  syncs: counts.plan(FAMILIES.auditSyncDuration),
  records: counts.plan(FAMILIES.auditRecords, { group: AUDIT_GROUPS }),
  refused: counts.plan(FAMILIES.auditRefused),
  dropped: counts.plan(FAMILIES.auditDropped),
  anchorFailures: counts.plan(FAMILIES.auditAnchorFailures),
  displaced: counts.plan(FAMILIES.auditFilesDisplaced),
})
