/** Draws a dashboard and its series as SVG, much as Grafana shows it. Nothing but text is needed for it. */
import type { DashboardPanel } from './dashboard.ts'
import { valueText } from './value-text.ts'

/** A line of a panel. Values that are missing are NaN. */
export interface DrawnSeries {
  readonly legend: string
  readonly values: readonly number[]
}

export interface DrawnPanel {
  readonly panel: DashboardPanel
  readonly series: readonly DrawnSeries[]
}

/** Pixels. */
const COLUMN = 60
const UNIT = 32
const GAP = 8
const LINES = 3
const END = ' text-anchor="end"'
const COLOURS = ['#1f6feb', '#c2410c', '#15803d', '#7e22ce', '#b45309', '#0e7490', '#be123c', '#4d5b7c']

const STYLE = `
text { font: 12px sans-serif; fill: #24292f }
.title { font-weight: bold; font-size: 13px }
.row { font-size: 17px; font-weight: bold }
.value { font-size: 24px }
.note { fill: #57606a; font-size: 11px }
.panel { fill: #fff; stroke: #d0d7de }
.grid { stroke: #e4e8ec }
.line { fill: none; stroke-width: 1.6 }
.page { fill: #f6f8fa }`

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

const text = (x: number, y: number, words: string, kind = '', more = ''): string =>
  `<text x="${x}" y="${y}"${kind && ` class="${kind}"`}${more}>${escaped(words)}</text>`

const cut = (words: string, most: number): string =>
  words.length <= most ? words : `${words.slice(0, most - 1)}…`

interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

const boxOf = ({ gridPos: { x, y, w, h } }: DashboardPanel): Box => ({
  x: x * COLUMN + GAP / 2,
  y: y * UNIT + GAP / 2,
  width: w * COLUMN - GAP,
  height: h * UNIT - GAP,
})

const unitOf = ({ fieldConfig }: DashboardPanel): string => fieldConfig?.defaults.unit ?? 'short'

const lastOf = (values: readonly number[]): number => values.findLast((value) => !Number.isNaN(value)) ?? NaN

function drawStat({ panel, series }: DrawnPanel, { x, y, width, height }: Box): string {
  const now = series.map(({ legend, values }) => ({
    legend,
    value: valueText(lastOf(values), unitOf(panel)),
  }))
  const [only] = now
  if (now.length === 1 && only !== undefined) {
    const isWord = panel.title === 'Version'
    const words = isWord ? cut(only.legend, 24) : only.value
    return text(
      x + width / 2,
      y + height / 2 + 18,
      words,
      isWord ? 'title' : 'value',
      ' text-anchor="middle"',
    )
  }
  return now
    .slice(0, LINES + 2)
    .map(({ legend, value }, at) => text(x + 12, y + 42 + at * 15, `${cut(legend, 18)}: ${value}`))
    .join('')
}

/** The least of 1, 2, 2.5 and 5, times a power of ten, that is not below the value. */
function roundUp(value: number): number {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 2.5, 5, 10].find((step) => step * power >= value * 0.9999) ?? 10) * power
}

interface Scale {
  readonly x: (at: number) => number
  readonly y: (value: number) => number
}

/** `7-11.3`: numbers need a space between them only where no sign begins the next. */
const step = (...numbers: readonly number[]): string =>
  numbers.map((each, at) => (at > 0 && each >= 0 ? ` ${each}` : String(each))).join('')

/** A path with gaps where values are missing: each point by its distance from the one before, which takes half the bytes. */
function pathOf(values: readonly number[], { x, y }: Scale): string {
  // In tenths of a pixel, so that no distance is rounded anew.
  const points = values.map((value, at) => [Math.round(x(at)) * 10, Math.round(y(value) * 10)] as const)
  return points
    .map(([left, top], at) => {
      if (Number.isNaN(top)) return ''
      const [from, over] = points[at - 1] ?? [0, Number.NaN]
      return Number.isNaN(over)
        ? `M${step(left / 10, top / 10)}`
        : `l${step((left - from) / 10, (top - over) / 10)}`
    })
    .join('')
}

function drawGrid(box: Box, most: number, unit: string, { y }: Scale): string {
  const { x, width } = box
  return [0, 0.5, 1]
    .map((share) => {
      const at = y(most * share)
      const line = `<path class="grid" d="M${x + 62} ${at.toFixed(1)}H${x + width - 12}"/>`
      return line + text(x + 56, at + 4, valueText(most * share, unit), 'note', END)
    })
    .join('')
}

function drawLegend(series: readonly DrawnSeries[], { x, y, width, height }: Box): string {
  const shown = series.slice(0, LINES * 2)
  const half = (width - 24) / 2
  const entries = shown.map(({ legend }, at) => {
    const [left, top] = [x + 12 + (at % 2) * half, y + height - 12 - (LINES - 1 - Math.floor(at / 2)) * 15]
    const mark = `<rect x="${left}" y="${top - 8}" width="9" height="9" fill="${COLOURS[at % COLOURS.length]}"/>`
    return mark + text(left + 14, top, cut(legend, 30), 'note')
  })
  const left = series.length - shown.length
  return entries.join('') + (left > 0 ? text(x + width - 12, y + 20, `and ${left} more`, 'note', END) : '')
}

function drawGraph({ panel, series }: DrawnPanel, box: Box, begun: string): string {
  const { x, y, width, height } = box
  const points = Math.max(...series.map(({ values }) => values.length))
  const most = roundUp(
    Math.max(...series.flatMap(({ values }) => values.filter((value) => !Number.isNaN(value)))),
  )
  const [top, bottom] = [y + 34, y + height - 28 - LINES * 15]
  const scale: Scale = {
    x: (at) => x + 62 + ((width - 74) * at) / Math.max(1, points - 1),
    y: (value) => bottom - ((bottom - top) * Math.max(0, value)) / most,
  }
  const lines = series.map(
    ({ values }, at) =>
      `<path class="line" stroke="${COLOURS[at % COLOURS.length]}" d="${pathOf(values, scale)}"/>`,
  )
  const times =
    text(x + 62, bottom + 14, begun, 'note') + text(x + width - 12, bottom + 14, 'now', 'note', END)
  return drawGrid(box, most, unitOf(panel), scale) + lines.join('') + times + drawLegend(series, box)
}

/** The largest first: what does not fit the legend is small. */
const sorted = (series: readonly DrawnSeries[]): readonly DrawnSeries[] => {
  const top = ({ values }: DrawnSeries): number =>
    Math.max(...values.filter((value) => !Number.isNaN(value)), 0)
  return series.toSorted((one, other) => top(other) - top(one))
}

function drawPanel({ panel, series }: DrawnPanel, begun: string): string {
  const box = boxOf(panel)
  if (panel.type === 'row') return text(box.x + 4, box.y + 19, panel.title, 'row')
  const frame = `<rect class="panel" rx="4" x="${box.x}" y="${box.y}" width="${box.width}" height="${box.height}"/>`
  const drawn = { panel, series: sorted(series) }
  const content = panel.type === 'stat' ? drawStat({ panel, series }, box) : drawGraph(drawn, box, begun)
  return `<g>${frame}${text(box.x + 12, box.y + 20, cut(panel.title, Math.floor(box.width / 7.2)), 'title')}${content}</g>`
}

/** @param begun when the series begin, in words */
export function drawDashboard(title: string, panels: readonly DrawnPanel[], begun: string): string {
  const height = Math.max(...panels.map(({ panel: { gridPos } }) => gridPos.y + gridPos.h)) * UNIT
  const width = 24 * COLUMN
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(title)}">
<style>${STYLE}</style>
<rect class="page" width="${width}" height="${height}"/>
${panels.map((panel) => drawPanel(panel, begun)).join('\n')}
</svg>
`
}
