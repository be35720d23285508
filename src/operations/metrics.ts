import type { BackendEvent, DecisionEvent, Recorder, TokenEvent, TunnelEvent } from '../contracts/recorder.ts'
import { Ledger, LedgerPlan, HISTOGRAM_CELLS, type Child, type Delta } from './ledger.ts'
import { FAMILIES } from './metric-families.ts'

/** All that labels may say: from the configuration and the tables of the code, never from a request (C11.1, T5.8). */
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

/** The metrics as one process counts them. */
export interface Metrics {
  readonly recorder: Omit<Recorder, 'note'>
  readonly children: readonly Child[]
  /** What was counted since the last call: given to the exposition, which may be another process's. */
  readonly take: () => Delta
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

/** Where a known word stands; the last place, which is for all others, else. */
type Places = (word: string) => number

function placesOf(words: readonly string[]): Places {
  const places = new Map(words.map((word, at) => [word, at]))
  const last = words.length - 1
  return (word) => places.get(word) ?? last
}

/** Numbers every series once, at load. */
export function compileMetrics(names: MetricNames): Metrics {
  const plan = new LedgerPlan()
  const decisions = planDecisions(plan, names)
  const reported = planReported(plan, names)
  const tokens = planTokens(plan, names.grants)
  const backends = planBackends(plan, names)
  const tunnels = planTunnels(plan, names.backends)
  const hit = plan.plan(FAMILIES.tokenCache, ['hit', 'miss'])
  const ledger = new Ledger(plan.size)
  const recorder = {
    decision: (event: DecisionEvent) => {
      decisions(ledger, event)
      if (event.reported !== undefined) reported(ledger, event)
    },
    token: (event: TokenEvent) => ledger.add(tokens(event)),
    backend: (event: BackendEvent) => backends(ledger, event),
    tunnel: (event: TunnelEvent) => tunnels(ledger, event),
    tokenCache: (outcome: 'hit' | 'miss') => ledger.add(outcome === 'hit' ? hit : hit + 1),
  }
  return { recorder, children: plan.children, take: () => ledger.take() }
}

type Count<Event> = (ledger: Ledger, event: Event) => void

function planDecisions(plan: LedgerPlan, { actions, reasons }: MetricNames): Count<DecisionEvent> {
  const doorAt = placesOf(DOORS)
  const methodAt = placesOf(METHODS)
  const requests = plan.plan(FAMILIES.requests, DOORS, METHODS, STATUSES)
  const reasonAt = placesOf([ALLOWED, ...reasons, UNKNOWN])
  const byAction = [...actions, { area: '', action: '' }].map(({ area, action }) => {
    const base = plan.size
    for (const reason of [ALLOWED, ...reasons, UNKNOWN])
      plan.planOne(FAMILIES.decisions, [reason, area, action])
    return base
  })
  const durations = planDurations(plan, actions)
  return (ledger, { door, exchange, status, fault, slot, totalMs, upstreamMs }) => {
    const line = doorAt(door) * METHODS.length + methodAt(exchange.head.method)
    const place = Math.min(STATUSES.length, Math.max(1, Math.floor(status / 100))) - 1
    ledger.add(requests + line * STATUSES.length + place)
    const action = byAction[slot ?? actions.length] ?? byAction.at(-1) ?? 0
    ledger.add(action + (fault === undefined ? 0 : reasonAt(fault.code)))
    const { total, own } = durations(door === 'api' ? slot : undefined, doorAt(door))
    ledger.observe(total, totalMs / 1000)
    ledger.observe(own, Math.max(0, totalMs - (upstreamMs ?? 0)) / 1000)
  }
}

/** What a report-only area would have refused; by its area alone where no action was found. */
function planReported(
  plan: LedgerPlan,
  { actions, reasons, reportOnly = [] }: MetricNames,
): Count<DecisionEvent> {
  const known = [...reasons, UNKNOWN]
  const reasonAt = placesOf(known)
  const planRow = (area: string, action: string): number => {
    const base = plan.size
    for (const reason of known) plan.planOne(FAMILIES.wouldRefuse, [reason, area, action])
    return base
  }
  const bySlot = new Map(
    actions.flatMap(({ area, action }, slot) =>
      reportOnly.includes(area) ? [[slot, planRow(area, action)] as const] : [],
    ),
  )
  const byArea = new Map(reportOnly.map((area) => [area, planRow(area, '')]))
  return (ledger, { slot, reported }) => {
    if (reported === undefined) return
    const base = (slot === undefined ? undefined : bySlot.get(slot)) ?? byArea.get(reported.area)
    if (base !== undefined) ledger.add(base + reasonAt(reported.fault.code))
  }
}

type DurationCells = (
  slot: number | undefined,
  door: number,
) => { readonly total: number; readonly own: number }

/** Histograms by area, since one per action would be thousands; an area's actions share one. */
function planDurations(plan: LedgerPlan, actions: MetricNames['actions']): DurationCells {
  const areas = [...new Set(actions.map(({ area }) => area))]
  const rows = [...DOORS.map((door) => [door, '']), ...areas.map((area) => ['api', area])]
  const base = { total: plan.size, own: plan.size + rows.length * HISTOGRAM_CELLS }
  for (const row of rows) plan.planOne(FAMILIES.requestDuration, row)
  for (const row of rows) plan.planOne(FAMILIES.gatewayDuration, row)
  const cells = rows.map((_row, at) => ({
    total: base.total + at * HISTOGRAM_CELLS,
    own: base.own + at * HISTOGRAM_CELLS,
  }))
  const bySlot = actions.map(({ area }) => cells[DOORS.length + areas.indexOf(area)])
  return (slot, door) => (slot === undefined ? undefined : bySlot[slot]) ?? cells[door] ?? base
}

function planTokens(plan: LedgerPlan, grants: readonly string[]): (event: TokenEvent) => number {
  const known = [...grants, 'none']
  const base = plan.plan(FAMILIES.tokens, known, TOKEN_RESULTS)
  const [grantAt, resultAt] = [placesOf(known), placesOf(TOKEN_RESULTS)]
  return ({ grant, result }) => base + grantAt(grant) * TOKEN_RESULTS.length + resultAt(result)
}

function planBackends(plan: LedgerPlan, { backends, reasons }: MetricNames): Count<BackendEvent> {
  const outcomes = [ANSWERED, ...reasons, UNKNOWN]
  const known = [...backends, UNKNOWN]
  const calls = plan.plan(FAMILIES.backendCalls, known, outcomes)
  const durations = plan.plan(FAMILIES.upstreamDuration, known)
  const [backendAt, outcomeAt] = [placesOf(known), placesOf(outcomes)]
  return (ledger, { backend, outcome, ms }) => {
    const at = backendAt(backend)
    ledger.add(calls + at * outcomes.length + outcomeAt(outcome))
    ledger.observe(durations + at * HISTOGRAM_CELLS, ms / 1000)
  }
}

/** How many are open is told in deltas too, up and down: summed over all processes and reloads it is the number. */
function planTunnels(plan: LedgerPlan, backends: readonly string[]): Count<TunnelEvent> {
  const known = [...backends, UNKNOWN]
  const open = plan.plan(FAMILIES.tunnelsOpen, known)
  const ended = plan.plan(FAMILIES.tunnelsEnded, known, TUNNEL_ENDS)
  const [backendAt, endAt] = [placesOf(known), placesOf(TUNNEL_ENDS)]
  return (ledger, { backend, end }) => {
    const at = backendAt(backend)
    ledger.add(open + at, end === undefined ? 1 : -1)
    if (end !== undefined) ledger.add(ended + at * TUNNEL_ENDS.length + endAt(end))
  }
}
