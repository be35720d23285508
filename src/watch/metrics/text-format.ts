/** The text format of Prometheus, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/ */
import type { MetricFamily } from './metric-family.ts'

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '"': '\\"' }

const escaped = (text: string): string => text.replace(/[\\\n"]/g, (character) => ESCAPES[character] ?? '')

/** A sample without its value: a name, and labels in the order of the entries. */
export function sampleName(name: string, labels: readonly (readonly [string, string])[]): string {
  if (labels.length === 0) return name
  return `${name}{${labels.map(([label, value]) => `${label}="${escaped(value)}"`).join(',')}}`
}

/** A family with its samples, which are whole lines. The help texts are ours: they have nothing to escape. */
export const familyText = ({ name, help, type }: MetricFamily, samples: readonly string[]): string =>
  `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${samples.map((sample) => `${sample}\n`).join('')}`
