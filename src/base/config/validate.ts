/** Checks a tree against a schema and converts it. Supports the part of JSON Schema that `schema.ts` builds. */
import { dirname, resolve } from 'node:path'
import { faultOfSecret, readValue } from '../files/text-file.ts'
import { reasonInWords } from '../kernel/thrown.ts'
import { parseDuration, parseSize } from '../kernel/units.ts'
import { belongsBelow, didYouMean, expectation, given, isSensitive, mismatch } from './problem-text.ts'
import { type KeyPath, type SourceLocation, Problems, UNQUOTED } from './problems.ts'
import {
  mapItem,
  type MapItem,
  MARK,
  type SchemaMark,
  REFERRED_BEGINS,
  type SchemaView,
  withKind,
  wordsOf,
  type WrittenTree,
} from './schema.ts'
import { type ConfigNode, type ListNode, type MapNode, nodeOf, type ScalarNode, valueOf } from './tree.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** The value after loading; undefined if a problem was reported. */
type Loaded = unknown

type Convert = (text: string, at: SourceLocation, context: LoadContext) => unknown

const TEXT: Convert = (text) => text
const CONVERT: Readonly<Partial<Record<SchemaMark, Convert>>> = {
  duration: parseDuration,
  size: parseSize,
  path: (text, at, { problems }) => {
    const file = besideFile(at, text)
    problems.files.add(file)
    return file
  },
}

const REFERABLE = new Set<SchemaMark | undefined>(['secret', 'reference', 'template', 'textOrSecret', 'path'])

/** Reports a problem, and returns undefined in place of the value. */
function reportProblem(path: KeyPath, message: string, { problems }: LoadContext, hint?: string): Loaded {
  problems.error(path, message, hint)
  return undefined
}

const reportMismatch = (
  schema: SchemaView,
  node: ConfigNode,
  path: KeyPath,
  context: LoadContext,
  hint?: string,
): Loaded => reportProblem(path, mismatch(schema, node, path), context, hint)

function loadScalar(schema: SchemaView, node: ConfigNode, path: KeyPath, context: LoadContext): Loaded {
  const mark = schema[MARK]
  if (context.literal !== true && REFERABLE.has(mark) && isReference(node))
    return loadReferred(schema, node, path, context)
  if (mark === 'textOrSecret' && context.literal === true && node.shape === 'map')
    return loadSecret(node, path, context)
  if (node.shape !== 'scalar' || (schema.plain === false && !hasPlaceholder(schema, node))) {
    return reportMismatch(schema, node, path, context)
  }
  if (schema.type === 'string') return loadText(schema, node, path, context)
  return fitsScalar(schema, node.value) ? node.value : reportMismatch(schema, node, path, context)
}

/** `{{` is a brace. */
const hasPlaceholder = (schema: SchemaView, { value }: ScalarNode): boolean =>
  schema[MARK] === 'template' && typeof value === 'string' && /\{[A-Za-z]/.test(value.replaceAll('{{', ''))

function loadReferred(schema: SchemaView, node: MapNode, path: KeyPath, context: LoadContext): Loaded {
  const value = resolveReference(node, path, context)
  if (value === undefined) return undefined
  const fault = isSecret(schema) ? faultOfSecret(value) : undefined
  if (fault !== undefined)
    return reportProblem(path, `${sourceOf(node)}, whose content can be no secret: it ${fault}`, context)
  if (!fitsText(schema, value))
    return reportProblem(
      path,
      `refers to a value that does not fit: expected ${expectation(schema)}`,
      context,
    )
  if (schema[MARK] === 'textOrSecret') return { secret: value }
  return convert(schema, isTemplate(schema) ? referredText(value) : value, node.at, context)
}

/** `{ secret: … }` of a record. */
function loadSecret(node: MapNode, path: KeyPath, context: LoadContext): Loaded {
  const found = node.entries.get('secret')?.node
  const secret = found?.shape === 'scalar' ? found.value : undefined
  return node.entries.size === 1 && (secret === true || (typeof secret === 'string' && secret !== ''))
    ? { secret }
    : reportProblem(path, 'expected a text, or a secret as { "secret": "…" }', context)
}

const isTemplate = (schema: SchemaView): boolean => schema[MARK] === 'template' || schema.isTemplate === true

const SECRETS = new Set<SchemaMark | undefined>(['secret', 'template', 'textOrSecret'])

/** Whether the value that a reference stands for there is a secret. */
const isSecret = (schema: SchemaView): boolean => SECRETS.has(schema[MARK]) || isTemplate(schema)

/** As a template, the text as it is: braces that a secret has by chance are no placeholder. It is told to nobody (C8.7). */
const referredText = (text: string): string => `${REFERRED_BEGINS}${text.replaceAll(/[{}]/g, '$&$&')}}`

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

const convert = (schema: SchemaView, text: string, at: SourceLocation, context: LoadContext): Loaded =>
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

function loadWord(schema: SchemaView, node: ConfigNode, path: KeyPath, context: LoadContext): Loaded {
  const words = wordsOf(schema) ?? []
  const value = node.shape === 'scalar' ? node.value : null
  if (words.some((word) => word === value)) return value
  const hint = isSensitive(path, schema) ? undefined : didYouMean(String(value), words.map(String))
  return reportMismatch(schema, node, path, context, hint)
}

// References: `{ file: … }` and `{ env: NAME, default: … }`. No problem shows the content.

interface LoadContext {
  readonly environment: Environment
  readonly problems: Problems
  /** Whether `{ file: … }` and `{ env: … }` are no references: of what comes from elsewhere than a file of the operator's. */
  readonly literal?: true
}

/** The absolute path of a name, which is relative to the folder of the file that contains it. */
export const besideFile = (at: SourceLocation, path: string): string => resolve(dirname(at.file), path)

/** Whether a node has only keys of a reference. Any other key makes it a section. */
function isReference(node: ConfigNode): node is MapNode {
  if (node.shape !== 'map') return false
  const keys = [...node.entries.keys()]
  return keys.length > 0 && keys.every((key) => key === 'file' || key === 'env' || key === 'default')
}

/** Texts of references are as `referredText` makes them. Undefined, in a map and a list too, where a problem was reported. */
function loadTree(node: ConfigNode, path: KeyPath, context: LoadContext): WrittenTree | undefined {
  if (node.shape === 'scalar')
    return typeof node.value === 'number' ? { number: node.source ?? String(node.value) } : node.value
  if (node.shape === 'list') {
    const items = node.items.map((item, index) => loadTree(item, [...path, index], context))
    return { list: items.filter((item) => item !== undefined) }
  }
  if (node.isBraced === true) {
    context.problems.error(path, ...UNQUOTED)
    return undefined
  }
  if (context.literal !== true && isReference(node)) {
    const text = resolveReference(node, path, context)
    return text === undefined ? undefined : referredText(text)
  }
  const members = [...node.entries].map(
    ([key, entry]) => [key, loadTree(entry.node, [...path, key], context)] as const,
  )
  return { members: members.flatMap(([key, value]) => (value === undefined ? [] : [[key, value] as const])) }
}

function textAt(node: MapNode, key: string): string | undefined {
  const found = node.entries.get(key)?.node
  return found?.shape === 'scalar' && typeof found.value === 'string' ? found.value : undefined
}

function fromFile(
  path: string,
  at: SourceLocation,
  keyPath: KeyPath,
  { problems }: LoadContext,
): string | undefined {
  problems.files.add(besideFile(at, path))
  try {
    return readValue(besideFile(at, path))
  } catch (error) {
    problems.error(
      [...keyPath, 'file'],
      `names the file "${path}", which cannot be read (${reasonInWords(error)})`,
    )
    return undefined
  }
}

/** The file or variable that a reference names, to begin the text of a problem. */
function sourceOf(node: MapNode): string {
  const file = textAt(node, 'file')
  return file === undefined
    ? `names the environment variable ${textAt(node, 'env')}`
    : `names the file "${file}"`
}

function fromEnvironment(node: MapNode, name: string, path: KeyPath, context: LoadContext) {
  const value = context.environment[name] ?? textAt(node, 'default')
  if (value === undefined) {
    context.problems.error(
      [...path, 'env'],
      `${sourceOf(node)}, which is not set`,
      'set it, or give a default',
    )
  }
  return value
}

/** The text that a reference refers to; undefined, after a reported problem, if there is none. */
function resolveReference(node: MapNode, path: KeyPath, context: LoadContext): string | undefined {
  const file = textAt(node, 'file')
  const name = textAt(node, 'env')
  if (file !== undefined && node.entries.size === 1) return fromFile(file, node.at, path, context)
  if (name !== undefined && !node.entries.has('file')) return fromEnvironment(node, name, path, context)
  context.problems.error(path, 'expected { file: … } or { env: NAME, default: … }, both as texts')
  return undefined
}

/** Checks `node` against `schema` and converts it. Problems are added to those of `context`. */
export function load(schema: SchemaView, node: ConfigNode, path: KeyPath, context: LoadContext): Loaded {
  const mark = schema[MARK]
  if (node.shape === 'scalar' && node.isReported === true) return undefined
  if (node.shape === 'map' && node.isBraced === true && takesText(schema))
    return reportProblem(path, UNQUOTED[0], context, UNQUOTED[1])
  if (schema.read !== undefined) return schema.read(node, path, context.problems)
  if (mark === 'opaque' || allowsAll(schema)) return valueOf(node)
  if (mark === 'templates') return loadTree(node, path, context)
  if (mark === 'kinds') return loadKind(schema, node, path, context)
  if (wordsOf(schema)) return loadWord(schema, node, path, context)
  if (schema.anyOf) return loadBranch(schema.anyOf, schema, node, path, context)
  if (schema.type === 'object') return loadObject(schema, node, path, context)
  if (schema.type === 'array') return loadList(schema, node, path, context)
  return loadScalar(schema, node, path, context)
}

const takesText = (schema: SchemaView): boolean =>
  (schema.type === 'string' && wordsOf(schema) === undefined) || schema.anyOf?.some(takesText) === true

function allowsAll(schema: SchemaView): boolean {
  for (const key in schema) if (key !== 'description') return false
  return true
}

function loadList(schema: SchemaView, given: ConfigNode, path: KeyPath, context: LoadContext): Loaded {
  const { items, within = '' } = schema
  const held = given.shape === 'map' && given.entries.size === 1 ? given.entries.get(within) : undefined
  const node = held?.node ?? given
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

/** Marks whose values may be `null`, like any other value. */
const ANY: ReadonlySet<SchemaMark | undefined> = new Set<SchemaMark | undefined>(['opaque', 'templates'])

/** Whether `key:` has no value, and so counts as left out. A section or map is empty then, and not left out. */
const isEmpty = (node: ConfigNode, schema: SchemaView): boolean =>
  node.shape === 'scalar' && node.value === null && schema.type !== 'object' && !ANY.has(schema[MARK])

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
