import type { BodySchema } from '../../http/body-schema.ts'
import type { JsonObject, JsonValue } from '../../http/json.ts'
import { type BodyValidator, compileValidator } from '../../http/validate-body.ts'
import { Fault } from '../../kernel/faults.ts'
import type { CollectionFacts, MemoryRule } from './file.ts'

export const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)

/** `base` with `changes` laid over it, objects field by field, all else whole. Neither is changed: answers may hold them. */
export function merged(base: JsonObject, changes: JsonObject): JsonObject {
  const result = Object.assign(Object.create(null) as JsonObject, base)
  for (const [name, value] of Object.entries(changes)) {
    const old = result[name]
    result[name] = isObject(old) && isObject(value) ? merged(old, value) : value
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

  /** @throws RangeError on a field schema that can't be honoured, or records without a key */
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
   * @param readKey undefined for a text that can be no key
   * @throws Fault body_invalid naming the field: missing, unknown, ill-typed, or a key that is taken or can be none
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
