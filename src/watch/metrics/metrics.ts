import type {
  BackendEvent,
  DecisionEvent,
  Recorder,
  Replayed,
  TokenEvent,
  TunnelEvent,
  UpstreamEvent,
} from '../../contracts/recorder.ts'
import { type GaugeReading, type GaugeSource, reading } from './gauges.ts'
import { type NamedAction, rowsOfActions } from './action-rows.ts'
import { type Count, planDecisions, planReported } from './decision-counts.ts'
import { placesOf, UNKNOWN } from './label-places.ts'
import { type Delta, HISTOGRAM_CELLS, MetricCounts, MetricPlan, type Plan } from './metric-counts.ts'
import { FAMILIES } from './metric-families.ts'

/** All label values. They come from the configuration and from tables in the code, never from a request (C11.1, T5.8). */
export interface MetricNames {
  /** In the order of the slots of decision events. */
  readonly actions: readonly NamedAction[]
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
  'temporarily_unavailable',
  'server_error',
  UNKNOWN,
] as const

/** Numbers all cells at load, and makes the recorder that counts in them. */
export function compileMetrics(names: MetricNames): Metrics {
  const plan = new MetricPlan()
  const rows = rowsOfActions(names.actions)
  const decisions = planDecisions(plan, names, rows)
  const reported = planReported(plan, names, rows)
  const tokens = planTokens(plan, names.grants)
  const backends = planBackends(plan, names)
  const tunnels = planTunnels(plan, names.backends)
  const upstreams = planUpstreams(plan, names.backends)
  const hit = plan.plan(FAMILIES.tokenCache, { outcome: ['hit', 'miss'] })
  const replays = plan.plan(FAMILIES.tokenReplays, { kind: REPLAYED })
  const counts = new MetricCounts(plan.size)
  const recorder = {
    decision: (event: DecisionEvent) => {
      decisions(counts, event)
      if (event.reported !== undefined) reported(counts, event)
    },
    token: (event: TokenEvent) => counts.add(tokens(event)),
    backend: (event: BackendEvent) => backends(counts, event),
    tunnel: (event: TunnelEvent) => tunnels.count(counts, event),
    upstream: (backend: string, event: UpstreamEvent) => counts.add(upstreams(backend, event)),
    replay: (of: Replayed) => counts.add(replays + REPLAYED.indexOf(of)),
    tokenCache: (outcome: 'hit' | 'miss') => counts.add(outcome === 'hit' ? hit : hit + 1),
  }
  return { recorder, plan: plan.blocks, take: () => counts.take(), gauges: tunnels.gauges }
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
  plan.show(FAMILIES.backendCalls, { backend: backends }, { outcome: [ANSWERED] })
  const calls = plan.plan(FAMILIES.backendCalls, { backend: known }, { outcome: outcomes })
  const durations = plan.plan(FAMILIES.upstreamDuration, { backend: known })
  const [backendAt, outcomeAt] = [placesOf(known), placesOf(outcomes)]
  return (counts, { backend, outcome, ms }) => {
    const at = backendAt(backend)
    counts.add(calls + at * outcomes.length + outcomeAt(outcome))
    counts.observe(durations + at * HISTOGRAM_CELLS, ms / 1000)
  }
}

function planUpstreams(
  plan: MetricPlan,
  backends: readonly string[],
): (backend: string, event: UpstreamEvent) => number {
  const known = [...backends, UNKNOWN]
  const backendAt = placesOf(known)
  const first = {
    retry: plan.plan(FAMILIES.upstreamRetries, { backend: known }),
    ejection: plan.plan(FAMILIES.upstreamEjections, { backend: known }),
  }
  return (backend, event) => first[event] + backendAt(backend)
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
