/**
 * The one registry of metrics, as Prometheus reads it. prom-client's own AggregatorRegistry is not used: its counters
 * fall when a worker dies, and a stopped worker fails the scrape. Here whoever counts hands over deltas, which are
 * added up by label; a scrape waits for nobody, and nothing ever falls, over reloads either.
 */
import { Registry, collectDefaultMetrics, type Metric } from 'prom-client'
import { HISTOGRAM_CELLS, type Child, type Delta } from './ledger.ts'
import { BUCKETS, FAMILIES, type MetricFamily } from './metric-families.ts'

interface Series {
  readonly values: readonly string[]
  readonly cells: Float64Array
}

interface Sample {
  readonly metricName?: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** By name, since a plan that came from another process has copies. */
const BY_NAME: ReadonlyMap<string, MetricFamily> = new Map(
  Object.values(FAMILIES).map((family) => [family.name, family]),
)

export interface BuildInfo {
  readonly version: string
  /** `process.version` */
  readonly node: string
}

/** Gauges of prom-client that are named like counters, which `promtool check metrics` refuses. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
] as const

/** Adds up what was counted, and shows it. */
export class Exposition {
  readonly #registry = new Registry()
  readonly #series = new Map<MetricFamily, Map<string, Series>>()
  /** For each plan of children, whose cells are whose. Old plans live as long as someone counts by them. */
  readonly #targets = new WeakMap<
    readonly Child[],
    readonly (readonly [Float64Array, number] | undefined)[]
  >()

  constructor(build: BuildInfo) {
    for (const family of Object.values(FAMILIES)) this.#register(family)
    this.#find(FAMILIES.buildInfo, [build.version, build.node]).cells[0] = 1
    this.showReportOnly(0)
    collectDefaultMetrics({ register: this.#registry })
    for (const name of MISNAMED) this.#registry.removeSingleMetric(name)
  }

  /** How many areas refuse nothing, in the configuration in force. */
  showReportOnly(areas: number): void {
    this.#find(FAMILIES.reportOnlyAreas, []).cells[0] = areas
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** Adds what somebody counted by a plan. */
  absorb(children: readonly Child[], { cells, amounts }: Delta): void {
    const targets = this.#targetsOf(children)
    cells.forEach((cell, at) => {
      const target = targets[cell]
      if (target === undefined) return
      const [totals, offset] = target
      totals[offset] = (totals[offset] ?? 0) + (amounts[at] ?? 0)
    })
  }

  /** The text format of Prometheus. */
  text(): Promise<string> {
    return this.#registry.metrics()
  }

  #targetsOf(children: readonly Child[]): readonly (readonly [Float64Array, number] | undefined)[] {
    const known = this.#targets.get(children)
    if (known !== undefined) return known
    const targets: [Float64Array, number][] = []
    for (const { family, values, at } of children) {
      const { cells } = this.#find(family, values)
      for (let offset = 0; offset < cells.length; offset++) targets[at + offset] = [cells, offset]
    }
    this.#targets.set(children, targets)
    return targets
  }

  #find({ name }: MetricFamily, values: readonly string[]): Series {
    const family = BY_NAME.get(name)
    if (family === undefined) throw new Error(`there is no metric ${name}`)
    const all = this.#series.get(family) ?? new Map<string, Series>()
    this.#series.set(family, all)
    const key = JSON.stringify(values)
    const found = all.get(key)
    if (found !== undefined) return found
    const made = { values, cells: new Float64Array(family.type === 'histogram' ? HISTOGRAM_CELLS : 1) }
    all.set(key, made)
    return made
  }

  /** prom-client asks a metric for its name and `get()` and no more, but its types ask for one of its own classes. */
  #register(family: MetricFamily): void {
    const { name, help, type } = family
    const get = (): Promise<unknown> =>
      Promise.resolve({ name, help, type, aggregator: 'sum', values: this.#samples(family) })
    this.#registry.registerMetric({ name, help, type, get } as unknown as Metric)
  }

  #samples(family: MetricFamily): readonly Sample[] {
    const all = [...(this.#series.get(family)?.values() ?? [])]
    return all
      .filter(({ cells }) => family.sparse !== true || cells[0] !== 0)
      .flatMap(({ values, cells }) => {
        const labels = Object.fromEntries(family.labels.map((label, at) => [label, values[at] ?? '']))
        return family.type === 'histogram'
          ? histogramSamples(family.name, labels, cells)
          : [{ labels, value: cells[0] ?? 0 }]
      })
  }
}

function histogramSamples(
  name: string,
  labels: Record<string, string>,
  cells: Float64Array,
): readonly Sample[] {
  let count = 0
  const buckets = [...BUCKETS, Infinity].map((bound, at) => {
    count += cells[at] ?? 0
    const le = bound === Infinity ? '+Inf' : String(bound)
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: cells[BUCKETS.length + 1] ?? 0 },
    { metricName: `${name}_count`, labels, value: count },
  ]
}
