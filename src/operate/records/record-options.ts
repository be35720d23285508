/** The options of `postern NOUN add` and `postern NOUN edit`: made from the schema of its records. */
import { Buffer } from 'node:buffer'
import { mapItem, MARK, type SchemaView, wordsOf } from '../../base/config/schema.ts'
import type { ChangesOf, Written } from '../../identity/directory/editors/editing.ts'
import { isFixed, memberFactsOf, type RecordKind } from '../../identity/directory/editors/record-kind.ts'
import { applyMergePatch, parseJson } from '../../base/http/body/json.ts'
import { faultOfSecret, readValue } from '../../base/files/text-file.ts'
import { reasonInWords } from '../../base/kernel/thrown.ts'
import { type Options, UsageError } from '../operation/verb.ts'

/** How a member is written: `--flag`, `--text x`, `--item x --item y`, `--pair k=v`, `--tree a.b=v`, `--secret k=FILE`, `--keys FILE`. */
type Shape = 'flag' | 'text' | 'list' | 'map' | 'tree' | 'files' | 'keys'

export interface MemberOption {
  readonly member: string
  /** The name without the dashes. */
  readonly name: string
  readonly shape: Shape
  /** The word that follows the name in a help text. */
  readonly value: string
  /** The only values there are. */
  readonly words: readonly string[] | undefined
  readonly description: string
}

const kebab = (member: string): string => member.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

function shapeOf(view: SchemaView): Shape {
  if (view.type === 'boolean') return 'flag'
  if (view.type === 'array') return view.items?.[MARK] === 'opaque' ? 'keys' : 'list'
  if (view.type !== 'object') return 'text'
  const map = mapItem(view)
  return map === undefined || map.item[MARK] === 'textOrSecret' ? 'tree' : 'map'
}

function valueOf(view: SchemaView, words: readonly string[] | undefined): string {
  if (view.type === 'boolean') return ''
  if (words !== undefined) return words.join('|')
  if (view[MARK] === 'duration') return 'DURATION'
  return view.value ?? (view.type === 'object' ? 'NAME=VALUE' : 'TEXT')
}

/** All options of a kind of record, except its names. Members that `disable` and `enable` switch have no option. */
export const optionsOf = (kind: RecordKind): readonly MemberOption[] =>
  Object.entries(memberFactsOf(kind))
    .filter(([member, { hidden, retired }]) => {
      const isElsewhere = member === 'disabled' || kind.names.includes(member)
      return !isElsewhere && hidden === undefined && retired !== true
    })
    .flatMap(([member, view]) => {
      const words = wordsOf(view.items ?? view)?.map(String)
      const option: MemberOption = {
        member,
        name: view.option ?? kebab(member),
        shape: shapeOf(view),
        words,
        value: valueOf(view, words),
        description: (view.description ?? '').replace(/\.$/, ''),
      }
      return mapItem(view)?.item[MARK] === 'textOrSecret' ? [option, secretsBeside(option)] : [option]
    })

/** The option that gives a member secrets: they are in files, because others may see what is typed. */
const secretsBeside = (option: MemberOption): MemberOption => ({
  ...option,
  name: `${option.name}-file`,
  shape: 'files',
  value: 'NAME=FILE',
  description: 'The same from a file: a secret, which is stored sealed and never shown',
})

/** The options that an edit takes: members that never change are left out. */
export const editOptionsOf = (kind: RecordKind): readonly MemberOption[] =>
  optionsOf(kind).filter(({ member }) => !isFixed(kind, member))

/** The options as a table has them. */
export const argumentsOf = (options: readonly MemberOption[]): Options =>
  Object.fromEntries(
    options.map(({ name, shape, value, description, words }) => [
      name,
      shape === 'flag'
        ? ({ type: 'boolean', negatable: true, help: description } as const)
        : ({
            type: 'string',
            value,
            help: description,
            multiple: shape !== 'text',
            // Not `words`: an edit takes an empty text too.
            ...(words !== undefined && { proposes: words }),
          } as const),
    ]),
  )

type Tree = { [key: string]: string | Tree }

/**
 * The pairs of a repeated option `NAME=VALUE`.
 *
 * @throws UsageError if one has no `=`
 */
function pairs(option: string, given: readonly string[]): (readonly [string, string])[] {
  return given.map((pair) => {
    const at = pair.indexOf('=')
    if (at < 1) throw new UsageError(`--${option}: expected NAME=VALUE, got "${pair}"`)
    return [pair.slice(0, at), pair.slice(at + 1)]
  })
}

/** `address.locality=Sydney` is in `address`. */
function treeOf(option: string, given: readonly string[]): Tree {
  const tree: Tree = {}
  for (const [name, value] of pairs(option, given)) {
    const [outer = '', inner] = name.split(/\.(.*)/s)
    const before = tree[outer]
    tree[outer] = inner === undefined ? value : { ...(typeof before === 'object' && before), [inner]: value }
  }
  return tree
}

/** The words of `--scope a --scope b` and of `--scope 'a b'`. */
const itemsOf = (member: string, given: readonly string[]): readonly string[] =>
  member === 'scopes' ? given.flatMap((value) => value.split(' ')) : given

const READ: Readonly<Record<Shape, (given: unknown, option: MemberOption) => unknown>> = {
  flag: (given) => given,
  text: (given) => given,
  list: (given, { member }) => itemsOf(member, given as readonly string[]).filter((item) => item !== ''),
  map: (given, { name }) =>
    Object.fromEntries(
      pairs(
        name,
        (given as readonly string[]).filter((pair) => pair !== ''),
      ),
    ),
  tree: (given, { name }) => treeOf(name, given as readonly string[]),
  keys: (given, { name }) =>
    (given as readonly string[]).filter((file) => file !== '').flatMap((file) => keysIn(name, file)),
  files: (given, { name }) =>
    Object.fromEntries(
      pairs(name, given as readonly string[]).map(([key, file]) => [key, { secret: secretIn(name, file) }]),
    ),
}

/** The text of a file, without the end of its last line. @throws UsageError if it cannot be read */
function contentOf(option: string, file: string): string {
  try {
    return readValue(file)
  } catch (thrown) {
    throw new UsageError(`--${option}: ${file} cannot be read (${reasonInWords(thrown)})`)
  }
}

/** @throws UsageError if the file cannot be read, or holds no secret */
function secretIn(option: string, file: string): string {
  const secret = contentOf(option, file)
  const fault = faultOfSecret(secret)
  if (fault !== undefined) throw new UsageError(`--${option}: ${file} is no secret: it ${fault}`)
  return secret
}

/** A key is flat. */
const KEY_LIMITS = { depth: 16, nodes: 10_000, converts: true }

/** The keys of a file: a JSON Web Key Set, or one key. @throws UsageError if it is no JSON object */
function keysIn(option: string, file: string): readonly unknown[] {
  const wrong = (): UsageError =>
    new UsageError(`--${option}: ${file} is no JSON Web Key Set ({"keys":[…]}) and no JSON Web Key`)
  let parsed: unknown
  try {
    parsed = parseJson(Buffer.from(contentOf(option, file)), KEY_LIMITS)
  } catch (thrown) {
    throw thrown instanceof UsageError ? thrown : wrong()
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) throw wrong()
  if (!('keys' in parsed)) return [parsed]
  if (!Array.isArray(parsed.keys)) throw wrong()
  return parsed.keys
}

/**
 * The given values of a new record, by member.
 *
 * @throws UsageError
 */
export function givenRecord(options: readonly MemberOption[], values: Written): Written {
  const record: Record<string, unknown> = {}
  for (const option of options) {
    const { member, name, shape } = option
    if (values[name] === undefined) continue
    const read = READ[shape](values[name], option)
    const before = record[member]
    record[member] = before === undefined ? read : { ...before, ...(read as object) }
  }
  return record
}

/** Members with an empty text are removed, and so are those that are empty then. */
const emptyAsNull = (tree: Tree): unknown =>
  Object.fromEntries(
    Object.entries(tree).map(([name, value]) => [
      name,
      typeof value === 'object' ? emptyAsNull(value) : value === '' ? null : value,
    ]),
  )

function withoutEmpty(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([name, inner]) => [name, withoutEmpty(inner)] as const)
  const left = entries.filter(([, inner]) => inner !== undefined)
  return left.length === 0 ? undefined : Object.fromEntries(left)
}

const mergedTree = (read: unknown, before: unknown): unknown =>
  withoutEmpty(applyMergePatch(before, emptyAsNull(read as Tree)))

const CHANGED: Readonly<Record<Shape, (read: unknown, before: unknown) => unknown>> = {
  flag: (read) => read,
  text: (read) => (read === '' ? undefined : read),
  list: (read) => read,
  keys: (read) => ((read as readonly unknown[]).length === 0 ? undefined : read),
  map: (read) => read,
  tree: mergedTree,
  files: mergedTree,
}

/**
 * What an edit changes: lists and maps replace those before, trees are merged, an empty text removes.
 *
 * @throws UsageError if nothing is given
 */
export function givenChanges(options: readonly MemberOption[], values: Written): ChangesOf {
  const read = givenRecord(options, values)
  if (Object.keys(read).length === 0) throw new UsageError('expected an option that says what changes')
  return (before) =>
    Object.fromEntries(
      options
        .filter(({ member }) => Object.hasOwn(read, member))
        .map(({ member, shape }) => [member, CHANGED[shape](read[member], before[member])]),
    )
}

/** The option of each member, to name it in problems. */
export const optionNames = (kind: RecordKind): Readonly<Record<string, string>> =>
  Object.fromEntries(
    optionsOf(kind).flatMap(({ member, name, shape }) => (shape === 'files' ? [] : [[member, name]])),
  )
