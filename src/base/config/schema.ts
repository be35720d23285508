/**
 * The parts that the `schema.ts` of each folder builds its schema from. The static type is the type AFTER loading: durations are
 * milliseconds, sizes bytes, secrets strings, paths absolute, and defaults are filled in.
 *
 * Rules:
 * - a property with a `default` is not `optional`: after loading it always has a value;
 * - a section whose properties are all optional or have defaults gets `{ default: {} }`, so that it may be left out;
 * - every property has a `description` of at most 120 characters: editors and config/reference.md show it.
 *
 * typebox is imported here only, and only for its types: `Static` derives the static type from the schema. Its functions
 * would load 370 files, which hold 13 MB in each process, to build the plain objects that are built below. Its validator
 * is not used: `Errors()` stops at 8 by default and reports the first branch of a union whichever was meant, while
 * `validate.ts` must report every problem, by line, for the branch that `kind` names. It reads the JSON Schema, and the
 * marks below.
 */
import type { Static, TObject, TOptional, TProperties, TSchema, TUnsafe } from 'typebox'
import { aboveZero, DURATION_PATTERN, SIZE_PATTERN } from '../kernel/units.ts'
import type { KeyPath, Problems } from './problems.ts'
import type { ConfigNode } from './tree.ts'

export type { Static, TProperties, TSchema }

/** Marks for facts that JSON Schema has no keyword for. The loader reads them; the published schema leaves them out. */
export type SchemaMark =
  | 'duration'
  | 'size'
  | 'secret'
  | 'path'
  | 'reference'
  | 'template'
  | 'templates'
  | 'textOrSecret'
  | 'kinds'
  | 'opaque'

export const MARK = 'x-postern'

/** Further facts about a value that operators change. Only their tools read it; the published schema leaves it out. */
export interface MemberFacts {
  /** The name of its option, where it is not that of the member: of a list that of one item. */
  readonly option?: string
  /** The word for a value of the option in help texts. */
  readonly value?: string
  /**
   * Which changes give nothing to anybody (C12.1.4): `less`: a lower number, fewer items of a list, fewer entries of a map;
   * `more`: more items; `to`: the change to this value. Without it, every change may give something.
   */
  readonly takesAway?: 'less' | 'more' | { readonly to: unknown }
  /** Set for a hash, which no answer shows and no edit takes: says how it is changed instead. */
  readonly hidden?: string
  /** Personal data or secrets: records name what changed, and not how. */
  readonly personal?: true
  /** It never changes. */
  readonly fixed?: true
  /** A configuration may still have it. Nothing offers it, and records of the store are refused with it. */
  readonly retired?: true
  /** The member, or the kind, that it stands behind, where an extension adds it. Otherwise it is the last one. */
  readonly after?: string
}

interface Described extends MemberFacts {
  readonly description: string
}

interface TextOptions extends Described {
  readonly default?: string
}

/** A JSON Schema of values of type T. */
const schemaOf = <T>(schema: object): TUnsafe<T> => schema as TUnsafe<T>

const marked = <T>(mark: SchemaMark, schema: object): TUnsafe<T> =>
  schemaOf({ type: 'string', [MARK]: mark, ...schema })

interface AmountOptions extends TextOptions {
  /** Whether 0 is allowed. For most limits it is not: nothing would pass, or everything. */
  readonly orZero?: boolean
}

const amount = (
  mark: SchemaMark,
  pattern: string,
  [what, such]: readonly [string, string],
  { orZero = false, ...options }: AmountOptions,
): TUnsafe<number> =>
  marked(mark, {
    pattern: orZero ? pattern : aboveZero(pattern),
    expected: orZero ? `${what} ${such}` : `${what} above zero, ${such}`,
    ...options,
  })

/** A time with a unit (`30s`, `250ms`, `15m`, `30d`); milliseconds after loading. `default` has a unit too. */
export const duration = (options: AmountOptions): TUnsafe<number> =>
  amount('duration', DURATION_PATTERN, ['a duration', 'such as "30s", "250ms" or "15m"'], options)

/** A size with a unit (`512B`, `64KiB`, `1MiB`); bytes after loading. */
export const size = (options: AmountOptions): TUnsafe<number> =>
  amount('size', SIZE_PATTERN, ['a size', 'such as "64KiB" or "1MiB"'], options)

/**
 * A secret: `{ file: … }` or `{ env: NAME, default: … }`. A string as it is only with `plain`, for hashes. After loading
 * a string, without the last line end of a file. No problem shows its value. White space at either end and control
 * characters are problems: editors and pipes add them, and no header can hold a line end.
 */
export const secret = ({
  plain = false,
  ...options
}: TextOptions & { plain?: boolean; pattern?: string; expected?: string }): TUnsafe<string> =>
  marked('secret', {
    plain,
    minLength: 1,
    expected: plain ? 'a text, { file: … } or { env: … }' : '{ file: … } or { env: … }',
    ...options,
  })

/** Free text, not empty. May be given as `{ env: … }` or `{ file: … }`. */
export const text = (options: TextOptions & { pattern?: string; expected?: string }): TUnsafe<string> =>
  marked('reference', { minLength: 1, ...options })

/** The same with placeholders. A text from the environment or a file holds none: its braces are doubled. */
export const openTemplate = (
  options: TextOptions & { pattern?: string; expected?: string },
): TUnsafe<string> => marked('reference', { minLength: 1, isTemplate: true, ...options })

/**
 * Text with placeholders such as `{business}`; `{{` and `}}` stand for the braces. May be given as `{ env: … }` or
 * `{ file: … }`: then it is a secret, and taken as it is, its braces doubled. No problem shows its value.
 */
export const template = (options: TextOptions): TUnsafe<string> =>
  marked('template', { minLength: 1, expected: 'a text, { file: … } or { env: … }', ...options })

/** A secret, or a text with a placeholder: a text without one would be a secret as it is. */
export const secretTemplate = (options: TextOptions): TUnsafe<string> =>
  marked('template', {
    plain: false,
    minLength: 1,
    expected: '{ file: … } or { env: … }, or a text with a placeholder such as "{business.key}"',
    ...options,
  })

/** `true`: there is one, which is not told. */
export type TextOrSecret = string | { readonly secret: string | true }

/**
 * A text that may be shown, or a secret: `{ env: … }` and `{ file: … }` of a file are `{ secret: … }` after loading. In a
 * record that operators write, a secret stands as `{ secret: … }`; `{ secret: true }` is the one that is kept.
 */
export const textOrSecret = (options: Described): TUnsafe<TextOrSecret> =>
  marked('textOrSecret', {
    minLength: 1,
    expected: 'a text, or a secret as { file: … } or { env: … }',
    ...options,
  })

/** The beginning of a text of a template that came from a file or the environment: nothing else in a template has a NUL. */
export const REFERRED_BEGINS = '{\0'

/** The value that `templates` loads: maps in the order in which they are written, whatever their keys. */
export type WrittenTree =
  | string
  | boolean
  | null
  /** As it is written. */
  | { readonly number: string }
  | { readonly list: readonly WrittenTree[] }
  | { readonly members: readonly (readonly [key: string, value: WrittenTree])[] }

/** A tree of maps and lists whose texts are as those of `template`. Numbers, booleans and nulls stay what they are. */
export const templates = (options: Described): TUnsafe<WrittenTree> =>
  schemaOf({ [MARK]: 'templates', expected: 'texts, numbers, maps or lists', ...options })

/** An absolute http or https URL without credentials or fragment. May be given as `{ env: … }`. */
export const url = (options: TextOptions): TUnsafe<string> =>
  marked('reference', {
    pattern: '^https?://[^\\s/@#?]+(/[^\\s#]*)?(\\?[^\\s#]*)?$',
    expected: 'an http:// or https:// URL, such as "https://id.example.com"',
    ...options,
  })

/** `host:port`, an IPv6 address in brackets; port 0 is any free one. May be given as `{ env: … }`. */
export const listenAddress = (options: TextOptions): TUnsafe<string> =>
  marked('reference', {
    pattern: '^(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9.-]+):[0-9]{1,5}$',
    expected: 'host:port, such as "127.0.0.1:8080"',
    ...options,
  })

/** A file or folder, relative to the folder of the configuration file that names it; absolute after loading. */
export const path = (options: TextOptions): TUnsafe<string> => marked('path', { minLength: 1, ...options })

const NAME_EXPECTED = 'a name of letters, digits, ".", "_" and "-"'

/** A short name, such as that of a backend: letters, digits, `.`, `_`, `-`. */
export const NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._-]*$'

/** Text as it is written, never a reference. */
export const literalText = (options: TextOptions & { pattern: string; expected: string }): TUnsafe<string> =>
  schemaOf({ type: 'string', ...options })

export const name = (options: TextOptions): TUnsafe<string> =>
  literalText({ pattern: NAME_PATTERN, expected: NAME_EXPECTED, ...options })

/** A calendar day, `2026-01-15`. */
export const day = (options: TextOptions): TUnsafe<string> =>
  literalText({ pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$', expected: 'a day such as "2026-01-15"', ...options })

export const flag = (options: Described & { default?: boolean }): TUnsafe<boolean> =>
  schemaOf({ type: 'boolean', ...options })

interface Bounds extends Described {
  readonly default?: number
  readonly minimum?: number
  readonly maximum?: number
}

export const fraction = (options: Bounds): TUnsafe<number> => schemaOf({ type: 'number', ...options })

export const wholeNumber = (options: Bounds): TUnsafe<number> => schemaOf({ type: 'integer', ...options })

/** One of a few words. `expected` describes them for people, where they are too many to be listed. */
export const choice = <const T extends string>(
  words: readonly T[],
  options: Described & { default?: NoInfer<T>; expected?: string },
): TUnsafe<T> => schemaOf({ type: 'string', enum: words, ...options })

/** A list; `unique` refuses repeats. */
export const list = <T extends TSchema>(
  item: T,
  options: Described & {
    default?: readonly unknown[]
    minItems?: number
    maxItems?: number
    unique?: boolean
    /** The list may stand in a map of its own too, under this key. */
    within?: string
  },
): TUnsafe<readonly Static<T>[]> => {
  const { unique, ...rest } = options
  return schemaOf({ type: 'array', items: item, ...(unique === true && { uniqueItems: true }), ...rest })
}

export const mapOf = <T extends TSchema>(
  item: T,
  {
    keys = NAME_PATTERN,
    ...options
  }: Described & {
    default?: object
    /** A pattern for the keys, and its description for people. Default: NAME_PATTERN. */
    keys?: string
    expectedKeys?: string
  },
): TUnsafe<Record<string, Static<T>>> => {
  const expected = keys === NAME_PATTERN ? { expectedKeys: NAME_EXPECTED } : {}
  return schemaOf({ type: 'object', patternProperties: { [keys]: item }, ...expected, ...options })
}

/** The schemas that `optional` has made: a section does not require them. */
const optionalItems = new WeakSet<object>()

/** An object with known keys. Other keys are problems. */
export const section = <T extends TProperties>(
  properties: T,
  options: Partial<Described> & { default?: object } = {},
): TObject<T> => {
  const required = Object.entries(properties).flatMap(([key, item]) => (optionalItems.has(item) ? [] : [key]))
  const schema = {
    type: 'object',
    ...(required.length > 0 && { required }),
    properties,
    additionalProperties: false,
    ...options,
  }
  return schema as unknown as TObject<T>
}

/**
 * A schema with further keys in one of its sections. The static type stays the same, so whoever adds keys
 * must also read their values.
 *
 * @param place the way to the section: keys, `*` for each item of a list or a map and for each key of a section, or a `kind`
 * @throws TypeError if there is no such section, or if it has one of the keys
 */
export const withKeys = <T extends TSchema>(schema: T, place: readonly string[], keys: TProperties): T => {
  const added = viewOf(section(keys))
  return changedAt(schema, place, (of) => {
    if (of.properties === undefined) throw new TypeError('no section')
    return {
      ...of,
      properties: placed(apart(of.properties, added.properties)),
      required: [...(of.required ?? []), ...(added.required ?? [])],
    }
  })
}

/** A schema with other forms of keys that one of its sections has. @throws TypeError if it lacks one */
export const withForms = <T extends TSchema>(schema: T, place: readonly string[], forms: TProperties): T =>
  changedAt(schema, place, (of) => {
    const missing = Object.keys(forms).find((key) => of.properties?.[key] === undefined)
    if (missing !== undefined) throw new TypeError(`there is no "${missing}"`)
    return { ...of, properties: { ...of.properties, ...viewOf(section(forms)).properties } }
  })

/** The same with further kinds of one of its `kinds`. */
export const withShapes = <T extends TSchema>(schema: T, place: readonly string[], shapes: TProperties): T =>
  changedAt(schema, place, (of) => ({ ...of, shapes: placed(apart(of.shapes, shapes)) }))

type Views = Readonly<Record<string, SchemaView>>

function apart(own: Views | undefined, added: Views = {}): Views {
  const twice = Object.keys(added).find((key) => own !== undefined && Object.hasOwn(own, key))
  if (twice !== undefined) throw new TypeError(`there is a "${twice}" already`)
  return { ...own, ...added }
}

function placed(views: Views): Views {
  const entries = Object.entries(views).filter(([, { after }]) => after === undefined)
  for (const entry of Object.entries(views)) {
    const { after } = entry[1]
    if (after === undefined) continue
    const place = entries.findIndex(([key]) => key === after)
    if (place === -1) throw new TypeError(`there is no "${after}" behind which "${entry[0]}" could stand`)
    entries.splice(place + 1, 0, entry)
  }
  return Object.fromEntries(entries)
}

type Change = (of: SchemaView) => SchemaView

const changedAt = <T extends TSchema>(schema: T, place: readonly string[], change: Change): T =>
  changed(viewOf(schema), place, change) as unknown as T

function changed(of: SchemaView, [first, ...rest]: readonly string[], change: Change): SchemaView {
  if (first === undefined) return change(of)
  if (first === '*') return changedItems(of, rest, change)
  for (const where of ['properties', 'shapes'] as const) {
    const below = Object.entries(of[where] ?? {}).find(([key]) => key === first)?.[1]
    if (below !== undefined)
      return { ...of, [where]: { ...of[where], [first]: changed(below, rest, change) } }
  }
  throw new TypeError(`no section ${first}`)
}

function changedItems(of: SchemaView, rest: readonly string[], change: Change): SchemaView {
  if (of.items !== undefined) return { ...of, items: changed(of.items, rest, change) }
  const map = mapItem(of)
  if (map === undefined) return changedProperties(of, rest, change)
  return { ...of, patternProperties: { [map.keys]: changed(map.item, rest, change) } }
}

/** All keys of a section. */
function changedProperties(of: SchemaView, rest: readonly string[], change: Change): SchemaView {
  if (of.properties === undefined) throw new TypeError('neither a list, a map nor a section')
  const properties = Object.entries(of.properties).map(([key, below]) => [key, changed(below, rest, change)])
  return { ...of, properties: Object.fromEntries(properties) as Views }
}

/** A property that may be left out. It is undefined then. */
export const optional = <T extends TSchema>(item: T): TOptional<T> => {
  const copy = { ...item }
  optionalItems.add(copy)
  return copy as TOptional<T>
}

type Unset<T extends TProperties> = { [K in keyof T]: TOptional<T[K]> }

/** The same properties, but all optional and without defaults: for a section that overrides some keys of another one. */
export const unset = <T extends TProperties>(properties: T): Unset<T> => {
  const copies = Object.entries(properties).map(([key, item]) => [key, optional(withoutDefault(item))])
  return Object.fromEntries(copies) as Unset<T>
}

const withoutDefault = (item: TSchema): TSchema =>
  Object.fromEntries(Object.entries(item).filter(([key]) => key !== 'default'))

/** A value of either form. Of a value that is neither, the problems of the nearer one are reported. */
export const either = <A extends TSchema, B extends TSchema>(
  one: A,
  other: B,
  options: Described & { default?: string },
): TUnsafe<Static<A> | Static<B>> => schemaOf({ anyOf: [one, other], ...options })

type OneOf<T extends Readonly<Record<string, TSchema>>> = {
  [K in keyof T & string]: { readonly kind: K } & Static<T[K]>
}[keyof T & string]

/** One of several sections, chosen by `kind`: `kinds({ memory: section({…}), http: section({…}) })`. They do not name `kind`. */
export const kinds = <T extends Readonly<Record<string, TSchema>>>(
  shapes: T,
  options: Partial<Described> & { default?: object } = {},
): TUnsafe<OneOf<T>> => schemaOf({ [MARK]: 'kinds', shapes, ...options })

/** Reads and converts what no other part can describe. @returns undefined after a reported problem */
export type ReadNode = (node: ConfigNode, path: KeyPath, problems: Problems) => unknown

/** Taken as written, unchecked: the `compile…` of its folder checks it, unless `read` does. */
export const opaque = <T>(
  options: Described & {
    default?: unknown
    /** JSON Schemas of its forms, for editors and the reference. */
    anyOf?: readonly object[]
    /** What it is, for the reference: `JSON Schema`. */
    expected?: string
    read?: ReadNode
  },
): TUnsafe<T> => schemaOf({ [MARK]: 'opaque', ...options })

// The JSON Schema that is built here, as the loader and the generators of documents read it.

export interface SchemaView extends MemberFacts {
  readonly [MARK]?: SchemaMark
  readonly type?: string
  readonly properties?: Readonly<Record<string, SchemaView>>
  readonly required?: readonly string[]
  readonly patternProperties?: Readonly<Record<string, SchemaView>>
  /** The keys of a map, described for people. */
  readonly expectedKeys?: string
  readonly additionalProperties?: boolean
  readonly minProperties?: number
  readonly items?: SchemaView
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: boolean
  /** The key of a map that may hold the list. */
  readonly within?: string
  readonly anyOf?: readonly SchemaView[]
  readonly enum?: readonly (string | number | boolean)[]
  readonly const?: string | number | boolean
  readonly pattern?: string
  readonly minLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
  readonly description?: string
  /** The value, described for people; shown instead of the pattern. */
  readonly expected?: string
  /** Whether a secret may be written as it is (hashes). */
  readonly plain?: boolean
  /** Whether a text that is no secret has placeholders. */
  readonly isTemplate?: boolean
  readonly shapes?: Readonly<Record<string, SchemaView>>
  /** Reads an opaque value. */
  readonly read?: ReadNode
}

export const viewOf = (schema: TSchema): SchemaView => schema

/** The allowed words of an enum, a constant or a union of constants; undefined for any other schema. */
export function wordsOf(schema: SchemaView): readonly (string | number | boolean)[] | undefined {
  if (schema.enum) return schema.enum
  if (schema.const !== undefined) return [schema.const]
  const constants = schema.anyOf?.map((branch) => branch.const)
  return constants?.every((constant) => constant !== undefined) === true ? constants : undefined
}

export interface MapItem {
  readonly keys: string
  readonly item: SchemaView
}

/** The schema of a map's values and the pattern of its keys; undefined for a section with known keys. */
export function mapItem(schema: SchemaView): MapItem | undefined {
  const [entry] = Object.entries(schema.patternProperties ?? {})
  return entry && { keys: entry[0], item: entry[1] }
}

/** The schema of one `kind`, with `kind` as its first key. */
export const withKind = (kind: string, shape: SchemaView, all: readonly string[]): SchemaView => ({
  ...shape,
  properties: { kind: { type: 'string', enum: all, description: `\`${kind}\`.` }, ...shape.properties },
  required: ['kind', ...(shape.required ?? []).filter((key) => key !== 'kind')],
})

const children = (schema: SchemaView): SchemaView[] => [
  ...Object.values(schema.properties ?? {}),
  ...Object.values(schema.patternProperties ?? {}),
  ...(schema.items ? [schema.items] : []),
  ...(schema.anyOf ?? []),
  ...Object.values(schema.shapes ?? {}),
]

const SECRET: ReadonlySet<SchemaMark | undefined> = new Set<SchemaMark | undefined>([
  'secret',
  'template',
  'templates',
])

const MAY_BE_SECRET: ReadonlySet<SchemaMark | undefined> = new Set<SchemaMark | undefined>([
  ...SECRET,
  'textOrSecret',
])

/** Whether a value may contain a secret. Then no problem shows it. */
export const holdsSecret = (schema: SchemaView): boolean =>
  MAY_BE_SECRET.has(schema[MARK]) || children(schema).some(holdsSecret)

const HIDDEN = '[secret]'

/** A loaded value as it may be shown: every secret is replaced, whatever its value. */
export function withoutSecrets(schema: SchemaView, value: unknown): unknown {
  if (value === undefined) return undefined
  if (SECRET.has(schema[MARK])) return HIDDEN
  if (schema[MARK] === 'textOrSecret') return typeof value === 'string' ? value : HIDDEN
  if (schema[MARK] === 'kinds') return withoutSecrets(shapeOf(schema, value), value)
  if (Array.isArray(value)) return listWithoutSecrets(schema.items, value)
  if (typeof value !== 'object' || value === null) return value
  const item = mapItem(schema)?.item
  const entries = Object.entries(value as Record<string, unknown>).map(([key, member]) => {
    const of = schema.properties?.[key] ?? item
    return [key, of ? withoutSecrets(of, member) : member]
  })
  return Object.fromEntries(entries)
}

const listWithoutSecrets = (items: SchemaView | undefined, list: readonly unknown[]): readonly unknown[] =>
  items === undefined ? list : list.map((item) => withoutSecrets(items, item))

function shapeOf({ shapes = {} }: SchemaView, value: unknown): SchemaView {
  const kind = typeof value === 'object' && value !== null && 'kind' in value ? String(value.kind) : ''
  return shapes[kind] ?? {}
}
