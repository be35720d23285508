/** What the tables of panels are made of. */

export interface Panel {
  /** Few words, for people who have not read the code. */
  readonly title: string
  /** What is seen, and when to worry. */
  readonly description: string
  /** A unit of Grafana. */
  readonly unit: Unit
  /** One number or word, now; else a graph. */
  readonly now?: true
  /** By legend: `{{label}}` stands for the value of a label. */
  readonly queries: Readonly<Record<string, string>>
}

export type Unit = 'reqps' | 'ops' | 'percentunit' | 's' | 'bytes' | 'short' | 'bool_yes_no' | 'dtdurations'

export interface Row {
  readonly title: string
  readonly panels: readonly Panel[]
}

/** Label matchers of the variables. */
export const JOB = 'job=~"$job"'
export const AREA = 'job=~"$job", area=~"$area"'
export const BACKEND = 'job=~"$job", backend=~"$backend"'

const RATE = '[$__rate_interval]'

/** Events a second. `by`: the labels that stay. */
export const rate = (selector: string, by = ''): string => `sum by (${by}) (rate(${selector}${RATE}))`

/** The time, in seconds, that a share of what a histogram counts stays below. */
export const quantile = (share: number, histogram: string, matchers: string, by = ''): string =>
  `histogram_quantile(${share}, sum by (${by === '' ? 'le' : `${by}, le`}) (rate(${histogram}_bucket{${matchers}}${RATE})))`

/** Events within the last hour. */
export const inAnHour = (selector: string, by = ''): string => `sum by (${by}) (increase(${selector}[1h]))`

/** What a series without its first event counts as: 0. */
export const orZero = (expression: string): string => `${expression} or vector(0)`
