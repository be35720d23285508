/** config/reference.md: every option of the configuration, from its schema. */
import { expectation } from '../src/base/config/problem-text.ts'
import {
  mapItem,
  MARK,
  type SchemaMark,
  NAME_PATTERN,
  type SchemaView,
  type TSchema,
  viewOf,
  wordsOf,
} from '../src/base/config/schema.ts'

interface Option {
  /** From the heading that it stands under: `tls.certificate`. */
  readonly key: string
  readonly schema: SchemaView
  readonly required: boolean
}

/** A heading, and the options below it. */
interface Part {
  /** From the top: `backends.<name>`. `<name>` stands for a key of a map, `[]` for an item of a list. */
  readonly path: string
  /** Of a section with a `kind`: which one. */
  readonly kind?: string
  readonly text: string
  readonly options: readonly Option[]
}

const INTRO = `<!-- Generated from the schema: npm run generate -->

# Every option

What belongs together, with examples, stands in [people](people.md), [actions](actions.md), [identity](identity.md) and
[running](running.md). Here is every key, with its type and its default.

- \`<name>\` stands for a key that you choose, \`[]\` for each item of a list.
- Keys in a table stand below the key of its heading: \`tls.key\` under \`server\` is \`server.tls.key\`.
- A duration has a unit (\`250ms\`, \`30s\`, \`15m\`, \`1h\`, \`30d\`), and so has a size (\`512B\`, \`64KiB\`, \`1MiB\`, \`1GiB\`).
- A \`secret\` is given as \`{ file: … }\` or \`{ env: … }\`. Texts, URLs and files may be given so.
- A section may be left out, unless it is **required** or something in it is.
`

/** Prettier would pad every row of a table to the longest one. */
const AS_IT_IS = '<!-- prettier-ignore-start -->'

const TYPE_OF_MARK: Readonly<Partial<Record<SchemaMark, string>>> = {
  duration: 'duration',
  size: 'size',
  secret: 'secret',
  path: 'file',
  template: 'text or secret',
  textOrSecret: 'text or secret',
  templates: 'texts, numbers, maps or lists; texts may be secrets',
  opaque: 'any value',
}

const code = (text: string): string => `\`${text}\``

function typeText(schema: SchemaView): string {
  if (schema.anyOf) return schema.anyOf.map(typeText).join(' or ')
  if (schema.pattern === NAME_PATTERN) return 'name'
  const mark = schema[MARK] ?? 'reference'
  const known = mark === 'opaque' && schema.expected !== undefined ? schema.expected : TYPE_OF_MARK[mark]
  if (known !== undefined) return known
  const words = wordsOf(schema)
  if (words) return words.map((word) => code(String(word))).join(', ')
  if (schema.items) return `list of ${typeText(schema.items)}`
  if (schema.shapes) return `section by ${code('kind')}`
  if (mapItem(schema)) return 'map'
  if (schema.type === 'object') return 'section'
  return expectation(schema)
    .replace(/,? such as .*$/, '')
    .replace(/^(an?|the) /, '')
}

/** The default of a section whose keys all have one is `{}`, which says nothing: its keys stand below it. */
const isEmptySection = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0

function defaultText({ schema, required }: Option): string {
  const { default: value } = schema
  if (value === undefined) return required ? '**required**' : ''
  return isEmptySection(value) ? '' : code(JSON.stringify(value).replace(/^"|"$/g, ''))
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

const row = (option: Option): string =>
  `| ${[code(option.key), typeText(option.schema), defaultText(option), option.schema.description ?? ''].map(cell).join(' | ')} |`

const table = (rows: readonly string[]): string =>
  rows.length === 0 ? '' : ['| Key | Type | Default | Meaning |', '|---|---|---|---|', ...rows].join('\n')

const below = (key: string, name: string): string => (key === '' ? name : `${key}.${name}`)

const membersOf = (schema: SchemaView, under = ''): Option[] =>
  Object.entries(schema.properties ?? {}).flatMap(([name, of]) => {
    const key = below(under, name)
    const option = { key, schema: of, required: schema.required?.includes(name) ?? false }
    return mapItem(of)
      ? [option]
      : [option, ...[of, ...(of.anyOf ?? [])].flatMap((form) => membersOf(form, key))]
  })

/** From so many keys of one shape on, they share a part. */
const SHARED = 3

/** The keys of one and the same shape (the methods of an action) as one, called `<name>`. */
function withoutRepeats(schema: SchemaView): SchemaView {
  const properties = Object.entries(schema.properties ?? {})
  const [first] = properties
  const same = properties.every(
    ([, of]) => of.properties && JSON.stringify(of) === JSON.stringify(first?.[1]),
  )
  if (!first || !same || properties.length < SHARED) return schema
  const names = properties.map(([name]) => code(name)).join(', ')
  return {
    type: 'object',
    patternProperties: { '': { ...first[1], description: `One of ${names}. ${first[1].description ?? ''}` } },
  }
}

const isLarge = (schema: SchemaView): boolean =>
  schema.properties !== undefined || schema.shapes !== undefined

const partsOfKinds = ({ shapes = {} }: SchemaView, path: string): Part[] =>
  Object.entries(shapes).flatMap(([kind, shape]) => [
    { path, kind, text: shape.description ?? '', options: membersOf(shape) },
    ...deeper(membersOf(shape), path),
  ])

function partsOf(schema: SchemaView, path: string): Part[] {
  if (schema.shapes) return partsOfKinds(schema, path)
  const options = membersOf(schema).map((option) => ({ ...option, schema: withoutRepeats(option.schema) }))
  const hidden = options.filter(({ schema: of }) => mapItem(of)).map(({ key }) => `${key}.`)
  const told = options.filter(({ key }) => !hidden.some((start) => key.startsWith(start)))
  return [{ path, text: schema.description ?? '', options: told }, ...deeper(told, path)]
}

/** The parts of maps and lists whose items are sections, and of sections by kind. */
const deeper = (options: readonly Option[], path: string): Part[] =>
  options.flatMap(({ key, schema }) =>
    schema.shapes ? partsOfKinds(schema, below(path, key)) : partsOfItems(schema, below(path, key)),
  )

function partsOfItems(schema: SchemaView, path: string): Part[] {
  const item = mapItem(schema)?.item
  if (item) return isLarge(item) ? partsOf(item, `${path}.<name>`) : partsOfItems(item, `${path}.<name>`)
  return schema.items && isLarge(schema.items) ? partsOf(schema.items, `${path}[]`) : []
}

/** What an earlier kind of the same section says too is not said again. */
function rowsOf(
  part: Part,
  before: readonly Part[],
): { readonly lead: string; readonly rows: readonly string[] } {
  const rows = part.options.map(row)
  const like = before.find(({ path, kind, options }) => {
    const shared = options.map(row).filter((each) => rows.includes(each))
    return path === part.path && kind !== undefined && shared.length > options.length / 2
  })
  if (like === undefined) return { lead: '', rows }
  const known = new Set(like.options.map(row))
  return {
    lead: `As ${code(`kind: ${like.kind ?? ''}`)}, with these differences:`,
    rows: rows.filter((each) => !known.has(each)),
  }
}

function render(part: Part, at: number, all: readonly Part[]): string {
  const { lead, rows } = rowsOf(part, all.slice(0, at))
  const level = /^[a-zA-Z]+$/.test(part.path) && part.kind === undefined ? '##' : '###'
  const heading = `${level} ${code(part.path)}${part.kind === undefined ? '' : ` of ${code(`kind: ${part.kind}`)}`}`
  return [heading, part.text, lead, table(rows)].filter(Boolean).join('\n\n')
}

/** A section that may also be a word, such as `off`: the section, told what the word says. */
function sectionOrWord(option: Option): SchemaView | undefined {
  const section = option.schema.anyOf?.find(({ properties }) => properties !== undefined)
  const value = `Default: ${defaultText(option)}.`
  return section && { ...section, description: `${option.schema.description ?? ''} ${value}` }
}

/** The whole page, as Markdown. */
export function referencePage(root: TSchema): string {
  const top = membersOf({
    properties: viewOf(root).properties ?? {},
    required: viewOf(root).required ?? [],
  }).filter(({ key }) => !key.includes('.'))
  const small = top.filter(
    (option) =>
      !isLarge(option.schema) &&
      sectionOrWord(option) === undefined &&
      partsOfItems(option.schema, '').length === 0,
  )
  const parts = top.flatMap((option): Part[] => {
    if (small.includes(option)) return []
    const { key, schema } = option
    const section = schema.properties ? schema : sectionOrWord(option)
    if (section) return partsOf(section, key)
    const value = defaultText(option)
    const text = [schema.description ?? '', value.startsWith('`') ? `Default: ${value}.` : '']
      .join(' ')
      .trim()
    return [
      { path: key, text, options: [] },
      ...(schema.shapes ? partsOf(schema, key) : partsOfItems(schema, key)),
    ]
  })
  const single = `## Single keys at the top\n\n${table(small.map(row))}`
  return [INTRO.trimEnd(), AS_IT_IS, single, ...parts.map(render), AS_IT_IS.replace('start', 'end')].join(
    '\n\n',
  )
}
