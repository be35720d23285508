/** Loads single values: texts, numbers, booleans and words. Converts units and resolves references. */
import { parseDuration, parseSize } from '../kernel/units.ts'
import { didYouMean, expectation, isSensitive, mismatch } from './problem-text.ts'
import { MARK, type Mark } from './schema.ts'
import { besideFile, isReference, resolveReference, type LoadContext } from './references.ts'
import type { KeyPath, Place } from './problems.ts'
import { wordsOf, type SchemaView } from './schema-view.ts'
import type { ConfigNode, MapNode, ScalarNode } from './tree.ts'

/** The value after loading; undefined if a problem was reported. */
export type Loaded = unknown

type Convert = (text: string, at: Place, context: LoadContext) => unknown

const TEXT: Convert = (text) => text
const CONVERT: Readonly<Partial<Record<Mark, Convert>>> = {
  duration: parseDuration,
  size: parseSize,
  path: (text, at, { problems }) => {
    const file = besideFile(at, text)
    problems.files.add(file)
    return file
  },
}

const REFERABLE = new Set<Mark | undefined>(['secret', 'reference', 'template', 'path'])

/** Reports a problem, and returns undefined in place of the value. */
export function reportProblem(
  path: KeyPath,
  message: string,
  { problems }: LoadContext,
  hint?: string,
): Loaded {
  problems.error(path, message, hint)
  return undefined
}

/** Reports that `node` does not match `schema`, and returns undefined. */
export const reportMismatch = (
  schema: SchemaView,
  node: ConfigNode,
  path: KeyPath,
  context: LoadContext,
  hint?: string,
): Loaded => reportProblem(path, mismatch(schema, node, path), context, hint)

/** Loads a text, a number or a boolean, or a reference to one. */
export function loadScalar(
  schema: SchemaView,
  node: ConfigNode,
  path: KeyPath,
  context: LoadContext,
): Loaded {
  const mark = schema[MARK]
  if (context.literal !== true && REFERABLE.has(mark) && isReference(node))
    return loadReferred(schema, node, path, context)
  if (node.shape !== 'scalar' || (mark === 'secret' && schema.plain !== true)) {
    return reportMismatch(schema, node, path, context)
  }
  if (schema.type === 'string') return loadText(schema, node, path, context)
  return fitsScalar(schema, node.value) ? node.value : reportMismatch(schema, node, path, context)
}

function loadReferred(schema: SchemaView, node: MapNode, path: KeyPath, context: LoadContext): Loaded {
  const value = resolveReference(node, path, context)
  if (value === undefined) return undefined
  return fitsText(schema, value)
    ? convert(schema, schema[MARK] === 'template' ? withDoubledBraces(value) : value, node.at, context)
    : reportProblem(path, `refers to a value that does not fit: expected ${expectation(schema)}`, context)
}

/** As a template, the text as it is: what stands in a secret by chance is no placeholder. */
const withDoubledBraces = (text: string): string => text.replaceAll(/[{}]/g, '$&$&')

function loadText(schema: SchemaView, node: ScalarNode, path: KeyPath, context: LoadContext): Loaded {
  const { value } = node
  if (typeof value === 'string' && fitsText(schema, value)) return convert(schema, value, node.at, context)
  const unquoted = typeof value === 'number' || typeof value === 'boolean'
  return reportMismatch(
    schema,
    node,
    path,
    context,
    unquoted && schema[MARK] === undefined ? 'put it in quotes' : undefined,
  )
}

const convert = (schema: SchemaView, text: string, at: Place, context: LoadContext): Loaded =>
  (CONVERT[schema[MARK] ?? 'opaque'] ?? TEXT)(text, at, context)

const patterns = new Map<string, RegExp>()

/** The regular expression of a schema's pattern. Compiled once: a large directory uses the same few for every record. */
export function patternOf(source: string): RegExp {
  const known = patterns.get(source) ?? new RegExp(source, 'u')
  patterns.set(source, known)
  return known
}

const fitsText = ({ pattern, minLength = 0 }: SchemaView, value: string): boolean =>
  value.length >= minLength && (pattern === undefined || patternOf(pattern).test(value))

function fitsScalar(schema: SchemaView, value: unknown): boolean {
  if (schema.type === 'boolean') return typeof value === 'boolean'
  if (typeof value !== 'number' || (schema.type === 'integer' && !Number.isSafeInteger(value))) return false
  return value >= (schema.minimum ?? -Infinity) && value <= (schema.maximum ?? Infinity)
}

/** Loads one of a few words. */
export function loadWord(schema: SchemaView, node: ConfigNode, path: KeyPath, context: LoadContext): Loaded {
  const words = wordsOf(schema) ?? []
  const value = node.shape === 'scalar' ? node.value : null
  if (words.some((word) => word === value)) return value
  const hint = isSensitive(path, schema) ? undefined : didYouMean(String(value), words.map(String))
  return reportMismatch(schema, node, path, context, hint)
}
