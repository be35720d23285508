/**
 * The one registry of metrics, as Prometheus reads it. prom-client's own AggregatorRegistry is not used: its counters
 * fall when a worker dies, and a stopped worker fails the scrape. Here whoever counts hands over deltas, which are
 * added up by label; a scrape waits for nobody, and nothing ever falls, over reloads either.
 */
import { AggregatorRegistry, Registry, collectDefaultMetrics } from 'prom-client'
import { FamilyTotals, type NumberedBlock } from './family-totals.ts'
import { type Block, type Delta, holds, MetricPlan, type Plan } from './metric-counts.ts'
import { BUCKETS, FAMILIES, type MetricFamily } from './metric-families.ts'

interface Sample {
  readonly metricName?: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** A block, and where it is added up. */
interface Target extends NumberedBlock {
  readonly totals: FamilyTotals
}

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
  /** By name, since a plan that came from another process has copies of the families. */
  readonly #totals = new Map<string, FamilyTotals>()
  /** Old plans live as long as someone counts by them. */
  readonly #targets = new WeakMap<Plan, readonly Target[]>()
  /** What nobody else counts. */
  readonly #own = new MetricPlan()
  readonly #reportOnly: number
  #reportOnlyAreas = 0
  readonly #logDropped: number
  #linesDropped = 0

  constructor({ version, node }: BuildInfo) {
    for (const family of Object.values(FAMILIES)) this.#totals.set(family.name, new FamilyTotals(family))
    const built = this.#own.plan(FAMILIES.buildInfo, { version: [version], node: [node] })
    this.#reportOnly = this.#own.plan(FAMILIES.reportOnlyAreas)
    this.#logDropped = this.#own.plan(FAMILIES.logDropped)
    this.absorb(this.#own.blocks, { cells: [built], amounts: [1] })
    collectDefaultMetrics({ register: this.#registry })
    for (const name of MISNAMED) this.#registry.removeSingleMetric(name)
  }

  /** How many areas refuse nothing, in the configuration in force. */
  showReportOnly(areas: number): void {
    this.absorb(this.#own.blocks, { cells: [this.#reportOnly], amounts: [areas - this.#reportOnlyAreas] })
    this.#reportOnlyAreas = areas
  }

  /** How many lines of the log were dropped since the start. */
  showLogDropped(lines: number): void {
    this.absorb(this.#own.blocks, { cells: [this.#logDropped], amounts: [lines - this.#linesDropped] })
    this.#linesDropped = lines
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** Adds what somebody counted by a plan. */
  absorb(plan: Plan, { cells, amounts }: Delta): void {
    const targets = this.#targetsOf(plan)
    for (const [at, cell] of cells.entries()) {
      const target = targets.find(({ block }) => holds(block, cell))
      target?.totals.add(target, cell, amounts[at] ?? 0)
    }
  }

  /** The text format of Prometheus. */
  async text(): Promise<string> {
    const counted = AggregatorRegistry.aggregate([
      Object.values(FAMILIES).map((family) => this.#jsonOf(family)),
    ])
    return `${await counted.metrics()}
${await this.#registry.metrics()}`
  }

  /** What `Registry.getMetricsAsJSON` of another process would answer: the form in which prom-client adds up processes. */
  #jsonOf(family: MetricFamily): object {
    const { name, help, type } = family
    return { name, help, type, aggregator: 'sum', values: samplesOf(family, this.#totalsOf(name)) }
  }

  #totalsOf(name: string): FamilyTotals {
    const totals = this.#totals.get(name)
    if (totals === undefined) throw new Error(`there is no metric ${name}`)
    return totals
  }

  #targetsOf(plan: Plan): readonly Target[] {
    const known = this.#targets.get(plan)
    if (known !== undefined) return known
    const targets = plan.map((block) => this.#targetOf(block))
    this.#targets.set(plan, targets)
    return targets
  }

  #targetOf(block: Block): Target {
    const totals = this.#totalsOf(block.family.name)
    return { ...totals.number(block), totals }
  }
}

const samplesOf = ({ name, type }: MetricFamily, totals: FamilyTotals): readonly Sample[] =>
  totals
    .totals()
    .flatMap(({ labels, cells }) =>
      type === 'histogram' ? histogramSamples(name, labels, cells) : [{ labels, value: cells[0] ?? 0 }],
    )

function histogramSamples(
  name: string,
  labels: Sample['labels'],
  cells: readonly number[],
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
