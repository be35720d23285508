/** Values of a dashboard as people read them, by the units of Grafana that ours uses. */

const rounded = (value: number): string => String(Number(value.toPrecision(3)))

/** The largest of these units that leaves at least 1. */
function scaled(value: number, units: readonly (readonly [number, string])[]): string {
  const [size = 1, name = ''] = units.find(([each]) => Math.abs(value) >= each) ?? units.at(-1) ?? []
  return `${rounded(value / size)}${name}`
}

const THOUSANDS = [
  [1e6, ' M'],
  [1e3, ' k'],
  [1, ''],
] as const
const BYTES = [
  [1024 ** 3, ' GiB'],
  [1024 ** 2, ' MiB'],
  [1024, ' KiB'],
  [1, ' B'],
] as const
const SHORT_TIMES = [
  [1, ' s'],
  [1e-3, ' ms'],
  [1e-6, ' µs'],
] as const
const LONG_TIMES = [
  [86_400, ' days'],
  [3600, ' h'],
  [60, ' min'],
  [1, ' s'],
] as const

const count = (value: number): string =>
  value === 0 || Math.abs(value) < 1 ? rounded(value) : scaled(value, THOUSANDS)

const TEXTS: Readonly<Record<string, (value: number) => string>> = {
  reqps: (value) => `${count(value)}/s`,
  ops: (value) => `${count(value)}/s`,
  percentunit: (value) => `${rounded(value * 100)} %`,
  s: (value) => (value === 0 ? '0' : scaled(value, SHORT_TIMES)),
  dtdurations: (value) => scaled(value, LONG_TIMES),
  bytes: (value) => scaled(value, BYTES),
  bool_yes_no: (value) => (value === 0 ? 'No' : 'Yes'),
  short: count,
}

/** Throws Error for a unit that no panel of ours has. */
export function valueText(value: number, unit: string): string {
  const text = TEXTS[unit]
  if (text === undefined) throw new Error(`there is no unit ${unit}`)
  return text(value)
}
