/** What an expression of PromQL asks for, as far as tests of our own expressions need it. */
import { FAMILIES } from '../../src/operate/watch/metrics/families.ts'
import type { MetricFamily } from '../../src/operate/watch/metrics/families.ts'

/** The metrics of a process, by the Prometheus client library. */
const OF_PROCESS = /^(?:process|nodejs)_[a-z0-9_]+$/
/** What Prometheus adds by itself. */
const OF_SCRAPES = ['up', 'scrape_duration_seconds', 'scrape_samples_scraped']
const ADDED_LABELS = ['job', 'instance']

const SELECTOR =
  /\b(postern(?::\w+)+|(?:postern|process|nodejs|scrape)_[a-z0-9_]+|up)\b(?:\{([^}]*)\})?(?!\s*\()/g

export interface Selector {
  readonly name: string
  /** The labels that it is selected by. */
  readonly labels: readonly string[]
}

/** What an expression selects. */
export const selectors = (expression: string): readonly Selector[] =>
  [...expression.matchAll(SELECTOR)].map(([, name = '', matchers = '']) => ({
    name,
    labels: [...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label),
  }))

function familyOf(name: string): MetricFamily | undefined {
  const base = name.replace(/_(?:bucket|sum|count)$/, '')
  return Object.values<MetricFamily>(FAMILIES).find(
    (family) => family.name === name || (family.type === 'histogram' && family.name === base),
  )
}

/** What is wrong with an expression: a metric or a label that Postern does not have. `recorded`: names of rules. */
export function unknownIn(expression: string, recorded: readonly string[] = []): readonly string[] {
  return selectors(expression).flatMap(({ name, labels }) => {
    if (recorded.includes(name) || OF_PROCESS.test(name) || OF_SCRAPES.includes(name)) return []
    const family = familyOf(name)
    if (family === undefined) return [name]
    const known = [...family.labels, ...ADDED_LABELS, ...(name.endsWith('_bucket') ? ['le'] : [])]
    return labels.filter((label) => !known.includes(label)).map((label) => `${name}{${label}}`)
  })
}
