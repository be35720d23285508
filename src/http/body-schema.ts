/**
 * The shape of an action's request body: the part of JSON Schema 2020-12 that Postern reads. It types what XML and
 * forms say as text (C7.5, C7.6) and is what a body is checked against (C4.11). Plain JSON, so that it may stand in
 * a configuration file as it is.
 */
export type BodyType = 'string' | 'number' | 'integer' | 'boolean' | 'array' | 'object' | 'null'

export type BodyFormat = 'date' | 'date-time' | 'uuid' | 'email'

export interface BodySchema {
  /** Absent: anything. A list: one of them, such as `["string", "null"]`. */
  readonly type?: BodyType | readonly BodyType[]
  readonly properties?: Readonly<Record<string, BodySchema>>
  readonly required?: readonly string[]
  /** `false`: unknown fields are refused. A schema: they must fit it. Absent or `true`: they pass. */
  readonly additionalProperties?: boolean | BodySchema
  readonly items?: BodySchema
  readonly minItems?: number
  readonly maxItems?: number
  readonly enum?: readonly (string | number | boolean | null)[]
  readonly const?: string | number | boolean | null
  /** Unicode regular expression (`u`), not anchored. */
  readonly pattern?: string
  /** In Unicode code points. */
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly format?: BodyFormat
  readonly title?: string
  readonly description?: string
}

const NONE: readonly BodyType[] = []

/** The types that a schema allows; empty where it allows all. */
export function typesOf(schema: BodySchema | undefined): readonly BodyType[] {
  const type = schema?.type
  if (type === undefined) return NONE
  return typeof type === 'string' ? [type] : type
}

/** Whether a schema names this type. */
export const allowsType = (schema: BodySchema | undefined, type: BodyType): boolean =>
  typesOf(schema).includes(type)

/** The schema of a member: its own, else that of unknown members, else none. Own members only, whatever the name. */
export function memberSchema(schema: BodySchema | undefined, name: string): BodySchema | undefined {
  if (schema === undefined) return undefined
  if (schema.properties !== undefined && Object.hasOwn(schema.properties, name))
    return schema.properties[name]
  return typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
}
