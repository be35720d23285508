/**
 * The metrics of all processes, in the format of Prometheus. prom-client adds up and prints them, but does not collect
 * them from the workers: its counters fall when a worker dies, and a frozen worker fails the scrape. Here every process
 * sends deltas, which are added up by label. A scrape waits for no process, and no counter ever falls, not even at a
 * reload.
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

/** A block, and the totals that its counts are added to. */
interface Target extends NumberedBlock {
  readonly totals: FamilyTotals
}

export interface BuildInfo {
  readonly version: string
  /** `process.version` */
  readonly node: string
}

/** Gauges of prom-client whose names are those of counters, which `promtool check metrics` refuses. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
] as const

/** Adds up the counts of all processes and prints them. */
export class Exposition {
  readonly #registry = new Registry()
  /** By family name: a plan that came from another process has copies of the families. */
  readonly #totals = new Map<string, FamilyTotals>()
  /** Weak: an old plan lives as long as a process counts by it. */
  readonly #targets = new WeakMap<Plan, readonly Target[]>()
  /** The plan of the metrics that this class sets itself. */
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

  /** Sets the number of report-only areas in the configuration in force. */
  showReportOnly(areas: number): void {
    this.absorb(this.#own.blocks, { cells: [this.#reportOnly], amounts: [areas - this.#reportOnlyAreas] })
    this.#reportOnlyAreas = areas
  }

  /** Sets the number of log lines that were dropped since the start. */
  showLogDropped(lines: number): void {
    this.absorb(this.#own.blocks, { cells: [this.#logDropped], amounts: [lines - this.#linesDropped] })
    this.#linesDropped = lines
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** Adds counts whose cells are numbered by `plan`. Throws Error if the plan has a family that does not exist. */
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

  /** A family in the form of `Registry.getMetricsAsJSON`, which `AggregatorRegistry.aggregate` takes. */
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
