/** The schemas of the directory's records, for the admin API's OpenAPI document: made from those of the configuration. */
import { mapItem, MARK, type SchemaView, viewOf, wordsOf } from '../../base/config/schema.ts'
import { PASSWORD_LENGTH } from '../../identity/directory/hashing/hasher.ts'
import { isMarkable } from '../../identity/directory/records/marks.ts'
import { memberFactsOf, type Noun, type NounName, NOUNS } from '../../identity/directory/editors/nouns.ts'
import { meantBy } from '../operation/conditions.ts'
import {
  type AdminRequest,
  count,
  members,
  type Members,
  type Schema,
  textSchema,
} from '../operation/operation.ts'
import type { MeantRecord, RecordAt } from './record-changes.ts'

const objectOf = (view: SchemaView): Schema => {
  const map = mapItem(view)
  if (map !== undefined) return { type: 'object', additionalProperties: jsonSchemaOf(map.item) }
  const properties = Object.entries(view.properties ?? {}).map(([name, item]) => [name, jsonSchemaOf(item)])
  return members(Object.fromEntries(properties) as Members, required(view))
}

const required = ({ required: named = [], properties = {} }: SchemaView): readonly string[] =>
  named.filter((name) => properties[name]?.default === undefined)

const TEXT_OR_SECRET: Schema = {
  type: ['string', 'object'],
  properties: {
    secret: {
      type: ['string', 'boolean'],
      description: 'A text that is stored sealed, and never shown. `true` stands for the one that is stored.',
    },
  },
  required: ['secret'],
  additionalProperties: false,
}

/** Durations are texts with a unit. Rules for which JSON Schema has no keyword are checked where the record is read. */
function shapeOf(view: SchemaView): Schema {
  const words = wordsOf(view)
  if (words !== undefined) return { type: 'string', enum: words }
  if (view[MARK] === 'textOrSecret') return TEXT_OR_SECRET
  if (view[MARK] === 'opaque') return { type: 'object' }
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

const jsonSchemaOf = (view: SchemaView): Schema => ({
  ...shapeOf(view),
  ...(view.description !== undefined && { description: `${view.description}${expectedOf(view)}` }),
})

const ownMembers = (noun: Noun): Members =>
  Object.fromEntries(
    Object.entries(memberFactsOf(noun))
      .filter(([, { hidden, retired }]) => hidden === undefined && retired !== true)
      .map(([name, view]) => [name, jsonSchemaOf(view)]),
  )

const SOURCE: Schema = {
  enum: ['configuration', 'store'],
  description: 'Where it stands. What the configuration holds is changed only there.',
}

/** Members of records that a mark can disable. */
const MARKABLE: Members = {
  disabledByCommand: {
    type: 'boolean',
    description:
      'A mark of the store disables it, whatever the record says. `enable` removes the mark alone.',
  },
  source: {
    enum: ['configuration', 'store', 'mark'],
    description:
      'Where it stands. What the configuration holds is changed only there. `mark`: neither has it, but a mark of the store disables whoever is found by this name.',
  },
}

const OF_CLIENT: Members = {
  validSecrets: count('Its secrets that are valid now.'),
  oldSecretEndsAt: textSchema('During a rotation: when the old secret ends.', { format: 'date-time' }),
}

/** A record as it is shown. */
export const shownSchema = (what: NounName): Schema =>
  members(
    {
      ...ownMembers(NOUNS[what]),
      ...(what === 'client' && OF_CLIENT),
      ...(isMarkable(what) ? MARKABLE : { source: SOURCE }),
    },
    [...NOUNS[what].names, 'source'],
  )

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
  const named = new Set([...required(viewOf(noun.schema)), ...(what === 'user' ? ['password'] : [])])
  const needed = [...named].filter((name) => name in body && !['grants', 'subject'].includes(name))
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

/** `/businesses/:business/funds`, without the last name. */
export function collectionOf(noun: NounName): string {
  const [parent, ...more] = NOUNS[noun].names
  return more.length === 0
    ? `/${NOUNS[noun].plural}`
    : `/${NOUNS['business'].plural}/:${parent ?? ''}/${NOUNS[noun].plural}`
}

export const recordPath = (noun: NounName): string =>
  `${collectionOf(noun)}/:${NOUNS[noun].names.at(-1) ?? ''}`

export const withinOf = (noun: NounName): readonly string[] => NOUNS[noun].names.slice(0, -1)

export const paramsOf = (names: readonly string[]): Members =>
  Object.fromEntries(names.map((name) => [name, textSchema(`The \`${name}\`, percent-encoded.`)]))

export const namesIn = (names: readonly string[], { params }: AdminRequest): readonly string[] =>
  names.map((name) => params[name] ?? '')

export const atOf = (noun: NounName, request: AdminRequest): RecordAt => ({
  noun,
  names: namesIn(NOUNS[noun].names, request),
})

/** The record of a request, and what the request says of its version. */
export const meantOf = (noun: NounName, request: AdminRequest): MeantRecord => ({
  at: atOf(noun, request),
  operator: request.operator,
  isMeant: meantBy(request),
})

/** Where a record is from now on. */
export const locationOf = (noun: NounName, names: readonly string[]): string => {
  const encoded = names.map((name) => encodeURIComponent(name))
  return recordPath(noun).replaceAll(/:\w+/g, () => encoded.shift() ?? '')
}
