/** The schemas of the directory's records, for the admin API's OpenAPI document: made from those of the configuration. */
import { mapItem, MARK, type SchemaView, viewOf, wordsOf } from '../../base/config/schema.ts'
import { BUSINESS_RECORDS } from '../../identity/directory/editors/places.ts'
import { memberFactsOf, type RecordKind } from '../../identity/directory/editors/record-kind.ts'
import { meantBy } from '../operation/conditions.ts'
import {
  type AdminRequest,
  count,
  members,
  type Members,
  type Schema,
  textSchema,
} from '../operation/operation.ts'
import type { MeantRecord, RecordAt } from './recorded-step.ts'

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

const ownMembers = (kind: RecordKind): Members =>
  Object.fromEntries(
    Object.entries(memberFactsOf(kind))
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

const SECRETS: Members = {
  validSecrets: count('Its secrets that are valid now.'),
  oldSecretEndsAt: textSchema('During a rotation: when the old secret ends.', { format: 'date-time' }),
}

/** A record as it is shown. */
export const shownSchema = (kind: RecordKind): Schema =>
  members(
    {
      ...ownMembers(kind),
      ...(kind.secrets && SECRETS),
      ...(kind.marking ? MARKABLE : { source: SOURCE }),
    },
    [...kind.names, 'source'],
  )

/** The members that are given in clear text. */
export const clearTexts = ({ clearText = {} }: RecordKind): Members =>
  Object.fromEntries(Object.entries(clearText).map(([name, facts]) => [name, { type: 'string', ...facts }]))

/** The body of an addition. `given` are members that the path gives. */
export function writtenSchema(kind: RecordKind, given: readonly string[]): Schema {
  const secret = clearTexts(kind)
  const all = { ...ownMembers(kind), ...secret }
  const body = Object.fromEntries(Object.entries(all).filter(([name]) => !given.includes(name)))
  const free = { ...secret, ...kind.defaults?.({}) }
  return members(
    body,
    required(viewOf(kind.schema)).filter((name) => name in body && !(name in free)),
  )
}

const nullable = (schema: Schema): Schema => {
  const { type, enum: words } = schema
  if (words !== undefined) return { ...schema, type: ['string', 'null'], enum: [...words, null] }
  return typeof type === 'string' ? { ...schema, type: [type, 'null'] } : schema
}

/** The body of an edit: `null` removes a member, or makes it the default. */
export const patchSchema = (kind: RecordKind): Schema => {
  const entries = Object.entries(ownMembers(kind)).map(([name, schema]) => [
    name,
    nullable({ ...schema, required: [] }),
  ])
  return members(Object.fromEntries(entries) as Members)
}

export const withinOf = ({ names }: Pick<RecordKind, 'names'>): readonly string[] => names.slice(0, -1)

/** `/businesses/:business/funds`, without the last name. */
export const collectionOf = (kind: RecordKind): string =>
  [...withinOf(kind).map((parent) => `/${BUSINESS_RECORDS.plural}/:${parent}`), `/${kind.plural}`].join('')

export const recordPath = (kind: RecordKind): string => `${collectionOf(kind)}/:${kind.names.at(-1) ?? ''}`

export const paramsOf = (names: readonly string[]): Members =>
  Object.fromEntries(names.map((name) => [name, textSchema(`The \`${name}\`, percent-encoded.`)]))

export const namesIn = (names: readonly string[], { params }: AdminRequest): readonly string[] =>
  names.map((name) => params[name] ?? '')

export const atOf = (kind: RecordKind, request: AdminRequest): RecordAt => ({
  kind,
  names: namesIn(kind.names, request),
})

/** The record of a request, and what the request says of its version. */
export const meantOf = (kind: RecordKind, request: AdminRequest): MeantRecord => ({
  at: atOf(kind, request),
  operator: request.operator,
  isMeant: meantBy(request),
})

/** Where a record is from now on. */
export const locationOf = (kind: RecordKind, names: readonly string[]): string => {
  const encoded = names.map((name) => encodeURIComponent(name))
  return recordPath(kind).replaceAll(/:\w+/g, () => encoded.shift() ?? '')
}
