import { BACKEND, inAnHour, quantile, rate, type Row } from './panel.ts'

const sumOf = (gauge: string, by: string): string => `sum by (${by}) (${gauge}{${BACKEND}})`

export const UPSTREAMS: Row = {
  title: 'Upstreams',
  panels: [
    {
      title: 'Calls to backends',
      description: 'Per second, by what became of them.',
      unit: 'reqps',
      queries: {
        '{{backend}}: {{outcome}}': rate(`postern_backend_calls_total{${BACKEND}}`, 'backend, outcome'),
      },
    },
    {
      title: 'Waiting for backends (99 %)',
      description: 'How long one of 100 calls waits for its backend at least.',
      unit: 's',
      queries: {
        '{{backend}}': quantile(0.99, 'postern_upstream_duration_seconds', BACKEND, 'backend'),
      },
    },
    {
      title: 'Targets',
      description:
        'Targets that get calls, and those that get none because they failed. By the worst view of any process.',
      unit: 'short',
      queries: {
        '{{backend}}: {{state}}': `min by (backend, state) (postern_upstream_targets{${BACKEND}, state="healthy"}) or max by (backend, state) (postern_upstream_targets{${BACKEND}, state!="healthy"})`,
      },
    },
    {
      title: 'Targets that were taken out',
      description: 'Within an hour, each time that a target was taken out because it failed.',
      unit: 'short',
      queries: { '{{backend}}': inAnHour(`postern_upstream_ejections_total{${BACKEND}}`, 'backend') },
    },
    {
      title: 'Calls in flight at backends',
      description: 'Calls that wait for their backend now.',
      unit: 'short',
      queries: { '{{backend}}': sumOf('postern_backend_calls_in_flight', 'backend') },
    },
    {
      title: 'Calls that wait for a connection',
      description: 'Above 0: maxConnections of the backend is reached.',
      unit: 'short',
      queries: { '{{backend}}': sumOf('postern_upstream_queue', 'backend') },
    },
    {
      title: 'Connections',
      description: 'Connections to targets, in use and unused.',
      unit: 'short',
      queries: { '{{backend}}: {{state}}': sumOf('postern_upstream_connections', 'backend, state') },
    },
    {
      title: 'Calls that were repeated',
      description: 'Per second, because a target did not answer.',
      unit: 'reqps',
      queries: { '{{backend}}': rate(`postern_upstream_retries_total{${BACKEND}}`, 'backend') },
    },
    {
      title: 'Open websockets',
      description: 'Websockets that are open now.',
      unit: 'short',
      queries: { '{{backend}}': sumOf('postern_tunnels_open', 'backend') },
    },
  ],
}
