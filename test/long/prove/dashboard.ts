/**
 * `node test/long/prove/dashboard.ts [--seconds 180] [--to deploy/grafana/postern.svg]`: draws the dashboard anew, from what a
 * real Prometheus has seen of a service with traffic, refusals, a dead upstream, a worker that dies and maintenance.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type DashboardPanel, readDashboard, withoutVariables } from '../../support/dashboard.ts'
import { drawDashboard, type DrawnPanel, type DrawnSeries } from '../../support/draw-dashboard.ts'
import type { Point } from '../../support/prometheus.ts'
import { ROOT } from '../../support/spawn-postern.ts'
import { makeCalls, makeLogins, startWatchedService } from '../../support/watched-service.ts'

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '180' },
    to: { type: 'string', default: join(ROOT, 'deploy/grafana/postern.svg') },
  },
})
const SECONDS = Number(options.seconds)
/** Seconds: between two points, and of rates. */
const STEP = 3
const INTERVAL = 10

const watched = await startWatchedService()
const { service, upstream, prometheus } = watched

/** What happens, by the share of the time that is over. */
const EVENTS: readonly { readonly at: number; readonly do: () => unknown }[] = [
  { at: 0.2, do: () => watched.postern('maintenance', 'on', '--business', 'GLOBEX') },
  { at: 0.45, do: () => process.kill(workers()[0] ?? 0, 'SIGKILL') },
  { at: 0.6, do: () => upstream.behave((call) => setTimeout(() => call.respond(ANSWER), 120)) },
  { at: 0.8, do: () => upstream.behave((call) => call.respond(ANSWER)) },
]
const ANSWER = {
  headers: { 'Content-Type': 'application/json' },
  body: '{"FundSummaries":[],"TotalCount":0}',
}

const workers = (): readonly number[] =>
  readFileSync(`/proc/${service.pid}/task/${service.pid}/children`, 'utf8').trim().split(/\s+/).map(Number)

const wait = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms))

async function makeTraffic(): Promise<void> {
  const begun = performance.now()
  const left = [...EVENTS]
  for (let round = 0; ; round++) {
    const share = (performance.now() - begun) / 1000 / SECONDS
    if (share >= 1) return
    while (left[0] !== undefined && share >= left[0].at) await left.shift()?.do()
    // Two waves, so that there is something to see.
    const callers = 1 + Math.round(2 * (1 + Math.sin(share * 4 * Math.PI)))
    await Promise.all(Array.from({ length: callers }, () => makeCalls(service).catch(() => undefined)))
    if (round % 5 === 0) await makeLogins(service).catch(() => undefined)
    await wait(150)
  }
}

const legendOf = (format: string, labels: Readonly<Record<string, string>>): string =>
  format.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => labels[label] || 'none')

/** @param end seconds since the epoch */
async function seriesOf({ targets = [] }: DashboardPanel, end: number): Promise<readonly DrawnSeries[]> {
  const found = await Promise.all(
    targets.map(async ({ expr, legendFormat }) => {
      const range = { end, seconds: SECONDS, step: STEP }
      const series = await prometheus.queryRange(withoutVariables(expr, INTERVAL), range)
      return series.map(({ metric, values }) => ({
        legend: legendOf(legendFormat, metric),
        values: filled(values, end),
      }))
    }),
  )
  return found.flat()
}

/** One value for each step of the whole time; NaN where there is none. */
function filled(points: readonly Point[], end: number): readonly number[] {
  const steps = Math.floor(SECONDS / STEP)
  const byStep = new Map(points.map(([time, value]) => [Math.round((end - time) / STEP), Number(value)]))
  return Array.from({ length: steps + 1 }, (_, at) => byStep.get(steps - at) ?? NaN)
}

try {
  await makeTraffic()
  const end = Date.now() / 1000
  const panels: DrawnPanel[] = []
  for (const panel of readDashboard().panels) panels.push({ panel, series: await seriesOf(panel, end) })
  const title = 'The dashboard of Postern, drawn from the metrics of a test service'
  writeFileSync(options.to, drawDashboard(title, panels, `${SECONDS} s ago`))
  const shown = panels.filter(({ series }) => series.length > 0).length
  console.log(
    `${options.to}: ${shown} panels with series, after ${upstream.requests.length} calls to the upstream`,
  )
} finally {
  await watched.close()
}
