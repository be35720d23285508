/** A real Prometheus on a free port of loopback, and what it says. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from './free-port.ts'

/** Seconds since the epoch, and the value as Prometheus writes it. */
export type Point = readonly [number, string]

export interface FoundSeries {
  readonly metric: Readonly<Record<string, string>>
}

/** In seconds; `end` since the epoch. */
export interface TimeRange {
  readonly end: number
  readonly seconds: number
  readonly step: number
}

export interface Prometheus {
  readonly url: string
  /** The series that an expression gives now. Rejects with what Prometheus says against it. */
  query(expression: string): Promise<readonly (FoundSeries & { readonly value: Point })[]>
  /** The same over some time. */
  queryRange(
    expression: string,
    range: TimeRange,
  ): Promise<readonly (FoundSeries & { readonly values: readonly Point[] })[]>
  /** Alerts that are pending or fire, by name and labels. */
  alerts(): Promise<readonly FiringAlert[]>
  close(): Promise<void>
}

export interface FiringAlert {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly state: 'pending' | 'firing'
}

export interface PrometheusOptions {
  /** A folder of its own, which whoever made it removes. */
  readonly folder: string
  /** `127.0.0.1:PORT` of a listener with `/metrics`. */
  readonly target: string
  /** The text of a file of rules. */
  readonly rules: string
}

const configuration = (target: string): string => `
global: { scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }
rule_files: [rules.yaml]
scrape_configs: [{ job_name: postern, static_configs: [{ targets: ['${target}'] }] }]
`

/** Starts it, and waits until it answers. It scrapes and evaluates each second. */
export async function startPrometheus({ folder, target, rules }: PrometheusOptions): Promise<Prometheus> {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'prometheus.yaml'), configuration(target))
  writeFileSync(join(folder, 'rules.yaml'), rules)
  const address = `127.0.0.1:${await freePort()}`
  const child = spawn(
    'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yaml')}`,
      `--storage.tsdb.path=${join(folder, 'series')}`,
      `--web.listen-address=${address}`,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let output = ''
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const exited = once(child, 'exit')
  const url = `http://${address}`
  const isReady = async (): Promise<boolean> =>
    (await fetch(`${url}/-/ready`).catch(() => undefined))?.ok === true
  while (!(await isReady())) {
    if (child.exitCode !== null) throw new Error(`Prometheus has ended: ${output}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const ask = async (path: string, parameters: Readonly<Record<string, string>>): Promise<unknown> => {
    const response = await fetch(`${url}/api/v1/${path}?${new URLSearchParams(parameters).toString()}`)
    const answer = (await response.json()) as { readonly data?: unknown; readonly error?: string }
    if (answer.error !== undefined) throw new Error(`${answer.error}: ${parameters['query'] ?? path}`)
    return answer.data
  }
  return {
    url,
    query: async (query) => ((await ask('query', { query })) as { result: never }).result,
    queryRange: async (query, { end, seconds, step }) => {
      const range = { start: String(end - seconds), end: String(end), step: String(step) }
      return ((await ask('query_range', { query, ...range })) as { result: never }).result
    },
    alerts: async () => ((await ask('alerts', {})) as { alerts: never }).alerts,
    close: async () => {
      child.kill('SIGTERM')
      await exited
    },
  }
}
