/** What a process counts from its start to its end, whatever configurations come and go. */
import { AUDIT_GROUPS, type AuditEvent, groupOf } from '../../kernel/audit-events.ts'
import { type Delta, HISTOGRAM_CELLS, MetricCounts, MetricPlan, type Plan } from './metric-counts.ts'
import { FAMILIES } from './metric-families.ts'

/** What a service has; families of parts that it does not have are not shown. */
export interface CountedParts {
  /** The names of the store's verbs; none in a sidecar, which keeps no state. */
  readonly storeVerbs: readonly string[]
  readonly audit: boolean
}

/** As `Metrics`, for all of a process's life. Each function counts one event. */
export interface ProcessMetrics {
  readonly plan: Plan
  readonly take: () => Delta
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

export function compileProcessMetrics({ storeVerbs, audit }: CountedParts): ProcessMetrics {
  const plan = new MetricPlan()
  const verbs = { verb: storeVerbs }
  const verbAt = new Map(storeVerbs.map((verb, at) => [verb, at]))
  const [durations, errors] = [
    plan.plan(FAMILIES.storeVerbDuration, verbs),
    plan.plan(FAMILIES.storeErrors, verbs),
  ]
  const deaths = plan.plan(FAMILIES.workerDeaths)
  const peopleThreads = storeVerbs.length > 0 ? plan.plan(FAMILIES.peopleThreadReplacements) : undefined
  const trail = audit ? planTrail(plan) : undefined
  const counts = new MetricCounts(plan.size)
  return {
    plan: plan.blocks,
    take: () => counts.take(),
    storeCalled: (verb, seconds, failed) => {
      const at = verbAt.get(verb)
      if (at === undefined) return
      counts.observe(durations + at * HISTOGRAM_CELLS, seconds)
      if (failed) counts.add(errors + at)
    },
    workerDied: () => counts.add(deaths),
    peopleThreadReplaced: () => peopleThreads !== undefined && counts.add(peopleThreads),
    recorded: (event) => trail && counts.add(trail.records + AUDIT_GROUPS.indexOf(groupOf(event))),
    refusedUnrecorded: () => trail && counts.add(trail.refused),
    recordDropped: () => trail && counts.add(trail.dropped),
    trailSynced: (seconds) => trail && counts.observe(trail.syncs, seconds),
    anchorFailed: () => trail && counts.add(trail.anchorFailures),
    fileDisplaced: () => trail && counts.add(trail.displaced),
  }
}

const planTrail = (plan: MetricPlan) => ({
  syncs: plan.plan(FAMILIES.auditSyncDuration),
  records: plan.plan(FAMILIES.auditRecords, { group: AUDIT_GROUPS }),
  refused: plan.plan(FAMILIES.auditRefused),
  dropped: plan.plan(FAMILIES.auditDropped),
  anchorFailures: plan.plan(FAMILIES.auditAnchorFailures),
  displaced: plan.plan(FAMILIES.auditFilesDisplaced),
})
