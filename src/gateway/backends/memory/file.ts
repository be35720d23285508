import { readJsonSchema } from '../../../base/config/json-schema.ts'
import { pathText, Problems } from '../../../base/config/problems.ts'
import { nodeOf } from '../../../base/config/tree.ts'
import { type BodySchema, FORMAT_NAMES } from '../../../base/http/body/body-schema.ts'
import { type JsonObject, type JsonValue, parseJson } from '../../../base/http/body/json.ts'
import { compileValidator } from '../../../base/http/body/validate-body.ts'
import { Fault } from '../../../base/kernel/faults.ts'

/** The file of a `memory` backend: collections of records, and what each action does with one of them. */
export interface MemoryFile {
  readonly collections: Readonly<Record<string, CollectionFacts>>
  /** The rules by `area/action` as in the configuration (`member-data/member-detail/{memberId}`), then by method. */
  readonly actions: Readonly<Record<string, Readonly<Record<string, MemoryRule>>>>
}

export interface CollectionFacts {
  /** Each business has records of its own, or each fund. */
  readonly per: 'business' | 'fund'
  /** The field that identifies a record. It never changes. */
  readonly key: string
  /** Every field a record may have: a JSON Schema per name. Writes of others are refused. */
  readonly fields: Readonly<Record<string, BodySchema>>
  /** The records by business code (`ACME`), or by business and fund code (`ACME/SUPER1`). */
  readonly records: Readonly<Record<string, readonly JsonObject[]>>
}

export interface MemoryRule {
  readonly do: 'list' | 'read' | 'create' | 'merge'
  readonly collection: string
  /** list: the member that holds the records, and the one that holds their number. */
  readonly as?: string
  readonly total?: string
  /** list: the fields of a summary, in this order. Default: all. */
  readonly fields?: readonly string[]
  /** read: fields that only versions from this one on have. */
  readonly since?: Readonly<Record<string, number>>
  /** read, merge: a path parameter's name, `fund` or `business`; its value is the record's key. */
  readonly by?: string
  readonly required?: readonly string[]
  /** create: fields that a new record has where none are given. */
  readonly defaults?: JsonObject
  /** create: the new record's key is a fund code from now on (contract FundRegistry). */
  readonly opensFund?: boolean
}

const text = { type: 'string' } as const
const texts = { type: 'array', items: text } as const
const anything = { type: 'object' } as const
const mapOf = (schema: BodySchema): BodySchema => ({ type: 'object', additionalProperties: schema })
const closed = (
  properties: Readonly<Record<string, BodySchema>>,
  required: readonly string[],
): BodySchema => ({ type: 'object', properties, required, additionalProperties: false })

const RULE = closed(
  {
    do: { enum: ['list', 'read', 'create', 'merge'] },
    collection: text,
    as: text,
    total: text,
    fields: texts,
    since: mapOf({ type: 'integer' }),
    by: text,
    required: texts,
    defaults: anything,
    opensFund: { type: 'boolean' },
  },
  ['do', 'collection'],
)

const COLLECTION = closed(
  {
    per: { enum: ['business', 'fund'] },
    key: text,
    fields: anything,
    records: mapOf({ type: 'array', items: anything }),
  },
  ['per', 'key', 'fields', 'records'],
)

const validateFile = compileValidator(
  closed({ collections: mapOf(COLLECTION), actions: mapOf(mapOf(RULE)) }, ['collections', 'actions']),
)

const FILE_LIMITS = { depth: 50, nodes: 5_000_000 }

/** @throws RangeError whose message names what is wrong, and where */
export function parseMemoryFile(bytes: Uint8Array): MemoryFile {
  const value = readValue(bytes)
  // The validator has just seen that it is one, but for the schemas of its fields.
  const { collections, ...rest } = value as unknown as MemoryFile
  const read = Object.entries(collections).map(([name, facts]) => [name, withFields(name, facts)] as const)
  const file: MemoryFile = { ...rest, collections: Object.fromEntries(read) }
  for (const [action, methods] of Object.entries(file.actions))
    for (const [method, rule] of Object.entries(methods)) checkRule(file, `actions.${action}.${method}`, rule)
  return file
}

function withFields(name: string, { fields, ...facts }: CollectionFacts): CollectionFacts {
  const problems = new Problems()
  // Plain values: a schema of a file has numbers of JavaScript.
  const written = Object.entries(JSON.parse(JSON.stringify(fields)) as object)
  const read = written.map(([field, schema]) => {
    const node = nodeOf(schema, { file: '', line: 0 })
    return [
      field,
      readJsonSchema(FORMAT_NAMES, node, ['collections', name, 'fields', field], problems),
    ] as const
  })
  const [problem] = problems.list
  if (problem === undefined)
    return { ...facts, fields: Object.fromEntries(read) as CollectionFacts['fields'] }
  const { path, message, hint } = problem
  throw new RangeError(`${pathText(path)} ${message}${hint === undefined ? '' : ` — ${hint}`}`)
}

/** Faults do not repeat names that a client sent; these are in the operator's own file, and are shown. */
function readValue(bytes: Uint8Array): JsonValue {
  try {
    const value = parseJson(bytes, FILE_LIMITS)
    validateFile(value)
    return value
  } catch (thrown) {
    throw thrown instanceof Fault ? new RangeError(thrown.facts.say ?? thrown.message) : thrown
  }
}

const NEEDED = { list: ['as'], read: ['by'], create: [], merge: ['by'] } as const

function checkRule({ collections }: MemoryFile, path: string, rule: MemoryRule): void {
  if (!Object.hasOwn(collections, rule.collection))
    throw new RangeError(`${path}.collection names no collection of this file`)
  for (const name of NEEDED[rule.do])
    if (rule[name] === undefined) throw new RangeError(`${path}.${name} is needed to ${rule.do}`)
}
