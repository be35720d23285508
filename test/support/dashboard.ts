/** The dashboard as Grafana reads it: its panels, and their expressions as Prometheus is asked. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './spawn-postern.ts'

export interface DashboardPanel {
  readonly id: number
  readonly type: 'row' | 'stat' | 'timeseries'
  readonly title: string
  readonly description?: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } }
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}

interface Dashboard {
  readonly templating: { readonly list: readonly { readonly name: string; readonly query: unknown }[] }
  readonly panels: readonly DashboardPanel[]
}

export const readDashboard = (): Dashboard =>
  JSON.parse(readFileSync(join(ROOT, 'deploy/grafana/postern.json'), 'utf8')) as Dashboard

/** An expression with every variable at "All". `interval`: of rates, in seconds. */
export const withoutVariables = (expression: string, interval: number): string =>
  expression.replaceAll('$__rate_interval', `${interval}s`).replaceAll(/\$(?:job|area|backend)\b/g, '.*')
