/**
 * Follows the references of a description, from the parts that are read: an example, an extension or an answer of an error
 * may hold any. Parts of other files are put under `x-files`.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/http/body/json.ts'
import { listOf, METHODS, objectOf, referenced, schemesOf, successesIn, trimmedText } from './operations.ts'

/** A reference that leads nowhere. */
export interface BrokenReference {
  /** Its path; empty in another file. */
  readonly path: readonly string[]
  readonly why: string
}

/** The kind of a part of a description: it says where references may be in it. */
type Role =
  'schemes' | 'item' | 'operation' | 'parameter' | 'body' | 'response' | 'content' | 'media' | 'schema'

type Inner = readonly [role: Role, value: JsonValue | undefined, ...keys: string[]]

const listed = (role: Role, part: JsonObject, key: string): readonly Inner[] =>
  listOf(part[key]).map((each, at) => [role, each, key, String(at)])

const named = (role: Role, part: JsonObject, key: string): readonly Inner[] =>
  Object.entries(objectOf(part[key])).map(([name, each]) => [role, each, key, name])

const withContent = (part: JsonObject): readonly Inner[] => [
  ['content', part['content'], 'content'],
  ['schema', part['schema'], 'schema'],
]

/** The parts that are read of each. */
const INSIDE: Readonly<Record<Role, (part: JsonObject) => readonly Inner[]>> = {
  schemes: (part) => Object.entries(part).map(([name, each]) => ['media', each, name]),
  item: (part) => [
    ...listed('parameter', part, 'parameters'),
    ...METHODS.map((method): Inner => ['operation', part[method], method]),
  ],
  operation: (part) => [
    ...listed('parameter', part, 'parameters'),
    ['body', part['requestBody'], 'requestBody'],
    ...successesIn(part).map(([status, each]): Inner => ['response', each, 'responses', status]),
  ],
  // In 2.0 the parameter is its own schema.
  parameter: (part) => [...withContent(part), ...INSIDE.schema(part)],
  body: withContent,
  response: withContent,
  content: (part) => Object.entries(part).map(([type, each]) => ['media', each, type]),
  media: (part) => [['schema', part['schema'], 'schema']],
  schema: (part) => [
    ...named('schema', part, 'properties'),
    ...(['items', 'additionalProperties'] as const).map((key): Inner => ['schema', part[key], key]),
    ...['allOf', 'anyOf', 'oneOf', 'prefixItems', 'items'].flatMap((key) => listed('schema', part, key)),
  ],
}

interface Step {
  readonly role: Role
  readonly value: JsonValue | undefined
  readonly file: string
  readonly before: Step | undefined
  readonly keys: readonly string[]
}

type Target = Pick<Step, 'value' | 'file' | 'keys'>

function pathOf(step: Step, main: string): readonly string[] {
  if (step.file !== main) return []
  const path: string[] = []
  for (let each: Step | undefined = step; each !== undefined; each = each.before) path.unshift(...each.keys)
  return path
}

const FILES = 'x-files'
/** A drive of Windows has one letter. */
const IS_REMOTE = /^[a-z][a-z0-9+.-]+:/i

class Follower {
  readonly broken: BrokenReference[] = []
  readonly #main: string
  readonly #document: JsonObject
  readonly #parse: (file: string) => unknown
  /** Undefined: it cannot be read, or is no map. */
  readonly #files = new Map<string, JsonObject | undefined>()
  readonly #why = new Map<string, string>()
  /** References that were made to lead into the document, with where they lead. */
  readonly #rewritten = new Map<JsonObject, Target>()

  constructor(document: JsonObject, main: string, parse: (file: string) => unknown) {
    this.#document = document
    this.#main = main
    this.#parse = parse
    this.#files.set(main, document)
  }

  follow(roots: readonly Step[]): void {
    const seen = new Map<Role, Set<JsonValue>>()
    const left = [...roots]
    // Parts that are added during the walk are walked too.
    for (const step of left) {
      const { role, value, file } = step
      if (!isJsonObject(value)) continue
      const known = seen.get(role) ?? new Set()
      seen.set(role, known)
      if (known.has(value)) continue
      known.add(value)
      const target = this.#targetOf(value, step)
      if (target !== undefined) left.push({ ...target, role, before: undefined })
      for (const [next, inner, ...keys] of INSIDE[role](value))
        if (typeof inner === 'object') left.push({ role: next, value: inner, file, before: step, keys })
    }
  }

  /** Where the reference of a part leads. One that leads nowhere is taken away. */
  #targetOf(part: JsonObject, step: Step): Target | undefined {
    const reference = trimmedText(part['$ref'])
    const known = this.#rewritten.get(part)
    if (reference === undefined || known !== undefined) return known
    const [path = '', pointer = ''] = reference.split('#', 2)
    const file = path === '' ? step.file : resolve(step.file, '..', decoded(path))
    const content = IS_REMOTE.test(path) ? undefined : this.#contentOf(file)
    const value = content && referenced(content, `#${pointer}`)
    if (value === undefined) {
      delete part['$ref']
      this.broken.push({ path: pathOf(step, this.#main), why: this.#whyNot(reference, path, file) })
      return undefined
    }
    const inside = file === this.#main ? '' : `/${FILES}/${[...this.#files.keys()].indexOf(file)}`
    part['$ref'] = `#${inside}${pointer}`
    const target = { value, file, keys: pointer.split('/').slice(1) }
    this.#rewritten.set(part, target)
    return target
  }

  #whyNot(reference: string, path: string, file: string): string {
    const why = this.#why.get(file)
    if (IS_REMOTE.test(path))
      return `it refers to ${reference}, and nothing is fetched: save that file, and refer to the copy`
    return why === undefined || path === ''
      ? `it refers to ${reference}, and there is nothing of that name`
      : `it refers to ${reference}, and that file ${why}`
  }

  #contentOf(file: string): JsonObject | undefined {
    if (this.#files.has(file)) return this.#files.get(file)
    let content: unknown
    try {
      content = this.#parse(file)
    } catch {
      this.#why.set(file, existsSync(file) ? 'is neither YAML nor JSON' : 'does not exist')
    }
    const object = isJsonObject(content as JsonValue) ? (content as JsonObject) : undefined
    this.#files.set(file, object)
    if (object !== undefined) {
      const others = objectOf(this.#document[FILES])
      this.#document[FILES] = { ...others, [String(this.#files.size - 1)]: object }
    }
    return object
  }
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/**
 * Makes every reference that is read lead into the document.
 *
 * @param main the file of the document
 * @param parse of another file
 * @returns those that lead nowhere, which are taken away
 */
export function followReferences(
  document: JsonObject,
  main: string,
  parse: (file: string) => unknown,
): readonly BrokenReference[] {
  const follower = new Follower(document, main, parse)
  const at = document['components'] === undefined ? [] : ['components', 'securitySchemes']
  const root = { file: main, before: undefined }
  follower.follow([
    ...Object.entries(objectOf(document['paths'])).map(([path, value]): Step => ({
      ...root,
      role: 'item',
      value,
      keys: ['paths', path],
    })),
    { ...root, role: 'schemes', value: schemesOf(document), keys: at },
  ])
  return follower.broken
}
