/**
 * JSON Schemas that operators write: of bodies, parameters, answers and records. Each keyword has a type of its own at each
 * level, and what is of another type is a problem at its line: `additionalProperties: no` would let everything through.
 *
 * A table of our own, and no meta-schema with a validator: it finds the line, says what to write instead, and
 * converts what it reads.
 */
import { didYouMean, given, isSensitive, mismatch } from './problem-text.ts'
import type { KeyPath, Problems } from './problems.ts'
import { opaque, type ReadNode, type SchemaView } from './schema.ts'
import { type ConfigNode, type ScalarNode, valueOf } from './tree.ts'
import { load } from './validate.ts'

type Keywords = Readonly<Record<string, ReadNode>>

const TYPES: readonly string[] = ['string', 'integer', 'number', 'boolean', 'array', 'object', 'null']

/** The dialect that is read, for schemas that name it. */
const DIALECT = /^https:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/

const report = (problems: Problems, path: KeyPath, message: string, hint?: string): unknown => {
  problems.error(path, message, hint)
  return undefined
}

const shown = (node: ConfigNode, path: KeyPath): string => given(node, isSensitive(path, {}))

const loadBy = (view: SchemaView, node: ConfigNode, path: KeyPath, problems: Problems): unknown =>
  load(view, node, path, { problems, environment: {} })

/** Reads by a plain schema of the loader. */
const as =
  (view: SchemaView): ReadNode =>
  (node, path, problems) =>
    loadBy(view, node, path, problems)

const text = as({ type: 'string' })
const count = as({ type: 'integer', minimum: 0 })

/** Words that YAML 1.1 took for true or false. */
const WORDS = /^(?:(yes|on|y|true)|no|off|n|false)$/i

function hintFor(node: ConfigNode): string | undefined {
  if (node.shape === 'list') return 'one schema is for all; several are not supported'
  if (node.shape !== 'scalar' || typeof node.value !== 'string') return undefined
  const { value } = node
  const [word, yes] = WORDS.exec(value) ?? []
  if (word !== undefined) return `"${word}" is a text: write ${yes === undefined ? 'false' : 'true'}`
  return TYPES.includes(value) ? `write { type: ${value} }` : undefined
}

/** The schema that `false` becomes: no value fits. `true` becomes a schema without keywords. */
const nothing = (): object => ({ enum: [] })

const schemaReader =
  (keywords: Keywords): ReadNode =>
  (node, path, problems) => {
    if (node.shape === 'scalar' && node.isReported === true) return undefined
    if (node.shape === 'scalar' && typeof node.value === 'boolean') return node.value ? {} : nothing()
    if (node.shape === 'map') return readKeywords(keywords, node.entries, path, problems)
    const expected = 'expected a schema, which is a section of keywords such as `type`, or true or false'
    return report(problems, path, `${expected}, got ${shown(node, path)}`, hintFor(node))
  }

function readKeywords(
  keywords: Keywords,
  entries: ReadonlyMap<string, { readonly node: ConfigNode }>,
  path: KeyPath,
  problems: Problems,
): object {
  const read: Record<string, unknown> = {}
  for (const [keyword, { node }] of entries) {
    const reader = Object.hasOwn(keywords, keyword) ? keywords[keyword] : undefined
    if (reader === undefined) refuseKeyword(keywords, keyword, [...path, keyword], problems)
    else if (node.shape !== 'scalar' || node.isReported !== true) {
      const value = reader(node, [...path, keyword], problems)
      if (value !== undefined) read[keyword] = value
    }
  }
  return read
}

function refuseKeyword(keywords: Keywords, keyword: string, path: KeyPath, problems: Problems): void {
  const known = Object.keys(keywords).filter((each) => !each.startsWith('$'))
  const hint = didYouMean(keyword, known) ?? `supported are ${known.join(', ')}`
  report(problems, path, 'is not a supported keyword of JSON Schema', hint)
}

const mapOf =
  (schema: ReadNode): ReadNode =>
  (node, path, problems) => {
    if (node.shape === 'scalar' && node.value === null) return {}
    if (node.shape !== 'map')
      return report(problems, path, `expected a map of schemas by name, got ${shown(node, path)}`)
    const members = [...node.entries].flatMap(([name, entry]) => {
      const member = schema(entry.node, [...path, name], problems)
      return member === undefined ? [] : [[name, member] as const]
    })
    return Object.fromEntries(members)
  }

const TYPE: SchemaView = { enum: TYPES }

const types: ReadNode = (node, path, problems) => {
  if (node.shape !== 'list') return loadBy(TYPE, node, path, problems)
  if (node.items.length > 0)
    return loadBy({ type: 'array', items: TYPE, uniqueItems: true }, node, path, problems)
  return report(problems, path, 'is an empty list, which no value fits', 'leave it out to allow any type')
}

const names: ReadNode = (node, path, problems) => {
  if (node.shape === 'list')
    return loadBy({ type: 'array', items: { type: 'string' }, uniqueItems: true }, node, path, problems)
  const [name] = path.slice(-2)
  const isFlag = node.shape === 'scalar' && typeof node.value === 'boolean'
  const hint = isFlag ? `the object that contains it says \`required: [${String(name)}]\`` : undefined
  return report(problems, path, `expected a list of names of members, got ${shown(node, path)}`, hint)
}

/** A number in JSON (RFC 8259 §6). */
const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
/** So many digits of any number come back from JavaScript as they were. */
const EXACT_DIGITS = 15

function isExact({ value, source }: ScalarNode): boolean {
  if (!Number.isFinite(value)) return false
  if (source === undefined || (Number.isSafeInteger(value) && !/\.\d*[1-9]/.test(source))) return true
  const [mantissa = ''] = source.split(/e/i, 1)
  return mantissa.replaceAll(/\D/g, '').length <= EXACT_DIGITS
}

const limit: ReadNode = (node, path, problems) => {
  if (node.shape === 'scalar' && typeof node.value === 'number')
    return checkNumbers(node, path, problems) ? node.value : undefined
  const isQuoted = node.shape === 'scalar' && typeof node.value === 'string' && JSON_NUMBER.test(node.value)
  const hint = isQuoted ? 'leave out the quotes' : undefined
  return report(problems, path, mismatch({ type: 'number' }, node, path), hint)
}

/** Any value that JSON can say. */
const value: ReadNode = (node, path, problems) => {
  const isWhole = checkNumbers(node, path, problems)
  return isWhole ? valueOf(node) : undefined
}

function checkNumbers(node: ConfigNode, path: KeyPath, problems: Problems): boolean {
  if (node.shape === 'list')
    return node.items.map((item, at) => checkNumbers(item, [...path, at], problems)).every(Boolean)
  if (node.shape === 'map')
    return [...node.entries]
      .map(([key, entry]) => checkNumbers(entry.node, [...path, key], problems))
      .every(Boolean)
  if (typeof node.value !== 'number' || isExact(node)) return node.isReported !== true
  const { source = String(node.value) } = node
  if (Number.isFinite(node.value))
    report(
      problems,
      path,
      `is a number that cannot be compared exactly: ${source}`,
      'write at most 15 digits',
    )
  else report(problems, path, `is no number of JSON: ${source}`)
  return false
}

const values: ReadNode = (node, path, problems) => {
  if (node.shape !== 'list') {
    const hint = node.shape === 'scalar' && node.value !== null ? 'put it in [brackets]' : undefined
    return report(problems, path, `expected a list of values, got ${shown(node, path)}`, hint)
  }
  if (node.items.length === 0)
    return report(problems, path, 'is an empty list, which no value fits', 'list the values, or write false')
  const all = node.items.map((item, at) => value(item, [...path, at], problems))
  return all.includes(undefined) ? undefined : all
}

const pattern: ReadNode = (node, path, problems) => {
  const source = text(node, path, problems)
  if (typeof source !== 'string' || isExpression(source)) return source
  return report(
    problems,
    path,
    `expected a regular expression, got ${shown(node, path)}`,
    'it is one of JavaScript with the flag u: brackets are closed, and only what needs it has a backslash',
  )
}

function isExpression(source: string): boolean {
  try {
    return new RegExp(source, 'u') instanceof RegExp
  } catch {
    return false
  }
}

/** It says what the values below it mean, and nothing about them. */
const dialect: ReadNode = (node, path, problems) => {
  const name = text(node, path, problems)
  if (typeof name === 'string' && !DIALECT.test(name))
    report(problems, path, 'names another dialect: schemas are read as draft 2020-12', 'leave it out')
}

/** The keywords of all schemas but for their type and `required`. */
function commonKeywords(formats: readonly string[], schema: ReadNode): Keywords {
  return {
    $schema: dialect,
    $ref: text,
    properties: mapOf(schema),
    additionalProperties: (node, path, problems) =>
      node.shape === 'scalar' && typeof node.value === 'boolean' ? node.value : schema(node, path, problems),
    items: schema,
    minItems: count,
    maxItems: count,
    minLength: count,
    maxLength: count,
    enum: values,
    const: value,
    minimum: limit,
    maximum: limit,
    pattern,
    format: as({ enum: formats }),
    title: text,
    description: text,
  }
}

interface Options {
  readonly description: string
  /** The values that `format` may have. */
  readonly formats: readonly string[]
}

function readerOf(formats: readonly string[], without?: string): ReadNode {
  const schema: ReadNode = (node, path, problems) => read(node, path, problems)
  const all = { type: types, required: names, ...commonKeywords(formats, schema) }
  const read = schemaReader(Object.fromEntries(Object.entries(all).filter(([key]) => key !== without)))
  return schema
}

/** A JSON Schema. `true` and `false` are schemas; after loading they are ones without keywords, and with an empty `enum`. */
export const jsonSchema = <T>({ formats, ...options }: Options) =>
  opaque<T>({ expected: 'JSON Schema', ...options, read: readerOf(formats) })

/** `parameters` of OpenAPI say beside the schema whether a call must have it, and what it is without a value. */
const beside: Keywords = {
  type: types,
  required: (node, path, problems) =>
    node.shape === 'scalar' && typeof node.value === 'boolean'
      ? node.value
      : report(problems, path, 'is true or false here: it says whether a call must have the parameter'),
  default: value,
}

/** A JSON Schema of one text, number or boolean, with `required` and `default` of the parameter. */
export const parameterSchema = <T>({ formats, ...options }: Options) =>
  opaque<T>({
    expected: 'JSON Schema',
    ...options,
    read: schemaReader({ ...commonKeywords(formats, readerOf(formats)), ...beside }),
  })

/** Reads a schema of a file where no others have names. @returns what it is after loading; undefined after a reported problem */
export const readJsonSchema = (
  formats: readonly string[],
  node: ConfigNode,
  path: KeyPath,
  problems: Problems,
): unknown => readerOf(formats, '$ref')(node, path, problems)
