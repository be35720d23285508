/** The dashboard, over what a real Prometheus has seen of a running service. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readDashboard, withoutVariables } from '../support/dashboard.ts'
import { isMissing, needing } from '../support/machine.ts'
import { unknownIn } from '../support/promql.ts'
import {
  makeCalls,
  makeLogins,
  startWatchedService,
  type WatchedService,
} from '../support/watched-service.ts'

const panels = readDashboard().panels.filter(({ type }) => type !== 'row')
const expressions = panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => [title, expr] as const),
)
/** Milliseconds. */
const PATIENCE = 120_000

describe('deploy/grafana/postern.json', () => {
  it('C11.1 has the rows that people look for, and the variables that they choose by', () => {
    const { panels: all, templating } = readDashboard()
    const rows = all.filter(({ type }) => type === 'row').map(({ title }) => title)
    const order = ['Now', 'Refusals', 'Identity', 'Upstreams', 'Operations', 'Audit', 'Process']
    expect(rows).toEqual(order)
    expect(templating.list.map(({ name }) => name)).toEqual(['datasource', 'job', 'area', 'backend'])
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
  })

  it('C11.1 says of each panel what it shows, in which unit', () => {
    for (const { title, description, fieldConfig, targets = [] } of panels) {
      expect(title).toMatch(/^[A-Z][^_]{3,45}$/)
      expect(description, title).toMatch(/^[A-Z].{10,}\.$/)
      expect(fieldConfig?.defaults.unit, title).toMatch(/^\w+$/)
      expect(targets.length, title).toBeGreaterThan(0)
    }
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length)
  })

  it('C11.1 asks only for metrics and labels that Postern has, and names only labels that are left', () => {
    for (const [title, expr] of expressions)
      expect(
        unknownIn(expr).filter((name) => name !== 'ALERTS'),
        title,
      ).toEqual([])
  })

  it('C11.1 lays no panel over another', () => {
    const places = readDashboard().panels.map(({ gridPos }) => gridPos)
    const cells = places.flatMap(({ x, y, w, h }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`),
    )
    expect(new Set(cells).size).toBe(cells.length)
    for (const { x, w } of places) expect(x + w).toBeLessThanOrEqual(24)
  })
})

describe('deploy/grafana/postern.json over a real Prometheus', needing('prometheus', 'openssl'), () => {
  let watched: WatchedService | undefined
  beforeAll(async () => {
    if (isMissing('prometheus') || isMissing('openssl')) return
    watched = await startWatchedService()
    await watched.postern('maintenance', 'on', '--business', 'GLOBEX', '--until', '1h')
  }, PATIENCE)
  afterAll(() => watched?.close())

  it(
    'C11.1 shows something in each panel, and names it by labels that it has',
    { timeout: PATIENCE },
    async () => {
      const { service, prometheus } = watched!
      const empty = async (): Promise<readonly string[]> => {
        await makeCalls(service)
        await makeLogins(service)
        const found = await Promise.all(
          expressions.map(async ([title, expr]) => {
            const series = await prometheus.query(withoutVariables(expr, 10))
            return series.length === 0 ? [`${title}: ${expr}`] : []
          }),
        )
        return found.flat()
      }
      await expect.poll(empty, { timeout: PATIENCE - 10_000, interval: 1000 }).toEqual([])
      for (const { title, targets = [] } of panels)
        for (const { expr, legendFormat } of targets) {
          const series = await prometheus.query(withoutVariables(expr, 10))
          const labels = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label)
          // An empty label is none, so not every series has them all.
          const known = series.flatMap(({ metric }) => Object.keys(metric))
          expect(known, title).toEqual(expect.arrayContaining(labels))
        }
    },
  )
})
