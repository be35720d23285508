/** The members that bodies of a description may have: where a client could write the code of a business. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/http/body/json.ts'
import { listOf, objectOf, referenced, trimmedText } from './operations.ts'

/** A member of a body, at its place nearest to the beginning. */
export interface BodyMember {
  readonly path: readonly string[]
  /** Whether a list, or a map with keys of the client's, is on the way: nothing can be put there. */
  readonly repeated: boolean
}

/** A member of one schema. */
interface OwnMember {
  readonly name: string
  readonly schema: JsonObject
  readonly repeated: boolean
}

interface Step {
  readonly before: Step | undefined
  readonly name: string
  readonly schema: JsonObject
  readonly repeated: boolean
}

const REPEATED = ['items', 'additionalProperties', 'prefixItems'] as const
const ALTERNATIVES = ['allOf', 'anyOf', 'oneOf'] as const

function pathOf(step: Step): readonly string[] {
  const path: string[] = []
  for (let each: Step | undefined = step; each !== undefined; each = each.before) path.unshift(each.name)
  return path
}

export class BodyMembers {
  readonly #document: JsonObject
  readonly #isWanted: (name: string) => boolean
  /** By reference: many operations have one body. */
  readonly #found = new Map<string, readonly BodyMember[]>()
  readonly #own = new Map<JsonObject, readonly OwnMember[]>()
  readonly #wanted = new Map<string, boolean>()

  /** @param isWanted which names are looked for */
  constructor(document: JsonObject, isWanted: (name: string) => boolean) {
    this.#document = document
    this.#isWanted = isWanted
  }

  /** The members nearest to the beginning come first. A schema that is met again is not read again. */
  in(schema: JsonValue | undefined): readonly BodyMember[] {
    const pointer = trimmedText(objectOf(schema)['$ref'])
    if (pointer === undefined) return this.#find(objectOf(schema))
    let found = this.#found.get(pointer)
    if (found === undefined) this.#found.set(pointer, (found = this.#find(objectOf(schema))))
    return found
  }

  #find(root: JsonObject): readonly BodyMember[] {
    const seen = new Set<JsonObject>([root])
    const found: BodyMember[] = []
    const left: (Step | undefined)[] = [undefined]
    // Parts that are added during the walk are walked too.
    for (const before of left)
      for (const own of this.#ownOf(before?.schema ?? root)) {
        const isNew = !seen.has(own.schema) && this.#ownOf(own.schema).length > 0
        const isWanted = this.#wants(own.name)
        if (!isNew && !isWanted) continue
        const step = { ...own, before, repeated: own.repeated || before?.repeated === true }
        if (isWanted) found.push({ path: pathOf(step), repeated: step.repeated })
        if (isNew) left.push(step)
        seen.add(own.schema)
      }
    return found
  }

  #wants(name: string): boolean {
    let wanted = this.#wanted.get(name)
    if (wanted === undefined) this.#wanted.set(name, (wanted = this.#isWanted(name)))
    return wanted
  }

  /** The members that a schema has itself, by its parts, and by what these refer to. */
  #ownOf(schema: JsonObject): readonly OwnMember[] {
    const known = this.#own.get(schema)
    if (known !== undefined) return known
    const own: OwnMember[] = []
    const seen = new Set<JsonObject>()
    const left: (readonly [value: JsonValue | undefined, repeated: boolean])[] = [[schema, false]]
    for (const [value, repeated] of left) {
      if (!isJsonObject(value) || seen.has(value)) continue
      seen.add(value)
      const pointer = trimmedText(value['$ref'])
      if (pointer !== undefined) left.push([referenced(this.#document, pointer), repeated])
      for (const part of REPEATED) for (const each of [value[part] ?? []].flat()) left.push([each, true])
      for (const part of ALTERNATIVES) for (const each of listOf(value[part])) left.push([each, repeated])
      for (const [name, member] of Object.entries(objectOf(value['properties'])))
        if (objectOf(member)['readOnly'] !== true) own.push({ name, schema: objectOf(member), repeated })
    }
    this.#own.set(schema, own)
    return own
  }
}
