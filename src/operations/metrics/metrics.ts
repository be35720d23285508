import type {
  BackendEvent,
  DecisionEvent,
  Recorder,
  TokenEvent,
  TunnelEvent,
} from '../../contracts/recorder.ts'
import { type GaugeReading, type GaugeSource, reading } from './gauges.ts'
import {
  type Axis,
  type Delta,
  HISTOGRAM_CELLS,
  MetricCounts,
  MetricPlan,
  type Plan,
} from './metric-counts.ts'
import { FAMILIES } from './metric-families.ts'

/** All label values. They come from the configuration and from tables in the code, never from a request (C11.1, T5.8). */
export interface MetricNames {
  /** In the order of the slots of decision events. */
  readonly actions: readonly { readonly area: string; readonly action: string }[]
  readonly backends: readonly string[]
  /** Areas in which nothing is refused. */
  readonly reportOnly?: readonly string[]
  /** Every fault code. */
  readonly reasons: readonly string[]
  readonly grants: readonly string[]
}

/** The metrics that one process counts. */
export interface Metrics {
  readonly recorder: Omit<Recorder, 'note'>
  /** Says what the cell numbers in `take()` mean. Always the same object. */
  readonly plan: Plan
  /** Returns what was counted since the last call, for an Exposition that may be in another process. */
  readonly take: () => Delta
  /** What is open now of what was recorded. */
  readonly gauges: GaugeSource
}

const DOORS = ['api', 'userinfo', 'identity', 'none'] as const
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'other'] as const
const STATUSES = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const
const ALLOWED = 'allowed'
const ANSWERED = 'answered'
const UNKNOWN = 'other'
const TUNNEL_ENDS = ['closed', 'token', 'idle', 'shutdown', UNKNOWN] as const
const TOKEN_RESULTS = [
  'issued',
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
  'temporarily_unavailable',
  'server_error',
  UNKNOWN,
] as const

/** The position of a known word, or the last position, which is for all other words. */
type Places = (word: string) => number

function placesOf(words: readonly string[]): Places {
  const places = new Map(words.map((word, at) => [word, at]))
  const last = words.length - 1
  return (word) => places.get(word) ?? last
}

/** Numbers all cells at load, and makes the recorder that counts in them. */
export function compileMetrics(names: MetricNames): Metrics {
  const plan = new MetricPlan()
  const decisions = planDecisions(plan, names)
  const reported = planReported(plan, names)
  const tokens = planTokens(plan, names.grants)
  const backends = planBackends(plan, names)
  const tunnels = planTunnels(plan, names.backends)
  const hit = plan.plan(FAMILIES.tokenCache, { outcome: ['hit', 'miss'] })
  const counts = new MetricCounts(plan.size)
  const recorder = {
    decision: (event: DecisionEvent) => {
      decisions(counts, event)
      if (event.reported !== undefined) reported(counts, event)
    },
    token: (event: TokenEvent) => counts.add(tokens(event)),
    backend: (event: BackendEvent) => backends(counts, event),
    tunnel: (event: TunnelEvent) => tunnels.count(counts, event),
    tokenCache: (outcome: 'hit' | 'miss') => counts.add(outcome === 'hit' ? hit : hit + 1),
  }
  return { recorder, plan: plan.blocks, take: () => counts.take(), gauges: tunnels.gauges }
}

type Count<Event> = (counts: MetricCounts, event: Event) => void

type NamedAction = MetricNames['actions'][number]

const NO_ACTION: NamedAction = { area: '', action: '' }

const axisOf = (actions: readonly NamedAction[]): Axis => ({
  area: actions.map(({ area }) => area),
  action: actions.map(({ action }) => action),
})

function planDecisions(plan: MetricPlan, { actions, reasons }: MetricNames): Count<DecisionEvent> {
  const doorAt = placesOf(DOORS)
  const methodAt = placesOf(METHODS)
  const requests = plan.plan(FAMILIES.requests, { door: DOORS }, { method: METHODS }, { status: STATUSES })
  const outcomes = [ALLOWED, ...reasons, UNKNOWN]
  const outcomeAt = placesOf(outcomes)
  const none = actions.length
  const decisions = plan.plan(FAMILIES.decisions, axisOf([...actions, NO_ACTION]), { reason: outcomes })
  const durations = planDurations(plan, actions)
  return (counts, { door, exchange, status, fault, slot = none, totalMs, upstreamMs }) => {
    const line = doorAt(door) * METHODS.length + methodAt(exchange.head.method)
    const place = Math.min(STATUSES.length, Math.max(1, Math.floor(status / 100))) - 1
    counts.add(requests + line * STATUSES.length + place)
    const outcome = fault === undefined ? 0 : outcomeAt(fault.code)
    counts.add(decisions + Math.min(slot, none) * outcomes.length + outcome)
    const { total, own } = durations(door === 'api' ? slot : none, doorAt(door))
    counts.observe(total, totalMs / 1000)
    counts.observe(own, Math.max(0, totalMs - (upstreamMs ?? 0)) / 1000)
  }
}

/** Counts what report-only areas would have refused: by action, or by area if no action matched. */
function planReported(
  plan: MetricPlan,
  { actions, reasons, reportOnly = [] }: MetricNames,
): Count<DecisionEvent> {
  const known = [...reasons, UNKNOWN]
  const reasonAt = placesOf(known)
  const open = new Set(reportOnly)
  const slots = [...actions.keys()].filter((slot) => open.has(actions[slot]?.area ?? ''))
  const rows = [
    ...slots.map((slot) => actions[slot] ?? NO_ACTION),
    ...reportOnly.map((area) => ({ area, action: '' })),
  ]
  const base = plan.plan(FAMILIES.wouldRefuse, axisOf(rows), { reason: known })
  const bySlot = new Map(slots.map((slot, row) => [slot, row]))
  const byArea = new Map(reportOnly.map((area, at) => [area, slots.length + at]))
  return (counts, { slot, reported }) => {
    if (reported === undefined) return
    const row = (slot === undefined ? undefined : bySlot.get(slot)) ?? byArea.get(reported.area)
    if (row !== undefined) counts.add(base + row * known.length + reasonAt(reported.fault.code))
  }
}

type DurationCells = (slot: number, door: number) => { readonly total: number; readonly own: number }

/** One histogram for each area, which its actions share: one for each action would be thousands of series. */
function planDurations(plan: MetricPlan, actions: MetricNames['actions']): DurationCells {
  const areas = [...new Set(actions.map(({ area }) => area))]
  const axis = {
    door: [...DOORS, ...areas.map(() => 'api')],
    area: [...DOORS.map(() => ''), ...areas],
  }
  const base = {
    total: plan.plan(FAMILIES.requestDuration, axis),
    own: plan.plan(FAMILIES.gatewayDuration, axis),
  }
  const cells = axis.door.map((_door, row) => ({
    total: base.total + row * HISTOGRAM_CELLS,
    own: base.own + row * HISTOGRAM_CELLS,
  }))
  const byArea = new Map(areas.map((area, at) => [area, cells[DOORS.length + at]]))
  const bySlot = actions.map(({ area }) => byArea.get(area))
  return (slot, door) => bySlot[slot] ?? cells[door] ?? base
}

function planTokens(plan: MetricPlan, grants: readonly string[]): (event: TokenEvent) => number {
  const known = [...grants, 'none']
  const base = plan.plan(FAMILIES.tokens, { grant: known }, { result: TOKEN_RESULTS })
  const [grantAt, resultAt] = [placesOf(known), placesOf(TOKEN_RESULTS)]
  return ({ grant, result }) => base + grantAt(grant) * TOKEN_RESULTS.length + resultAt(result)
}

function planBackends(plan: MetricPlan, { backends, reasons }: MetricNames): Count<BackendEvent> {
  const outcomes = [ANSWERED, ...reasons, UNKNOWN]
  const known = [...backends, UNKNOWN]
  const calls = plan.plan(FAMILIES.backendCalls, { backend: known }, { outcome: outcomes })
  const durations = plan.plan(FAMILIES.upstreamDuration, { backend: known })
  const [backendAt, outcomeAt] = [placesOf(known), placesOf(outcomes)]
  return (counts, { backend, outcome, ms }) => {
    const at = backendAt(backend)
    counts.add(calls + at * outcomes.length + outcomeAt(outcome))
    counts.observe(durations + at * HISTOGRAM_CELLS, ms / 1000)
  }
}

interface CountedTunnels {
  readonly count: Count<TunnelEvent>
  readonly gauges: GaugeSource
}

function planTunnels(plan: MetricPlan, backends: readonly string[]): CountedTunnels {
  const known = [...backends, UNKNOWN]
  const open = known.map(() => 0)
  const ended = plan.plan(FAMILIES.tunnelsEnded, { backend: known }, { end: TUNNEL_ENDS })
  const [backendAt, endAt] = [placesOf(known), placesOf(TUNNEL_ENDS)]
  const count = (counts: MetricCounts, { backend, end }: TunnelEvent): void => {
    const at = backendAt(backend)
    open[at] = (open[at] ?? 0) + (end === undefined ? 1 : -1)
    if (end !== undefined) counts.add(ended + at * TUNNEL_ENDS.length + endAt(end))
  }
  const gauges = (): readonly GaugeReading[] =>
    open.map((number, at) => reading(FAMILIES.tunnelsOpen, number, known[at] ?? UNKNOWN))
  return { count, gauges }
}
