import { readCode } from '../../../base/config/scopes/scope-token.ts'
import type {
  ActionFacts,
  Backend,
  BackendAnswer,
  Call,
  PossibleAnswers,
} from '../../../base/contracts/calls/backend.ts'
import type { FundRegistry } from '../../../base/contracts/people/places.ts'
import type { BodySchema } from '../../../base/http/body/body-schema.ts'
import { isJsonObject, type JsonObject } from '../../../base/http/body/json.ts'
import { type BodyValidator, compileValidator } from '../../../base/http/body/validate-body.ts'
import { Fault, type FaultCode } from '../../../base/kernel/faults.ts'
import { withoutTypes } from '../templates/places.ts'
import type { CollectionFacts, MemoryFile, MemoryRule } from './file.ts'

interface Operation {
  readonly rule: MemoryRule
  readonly collection: MemoryCollection
}

type Verb = (
  call: Call,
  operation: Operation,
  funds: FundRegistry | undefined,
) => JsonObject | Promise<JsonObject>

const NO_DATA: JsonObject = Object.freeze(Object.create(null) as JsonObject)

const VERBS: Readonly<Record<MemoryRule['do'], Verb>> = {
  list: (call, { rule, collection }) => {
    const records = collection.list(placeOf(call, collection))
    const { as = 'Items', total, fields } = rule
    const items = fields === undefined ? [...records] : records.map((record) => pick(record, fields))
    return { [as]: items, ...(total !== undefined && { [total]: items.length }) }
  },
  read: (call, { rule, collection }) => {
    const record = collection.get(placeOf(call, collection), keyOf(call, rule))
    return rule.since === undefined ? record : without(record, rule.since, call.version)
  },
  create: async (call, { rule, collection }, funds) => {
    const place = placeOf(call, collection)
    if (rule.opensFund === true) {
      const fund = collection.create(place, givenIn(call), rule, readCode)
      await funds?.addFund(call.business, fund)
    } else collection.create(place, givenIn(call), rule, String)
    return NO_DATA
  },
  merge: (call, { rule, collection }) => {
    collection.merge(placeOf(call, collection), keyOf(call, rule), givenIn(call))
    return NO_DATA
  },
}

const VERB_FAULTS: Readonly<Record<MemoryRule['do'], readonly FaultCode[]>> = {
  list: [],
  read: ['upstream_not_found'],
  create: ['body_missing', 'body_invalid'],
  merge: ['body_missing', 'body_invalid', 'upstream_not_found'],
}

/** Codes never hold a slash (C3.4), so that no two places share a name. */
const placeOf = ({ business, fund }: Call, { per }: MemoryCollection): string =>
  per === 'business' ? business : `${business}/${fund ?? ''}`

function keyOf({ params, fund, business }: Call, { by = '' }: MemoryRule): string {
  if (Object.hasOwn(params, by)) return params[by] ?? ''
  return (by === 'fund' ? fund : by === 'business' ? business : undefined) ?? ''
}

function givenIn({ body }: Call): JsonObject {
  if (body.kind !== 'value') throw new Fault('body_missing')
  if (!isJsonObject(body.value)) throw new Fault('body_invalid', { say: 'It must be an object.' })
  return body.value
}

function pick(record: JsonObject, names: readonly string[]): JsonObject {
  const picked: JsonObject = {}
  for (const name of names) picked[name] = record[name] ?? null
  return picked
}

const without = (record: JsonObject, since: Readonly<Record<string, number>>, version: number): JsonObject =>
  Object.fromEntries(Object.entries(record).filter(([name]) => version >= (since[name] ?? 0)))

/** Sample data in memory (C8.1, C10). What each action does is in a data file. Writes last as long as the process. */
export class MemoryBackend implements Backend {
  readonly name: string
  readonly format = 'value'
  readonly payload = 'bare'
  /** It reads no headers, not even conditions. */
  readonly requestHeaders: ReadonlySet<string> = new Set()
  /** The operations by `METHOD area/action`. */
  readonly #operations: ReadonlyMap<string, Operation>
  readonly #funds: FundRegistry | undefined

  /** @throws RangeError on collections that don't hold together */
  constructor(name: string, file: MemoryFile, funds?: FundRegistry) {
    this.name = name
    this.#funds = funds
    this.#operations = operationsOf(file)
  }

  answer(call: Call): Promise<BackendAnswer> {
    return Promise.try(async () => ({
      status: 200,
      headers: {},
      body: { kind: 'value', value: await this.#data(call) },
    }))
  }

  possibleAnswers(action: ActionFacts, method: string): PossibleAnswers {
    const verb = this.#operationOf(action, method)?.rule.do
    return {
      successes: { other: false, notModified: false, precondition: false, ranges: false },
      faults: verb === undefined ? [] : VERB_FAULTS[verb],
      ownErrors: [],
      otherRefusals: false,
      bytes: false,
    }
  }

  #operationOf({ area, action }: ActionFacts, method: string): Operation | undefined {
    return this.#operations.get(`${method === 'HEAD' ? 'GET' : method} ${area}/${withoutTypes(action)}`)
  }

  #data(call: Call): JsonObject | Promise<JsonObject> {
    const { action, method } = call
    const operation = this.#operationOf(action, method)
    if (operation === undefined)
      throw new Fault('internal', {
        detail: `the data file says nothing of ${method} ${action.area}/${action.action}`,
      })
    return VERBS[operation.rule.do](call, operation, this.#funds)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

function operationsOf({ collections, actions }: MemoryFile): ReadonlyMap<string, Operation> {
  const made = new Map(
    Object.entries(collections).map(([name, facts]) => [name, new MemoryCollection(facts)]),
  )
  const operations = new Map<string, Operation>()
  for (const [action, methods] of Object.entries(actions))
    for (const [method, rule] of Object.entries(methods)) {
      const collection = made.get(rule.collection)
      if (collection) operations.set(`${method} ${withoutTypes(action)}`, { rule, collection })
    }
  return operations
}

/**
 * `base` with `changes` laid over it: objects field by field, everything else as a whole. Neither is changed: answers may
 * hold them.
 */
export function merged(base: JsonObject, changes: JsonObject): JsonObject {
  const result = Object.assign(Object.create(null) as JsonObject, base)
  for (const [name, value] of Object.entries(changes)) {
    const old = result[name]
    result[name] = isJsonObject(old) && isJsonObject(value) ? merged(old, value) : value
  }
  return result
}

const NO_DEFAULTS: JsonObject = Object.freeze({})

const refuse = (say: string): never => {
  throw new Fault('body_invalid', { say })
}

/** Records of one kind, each business's or fund's apart. Records are never changed, only replaced. */
export class MemoryCollection {
  readonly per: CollectionFacts['per']
  readonly #key: string
  /** A key as records are found by it: a UUID is the same in capitals (RFC 9562 §4). */
  readonly #normalized: (key: string) => string
  readonly #validate: BodyValidator
  readonly #partitions = new Map<string, Map<string, JsonObject>>()

  /** @throws RangeError on records without a key */
  constructor({ per, key, fields, records }: CollectionFacts) {
    this.per = per
    this.#key = key
    this.#normalized = fields[key]?.format === 'uuid' ? (text) => text.toLowerCase() : (text) => text
    const shape: BodySchema = { type: 'object', properties: fields, additionalProperties: false }
    this.#validate = compileValidator(shape)
    for (const [place, list] of Object.entries(records))
      for (const record of list) this.#put(place, this.#keyOf(record), record)
  }

  list(place: string): readonly JsonObject[] {
    return [...(this.#partitions.get(place)?.values() ?? [])]
  }

  /** @throws Fault upstream_not_found */
  get(place: string, key: string): JsonObject {
    const record = this.#partitions.get(place)?.get(this.#normalized(key))
    if (record === undefined) throw new Fault('upstream_not_found')
    return record
  }

  /**
   * @returns the new record's key
   * @param readKey undefined for a text that cannot be a key
   * @throws Fault body_invalid naming the field: missing, unknown, ill-typed, or a key that is taken or is not possible
   */
  create<K extends string>(
    place: string,
    given: JsonObject,
    { required = [], defaults = NO_DEFAULTS }: Pick<MemoryRule, 'required' | 'defaults'>,
    readKey: (text: string) => K | undefined,
  ): K {
    this.#validate(given)
    const missing = required.filter((name) => !Object.hasOwn(given, name))
    if (missing.length > 0) refuse(missing.map((name) => `${name} is required.`).join(' '))
    const text = given[this.#key]
    if (typeof text !== 'string' || text === '')
      return refuse(`${this.#key} must be a text that is not empty.`)
    const key = readKey(text)
    if (key === undefined)
      return refuse(
        `${this.#key} must be made of printable ASCII without spaces, slashes, quotes and backslashes.`,
      )
    if (this.#partitions.get(place)?.has(this.#normalized(key))) refuse(`${this.#key} is taken.`)
    this.#put(place, key, merged(defaults, given))
    return key
  }

  /** @throws Fault upstream_not_found; body_invalid naming the field */
  merge(place: string, key: string, changes: JsonObject): void {
    const record = this.get(place, key)
    this.#validate(changes)
    const given = changes[this.#key]
    const own = this.#keyOf(record)
    const isOwn = typeof given === 'string' && this.#normalized(given) === this.#normalized(own)
    if (given !== undefined && !isOwn) refuse(`${this.#key} cannot be changed.`)
    this.#put(place, key, merged(record, { ...changes, [this.#key]: own }))
  }

  #keyOf(record: JsonObject): string {
    const key = record[this.#key]
    if (typeof key !== 'string') throw new RangeError(`a record has no ${this.#key}`)
    return key
  }

  #put(place: string, key: string, record: JsonObject): void {
    const partition = this.#partitions.get(place) ?? new Map<string, JsonObject>()
    this.#partitions.set(place, partition.set(this.#normalized(key), record))
  }
}
