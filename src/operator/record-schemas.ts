/** The schemas of the directory's records, for the admin API's OpenAPI document: made from those of the configuration. */
import { mapItem, MARK, type SchemaView, viewOf, wordsOf } from '../config/schema.ts'
import { PASSWORD_LENGTH } from '../directory/hasher.ts'
import { type Noun, type NounName, NOUNS } from '../directory/nouns.ts'
import { count, members, type Members, type Schema, text } from './operation.ts'

const objectOf = (view: SchemaView): Schema => {
  const map = mapItem(view)
  if (map !== undefined) return { type: 'object', additionalProperties: jsonSchemaOf(map.item) }
  const properties = Object.entries(view.properties ?? {}).map(([name, item]) => [name, jsonSchemaOf(item)])
  return members(Object.fromEntries(properties) as Members, required(view))
}

const required = ({ required: named = [], properties = {} }: SchemaView): readonly string[] =>
  named.filter((name) => properties[name]?.default === undefined)

/** Durations are texts with a unit. What JSON Schema has no keyword for is checked where the record is read. */
function shapeOf(view: SchemaView): Schema {
  const words = wordsOf(view)
  if (words !== undefined) return { type: 'string', enum: words }
  if (view.type === 'object') return objectOf(view)
  if (view.type === 'array')
    return {
      type: 'array',
      items: jsonSchemaOf(view.items ?? {}),
      ...(view.minItems !== undefined && { minItems: view.minItems }),
    }
  if (view.type === 'boolean') return { type: 'boolean' }
  const { pattern, minLength } = view
  return { type: 'string', ...(pattern !== undefined && { pattern }), ...(minLength && { minLength }) }
}

/** What a value is, for people, where its description does not say it. */
const expectedOf = ({ expected, [MARK]: mark }: SchemaView): string =>
  mark === 'duration' && expected !== undefined ? ` Expected: ${expected}.` : ''

export const jsonSchemaOf = (view: SchemaView): Schema => ({
  ...shapeOf(view),
  ...(view.description !== undefined && { description: `${view.description}${expectedOf(view)}` }),
})

const ownMembers = ({ schema, hidden }: Noun): Members =>
  Object.fromEntries(
    Object.entries(viewOf(schema).properties ?? {})
      .filter(([name]) => !Object.hasOwn(hidden, name))
      .map(([name, view]) => [name, jsonSchemaOf(view)]),
  )

const SOURCE: Schema = {
  enum: ['configuration', 'store'],
  description: 'Where it stands. What the configuration holds is changed only there.',
}

const OF_CLIENT: Members = {
  validSecrets: count('Its secrets that are valid now.'),
  oldSecretEndsAt: text('During a rotation: when the old secret ends.', { format: 'date-time' }),
}

/** A record as it is shown. */
export const shownSchema = (what: NounName): Schema =>
  members({ ...ownMembers(NOUNS[what]), ...(what === 'client' && OF_CLIENT), source: SOURCE }, [
    ...NOUNS[what].names,
    'source',
  ])

export const PASSWORD: Schema = {
  type: 'string',
  minLength: PASSWORD_LENGTH.least,
  maxLength: PASSWORD_LENGTH.most,
  description: 'The password as it is. Only its hash is stored.',
}

/** The body of an addition. `given` are members that the path gives. */
export function writtenSchema(what: NounName, given: readonly string[]): Schema {
  const noun = NOUNS[what]
  const all = { ...ownMembers(noun), ...(what === 'user' && { password: PASSWORD }) }
  const body = Object.fromEntries(Object.entries(all).filter(([name]) => !given.includes(name)))
  // A new client has the grants of its kind, a new user a random subject, unless others are given.
  const needed = [...required(viewOf(noun.schema)), ...(what === 'user' ? ['password'] : [])].filter(
    (name) => name in body && !['grants', 'subject'].includes(name),
  )
  return members(body, needed)
}

const nullable = (schema: Schema): Schema => {
  const { type, enum: words } = schema
  if (words !== undefined) return { ...schema, type: ['string', 'null'], enum: [...words, null] }
  return typeof type === 'string' ? { ...schema, type: [type, 'null'] } : schema
}

/** The body of an edit: `null` removes a member, or makes it the default. */
export const patchSchema = (what: NounName): Schema => {
  const entries = Object.entries(ownMembers(NOUNS[what])).map(([name, schema]) => [
    name,
    nullable({ ...schema, required: [] }),
  ])
  return members(Object.fromEntries(entries) as Members)
}
