/**
 * The metrics of all processes, in the format of Prometheus. prom-client only measures this process. It cannot collect
 * those of the workers: its counters fall when a worker dies, and a frozen worker fails the scrape. Here every process
 * sends deltas, which are added up by label. A scrape waits for no process, and no counter ever falls, not even at a
 * reload. Gauges are merged from what each process has read last. We print by ourselves: thousands of series are printed
 * again and again, and their names stay.
 */
import { Registry, collectDefaultMetrics } from 'prom-client'
import { ClientPlans } from './client-plans.ts'
import type { ClientCounts } from './client-tallies.ts'
import { FamilyTotals, type NumberedBlock } from './family-totals.ts'
import { type GaugeReading, mergeReadings, reading } from './gauges.ts'
import { CLIENT_RESULTS } from '../../contracts/principal.ts'
import { type Block, type Delta, holds, MetricPlan, NOTHING, type Plan } from './metric-counts.ts'
import { FAMILIES } from './metric-families.ts'
import type { GaugeFamily, MetricFamily } from './metric-family.ts'
import { familyText, sampleName } from './text-format.ts'

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

const CLIENT_CELLS: readonly number[] = CLIENT_RESULTS.keys().toArray()

/** Adds up the counts of all processes and prints them. */
export class Exposition {
  readonly #registry = new Registry()
  /** By family name: a plan that came from another process has copies of the families. */
  readonly #totals = new Map<string, FamilyTotals>()
  /** Weak: an old plan lives as long as a process counts by it. */
  readonly #targets = new WeakMap<Plan, readonly Target[]>()
  /** The plan of the metrics that this class sets itself. */
  readonly #own = new MetricPlan()
  readonly #logDropped: number
  #linesDropped = 0
  readonly #built: GaugeReading
  readonly #clients = new ClientPlans()

  constructor({ version, node }: BuildInfo) {
    for (const family of Object.values<MetricFamily>(FAMILIES))
      if (family.type !== 'gauge') this.#totals.set(family.name, new FamilyTotals(family))
    this.#built = reading(FAMILIES.buildInfo, 1, version, node)
    this.#logDropped = this.#own.plan(FAMILIES.logDropped)
    this.absorb(this.#own.blocks, NOTHING)
    collectDefaultMetrics({ register: this.#registry })
    for (const name of MISNAMED) this.#registry.removeSingleMetric(name)
  }

  /** Sets the number of log lines that were dropped since the start. */
  showLogDropped(lines: number): void {
    this.absorb(this.#own.blocks, { cells: [this.#logDropped], amounts: [lines - this.#linesDropped] })
    this.#linesDropped = lines
  }

  /**
   * Sets how many clients may have series of their own (`metrics.clients`).
   * @param configured those of the configuration, in its order: their series are shown from now on, at 0
   */
  limitClients(most: number, configured: Iterable<string>): void {
    this.#clients.limit(most)
    for (const client of configured) this.absorb(this.#clients.of(client), NOTHING)
  }

  /** Adds what a process counted by client. */
  absorbClients(counted: readonly ClientCounts[]): void {
    for (const { client, amounts } of counted)
      this.absorb(this.#clients.of(client), { cells: CLIENT_CELLS, amounts })
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

  /**
   * The text format of Prometheus.
   *
   * @param readings the gauges of all processes that live
   */
  async text(readings: readonly GaugeReading[] = []): Promise<string> {
    const gauges = Map.groupBy([...readings, this.#built], ({ name }) => name)
    const families = Object.values<MetricFamily>(FAMILIES).map((family) =>
      familyText(
        family,
        family.type === 'gauge'
          ? gaugeLines(family, gauges.get(family.name) ?? [])
          : this.#totalsOf(family.name).lines(),
      ),
    )
    return `${families.join('\n')}\n${await this.#registry.metrics()}`
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

const gaugeLines = (family: GaugeFamily, readings: readonly GaugeReading[]): readonly string[] =>
  mergeReadings(family, readings).map(({ labels, value }) => {
    const named = family.labels.map((label, at) => [label, labels[at] ?? ''] as const)
    return `${sampleName(family.name, named)} ${value}`
  })
