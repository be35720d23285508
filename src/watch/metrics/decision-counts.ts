/** What is counted of each answered call. Everything but the addition of numbers is done at load. */
import type { DecisionEvent } from '../../contracts/recorder.ts'
import { CLIENT_RESULTS } from '../../contracts/principal.ts'
import { type ActionRows, axisOf, type NamedAction } from './action-rows.ts'
import { placesOf, UNKNOWN } from './label-places.ts'
import { HISTOGRAM_CELLS, type MetricCounts, type MetricPlan } from './metric-counts.ts'
import { FAMILIES } from './metric-families.ts'
import { classAt, STATUS_CLASSES, statusAt, STATUSES } from './statuses.ts'

export type Count<Event> = (counts: MetricCounts, event: Event) => void

interface DecisionNames {
  readonly actions: readonly NamedAction[]
  readonly reasons: readonly string[]
  /** Areas in which nothing is refused. */
  readonly reportOnly?: readonly string[]
}

const DOORS = ['api', 'userinfo', 'identity', 'none'] as const
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', UNKNOWN] as const
const ALLOWED = 'allowed'
const NO_ACTION: NamedAction = { area: '', action: '' }

/** Where calls came in: the doors, and the areas of the API. */
interface Entries {
  readonly axis: { readonly door: readonly string[]; readonly area: readonly string[] }
  readonly doorAt: (door: string) => number
  /** By slot of the action: the number of its area's row. */
  readonly bySlot: Uint32Array
}

function entriesOf(actions: readonly NamedAction[]): Entries {
  const areas = [...new Set(actions.map(({ area }) => area))]
  const places = new Map(areas.map((area, at) => [area, DOORS.length + at]))
  return {
    axis: {
      door: [...DOORS, ...areas.map(() => DOORS[0])],
      area: [...DOORS.map(() => ''), ...areas],
    },
    doorAt: placesOf(DOORS),
    bySlot: Uint32Array.from(actions, ({ area }) => places.get(area) ?? 0),
  }
}

/** Counts by door, by area, by action and by client. */
export function planDecisions(
  plan: MetricPlan,
  { actions, reasons }: DecisionNames,
  rows: ActionRows,
): Count<DecisionEvent> {
  const { axis, doorAt, bySlot } = entriesOf(actions)
  const requests = planRequests(plan, axis)
  const durations = planDurations(plan, axis)
  const decided = planReasons(plan, reasons, rows)
  const countAction = planActions(plan, rows)
  const countClient = planClients(plan)
  return (counts, event) => {
    const { door, exchange, status, slot = -1, totalMs, upstreamMs = 0 } = event
    const entry = bySlot[slot] ?? doorAt(door)
    const seconds = totalMs / 1000
    counts.add(requests(entry, exchange.head.method, status))
    counts.add(decided(slot, event.fault?.code))
    counts.observe(durations.total(entry, status), seconds)
    counts.observe(durations.own(entry), Math.max(0, totalMs - upstreamMs) / 1000)
    countAction(counts, slot, status, seconds)
    countClient(counts, event)
  }
}

function planRequests(
  plan: MetricPlan,
  axis: Entries['axis'],
): (entry: number, method: string, status: number) => number {
  const methodAt = placesOf(METHODS)
  const at = plan.plan(FAMILIES.requests, axis, { method: METHODS }, { status: STATUSES })
  return (entry, method, status) =>
    at + (entry * METHODS.length + methodAt(method)) * STATUSES.length + statusAt(status)
}

/** One histogram for each area, which its actions share: one for each action would be thousands of series. */
function planDurations(plan: MetricPlan, axis: Entries['axis']) {
  const total = plan.plan(FAMILIES.requestDuration, axis, { class: STATUS_CLASSES })
  const own = plan.plan(FAMILIES.gatewayDuration, axis)
  return {
    total: (entry: number, status: number) =>
      total + (entry * STATUS_CLASSES.length + classAt(status)) * HISTOGRAM_CELLS,
    own: (entry: number) => own + entry * HISTOGRAM_CELLS,
  }
}

function planReasons(
  plan: MetricPlan,
  reasons: readonly string[],
  { rows, bySlot }: ActionRows,
): (slot: number, code: string | undefined) => number {
  const known = [...reasons, UNKNOWN]
  const reasonAt = placesOf(known)
  // From 0 on, each action's success, and each reason where there is no action: a first call is seen as a step.
  const allowed = plan.show(FAMILIES.decisions, axisOf([...rows, NO_ACTION]), { reason: [ALLOWED] })
  plan.show(FAMILIES.decisions, axisOf([NO_ACTION]), { reason: reasons })
  const refused = plan.plan(FAMILIES.decisions, axisOf([...rows, NO_ACTION]), { reason: known })
  return (slot, code) => {
    const row = bySlot[slot] ?? rows.length
    return code === undefined ? allowed + row : refused + row * known.length + reasonAt(code)
  }
}

type CountAction = (counts: MetricCounts, slot: number, status: number, seconds: number) => void

function planActions(plan: MetricPlan, { rows, bySlot }: ActionRows): CountAction {
  const axis = axisOf(rows)
  const calls = plan.plan(FAMILIES.actionCalls, axis)
  const sums = plan.plan(FAMILIES.actionSeconds, axis)
  const errors = plan.plan(FAMILIES.actionErrors, axis)
  return (counts, slot, status, seconds) => {
    const row = bySlot[slot]
    if (row === undefined) return
    counts.add(calls + row)
    counts.add(sums + row, seconds)
    if (status >= 500) counts.add(errors + row)
  }
}

const resultOf = ({ status, fault }: DecisionEvent): number =>
  status >= 500 ? 2 : fault === undefined ? 0 : 1

/** Clients of the directory count in their own tallies, which are told by name; all others together. */
function planClients(plan: MetricPlan): Count<DecisionEvent> {
  const others = plan.plan(FAMILIES.clientDecisions, { client: [UNKNOWN] }, { class: CLIENT_RESULTS })
  return (counts, event) => {
    const { principal } = event
    if (principal === undefined) return
    const result = resultOf(event)
    if (principal.tally === undefined) counts.add(others + result)
    else principal.tally.count(result)
  }
}

/** Counts what report-only areas would have refused: by action, or by area if no action matched. */
export function planReported(
  plan: MetricPlan,
  { reasons, reportOnly = [] }: DecisionNames,
  { rows, bySlot }: ActionRows,
): Count<DecisionEvent> {
  const known = [...reasons, UNKNOWN]
  const reasonAt = placesOf(known)
  const open = new Set(reportOnly)
  const own = [...rows.keys()].filter((row) => open.has(rows[row]?.area ?? ''))
  const shown = [
    ...own.map((row) => rows[row] ?? NO_ACTION),
    ...reportOnly.map((area) => ({ area, action: '' })),
  ]
  const base = plan.plan(FAMILIES.wouldRefuse, axisOf(shown), { reason: known })
  const byRow = new Map(own.map((row, at) => [row, at]))
  const byArea = new Map(reportOnly.map((area, at) => [area, own.length + at]))
  return (counts, { slot = -1, reported }) => {
    if (reported === undefined) return
    const row = byRow.get(bySlot[slot] ?? -1) ?? byArea.get(reported.area)
    if (row !== undefined) counts.add(base + row * known.length + reasonAt(reported.fault.code))
  }
}
