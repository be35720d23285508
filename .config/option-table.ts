/** The table of every option, for config/README.md. For the generator only. */
import { expectation } from '../src/config/problem-text.ts'
import { MARK, type Mark, type TSchema } from '../src/config/pieces.ts'
import { mapItem, viewOf, withKind, wordsOf, type SchemaView } from '../src/config/schema-view.ts'

interface Option {
  readonly key: string
  readonly schema: SchemaView
  readonly needed: boolean
}

const TYPE_OF_MARK: Readonly<Partial<Record<Mark, string>>> = {
  duration: 'duration',
  size: 'size',
  secret: 'secret',
  path: 'file',
  opaque: 'any value',
}

function typeText(schema: SchemaView): string {
  const known = TYPE_OF_MARK[schema[MARK] ?? 'reference']
  if (known !== undefined) return known
  const words = wordsOf(schema)
  if (words) return words.map((word) => `\`${word}\``).join(', ')
  if (schema.items) return `list of ${typeText(schema.items)}`
  if (schema.shapes) return `section by \`kind\``
  if (mapItem(schema)) return 'map'
  return schema.type === 'object'
    ? 'section'
    : expectation(schema)
        .replace(/,? such as .*$/, '')
        .replace(/^an? /, '')
}

/** Of a section whose keys all have defaults, `{}` says nothing: its keys stand below it. */
const isTold = (value: unknown): boolean =>
  value !== undefined && !(typeof value === 'object' && value !== null && Object.keys(value).length === 0)

function defaultText({ schema, needed }: Option): string {
  if (isTold(schema.default)) return `\`${JSON.stringify(schema.default).replace(/^"|"$/g, '')}\``
  if (Array.isArray(schema.default)) return '`[]`'
  return needed && schema.default === undefined ? '**required**' : ''
}

/** From so many keys on. */
const SHARED = 3

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

const row = (option: Option): string =>
  `| \`${option.key}\` | ${cell(typeText(option.schema))} | ${cell(defaultText(option))} | ${cell(option.schema.description ?? '')} |`

/** Keys of one and the same shape (the methods of an action) share their rows. */
function grouped(properties: Readonly<Record<string, SchemaView>>): [string, SchemaView][] {
  const byShape = Map.groupBy(Object.entries(properties), ([, of]) =>
    of.properties ? JSON.stringify(of) : of,
  )
  return [...byShape.values()].flatMap((same): [string, SchemaView][] => {
    const [first] = same
    if (!first || same.length < SHARED) return same
    const names = same.map(([name]) => `\`${name}\``).join(', ')
    return [['*', { ...first[1], description: `For each of ${names}: ${first[1].description ?? ''}` }]]
  })
}

function membersOf(schema: SchemaView, key: string): Option[] {
  const under = key === '' ? '' : `${key}.`
  return grouped(schema.properties ?? {}).flatMap(([name, of]) =>
    optionsOf({ key: `${under}${name}`, schema: of, needed: schema.required?.includes(name) ?? false }),
  )
}

function shapesOf({ shapes = {} }: SchemaView, key: string): Option[] {
  return Object.entries(shapes).flatMap(([kind, shape]) => {
    const only: SchemaView = { type: 'string', enum: [kind], description: shape.description ?? '' }
    const { properties, ...rest } = withKind(kind, shape, [kind])
    return membersOf({ ...rest, properties: { ...properties, kind: only } }, key)
  })
}

/** An option and everything below it. `<name>` stands for a key of a map, `[]` for an item of a list. */
function optionsOf(option: Option): Option[] {
  const { key, schema } = option
  const map = mapItem(schema)
  const below = map
    ? inside(map.item, `${key}.<name>`)
    : schema.items
      ? inside(schema.items, `${key}[]`)
      : inside(schema, key)
  return [option, ...below]
}

function inside(schema: SchemaView, key: string): Option[] {
  if (schema.shapes) return shapesOf(schema, key)
  const nested = mapItem(schema)
  return nested ? inside(nested.item, `${key}.<name>`) : membersOf(schema, key)
}

/** Markdown, a table for each key at the top. */
export function optionTable(root: TSchema): string {
  const schema = viewOf(root)
  return Object.entries(schema.properties ?? {})
    .map(([key, of]) => {
      const rows = optionsOf({ key, schema: of, needed: schema.required?.includes(key) ?? false }).map(row)
      return [`### \`${key}\``, '', '| Key | Type | Default | |', '|---|---|---|---|', ...rows].join('\n')
    })
    .join('\n\n')
}
