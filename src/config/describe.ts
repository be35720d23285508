/** What a problem says: what is expected, and what was given instead. */
import { holdsSecret, mapItem, wordsOf, type SchemaView } from './schema-view.ts'
import type { KeyPath } from './report.ts'
import type { ConfigNode } from './tree.ts'

const quoted = (value: unknown): string => JSON.stringify(value)

function numberExpected(schema: SchemaView): string {
  const kind = schema.type === 'integer' ? 'a whole number' : 'a number'
  const { minimum, maximum } = schema
  if (minimum !== undefined && maximum !== undefined) return `${kind} from ${minimum} to ${maximum}`
  if (minimum !== undefined) return `${kind}, at least ${minimum}`
  return maximum === undefined ? kind : `${kind}, at most ${maximum}`
}

function textExpected(schema: SchemaView): string {
  if (schema.pattern !== undefined) return `a text that matches ${schema.pattern}`
  return 'a text'
}

const BY_TYPE: Readonly<Record<string, (schema: SchemaView) => string>> = {
  string: textExpected,
  number: numberExpected,
  integer: numberExpected,
  boolean: () => 'true or false',
  array: () => 'a list',
  object: (schema) => (mapItem(schema) ? 'a map' : 'a section of keys'),
}

/** `a duration such as "30s"`, `one of "json", "xml"`, `a whole number, at least 1` … */
export function expectation(schema: SchemaView): string {
  if (schema.expected !== undefined) return schema.expected
  const words = wordsOf(schema)
  if (words) return words.length === 1 ? quoted(words[0]) : `one of ${words.map(quoted).join(', ')}`
  if (schema.anyOf) return [...new Set(schema.anyOf.map(expectation))].join(' or ')
  if (schema.shapes) return 'a section with a kind'
  return BY_TYPE[schema.type ?? '']?.(schema) ?? 'a value'
}

const LONGEST = 60
const SENSITIVE = /secret|passw|passphrase|private|credential/i

/** Whether what is written at a path may be a secret: by its schema, or by any key above it. */
export const isSensitive = (path: KeyPath, schema: SchemaView): boolean =>
  holdsSecret(schema) || path.some((key) => SENSITIVE.test(String(key)))

/** What was given, short; a secret only by its kind. */
export function given(node: ConfigNode, sensitive: boolean): string {
  if (node.shape === 'list') return 'a list'
  if (node.shape === 'map') return 'a map'
  if (node.value === null) return 'nothing'
  if (sensitive) return `a ${typeof node.value === 'string' ? 'text' : typeof node.value} (not shown)`
  const text = quoted(node.value)
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text
}

/** `expected …, got …` */
export const mismatch = (schema: SchemaView, node: ConfigNode, path: KeyPath): string =>
  `expected ${expectation(schema)}, got ${given(node, isSensitive(path, schema))}`
