/** The dashboard for Grafana, made of the tables of panels beside this file. */
import { NOW, REFUSALS } from './calls.ts'
import { IDENTITY } from './identity.ts'
import { AUDIT, OPERATIONS, PROCESS } from './operations.ts'
import type { Panel, Row } from './panel.ts'
import { UPSTREAMS } from './upstreams.ts'

export const ROWS: readonly Row[] = [NOW, REFUSALS, IDENTITY, UPSTREAMS, OPERATIONS, AUDIT, PROCESS]

/** A row of Grafana is 24 columns wide. */
const COLUMNS = 24
const SIZES = { now: { w: 4, h: 4 }, graph: { w: 8, h: 7 } } as const

const sizeOf = ({ now }: Panel): { readonly w: number; readonly h: number } =>
  now === true ? SIZES.now : SIZES.graph

interface Place {
  readonly x: number
  readonly y: number
}

/** Where the next panel begins, and where the line that it stands in ends. */
interface Cursor extends Place {
  readonly end: number
}

/** Puts panels side by side, and the next line below. Panels of another height begin a line of their own. */
function placeOf(panel: Panel, { x, y, end }: Cursor): Place {
  const { w, h } = sizeOf(panel)
  const fits = x + w <= COLUMNS && (x === 0 || end - y === h)
  return fits ? { x, y } : { x: 0, y: end }
}

const DATASOURCE = { type: 'prometheus', uid: '${datasource}' } as const

const targetsOf = ({ queries, now }: Panel): readonly object[] =>
  Object.entries(queries).map(([legendFormat, expr], at) => ({
    refId: String.fromCharCode('A'.charCodeAt(0) + at),
    datasource: DATASOURCE,
    expr,
    legendFormat,
    ...(now === true && { instant: true }),
  }))

const STAT = {
  type: 'stat',
  options: { reduceOptions: { calcs: ['lastNotNull'] }, colorMode: 'none', textMode: 'auto' },
} as const

const GRAPH = {
  type: 'timeseries',
  options: {
    legend: { displayMode: 'list', placement: 'bottom' },
    tooltip: { mode: 'multi', sort: 'desc' },
  },
} as const

const panelJson = (panel: Panel, id: number, { x, y }: Place): object => ({
  id,
  ...(panel.now === true ? STAT : GRAPH),
  title: panel.title,
  description: panel.description,
  datasource: DATASOURCE,
  gridPos: { x, y, ...sizeOf(panel) },
  fieldConfig: {
    defaults: { unit: panel.unit, ...(panel.now !== true && panel.unit !== 'dtdurations' && { min: 0 }) },
    overrides: [],
  },
  targets: targetsOf(panel),
})

function panelsJson(): readonly object[] {
  const made: object[] = []
  let top = 0
  for (const { title, panels } of ROWS) {
    const row = {
      type: 'row',
      title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y: top, w: COLUMNS, h: 1 },
    }
    made.push({ id: made.length + 1, ...row })
    let cursor: Cursor = { x: 0, y: top + 1, end: top + 1 }
    for (const panel of panels) {
      const place = placeOf(panel, cursor)
      const { w, h } = sizeOf(panel)
      made.push(panelJson(panel, made.length + 1, place))
      cursor = { x: place.x + w, y: place.y, end: place.y + h }
    }
    top = cursor.end
  }
  return made
}

/** A variable whose values are those of a label. */
const labelVariable = (name: string, label: string, query: string): object => ({
  name,
  label,
  type: 'query',
  datasource: DATASOURCE,
  query: { query, refId: name },
  refresh: 2,
  sort: 1,
  multi: true,
  includeAll: true,
  // Calls that ended before an area was found have none: they belong to all.
  allValue: '.*',
  current: { selected: true, text: ['All'], value: ['$__all'] },
})

const VARIABLES: readonly object[] = [
  { name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus' },
  labelVariable('job', 'Deployment', 'label_values(postern_build_info, job)'),
  labelVariable('area', 'Area', 'label_values(postern_action_calls_total{job=~"$job"}, area)'),
  labelVariable(
    'backend',
    'Backend',
    'label_values(postern_upstream_duration_seconds_count{job=~"$job"}, backend)',
  ),
]

/** The dashboard as Grafana imports it. */
export const dashboardJson = (): string =>
  JSON.stringify({
    uid: 'postern',
    title: 'Postern',
    description:
      'Calls, refusals, identity, upstreams, operations, the audit trail and the process of Postern.',
    tags: ['postern'],
    schemaVersion: 39,
    editable: true,
    graphTooltip: 1,
    time: { from: 'now-3h', to: 'now' },
    refresh: '30s',
    templating: { list: VARIABLES },
    annotations: { list: [] },
    panels: panelsJson(),
  })
