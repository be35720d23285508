/** The signs that a service gives of itself, however many processes serve: its log, its metrics, its health. */
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { CallHistory } from '../../gateway/maintenance/call-history.ts'
import type { WorkerPool } from '../../base/contracts/processes/worker-pool.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { reportOnlyAreas } from '../../operate/settings/dangers.ts'
import { type Condition, Health, HEALTHY } from '../../base/kernel/health.ts'
import {
  gapLine,
  linesTo,
  type Log,
  type LogDestination,
  openLog,
  standardOutput,
} from '../../operate/watch/log/log.ts'
import { Exposition } from '../../operate/watch/metrics/exposition.ts'
import { FAMILIES } from '../../operate/watch/metrics/families.ts'
import { reading, readingOf } from '../../operate/watch/metrics/gauges.ts'
import { memoryLimit } from '../../operate/watch/metrics/process-load.ts'
import { type Measures, openMeasures } from '../parts/measures.ts'
import { nodeIdOf } from './node.ts'
import { ADDED_COUNTERS, trailFolderOf } from './settings.ts'
import { VERSION } from '../parts/version.ts'
import type { GaugeReading } from '../../base/contracts/processes/reports.ts'

export interface ObservationOptions {
  readonly clock: Clock
  /** Standard output if not given. */
  readonly logDestination?: LogDestination
}

export class Observation implements Disposable {
  readonly exposition = new Exposition({ version: VERSION, node: process.version }, ADDED_COUNTERS)
  /** The counts and readings of this process, without those of the worker that it may be too. */
  readonly measures: Measures
  /** Calls of the last hour, as all processes counted them. */
  readonly callHistory: CallHistory
  readonly health = new Health()
  readonly recorder: Recorder
  readonly #log: Log
  readonly #sink: LogDestination
  #reportOnlyAreas = 0

  /** Takes lines of the log of a process that serves. */
  readonly lines: (text: string, lost: number) => void

  constructor(configuration: Configuration, { clock, logDestination }: ObservationOptions) {
    this.#sink = logDestination ?? standardOutput(gapLine(clock))
    this.lines = linesTo(this.#sink)
    this.#log = openLog(configuration.log, {
      clock,
      destination: this.#sink,
      actions: [],
      node: nodeIdOf(configuration),
    })
    this.recorder = this.#log
    this.callHistory = new CallHistory(clock)
    this.measures = openMeasures(configuration, trailFolderOf(configuration) !== undefined, 'main')
    this.exposition.absorb(this.measures.metrics.take())
    const { gauges } = this.measures
    gauges.add(() => [readingOf(FAMILIES.logWritable, this.#sink.trouble === undefined)])
    gauges.add(() => [reading(FAMILIES.reportOnlyAreas, this.#reportOnlyAreas)])
    const limit = memoryLimit()
    gauges.add(() => [reading(FAMILIES.memoryLimit, limit)])
  }

  /**
   * Warns of areas that refuse nothing, and counts them in the metrics: at the start and after each reload, so that nobody
   * overlooks them.
   */
  reportReportOnlyAreas(configuration: Configuration): void {
    const areas = reportOnlyAreas(configuration)
    this.#reportOnlyAreas = areas.length
    if (areas.length > 0) this.recorder.note('warn', 'report_only_areas', { areas })
  }

  /** The gauges of all processes that live, as each of them has read them last. */
  readings(pool: Pick<WorkerPool<Configuration>, 'gauges'>): readonly GaugeReading[] {
    return [...this.measures.gauges.read(), ...pool.gauges()]
  }

  /** All metrics of the service, in the text format of Prometheus. */
  scrape(pool: WorkerPool<Configuration>): { readonly contentType: string; readonly text: Promise<string> } {
    pool.flush()
    this.exposition.absorb(this.measures.metrics.take())
    this.exposition.showLogDropped(this.#sink.dropped ?? 0)
    return { contentType: this.exposition.contentType, text: this.exposition.text(this.readings(pool)) }
  }

  /** The service continues without its log, so readiness is the place where somebody learns of it. */
  conditionOfLog(): Condition {
    const { trouble } = this.#sink
    return trouble === undefined ? HEALTHY : { failing: [], degraded: [{ name: 'log', reason: trouble }] }
  }

  /** The process writes what is left when it ends. */
  [Symbol.dispose](): void {
    this.#log.close()
  }
}
