import { typesOf, type BodySchema, type BodyType } from './body-schema.ts'
import { isIntegerLiteral, type JsonValue, parseNumberLiteral } from './json-value.ts'

type Reader = (text: string) => JsonValue | undefined

const READERS: Readonly<Partial<Record<BodyType, Reader>>> = {
  string: (text) => text,
  boolean: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
  integer: (text) => (isIntegerLiteral(text) ? parseNumberLiteral(text) : undefined),
  number: parseNumberLiteral,
  null: (text) => (text === '' ? null : undefined),
}

/**
 * A text as the schema types it (C7.5, C7.6); undefined where it is not of any type that the schema allows. Without
 * a type, or where a string is allowed, it stays text: a text is never taken for a number by its looks.
 */
export function readTyped(text: string, schema: BodySchema | undefined): JsonValue | undefined {
  const types = typesOf(schema)
  if (types.length === 0 || types.includes('string')) return text
  for (const type of types) {
    const value = READERS[type]?.(text)
    if (value !== undefined) return value
  }
  return undefined
}

const EXPECTED: Readonly<Record<BodyType, string>> = {
  string: 'a text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  null: 'null',
}

/** What a schema's types are called in a message: `a number or null`. */
export const describeTypes = (types: readonly BodyType[]): string =>
  types.map((type) => EXPECTED[type]).join(' or ')
