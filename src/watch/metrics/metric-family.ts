/** What a published metric is, and how the values of several processes become one. */

interface Family {
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
}

/** What is counted. Each process sends what it has counted, which is added up (MetricCounts). */
export interface CountedFamily extends Family {
  readonly type: 'counter' | 'histogram'
  /** Prints only series that were counted, and those of shown blocks, since most combinations never occur. */
  readonly sparse?: boolean
}

/** How the values that several processes read become one. */
export type Merge = 'sum' | 'max' | 'min'

/** A present state. Each process reads it (GaugeSource). */
export interface GaugeFamily extends Family {
  readonly type: 'gauge'
  /** For all series, or by the value of the last label. */
  readonly merge: Merge | Readonly<Record<string, Merge>>
}

export type MetricFamily = CountedFamily | GaugeFamily

export const counter = (name: string, help: string, labels: readonly string[] = []): CountedFamily => ({
  name,
  type: 'counter',
  help,
  labels,
})
export const sparse = (family: CountedFamily): CountedFamily => ({ ...family, sparse: true })
export const histogram = (name: string, help: string, labels: readonly string[] = []): CountedFamily => ({
  name,
  type: 'histogram',
  help,
  labels,
})
export const gauge = (
  name: string,
  help: string,
  labels: readonly string[],
  merge: GaugeFamily['merge'],
): GaugeFamily => ({ name, type: 'gauge', help, labels, merge })

/** Upper bounds in seconds, from half a millisecond to half a minute. */
export const BUCKETS: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]
