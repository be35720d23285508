/** Puts a schema of the document into words. */
import { plainText } from '../../base/http/body/json.ts'
import { typesOf } from '../../base/http/body/body-schema.ts'
import { html, type Html } from '../../identity/pages/layout.ts'
import { type ApiDocument, schemaName, plain, type DocumentSchema } from './document.ts'
import { table } from './elements.ts'
import { prose } from './markdown.ts'

/** Deeper members, and more of them, are left out: a page is no place for them. */
const DEEPEST = 8
const MOST_ROWS = 300

type Row = readonly [member: Html, type: string, rule: Html]

/** The members of an object's schema, folded away; nothing for a schema that names none. A schema with a name is told once. */
export function memberTable(
  label: string,
  schema: DocumentSchema | undefined,
  document: ApiDocument,
): Html | undefined {
  const rows: Row[] = []
  const told = new Set<string>()
  const tell = (node: DocumentSchema, under: string, depth: number): void => {
    const name = schemaName(node)
    if (depth > DEEPEST || (name !== undefined && told.has(name))) return
    if (name !== undefined) told.add(name)
    const { properties = {}, required, items } = document.resolved<DocumentSchema>(node)
    for (const [key, member] of Object.entries(properties)) {
      if (rows.length >= MOST_ROWS) return
      if (member.not) continue
      const path = under === '' ? key : `${under}.${key}`
      rows.push(rowOf(path, member, required?.includes(key) ?? false, document))
      tell(member, path, depth + 1)
    }
    if (items !== undefined) tell(items, `${under}[]`, depth + 1)
  }
  if (schema !== undefined) tell(schema, '', 0)
  if (rows.length === 0) return undefined
  return html`<details>
    <summary>${prose(label)}</summary>
    ${table(label.replaceAll('`', ''), ['Member', 'Type', 'Rule'], rows)}
  </details>`
}

/** @param path `Address.Locality`; the items of a list are `Tags[]` */
function rowOf(path: string, member: DocumentSchema, required: boolean, document: ApiDocument): Row {
  const schema = document.resolved<DocumentSchema>(member)
  const rule = [...(required ? ['required'] : []), ...rulesOf(schema)].join('; ')
  const { description = schema.title } = schema
  const words = description !== undefined && html`${rule !== '' && '. '}${plain(description)}`
  return [html`<code>${path}</code>`, typeText(schema, document), html`${rule}${words}`]
}

/** The type, the rules, whether it must be there, and what it is without being sent. */
export const schemaWords = (schema: DocumentSchema, required: boolean, document: ApiDocument): string =>
  [
    typeText(schema, document),
    ...rulesOf(schema),
    ...(required ? ['required'] : []),
    ...(schema.default === undefined ? [] : [`without it ${plainText(schema.default)}`]),
  ].join('; ')

function typeText(schema: DocumentSchema, document: ApiDocument): string {
  const { items } = schema
  const types = typesOf(schema)
  if (types.length === 0) return 'anything'
  const word = (type: (typeof types)[number]): string =>
    type === 'array' && items
      ? `list of ${schemaName(items) ?? typeText(document.resolved<DocumentSchema>(items), document)}`
      : TYPES[type]
  return types.map(word).join(' or ')
}

const has = (...values: readonly unknown[]): boolean => values.some((value) => value !== undefined)

function rulesOf(schema: DocumentSchema): readonly string[] {
  const { format, maxItems, maxLength, maximum, minItems, minLength, minimum, pattern } = schema
  return [
    ...(schema.not ? ['must be left out'] : []),
    ...(schema.enum ? [`one of ${schema.enum.map(plainText).join(', ')}`] : []),
    ...(schema.const === undefined ? [] : [`always ${plainText(schema.const)}`]),
    ...(format ? [FORMATS[format]] : []),
    ...(pattern === undefined ? [] : [`fits ${pattern}`]),
    ...(has(minLength, maxLength) ? [between(minLength, maxLength, 'characters')] : []),
    ...(has(minItems, maxItems) ? [between(minItems, maxItems, 'items')] : []),
    ...(has(minimum, maximum) ? [between(minimum, maximum, '')] : []),
    ...(schema.additionalProperties === false ? ['no other members'] : []),
  ]
}

const TYPES = {
  string: 'text',
  number: 'number',
  integer: 'whole number',
  boolean: 'true or false',
  array: 'list',
  object: 'object',
  null: 'null',
} as const

const FORMATS = {
  date: 'a date, as 2026-01-31',
  'date-time': 'date and time (RFC 3339)',
  uuid: 'a UUID',
  email: 'an e-mail address',
} as const

function between(least: number | undefined, most: number | undefined, of: string): string {
  const bounds = [
    ...(least === undefined ? [] : [`at least ${least}`]),
    ...(most === undefined ? [] : [`at most ${most}`]),
  ]
  return `${bounds.join(', ')} ${of}`.trim()
}
