import type { GaugeFamily, Merge } from './families.ts'
import type { GaugeReading } from '../../../base/contracts/processes/reports.ts'

/** Reads gauges: the present values of all their series. Must be quick, and must not throw. */
export type GaugeSource = () => Iterable<GaugeReading>

/** The reading of one series. `labels`: in the order of the family's. */
export const reading = (
  { name }: GaugeFamily,
  value: number,
  ...labels: readonly string[]
): GaugeReading => ({ name, labels, value })

export const readingOf = (family: GaugeFamily, isSo: boolean): GaugeReading => reading(family, isSo ? 1 : 0)

export class GaugeSources {
  readonly #sources = new Set<GaugeSource>()

  /** Reads this source too, until the returned function is called. */
  add(source: GaugeSource): () => void {
    this.#sources.add(source)
    return () => this.#sources.delete(source)
  }

  read(): readonly GaugeReading[] {
    return [...this.#sources].flatMap((source) => [...source()])
  }
}

const MERGES: Readonly<Record<Merge, (one: number, other: number) => number>> = {
  sum: (one, other) => one + other,
  max: Math.max,
  min: Math.min,
}

const mergeOf = ({ merge }: GaugeFamily, labels: readonly string[]): Merge =>
  typeof merge === 'string' ? merge : (merge[labels.at(-1) ?? ''] ?? 'sum')

/** Merges the readings of one family by their labels, in the order in which the series are first read. */
export function mergeReadings(
  family: GaugeFamily,
  readings: readonly GaugeReading[],
): readonly GaugeReading[] {
  const merged = new Map<string, GaugeReading>()
  for (const each of readings) {
    const key = JSON.stringify(each.labels)
    const before = merged.get(key)
    const merge = MERGES[mergeOf(family, each.labels)]
    merged.set(key, before === undefined ? each : { ...each, value: merge(before.value, each.value) })
  }
  return [...merged.values()]
}

/** The values of a family by its first label. `readings`: of this family. */
export const valuesByLabel = (
  family: GaugeFamily,
  readings: readonly GaugeReading[],
): Readonly<Record<string, number>> =>
  Object.fromEntries(mergeReadings(family, readings).map(({ labels, value }) => [labels[0] ?? '', value]))
