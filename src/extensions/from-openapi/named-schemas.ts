/** The schemas of a description that others refer to: each is written once in the configuration, under `schemas`. */
import type { BodySchema } from '../../base/http/body/body-schema.ts'
import { type JsonObject, type JsonValue, parseJsonPointer } from '../../base/http/body/json.ts'
import { listOf, shortText, objectOf, referenced, referencesIn, slugOf } from './operations.ts'
import { convertSchema, type NamedParts, onlyReference, type Side } from './schema.ts'
import { LOST, type Tell } from './tell.ts'

interface Definition {
  readonly schema: BodySchema
  /** XML names of items of arrays in it, by the name of the array; not of what it refers to. */
  readonly items: ReadonlyMap<string, string>
}

/** XML names of items that an operation gets at most, those nearest to it. */
const MOST_ITEMS = 50
const REFERENCE = '#/schemas/'

export class NamedSchemaSet implements NamedParts {
  readonly document: JsonObject
  readonly #tell: (path: readonly string[], ...said: Parameters<Tell>) => void
  /** By pointer, side and whether it may be null. */
  readonly #names = new Map<string, string>()
  readonly #definitions = new Map<string, Definition>()
  readonly #pending: (() => void)[] = []
  readonly #told = new Set<string>()
  #hasItems = false
  #sided: ReadonlySet<JsonValue> | undefined

  constructor(document: JsonObject, tell: (path: readonly string[], ...said: Parameters<Tell>) => void) {
    this.document = document
    this.#tell = tell
  }

  /** The schemas that operations use, as they are written under `schemas`. @param text the operations as JSON */
  schemasIn(text: string): Readonly<Record<string, BodySchema>> {
    const names = new Set([...text.matchAll(/"#\/schemas\/([^"]+)"/g)].map(([, name = '']) => name))
    // Names that are added during the walk are walked too.
    for (const name of names)
      for (const inner of namesIn(this.#definitions.get(name)?.schema ?? {})) names.add(inner)
    const used = [...this.#definitions].filter(([name]) => names.has(name))
    return Object.fromEntries(used.map(([name, { schema }]) => [name, schema]))
  }

  refer(pointer: string, side: Side, nullable: boolean): BodySchema {
    const passed = new Set<string>()
    let [at, orNull] = [pointer, nullable]
    for (;;) {
      const next = onlyReference(objectOf(referenced(this.document, at)))
      if (next === undefined) break
      if (passed.has(at)) return {}
      passed.add(at)
      at = next.pointer
      orNull ||= next.nullable
    }
    return { $ref: `${REFERENCE}${this.#nameFor(at, side, orNull)}` }
  }

  #nameFor(pointer: string, side: Side, nullable: boolean): string {
    this.#sided ??= sidedParts(this.document)
    const target = referenced(this.document, pointer) ?? null
    const isSided = this.#sided.has(target)
    const key = `${pointer} ${isSided ? side : ''} ${nullable}`
    const known = this.#names.get(key)
    if (known !== undefined) return known
    const path = parseJsonPointer(pointer)
    const own = slugOfName(path.at(-1) ?? '')
    const name = this.#free(
      `${own}${isSided && side === 'request' ? '.sent' : ''}${nullable ? '.or-null' : ''}`,
    )
    this.#names.set(key, name)
    // Later: schemas may refer to each other in longer chains than the stack is deep.
    this.#pending.push(() => {
      const { schema, lost, items } = convertSchema(target, side, this, { within: pointer, nullable })
      this.#definitions.set(name, { schema, items })
      this.#hasItems ||= items.size > 0
      const what = `of the schema ${own} these are left out: ${[...lost].join(', ')}`
      if (lost.size > 0 && !this.#told.has(what)) this.#tell(path, what, LOST, [...lost])
      this.#told.add(what)
    })
    return name
  }

  #free(name: string): string {
    const taken = new Set(this.#names.values())
    let free = name
    for (let count = 2; taken.has(free) || this.#definitions.has(free); count++) free = `${name}-${count}`
    return free
  }

  /** Converts what was referred to, with all that it refers to. */
  complete(): void {
    for (let next = this.#pending.pop(); next !== undefined; next = this.#pending.pop()) next()
  }

  /** The schema itself, or the one that it refers to. `complete` comes first. */
  resolved(schema: BodySchema): BodySchema {
    const name = nameIn(schema)
    return name === undefined ? schema : (this.#definitions.get(name)?.schema ?? {})
  }

  /** XML names of the items of arrays in a schema and in what it refers to, but for its own. */
  itemsWithin(schema: BodySchema): ReadonlyMap<string, string> {
    const found = new Map<string, string>()
    if (!this.#hasItems) return found
    const names = new Set(namesIn(schema))
    // Names that are added during the walk are walked too.
    for (const name of names) {
      const definition = this.#definitions.get(name)
      for (const [array, item] of definition?.items ?? [])
        if (found.size < MOST_ITEMS && !found.has(array)) found.set(array, item)
      for (const inner of namesIn(definition?.schema ?? {})) names.add(inner)
    }
    return found
  }

  /** A schema without the member at a pointer, which Postern sets. Schemas that others use stay as they are. */
  without(schema: BodySchema, pointer: readonly string[]): BodySchema {
    const [member = '', ...rest] = pointer
    const name = nameIn(schema)
    const key = `${name} without ${pointer.join('/')}`
    const known = name === undefined ? undefined : this.#names.get(key)
    if (known !== undefined) return { $ref: `${REFERENCE}${known}` }
    const { properties = {}, required, ...own } = this.resolved(schema)
    if (!Object.hasOwn(properties, member)) return schema
    const { [member]: inner = {}, ...others } = properties
    const left = rest.length === 0 ? others : { ...properties, [member]: this.without(inner, rest) }
    const needed = required?.filter((each) => each !== member) ?? []
    const changed = { ...own, properties: left, ...(needed.length > 0 && { required: needed }) }
    if (name === undefined) return changed
    const free = this.#free(name.endsWith('.sent') ? name : `${name}.sent`)
    this.#names.set(key, free)
    this.#definitions.set(free, { schema: changed, items: this.#definitions.get(name)?.items ?? new Map() })
    return { $ref: `${REFERENCE}${free}` }
  }
}

/** A name as the configuration may have it. */
const slugOfName = (name: string): string =>
  /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name) ? name : (slugOf(name) ?? 'schema')

const nameIn = ({ $ref: reference }: BodySchema): string | undefined => reference?.slice(REFERENCE.length)

/** The names that a schema refers to, from its beginning on. */
function* namesIn(schema: BodySchema): Generator<string> {
  const name = nameIn(schema)
  if (name !== undefined) yield name
  for (const member of Object.values(schema.properties ?? {})) yield* namesIn(member)
  if (schema.items !== undefined) yield* namesIn(schema.items)
  if (typeof schema.additionalProperties === 'object') yield* namesIn(schema.additionalProperties)
}

/** Whether a member is required that only one side sends. */
function isSidedItself(value: JsonValue): boolean {
  const seen = new Set<JsonValue>([value])
  for (const part of seen) {
    if (typeof part !== 'object' || part === null) continue
    const { required, properties } = part as JsonObject
    for (const name of listOf(required)) {
      const member = objectOf(objectOf(properties)[shortText(name)])
      if (member['readOnly'] === true || member['writeOnly'] === true) return true
    }
    for (const inner of Object.values(part)) if (typeof inner === 'object') seen.add(inner as JsonValue)
  }
  return false
}

/** Referenced schemas that differ between requests and answers: by themselves, or by a schema that they refer to. */
function sidedParts(document: JsonObject): ReadonlySet<JsonValue> {
  const users = new Map<JsonValue, JsonValue[]>()
  const sided = new Set<JsonValue>()
  const targets = new Set<JsonValue>()
  for (const { $ref: pointer } of referencesIn(document)) targets.add(referenced(document, pointer) ?? null)
  for (const target of targets) {
    if (isSidedItself(target)) sided.add(target)
    for (const { $ref: pointer } of referencesIn(target)) {
      const used = referenced(document, pointer) ?? null
      users.set(used, [...(users.get(used) ?? []), target])
    }
  }
  for (const target of sided) for (const user of users.get(target) ?? []) sided.add(user)
  return sided
}
