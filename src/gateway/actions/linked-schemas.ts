/** Schemas of the configuration with each reference (`$ref: '#/schemas/Fund'`) replaced by the schema that it names. */
import { reportUnknownName } from '../../base/config/problem-text.ts'
import type { KeyPath, Problems } from '../../base/config/problems.ts'
import type { BodySchema } from '../../base/http/body/body-schema.ts'
import { compileNamed } from '../../base/http/body/validate-body.ts'
import type { OperationConfig, ParameterConfig } from './schema.ts'

type Draft = { -readonly [Key in keyof BodySchema]: BodySchema[Key] }

/** The schemas under `schemas`, by name, as written. */
export type NamedSchemas = Readonly<Record<string, BodySchema>>

const REFERENCE = /^#\/schemas\/(.+)$/

const isReference = (schema: object): boolean => Object.hasOwn(schema, '$ref')

/**
 * Links the schemas of one configuration. All references to a name lead to one object, so a schema that contains itself is
 * a circle of objects, and what many operations use is in memory once.
 */
export class SchemaLinker {
  readonly #configured: NamedSchemas
  readonly #problems: Problems
  /** The linked schemas by name; complete once all are linked. */
  readonly #named = new Map<string, Draft>()

  /** Reports references that lead nowhere. */
  constructor(configured: NamedSchemas, problems: Problems) {
    this.#configured = configured
    this.#problems = problems
    const written = Object.entries(configured)
    const own = written.filter(([, schema]) => !isReference(schema))
    for (const [name] of own) this.#named.set(name, { $id: name })
    for (const [name, schema] of written) if (!this.#named.has(name)) this.#follow(name, schema)
    for (const [name, schema] of own) this.#fill(name, schema)
  }

  /** The schemas of an operation, linked. */
  linkOperation(config: OperationConfig, path: KeyPath): OperationConfig {
    const { body, data, parameters } = config
    return {
      ...config,
      ...(body?.schema && {
        body: { ...body, schema: this.#link(body.schema, [...path, 'body', 'schema']) },
      }),
      ...(parameters && {
        parameters: Object.fromEntries(
          Object.entries(parameters).map(([name, given]) => [
            name,
            this.#linkParameter(given, [...path, 'parameters', name]),
          ]),
        ),
      }),
      ...(data && { data: this.#link(data, [...path, 'data']) }),
    }
  }

  /** `required` and `default` of a parameter are keys next to its schema, not part of it (C4.11). */
  #linkParameter(given: ParameterConfig, at: KeyPath): ParameterConfig {
    if (!isReference(given)) return given
    const { required, default: value, ...schema } = given
    const linked = Object.entries(this.#link(schema, at)).filter(
      ([key]) => key !== '$id' && key !== 'required',
    )
    return {
      ...Object.fromEntries(linked),
      ...(required !== undefined && { required }),
      ...(value !== undefined && { default: value }),
    }
  }

  /** Follows a name that stands for another name. */
  #follow(name: string, schema: BodySchema): void {
    const at: KeyPath = ['schemas', name]
    const passed = new Set([name])
    for (let next: BodySchema | undefined = schema; next !== undefined && isReference(next);) {
      const other = this.#nameIn(next, at)
      const target = other === undefined ? undefined : this.#named.get(other)
      if (target !== undefined) this.#named.set(name, target)
      if (other === undefined || target !== undefined) return
      if (passed.has(other)) this.#problems.error([...at, '$ref'], 'leads back to itself')
      next = passed.has(other) ? undefined : this.#configured[other]
      passed.add(other)
    }
  }

  #fill(name: string, schema: BodySchema): void {
    const own = this.#named.get(name)
    if (own === undefined) return
    Object.assign(own, this.#linkParts(schema, ['schemas', name]), { $id: name })
    compileNamed(own)
  }

  /** The name that a reference names; undefined, after it was reported, if there is none. */
  #nameIn(schema: BodySchema, at: KeyPath): string | undefined {
    const { $ref: reference, ...beside } = schema
    const where = [...at, '$ref']
    if (Object.keys(beside).length > 0)
      this.#problems.error(where, 'stands alone: other keywords belong to the schema that it names')
    const [, name] = REFERENCE.exec(reference ?? '') ?? []
    if (name === undefined) this.#problems.error(where, "expected '#/schemas/NAME'")
    else if (Object.hasOwn(this.#configured, name)) return name
    else reportUnknownName(this.#problems, where, 'schema', name, Object.keys(this.#configured))
    return undefined
  }

  #link(schema: BodySchema, at: KeyPath): BodySchema {
    if (!isReference(schema)) return this.#linkParts(schema, at)
    const name = this.#nameIn(schema, at)
    return (name === undefined ? undefined : this.#named.get(name)) ?? {}
  }

  /** The same object where it has no references. */
  #linkParts(schema: BodySchema, at: KeyPath): BodySchema {
    const linked: Draft = {}
    for (const key of ['items', 'additionalProperties'] as const) {
      const part = schema[key]
      if (typeof part !== 'object') continue
      const own = this.#link(part, [...at, key])
      if (own !== part) linked[key] = own
    }
    const { properties } = schema
    if (properties !== undefined) {
      const members = Object.entries(properties)
      const own = members.map(
        ([name, member]) => [name, this.#link(member, [...at, 'properties', name])] as const,
      )
      if (own.some(([, member], index) => member !== members[index]?.[1]))
        linked.properties = Object.fromEntries(own)
    }
    return Object.keys(linked).length === 0 ? schema : { ...schema, ...linked }
  }
}
