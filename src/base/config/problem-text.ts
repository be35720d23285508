import type { KeyPath } from './problems.ts'
import { holdsSecret, mapItem, type SchemaView, wordsOf } from './schema.ts'
import type { ConfigNode } from './tree.ts'

const quoted = (value: unknown): string => JSON.stringify(value)

function numberExpected(schema: SchemaView): string {
  const kind = schema.type === 'integer' ? 'a whole number' : 'a number'
  const { minimum, maximum } = schema
  if (minimum !== undefined && maximum !== undefined) return `${kind} from ${minimum} to ${maximum}`
  if (minimum !== undefined) return `${kind}, at least ${minimum}`
  return maximum === undefined ? kind : `${kind}, at most ${maximum}`
}

function textExpected(schema: SchemaView): string {
  if (schema.pattern !== undefined) return `a text that matches ${schema.pattern}`
  return 'a text'
}

const BY_TYPE: Readonly<Record<string, (schema: SchemaView) => string>> = {
  string: textExpected,
  number: numberExpected,
  integer: numberExpected,
  boolean: () => 'true or false',
  array: () => 'a list',
  object: (schema) => (mapItem(schema) ? 'a map' : 'a section of keys'),
}

/** `a duration such as "30s"`, `one of "json", "xml"`, `a whole number, at least 1` … */
export function expectation(schema: SchemaView): string {
  if (schema.expected !== undefined) return schema.expected
  const words = wordsOf(schema)
  if (words) return words.length === 1 ? quoted(words[0]) : `one of ${words.map(quoted).join(', ')}`
  if (schema.anyOf) return [...new Set(schema.anyOf.map(expectation))].join(' or ')
  if (schema.shapes) return 'a section with a kind'
  return BY_TYPE[schema.type ?? '']?.(schema) ?? 'a value'
}

const LONGEST = 60
const SENSITIVE = /secret|passw|passphrase|private|credential/i

/** Whether the value at a path may be a secret, by its schema or by the name of a key on the path. */
export const isSensitive = (path: KeyPath, schema: SchemaView): boolean =>
  holdsSecret(schema) || path.some((key) => SENSITIVE.test(String(key)))

/** The given value, shortened to 60 characters. Of a secret only the type is shown. */
export function given(node: ConfigNode, sensitive: boolean): string {
  if (node.shape === 'list') return 'a list'
  if (node.shape === 'map') return 'a map'
  if (node.value === null) return 'nothing'
  if (sensitive) return `a ${typeof node.value === 'string' ? 'text' : typeof node.value} (not shown)`
  const text = quoted(node.value)
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text
}

export const mismatch = (schema: SchemaView, node: ConfigNode, path: KeyPath): string =>
  `expected ${expectation(schema)}, got ${given(node, isSensitive(path, schema))}`

const cell = (row: readonly number[], index: number): number => row[index] ?? 0

/** Edits (insert, delete, replace, swap neighbours) that turn `a` into `b`. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const edits = Math.min(cell(last, j) + 1, cell(row, j - 1) + 1, cell(last, j - 1) + same)
      row.push(swapped ? Math.min(edits, cell(beforeLast, j - 2) + 1) : edits)
    }
    beforeLast = last
    last = row
  }
  return cell(last, b.length)
}

const MAX_LENGTH = 64

/** The known word nearest to `given`, if it is near: at most a third of its letters differ, case aside. */
export function nearest(given: string, known: Iterable<string>): string | undefined {
  if (given.length > MAX_LENGTH) return undefined
  const limit = Math.max(1, Math.floor(given.length / 3))
  let best: { word: string; edits: number } | undefined
  for (const word of known) {
    if (Math.abs(word.length - given.length) > limit) continue
    const edits = distance(given.toLowerCase(), word.toLowerCase())
    if (edits <= limit && edits < (best?.edits ?? Infinity)) best = { word, edits }
  }
  return best?.word
}

/** Sections within sections that are searched for a key. */
const MOST_LEVELS = 3

/** `did you mean "methods.GET.upstream"?` for a key that a section below has; undefined if none has. */
export function belongsBelow(schema: SchemaView, key: string): string | undefined {
  let level: readonly (readonly [path: string, section: SchemaView])[] = [['', schema]]
  for (let depth = 0; depth <= MOST_LEVELS; depth++) {
    const found = level.find(([, { properties }]) => Object.hasOwn(properties ?? {}, key))
    if (found !== undefined) return `did you mean "${found[0]}${key}"?`
    level = level.flatMap(([path, { properties }]) =>
      Object.entries(properties ?? {}).map(([name, section]) => [`${path}${name}.`, section] as const),
    )
  }
  return undefined
}

/** `did you mean "listen"?`, or undefined if nothing known is near. */
export function didYouMean(given: string, known: Iterable<string>): string | undefined {
  const word = nearest(given, known)
  return word === undefined ? undefined : `did you mean "${word}"?`
}

/** Comparing more names than this would take too long. */
const FEW = 500

/** `didYouMean` among names of which there may be very many: undefined then. */
export function didYouMeanOfFew(given: string, known: Iterable<string>): string | undefined {
  const names = [...Iterator.from(known).take(FEW + 1)]
  return names.length > FEW ? undefined : didYouMean(given, names)
}

/** All problems, or those of one record. */
interface NamedProblems {
  error(path: KeyPath, message: string, hint?: string): void
  /** Names of entries that could not be read. */
  readonly unread: ReadonlySet<string>
}

interface UnknownName {
  readonly message: string
  readonly hint: string | undefined
}

const LISTED = 10

function listOf(names: readonly string[]): string | undefined {
  if (names.length === 0) return 'there is none'
  if (names.length > LISTED) return undefined
  return `there ${names.length === 1 ? 'is' : 'are'} ${names.join(', ')}`
}

/**
 * What is wrong with an unknown name: `names no area: "fnud-data"`, `did you mean "fund-data"?`.
 * @param unread names of entries that could not be read: one of them may be meant
 */
export function unknownName(
  what: string,
  name: string,
  known: Iterable<string>,
  unread: ReadonlySet<string> = new Set(),
): UnknownName {
  const names = [...Iterator.from(known).take(FEW + 1)]
  const near = didYouMeanOfFew(name, unread.size > FEW ? names : [...names, ...unread])
  return {
    message: `names no ${what}: "${name}"`,
    hint: near ?? (unread.size === 0 ? listOf(names) : undefined),
  }
}

/** Reports a name that is not a known one. Nothing if it is that of an entry that could not be read. */
export function reportUnknownName(
  problems: NamedProblems,
  path: KeyPath,
  what: string,
  name: string,
  known: Iterable<string>,
): void {
  if (problems.unread.has(name)) return
  const { message, hint } = unknownName(what, name, known, problems.unread)
  problems.error(path, message, hint)
}
