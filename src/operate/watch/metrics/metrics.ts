/** What is counted of the calls that a configuration serves, and of a process. All but the addition of numbers is done at load. */
import { SUPPORTED_METHODS } from '../../../base/http/head/head.ts'
import { STATUS_CODES } from 'node:http'
import { CLIENT_RESULTS } from '../../../base/contracts/people/principal.ts'
import type {
  BackendEvent,
  DecisionEvent,
  Recorder,
  Replayed,
  TokenEvent,
  TunnelEvent,
  UpstreamEvent,
} from '../../../base/contracts/records/recorder.ts'
import { AUDIT_GROUPS, type AuditEvent, groupOf } from '../../../base/kernel/audit-events.ts'
import { PROOF_ERRORS } from '../../../base/kernel/fault-table.ts'
import { type Axis, Counts, positionsOf, UNKNOWN } from './counts.ts'
import { type AddedCounter, FAMILIES } from './families.ts'
import { planIdentityCounts } from './identity-counts.ts'
import { type GaugeSource, reading } from './gauges.ts'
import type { ProcessLoad } from './process-load.ts'
import type { Delta, GaugeReading } from '../../../base/contracts/processes/reports.ts'

interface NamedAction {
  readonly area: string
  readonly action: string
}

/** All label values. They come from the configuration and from tables in the code, never from a request (C11.1, T5.8). */
export interface MetricNames {
  /** In the order of the slots of decision events. */
  readonly actions: readonly NamedAction[]
  readonly backends: readonly string[]
  readonly reportOnly?: readonly string[]
  /** Every fault code. */
  readonly reasons: readonly string[]
  readonly grants: readonly string[]
  /** Counters that extensions add. */
  readonly counters?: readonly AddedCounter[]
}

export interface Metrics {
  readonly recorder: Omit<Recorder, 'note'>
  /** Returns what was counted since the last call, for an Exposition that may be in another process. */
  readonly take: () => readonly Delta[]
  /** How much of what was recorded is open now. */
  readonly gauges: GaugeSource
}

const ANSWERED = 'answered'
const REPLAYED: readonly Replayed[] = ['code', 'refresh_token']
const TUNNEL_ENDS = ['closed', 'token', 'idle', 'shutdown', UNKNOWN] as const
const TOKEN_RESULTS = [
  'issued',
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
  'invalid_target',
  ...PROOF_ERRORS,
  'temporarily_unavailable',
  'server_error',
  UNKNOWN,
] as const

export function compileMetrics(names: MetricNames): Metrics {
  const counts = new Counts()
  const rows = rowsOfActions(names.actions)
  const decision = planDecisions(counts, names, rows)
  const reported = planReported(counts, names, rows)
  const tunnels = planTunnels(counts, names.backends)
  const cache = counts.plan(FAMILIES.tokenCache, { outcome: ['hit', 'miss'] })
  const replays = counts.plan(FAMILIES.tokenReplays, { kind: REPLAYED })
  const recorder: Metrics['recorder'] = {
    decision: (event) => {
      decision(event)
      if (event.reported !== undefined) reported(event)
    },
    token: planTokens(counts, names.grants),
    backend: planBackends(counts, names),
    tunnel: tunnels.count,
    upstream: planUpstreams(counts, names.backends),
    replay: (of) => replays.add(1, REPLAYED.indexOf(of)),
    count: planIdentityCounts(counts, names.counters),
    tokenCache: (outcome) => cache.add(1, outcome === 'hit' ? 0 : 1),
  }
  return { recorder, take: () => counts.take(), gauges: tunnels.gauges }
}

function planTokens(counts: Counts, grants: readonly string[]): (event: TokenEvent) => void {
  const known = [...grants, 'none']
  const tokens = counts.plan(FAMILIES.tokens, { grant: known }, { result: TOKEN_RESULTS })
  const [grantAt, resultAt] = [positionsOf(known), positionsOf(TOKEN_RESULTS)]
  return ({ grant, result }) => tokens.add(1, grantAt(grant), resultAt(result))
}

function planBackends(counts: Counts, { backends, reasons }: MetricNames): (event: BackendEvent) => void {
  const outcomes = [ANSWERED, ...reasons, UNKNOWN]
  const known = [...backends, UNKNOWN]
  const calls = counts.plan(FAMILIES.backendCalls, { backend: known }, { outcome: outcomes })
  const durations = counts.plan(FAMILIES.upstreamDuration, { backend: known })
  for (const at of backends.keys()) calls.show(at, outcomes.indexOf(ANSWERED))
  const [backendAt, outcomeAt] = [positionsOf(known), positionsOf(outcomes)]
  return ({ backend, outcome, ms }) => {
    calls.add(1, backendAt(backend), outcomeAt(outcome))
    durations.observe(ms / 1000, backendAt(backend))
  }
}

function planUpstreams(
  counts: Counts,
  backends: readonly string[],
): (backend: string, event: UpstreamEvent) => void {
  const known = [...backends, UNKNOWN]
  const backendAt = positionsOf(known)
  const events = {
    retry: counts.plan(FAMILIES.upstreamRetries, { backend: known }),
    ejection: counts.plan(FAMILIES.upstreamEjections, { backend: known }),
  }
  return (backend, event) => events[event].add(1, backendAt(backend))
}

function planTunnels(counts: Counts, backends: readonly string[]) {
  const known = [...backends, UNKNOWN]
  const open = known.map(() => 0)
  const ended = counts.plan(FAMILIES.tunnelsEnded, { backend: known }, { end: TUNNEL_ENDS })
  const [backendAt, endAt] = [positionsOf(known), positionsOf(TUNNEL_ENDS)]
  const count = ({ backend, end }: TunnelEvent): void => {
    const at = backendAt(backend)
    open[at] = (open[at] ?? 0) + (end === undefined ? 1 : -1)
    if (end !== undefined) ended.add(1, at, endAt(end))
  }
  const gauges = (): readonly GaugeReading[] =>
    open.map((number, at) => reading(FAMILIES.tunnelsOpen, number, known[at] ?? UNKNOWN))
  return { count, gauges }
}

/** The actions that have series of their own: the first of the configuration. */
const MOST_ACTIONS = 500
/** The name under which the further actions of an area are counted together. No path of an action has a bracket there. */
const FURTHER = '(others)'
const NO_ACTION: NamedAction = { area: '', action: '' }

interface ActionRows {
  readonly rows: readonly NamedAction[]
  /** By slot: the number of its row. */
  readonly bySlot: Uint32Array
}

/**
 * One row for each name up to `MOST_ACTIONS`, then one for each area that has further actions. Slots whose area and
 * action are the same (one per level) share a row.
 */
function rowsOfActions(actions: readonly NamedAction[]): ActionRows {
  const names = new Map<string, NamedAction>()
  for (const named of actions) if (names.size < MOST_ACTIONS) names.set(keyOf(named), named)
  const shown = actions.map((named) => (names.has(keyOf(named)) ? named : { ...named, action: FURTHER }))
  const rows = [...new Map(shown.map((named) => [keyOf(named), named])).values()]
  const places = new Map(rows.map((named, at) => [keyOf(named), at]))
  return { rows, bySlot: Uint32Array.from(shown, (named) => places.get(keyOf(named)) ?? 0) }
}

/** An area has no slash. An action may have some. */
const keyOf = ({ area, action }: NamedAction): string => `${area}/${action}`

const axisOf = (rows: readonly NamedAction[]): Axis => ({
  area: rows.map(({ area }) => area),
  action: rows.map(({ action }) => action),
})

const DOORS = ['api', 'userinfo', 'identity', 'none'] as const
const METHODS = [...SUPPORTED_METHODS, UNKNOWN] as const
const ALLOWED = 'allowed'

function entriesOf(actions: readonly NamedAction[]) {
  const areas = [...new Set(actions.map(({ area }) => area))]
  const places = new Map(areas.map((area, at) => [area, DOORS.length + at]))
  return {
    axis: {
      door: [...DOORS, ...areas.map(() => DOORS[0])],
      area: [...DOORS.map(() => ''), ...areas],
    },
    doorAt: positionsOf(DOORS),
    /** By slot of the action: the number of its area's row. */
    bySlot: Uint32Array.from(actions, ({ area }) => places.get(area) ?? 0),
  }
}

/** In the order of `classAt`. */
const STATUS_CLASSES = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const
/** Each status that has a meaning by itself, and the class for all others: an upstream may answer with any (C11.1). */
const STATUSES: readonly string[] = [...STATUS_CLASSES, ...Object.keys(STATUS_CODES)]
const LAST_STATUS = 599

/** Index in `STATUS_CLASSES`. A status below 100 or above 599 counts as the class that is nearest. */
const classAt = (status: number): number => Math.floor(Math.min(LAST_STATUS, Math.max(100, status)) / 100) - 1

const statusPlaces = Uint8Array.from({ length: LAST_STATUS + 1 }, (_, status) => {
  const known = STATUSES.indexOf(String(status))
  return known >= 0 ? known : classAt(status)
})

/** Index in `STATUSES`. */
const statusAt = (status: number): number => statusPlaces[status] ?? classAt(status)

function planDecisions(
  counts: Counts,
  { actions, reasons }: Pick<MetricNames, 'actions' | 'reasons'>,
  rows: ActionRows,
): (event: DecisionEvent) => void {
  const { axis, doorAt, bySlot } = entriesOf(actions)
  const methodAt = positionsOf(METHODS)
  const requests = counts.plan(FAMILIES.requests, axis, { method: METHODS }, { status: STATUSES })
  // One histogram for each area, which its actions share: one for each action would be thousands of series.
  const totals = counts.plan(FAMILIES.requestDuration, axis, { class: STATUS_CLASSES })
  const own = counts.plan(FAMILIES.gatewayDuration, axis)
  const countReason = planReasons(counts, reasons, rows)
  const countAction = planActions(counts, rows)
  const countClient = planClients(counts)
  return (event) => {
    const { door, exchange, status, slot = -1, totalMs, upstreamMs = 0 } = event
    const entry = bySlot[slot] ?? doorAt(door)
    requests.add(1, entry, methodAt(exchange.head.method), statusAt(status))
    totals.observe(totalMs / 1000, entry, classAt(status))
    own.observe(Math.max(0, totalMs - upstreamMs) / 1000, entry)
    countReason(slot, event.fault?.code)
    countAction(slot, status, totalMs / 1000)
    countClient(event)
  }
}

function planReasons(
  counts: Counts,
  reasons: readonly string[],
  { rows, bySlot }: ActionRows,
): (slot: number, code: string | undefined) => void {
  const known = [ALLOWED, ...reasons, UNKNOWN]
  const reasonAt = positionsOf(known)
  const decisions = counts.plan(FAMILIES.decisions, axisOf([...rows, NO_ACTION]), { reason: known })
  // From 0 on, each action's success, and each reason where there is no action: a first call is seen as a step.
  for (const row of rows.keys()) decisions.show(row, reasonAt(ALLOWED))
  for (const reason of [ALLOWED, ...reasons]) decisions.show(rows.length, reasonAt(reason))
  return (slot, code = ALLOWED) => decisions.add(1, bySlot[slot] ?? rows.length, reasonAt(code))
}

function planActions(
  counts: Counts,
  { rows, bySlot }: ActionRows,
): (slot: number, status: number, seconds: number) => void {
  const axis = axisOf(rows)
  const calls = counts.plan(FAMILIES.actionCalls, axis)
  const sums = counts.plan(FAMILIES.actionSeconds, axis)
  const errors = counts.plan(FAMILIES.actionErrors, axis)
  return (slot, status, seconds) => {
    const row = bySlot[slot]
    if (row === undefined) return
    calls.add(1, row)
    sums.add(seconds, row)
    if (status >= 500) errors.add(1, row)
  }
}

const resultOf = ({ status, fault }: DecisionEvent): number =>
  status >= 500 ? 2 : fault === undefined ? 0 : 1

/** Clients of the directory count in their own tallies, which are named; all others together. */
function planClients(counts: Counts): (event: DecisionEvent) => void {
  const others = counts.plan(FAMILIES.clientDecisions, { client: [UNKNOWN] }, { class: CLIENT_RESULTS })
  return (event) => {
    const { principal } = event
    if (principal === undefined) return
    if (principal.tally === undefined) others.add(1, 0, resultOf(event))
    else principal.tally.count(resultOf(event))
  }
}

/** Counts what report-only areas would have refused: by action, or by area if no action matched. */
function planReported(
  counts: Counts,
  { reasons, reportOnly = [] }: Pick<MetricNames, 'reasons' | 'reportOnly'>,
  { rows, bySlot }: ActionRows,
): (event: DecisionEvent) => void {
  const known = [...reasons, UNKNOWN]
  const reasonAt = positionsOf(known)
  const open = new Set(reportOnly)
  const own = [...rows.keys()].filter((row) => open.has(rows[row]?.area ?? ''))
  const shown = [
    ...own.map((row) => rows[row] ?? NO_ACTION),
    ...reportOnly.map((area) => ({ area, action: '' })),
  ]
  const refused = counts.plan(FAMILIES.wouldRefuse, axisOf(shown), { reason: known })
  const byRow = new Map(own.map((row, at) => [row, at]))
  const byArea = new Map(reportOnly.map((area, at) => [area, own.length + at]))
  return ({ slot = -1, reported }) => {
    if (reported === undefined) return
    const row = byRow.get(bySlot[slot] ?? -1) ?? byArea.get(reported.area)
    if (row !== undefined) refused.add(1, row, reasonAt(reported.fault.code))
  }
}

/** The counts of a process's trail. Each function adds one event. */
export interface TrailMetrics {
  readonly recorded: (event: AuditEvent) => void
  /** An act that was to be recorded before it happens was refused. */
  readonly refusedUnrecorded: () => void
  readonly recordDropped: () => void
  readonly trailSynced: (seconds: number) => void
  readonly anchorFailed: () => void
  /** A file that was being written was removed, moved or changed. */
  readonly fileDisplaced: () => void
}

/** What a process counts from its start to its end, whatever configurations come and go. Each function counts one event. */
export interface ProcessMetrics extends TrailMetrics {
  readonly take: () => readonly Delta[]
  /** @param seconds how long the call took */
  readonly storeCalled: (verb: string, seconds: number, failed: boolean) => void
  readonly workerDied: () => void
  readonly connectionRefused: () => void
  readonly peopleThreadReplaced: () => void
}

/**
 * Families of parts that the service does not have are not shown.
 * @param storeVerbs none in a sidecar, which keeps no state
 * @param load undefined in a process whose load is not shown, or shown already
 */
export function compileProcessMetrics(
  storeVerbs: readonly string[],
  keepsTrail: boolean,
  load?: ProcessLoad,
): ProcessMetrics {
  const counts = new Counts()
  const verbs = { verb: storeVerbs }
  const verbAt = new Map(storeVerbs.map((verb, at) => [verb, at]))
  const durations = counts.plan(FAMILIES.storeVerbDuration, verbs)
  const errors = counts.plan(FAMILIES.storeErrors, verbs)
  const deaths = counts.plan(FAMILIES.workerDeaths)
  const refused = counts.plan(FAMILIES.connectionsRefused)
  const peopleThreads = storeVerbs.length > 0 ? counts.plan(FAMILIES.peopleThreadReplacements) : undefined
  const trail = keepsTrail ? planTrail(counts) : undefined
  const processor = load && counts.plan(FAMILIES.processCpu, { process: [load.name] })
  return {
    take: () => {
      processor?.add(load?.takeProcessorSeconds() ?? 0)
      return counts.take()
    },
    storeCalled: (verb, seconds, failed) => {
      const at = verbAt.get(verb)
      if (at === undefined) return
      durations.observe(seconds, at)
      if (failed) errors.add(1, at)
    },
    workerDied: () => deaths.add(1),
    connectionRefused: () => refused.add(1),
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
