/**
 * Checks a tree against a schema and converts it: reports every problem, fills in defaults, converts units, resolves
 * references. Supports the part of JSON Schema that `schema.ts` builds.
 */
import { belongsBelow, didYouMean, expectation, given, isSensitive } from './problem-text.ts'
import { loadScalar, loadWord, patternOf, reportMismatch, reportProblem, type Loaded } from './load-scalar.ts'
import { MARK } from './schema.ts'
import type { LoadContext } from './references.ts'
import { Problems, type KeyPath } from './problems.ts'
import { mapItem, type MapItem, withKind, wordsOf, type SchemaView } from './schema-view.ts'
import { nodeOf, valueOf, type ConfigNode, type ListNode, type MapNode } from './tree.ts'

/** Checks `node` against `schema` and converts it. Problems go to the report of `context`. */
export function load(schema: SchemaView, node: ConfigNode, path: KeyPath, context: LoadContext): Loaded {
  const mark = schema[MARK]
  if (mark === 'opaque' || allowsAll(schema)) return valueOf(node)
  if (mark === 'kinds') return loadKind(schema, node, path, context)
  if (wordsOf(schema)) return loadWord(schema, node, path, context)
  if (schema.anyOf) return loadBranch(schema.anyOf, schema, node, path, context)
  if (schema.type === 'object') return loadObject(schema, node, path, context)
  if (schema.type === 'array') return loadList(schema, node, path, context)
  return loadScalar(schema, node, path, context)
}

function allowsAll(schema: SchemaView): boolean {
  for (const key in schema) if (key !== 'description') return false
  return true
}

// Lists

function loadList(schema: SchemaView, node: ConfigNode, path: KeyPath, context: LoadContext): Loaded {
  const { items } = schema
  if (node.shape !== 'list' || !items) {
    const one = node.shape === 'scalar' && node.value !== null ? 'put it in [brackets]' : undefined
    return reportMismatch(schema, node, path, context, one)
  }
  checkCount(schema, node.items.length, 'items', path, context)
  if (schema.uniqueItems === true) checkUnique(schema, node, path, context)
  return node.items.map((item, index) => load(items, item, [...path, index], context))
}

function checkCount(
  schema: SchemaView,
  count: number,
  of: string,
  path: KeyPath,
  { problems }: LoadContext,
): void {
  const least = schema.minItems ?? schema.minProperties ?? 0
  const most = schema.maxItems ?? Infinity
  if (count < least) problems.error(path, `expected at least ${least} ${of}, got ${count}`)
  if (count > most) problems.error(path, `expected at most ${most} ${of}, got ${count}`)
}

function checkUnique(schema: SchemaView, node: ListNode, path: KeyPath, { problems }: LoadContext): void {
  const seen = new Set<string>()
  for (const [index, item] of node.items.entries()) {
    const key = JSON.stringify(valueOf(item))
    const at = [...path, index]
    if (seen.has(key)) problems.error(at, `is in the list twice: ${given(item, isSensitive(path, schema))}`)
    seen.add(key)
  }
}

// Sections, maps, kinds, unions

function loadObject(schema: SchemaView, node: ConfigNode, path: KeyPath, context: LoadContext): Loaded {
  // `section:` without a value is an empty section.
  const map = node.shape === 'scalar' && node.value === null ? nodeOf({}, node.at) : node
  if (map.shape !== 'map') return reportMismatch(schema, node, path, context)
  checkCount(schema, map.entries.size, 'keys', path, context)
  const item = mapItem(schema)
  return item ? loadMap(item, schema, map, path, context) : loadSection(schema, map, path, context)
}

function loadMap(
  { keys, item }: MapItem,
  { expectedKeys = `one that matches ${keys}` }: SchemaView,
  node: MapNode,
  path: KeyPath,
  context: LoadContext,
): Loaded {
  const pattern = patternOf(keys)
  const entries = [...node.entries].map(([key, entry]) => {
    const at = [...path, key]
    if (!pattern.test(key)) context.problems.error(at, `is not a possible key here: expected ${expectedKeys}`)
    return [key, load(item, entry.node, at, context)] as const
  })
  return Object.fromEntries(entries)
}

function loadSection(schema: SchemaView, node: MapNode, path: KeyPath, context: LoadContext): Loaded {
  const known = Object.keys(schema.properties ?? {})
  refuseUnknown(schema, node, path, context)
  const loaded: Record<string, Loaded> = {}
  for (const key of known) {
    const value = loadMember(schema, key, node, path, context)
    if (value !== undefined) loaded[key] = value
  }
  return loaded
}

function loadMember(
  { properties, required }: SchemaView,
  key: string,
  node: MapNode,
  path: KeyPath,
  context: LoadContext,
): Loaded {
  const of = properties?.[key] ?? {}
  const written = node.entries.get(key)
  if (written && !isEmpty(written.node, of)) return load(of, written.node, [...path, key], context)
  if (of.default !== undefined) return load(of, nodeOf(of.default, node.at), [...path, key], context)
  return written || required?.includes(key) === true
    ? reportProblem([...path, key], `is missing: expected ${expectation(of)}`, context)
    : undefined
}

/** Whether `key:` has no value, and so counts as left out. A section or map is empty then, and not left out. */
const isEmpty = (node: ConfigNode, schema: SchemaView): boolean =>
  node.shape === 'scalar' && node.value === null && schema.type !== 'object' && schema[MARK] !== 'opaque'

function refuseUnknown(schema: SchemaView, node: MapNode, path: KeyPath, { problems }: LoadContext): void {
  const known = Object.keys(schema.properties ?? {})
  for (const key of node.entries.keys()) {
    if (known.includes(key)) continue
    const missing = known.filter((each) => !node.entries.has(each))
    const hint =
      didYouMean(key, missing) ??
      belongsBelow(schema, key) ??
      didYouMean(key, known) ??
      `known keys: ${known.join(', ')}`
    problems.error([...path, key], 'is not a known key here', hint)
  }
}

function loadKind(schema: SchemaView, node: ConfigNode, path: KeyPath, context: LoadContext): Loaded {
  const shapes = schema.shapes ?? {}
  const all = Object.keys(shapes)
  if (node.shape !== 'map') return reportMismatch(schema, node, path, context)
  const kind = node.entries.get('kind')?.node
  const shape =
    kind?.shape === 'scalar' && Object.hasOwn(shapes, String(kind.value))
      ? shapes[String(kind.value)]
      : undefined
  if (shape) return load(withKind(String(valueOf(kind ?? node)), shape, all), node, path, context)
  const words = { type: 'string', enum: all }
  return kind
    ? loadWord(words, kind, [...path, 'kind'], context)
    : reportProblem([...path, 'kind'], `is missing: expected ${expectation(words)}`, context)
}

/** Loads the first branch that fits. If none does, reports the problems of the branch with the fewest. */
function loadBranch(
  branches: readonly SchemaView[],
  schema: SchemaView,
  node: ConfigNode,
  path: KeyPath,
  context: LoadContext,
): Loaded {
  const tries = branches.map((branch) => {
    const problems = new Problems()
    return { branch, problems, value: load(branch, node, path, { ...context, problems }) }
  })
  const fit = tries.find((attempt) => !attempt.problems.failed)
  if (fit) return fit.value
  const inside = tries.filter(({ problems }) =>
    problems.list.every((problem) => problem.path.length > path.length),
  )
  const [nearest] = inside.sort((a, b) => a.problems.list.length - b.problems.list.length)
  if (!nearest) return reportMismatch(schema, node, path, context)
  context.problems.list.push(...nearest.problems.list)
  return undefined
}
