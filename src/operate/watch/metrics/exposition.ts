/**
 * The metrics of all processes. Each process sends what it has added to its series, and it is added up by label here: a
 * scrape waits for no process, and no counter falls, neither when a worker dies nor at a reload. prom-client measures
 * this process, and writes the text. Its own counters would write all labels anew at each scrape, which takes ten times
 * as long, in the order in which they were first counted; and its histograms take single values only.
 */
import { collectDefaultMetrics, type Metric, Registry } from 'prom-client'
import { countsOfClient, UNKNOWN, widthOf } from './counts.ts'
import {
  type AddedCounter,
  BUCKETS,
  type CountedFamily,
  FAMILIES,
  familiesWith,
  type GaugeFamily,
  type MetricFamily,
} from './families.ts'
import { mergeReadings, reading } from './gauges.ts'
import type { Delta, GaugeReading } from '../../../base/contracts/processes/reports.ts'

interface BuildInfo {
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

export class Exposition {
  readonly #registry = new Registry()
  readonly #totals = new Map<string, Totals>()
  readonly #built: GaugeReading
  #readings: ReadonlyMap<string, readonly GaugeReading[]> = new Map()
  #linesDropped = 0
  /**
   * The clients that have series of their own: the first ones of the configuration, then the first ones that were counted,
   * by whichever process. None is ever replaced, so that its counter neither falls nor moves to another client.
   */
  readonly #clients = new Set<string>()
  #mostClients = 0

  /** @param added counters of extensions */
  constructor({ version, node }: BuildInfo, added: readonly AddedCounter[] = []) {
    this.#built = reading(FAMILIES.buildInfo, 1, version, node)
    for (const family of familiesWith(added)) this.#register(family)
    this.showLogDropped(0)
    collectDefaultMetrics({ register: this.#registry })
    for (const name of MISNAMED) this.#registry.removeSingleMetric(name)
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** @param lines dropped since the start */
  showLogDropped(lines: number): void {
    const amounts = [lines - this.#linesDropped]
    this.absorb([{ name: FAMILIES.logDropped.name, series: [0], labels: [], amounts }])
    this.#linesDropped = lines
  }

  /**
   * Sets how many clients may have series of their own (`metrics.clients`). Those that have them keep them.
   * @param configured those of the configuration, in its order: their series are shown from now on, at 0
   */
  limitClients(most: number, configured: Iterable<string>): void {
    this.#mostClients = most
    this.absorb([...configured].map((client) => countsOfClient(client, [0, 0, 0])))
  }

  absorb(deltas: readonly Delta[]): void {
    for (const delta of deltas) {
      const isByClient = delta.name === FAMILIES.clientDecisions.name
      this.#totals.get(delta.name)?.add(isByClient ? this.#limited(delta) : delta)
    }
  }

  /** The text format of Prometheus, with the gauges of all processes that live. */
  text(readings: readonly GaugeReading[] = []): Promise<string> {
    this.#readings = Map.groupBy([...readings, this.#built], ({ name }) => name)
    return this.#registry.metrics()
  }

  /** Clients that have no series of their own are counted together. */
  #limited(delta: Delta): Delta {
    const { length } = FAMILIES.clientDecisions.labels
    const labels = delta.labels.map((value, at) =>
      at % length !== 0 || this.#hasOwnSeries(value) ? value : UNKNOWN,
    )
    return { ...delta, labels }
  }

  #hasOwnSeries(client: string): boolean {
    if (client !== UNKNOWN && this.#clients.size < this.#mostClients) this.#clients.add(client)
    return this.#clients.has(client)
  }

  /** Registers what prom-client reads of a metric when it writes the text. */
  #register(family: MetricFamily): void {
    const { name, help, type } = family
    let samples: () => readonly Sample[]
    if (family.type === 'gauge') samples = () => gaugeSamples(family, this.#readings.get(name) ?? [])
    else {
      const totals = new Totals(family)
      this.#totals.set(name, totals)
      samples = () => totals.samples()
    }
    const get = () => ({ name, help, type, values: samples() })
    this.#registry.registerMetric({ name, get } as unknown as Metric)
  }
}

/** As prom-client writes it. `sharedLabels` are written once as long as they are the same object; `labels` each time. */
interface Sample {
  readonly metricName: string
  readonly labels: Readonly<Record<string, never>>
  readonly sharedLabels: Readonly<Record<string, string>>
  value: number
}

const sampleOf = (metricName: string, sharedLabels: Sample['sharedLabels'], value = 0): Sample => ({
  metricName,
  labels: {},
  sharedLabels,
  value,
})

const namedLabels = ({ labels }: MetricFamily, values: readonly string[]): Sample['sharedLabels'] =>
  Object.fromEntries(labels.map((label, at) => [label, values[at] ?? '']))

const gaugeSamples = (family: GaugeFamily, readings: readonly GaugeReading[]): readonly Sample[] =>
  mergeReadings(family, readings).map(({ labels, value }) =>
    sampleOf(family.name, namedLabels(family, labels), value),
  )

interface Series {
  readonly at: number
  readonly samples: readonly Sample[]
}

/** The totals of one family, added up by label. A series exists from the first time that a process names it. */
class Totals {
  readonly #family: CountedFamily
  readonly #series = new Map<string, Series>()
  /** The samples of all series, in their order. Undefined while some series are missing in it. */
  #samples: readonly Sample[] | undefined

  constructor(family: CountedFamily) {
    this.#family = family
  }

  add({ series, labels, amounts }: Delta): void {
    const names = this.#family.labels.length
    const width = widthOf(this.#family)
    for (const [index, at] of series.entries()) {
      const { samples } = this.#seriesOf(at, labels.slice(index * names, (index + 1) * names))
      const added = amounts.slice(index * width, (index + 1) * width)
      for (const [place, amount] of this.#valuesOf(added).entries()) {
        const sample = samples[place]
        if (sample !== undefined) sample.value += amount
      }
    }
  }

  samples(): readonly Sample[] {
    this.#samples ??= [...this.#series.values()]
      .sort((one, other) => one.at - other.at)
      .flatMap(({ samples }) => samples)
    return this.#samples
  }

  #seriesOf(at: number, labels: readonly string[]): Series {
    const key = labels.join('\0')
    const known = this.#series.get(key)
    if (known !== undefined) return known
    const made = { at, samples: this.#samplesOf(namedLabels(this.#family, labels)) }
    this.#series.set(key, made)
    this.#samples = undefined
    return made
  }

  #samplesOf(labels: Sample['sharedLabels']): readonly Sample[] {
    const { name, type } = this.#family
    if (type === 'counter') return [sampleOf(name, labels)]
    return [
      ...[...BUCKETS, '+Inf'].map((le) => sampleOf(`${name}_bucket`, { ...labels, le: String(le) })),
      sampleOf(`${name}_sum`, labels),
      sampleOf(`${name}_count`, labels),
    ]
  }

  /**
   * The values in the order of `#samplesOf`: of a histogram, for each bucket the count in it or below, then the sum, and the
   * count.
   */
  #valuesOf(amounts: readonly number[]): readonly number[] {
    if (this.#family.type === 'counter') return amounts
    let count = 0
    const buckets = amounts.slice(0, -1).map((amount) => (count += amount))
    return [...buckets, amounts.at(-1) ?? 0, count]
  }
}
