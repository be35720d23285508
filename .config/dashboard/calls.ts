import { AREA, JOB, orZero, quantile, rate, type Row } from './panel.ts'

const FAILED = `status=~"5..", status!="501"`
const REQUESTS = 'postern_requests_total'

export const NOW: Row = {
  title: 'Now',
  panels: [
    {
      title: 'Alerts that fire',
      description: 'How many alerts fire. Each has a section in deploy/runbooks.md.',
      unit: 'short',
      now: true,
      queries: { alerts: orZero(`count(ALERTS{alertstate="firing", ${JOB}})`) },
    },
    {
      title: 'Calls per second',
      description: 'All calls that are answered, refused ones too.',
      unit: 'reqps',
      now: true,
      queries: { calls: rate(`${REQUESTS}{${AREA}}`) },
    },
    {
      title: 'Share of calls that fail',
      description:
        'Calls that were answered with 5xx, but for 501. Maintenance is counted here; the alerts leave it out.',
      unit: 'percentunit',
      now: true,
      queries: {
        failed: `(${orZero(rate(`${REQUESTS}{${AREA}, ${FAILED}}`))}) / ${rate(`${REQUESTS}{${AREA}}`)}`,
      },
    },
    {
      title: 'Calls in flight',
      description: 'Calls that are being answered now. It grows when something behind is slow.',
      unit: 'short',
      now: true,
      queries: { calls: `sum(postern_calls_in_flight{${JOB}})` },
    },
    {
      title: 'Processes that serve',
      description: 'Workers that take calls, of all instances.',
      unit: 'short',
      now: true,
      queries: { serving: `sum(postern_workers{${JOB}, state="serving"})` },
    },
    {
      title: 'Version',
      description: 'More than one while another version is rolled out.',
      unit: 'short',
      now: true,
      queries: { '{{version}}, Node {{node}}': `count by (version, node) (postern_build_info{${JOB}})` },
    },
    {
      title: 'Answers by status',
      description: 'Answers per second by their status.',
      unit: 'reqps',
      queries: { '{{status}}': rate(`${REQUESTS}{${AREA}}`, 'status') },
    },
    {
      title: 'Time of a call',
      description: 'From the head of the request to the answer, the upstream included.',
      unit: 's',
      queries: Object.fromEntries(
        [0.5, 0.9, 0.99].map((share) => [
          `${share * 100} % are faster than`,
          quantile(share, 'postern_request_duration_seconds', `${AREA}, door="api"`),
        ]),
      ),
    },
    {
      title: 'Time in Postern itself (99 %)',
      description: 'The same without the time of waiting for the upstream. It should be a few milliseconds.',
      unit: 's',
      queries: {
        '{{area}}': quantile(0.99, 'postern_gateway_duration_seconds', `${AREA}, door="api"`, 'area'),
      },
    },
    {
      title: 'Slowest actions',
      description: 'The mean time of a call, of the ten actions where it is longest.',
      unit: 's',
      queries: {
        '{{area}}/{{action}}': `topk(10, ${rate(`postern_action_seconds_total{${AREA}}`, 'area, action')} / ${rate(`postern_action_calls_total{${AREA}}`, 'area, action')})`,
      },
    },
    {
      title: 'Actions that fail most',
      description: 'Answers from 500 on per second, of the ten actions that have most.',
      unit: 'reqps',
      queries: {
        '{{area}}/{{action}}': `topk(10, ${rate(`postern_action_errors_total{${AREA}}`, 'area, action')})`,
      },
    },
  ],
}

export const REFUSALS: Row = {
  title: 'Refusals',
  panels: [
    {
      title: 'Refused and failed calls by reason',
      description: 'What ended them, by its name in the log and in src/README.md.',
      unit: 'reqps',
      // Every reason has a series; those that happen are drawn.
      queries: {
        '{{reason}}': `${rate(`postern_decisions_total{${AREA}, reason!="allowed"}`, 'reason')} > 0`,
      },
    },
    {
      title: 'Clients that are refused most',
      description: 'Refused calls per second of the ten clients that have most.',
      unit: 'reqps',
      queries: {
        '{{client}}': `topk(10, ${rate(`postern_client_decisions_total{${JOB}, class="refused"}`, 'client')})`,
      },
    },
    {
      title: 'Clients that call most',
      description: 'Calls per second of the ten busiest clients, refused or not.',
      unit: 'reqps',
      queries: { '{{client}}': `topk(10, ${rate(`postern_client_decisions_total{${JOB}}`, 'client')})` },
    },
    {
      title: 'Actions that refuse most',
      description: 'Refused and failed calls per second of ten actions. Without a name: no action was found.',
      unit: 'reqps',
      queries: {
        '{{area}}/{{action}}': `topk(10, ${rate(`postern_decisions_total{${AREA}, reason!="allowed"}`, 'area, action')})`,
      },
    },
    {
      title: 'Would be refused (report-only areas)',
      description: 'Calls that were let through, and will be refused once the area is enforced.',
      unit: 'reqps',
      queries: {
        '{{area}}: {{reason}}': rate(`postern_would_refuse_total{${AREA}}`, 'area, reason'),
      },
    },
    {
      title: 'Report-only areas',
      description: 'Areas that refuse nothing. They protect nothing.',
      unit: 'short',
      queries: { '{{instance}}': `postern_report_only_areas{${JOB}}` },
    },
  ],
}
