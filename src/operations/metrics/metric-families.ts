/** The table of the published metrics. `metrics.md` describes them for people; a test keeps both the same. */
export interface MetricFamily {
  readonly name: string
  readonly type: 'counter' | 'histogram' | 'gauge'
  readonly help: string
  readonly labels: readonly string[]
  /** Prints only series that were counted, since most combinations never occur. */
  readonly sparse?: boolean
}

const counter = (name: string, help: string, labels: readonly string[]): MetricFamily => ({
  name,
  type: 'counter',
  help,
  labels,
})
const sparse = (family: MetricFamily): MetricFamily => ({ ...family, sparse: true })
const histogram = (name: string, help: string, labels: readonly string[]): MetricFamily => ({
  name,
  type: 'histogram',
  help,
  labels,
})

export const FAMILIES = {
  requests: sparse(counter('postern_requests_total', 'Requests answered.', ['door', 'method', 'status'])),
  decisions: sparse(
    counter('postern_decisions_total', 'Decisions by the fault that ended them, or allowed.', [
      'reason',
      'area',
      'action',
    ]),
  ),
  wouldRefuse: sparse(
    counter(
      'postern_would_refuse_total',
      'Calls let through by a report-only area, by what would refuse them.',
      ['reason', 'area', 'action'],
    ),
  ),
  reportOnlyAreas: {
    name: 'postern_report_only_areas',
    type: 'gauge',
    help: 'Areas in which nothing is refused.',
    labels: [],
  },
  requestDuration: histogram(
    'postern_request_duration_seconds',
    'Time from the head of a request to its answer.',
    ['door', 'area'],
  ),
  gatewayDuration: histogram(
    'postern_gateway_duration_seconds',
    'The part of the time that was spent in Postern itself, waiting for a backend not counted.',
    ['door', 'area'],
  ),
  upstreamDuration: histogram('postern_upstream_duration_seconds', 'Time spent waiting for a backend.', [
    'backend',
  ]),
  backendCalls: sparse(
    counter('postern_backend_calls_total', 'Calls to backends by outcome.', ['backend', 'outcome']),
  ),
  tunnelsOpen: {
    name: 'postern_tunnels_open',
    type: 'gauge',
    help: 'Websockets that are open now.',
    labels: ['backend'],
  },
  tunnelsEnded: sparse(
    counter('postern_tunnels_ended_total', 'Websockets that have ended, by what ended them.', [
      'backend',
      'end',
    ]),
  ),
  tokens: counter('postern_tokens_total', 'Token requests by grant and result.', ['grant', 'result']),
  tokenCache: counter('postern_token_cache_total', 'Look-ups of verified tokens in the cache.', ['outcome']),
  logDropped: counter('postern_log_dropped_total', 'Lines of the log that could not be kept.', []),
  buildInfo: {
    name: 'postern_build_info',
    type: 'gauge',
    help: 'Always 1; its labels tell the version.',
    labels: ['version', 'node'],
  },
} as const satisfies Record<string, MetricFamily>

/** Upper bounds in seconds, from half a millisecond to half a minute. */
export const BUCKETS: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]
