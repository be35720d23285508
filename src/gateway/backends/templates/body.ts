/**
 * The body that an upstream is sent in place of a client's (C8.7). It is made from plain data, because large ones are made on
 * other threads.
 */
import { Buffer } from 'node:buffer'
import type { KeptMembers } from '../../../base/contracts/calls/backend.ts'
import type {
  BodyRecipe,
  BodyTree,
  Leaf,
  PlacedLeaf,
  Placeholder,
  PlaceholderValues,
} from '../../../base/contracts/calls/templates.ts'
import {
  isJsonObject,
  type JsonValue,
  newObject,
  scalarText,
  stringifyJson,
  valueAt,
} from '../../../base/http/body/json.ts'
import { decodeUtf8 } from '../../../base/http/body/read-body.ts'
import { AS_WRITTEN } from '../../../base/http/xml/plain-document.ts'
import { writePlainXml } from '../../../base/http/xml/plain-write.ts'
import { isXmlText } from '../../../base/http/xml/syntax.ts'
import { Fault, toFault } from '../../../base/kernel/faults.ts'
import { placeholdersInTree } from './body-tree.ts'
import {
  likeNamesOf,
  type PlacedValue,
  refuseDivided,
  refuseMembers,
  requireMembers,
  requireUndivided,
  setMembers,
  stepsOf,
} from './members.ts'
import { percentEncode } from './places.ts'
import { asText, isClients, unsendable } from './sources.ts'

/** The client's body, parsed and checked. */
interface ClientBody {
  /** Undefined: there is none. */
  readonly value: JsonValue | undefined
  readonly bytes: Uint8Array | undefined
  readonly as: BodyRecipe['format'] | undefined
  /** Writes a value for the backend, where its format is the recipe's. Undefined: it is another one. */
  readonly write: ((value: JsonValue) => Uint8Array) | undefined
  /** Members that it must not have. */
  readonly kept?: KeptMembers | undefined
}

type Format = BodyRecipe['format']

/** What a body is filled with. */
interface Filling {
  readonly format: Format
  readonly values: PlaceholderValues
  readonly client: JsonValue | undefined
  /** The most bytes of the body. */
  readonly most: number
}

/** @throws Fault `unsendable_argument` */
const tooLarge = (): never => {
  throw new Fault('unsendable_argument', {
    say: 'With what the data service is sent beside it, the body is too large. Send less at a time.',
  })
}

/**
 * Makes the body that is sent.
 * @param most bytes of it
 * @returns undefined: none is sent
 * @throws Fault `unsendable_argument` for what is kept out; `body_invalid` for what `require` refuses; `unsendable_argument`, `unsendable_value`, `body_malformed` for
 *   what cannot be sent
 */
export function buildBody(
  recipe: BodyRecipe,
  values: PlaceholderValues,
  client: ClientBody,
  most: number,
): Uint8Array | undefined {
  const { format, template, set, require: required } = recipe
  const filling: Filling = { format, values, client: client.value, most }
  const isXml = format === 'xml' || client.as === 'xml'
  const needed = placed(required, filling)
  const { kept } = client
  // One for all three: the names of each object of the client's are read once.
  const wanted = (): readonly string[] => [...(kept?.names ?? []), ...stepsOf(required), ...stepsOf(set)]
  const names = likeNamesOf(recipe, wanted, isXml)
  if (kept !== undefined && client.value !== undefined)
    refuseMembers(client.value, kept, kept.isXml === isXml ? names : undefined)
  if (needed.length > 0) requireMembers(client.value, needed, isXml, names)
  const bytes = guarded(recipe, () => {
    if (template !== undefined) return written(template, filling)
    if (set.length > 0) {
      const members = placed(set, filling)
      return whole(setMembers(client.value, members, isXml, names), filling, client)
    }
    if (client.value !== undefined && client.as !== format) return whole(client.value, filling, client)
    if (format === 'form' && client.bytes !== undefined) checkForm(client.bytes, recipe, needed)
    return client.bytes
  })
  return bytes !== undefined && bytes.length > most ? tooLarge() : bytes
}

/** Checks a form that is sent on byte for byte. */
function checkForm(bytes: Uint8Array, { kept = [] }: BodyRecipe, needed: readonly PlacedValue[]): void {
  if (needed.length + kept.length === 0) return
  const form = decodeUtf8(bytes)
  if (needed.length > 0) requireUndivided(form, needed)
  if (kept.length > 0) refuseDivided(form, kept)
}

/** Whose mistake it is that a format cannot hold something: nobody's, if the client has no part in it. */
function guarded<T>({ template, set }: BodyRecipe, make: () => T): T {
  try {
    return make()
  } catch (thrown) {
    const { code, facts } = toFault(thrown)
    if (code === 'body_too_large') return tooLarge()
    const isOurs =
      template !== undefined &&
      set.length === 0 &&
      !placeholdersInTree(template).some(({ to }) => isClients(to))
    if (code !== 'body_malformed' || !isOurs) throw thrown
    throw new Fault('unsendable_value', { detail: facts.say ?? code, unchanged: true })
  }
}

/** A value of the client's, in the format that is sent. */
const whole = (value: JsonValue, filling: Filling, { write }: ClientBody): Uint8Array =>
  write === undefined ? inFormat(value, filling) : write(value)

function inFormat(value: JsonValue, { format, most }: Filling): Uint8Array {
  if (format === 'json') return Buffer.from(stringifyJson(value))
  return Buffer.from(format === 'xml' ? writePlainXml(value, AS_WRITTEN, most) : formText(value, most))
}

/** `set` and `require` are sure of their values: what is absent is never left out. */
const placed = (leaves: readonly PlacedLeaf[], filling: Filling): readonly PlacedValue[] =>
  leaves.map(({ pointer, leaf }) => {
    const value = valueOf(leaf, filling)
    if (value === undefined) throw missing(leaf)
    // Copied: the value may be a part of the body in which it is set.
    return { pointer, value: copyOf(value) }
  })

function missing(leaf: Leaf): Fault {
  const [part] = leaf.kind === 'template' ? leaf.template : []
  if (part?.kind === 'placeholder') return unsendable(part, 'is missing')
  return new Fault('internal', { detail: 'a constant is missing' })
}

function copyOf(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(copyOf)
  if (!isJsonObject(value)) return value
  const copy = newObject()
  for (const name in value) copy[name] = copyOf(value[name] ?? null)
  return copy
}

function written(tree: BodyTree, filling: Filling): Uint8Array | undefined {
  if (filling.format === 'json') {
    const text = new JsonText(filling).of(tree)
    return text === undefined ? undefined : Buffer.from(text)
  }
  const value = treeValue(tree, filling)
  return value === undefined ? undefined : inFormat(value, filling)
}

/** Undefined: it is left out. @throws Fault `unsendable_argument`, `unsendable_value` */
function valueOf(leaf: Leaf, filling: Filling): JsonValue | undefined {
  if (leaf.kind === 'constant') return leaf.value
  const { template } = leaf
  const [first] = template
  if (template.length === 1 && first?.kind === 'placeholder') {
    const value = find(first, filling)
    return typeof value === 'string' ? checked(value, first, filling) : value
  }
  let text = ''
  for (const part of template)
    text += part.kind === 'text' ? part.text : checked(asText(find(part, filling), part), part, filling)
  return text
}

function find({ to, written: name }: Placeholder, { values, client }: Filling): JsonValue | undefined {
  if (to.kind === 'body') return client === undefined ? undefined : valueAt(client, to.pointer)
  return Object.hasOwn(values, name) ? values[name] : undefined
}

function checked(text: string, placeholder: Placeholder, { format }: Filling): string {
  if (format === 'xml' ? isXmlText(text) : text.isWellFormed()) return text
  throw unsendable(
    placeholder,
    `holds a character that ${format === 'xml' ? 'XML' : 'Unicode'} does not have`,
  )
}

/** JSON of a tree, counted while it is made: one value may be in many places. */
class JsonText {
  readonly #filling: Filling
  #length = 0

  constructor(filling: Filling) {
    this.#filling = filling
  }

  /** Undefined: it is left out. */
  of(tree: BodyTree): string | undefined {
    switch (tree.kind) {
      case 'list': {
        let text = ''
        for (const item of tree.items) text = followedBy(text, this.of(item))
        return `[${text}]`
      }
      case 'members': {
        let text = ''
        for (const [name, value] of tree.members) {
          const member = this.of(value)
          if (member !== undefined) text = followedBy(text, `${JSON.stringify(name)}:${member}`)
        }
        return `{${text}}`
      }
      default:
        return this.#leaf(tree)
    }
  }

  #leaf(leaf: Leaf): string | undefined {
    const value = valueOf(leaf, this.#filling)
    if (value === undefined) return undefined
    const text = stringifyJson(value)
    this.#length += text.length
    return this.#length > this.#filling.most ? tooLarge() : text
  }
}

const followedBy = (text: string, part: string | undefined): string =>
  part === undefined ? text : text === '' ? part : `${text},${part}`

/** The value of a tree. Undefined: it is left out. */
function treeValue(tree: BodyTree, filling: Filling): JsonValue | undefined {
  switch (tree.kind) {
    case 'list':
      return tree.items.map((item) => treeValue(item, filling)).filter((item) => item !== undefined)
    case 'members': {
      const object = newObject()
      for (const [name, value] of tree.members) {
        const member = treeValue(value, filling)
        if (member !== undefined) object[name] = member
      }
      return object
    }
    default:
      return valueOf(tree, filling)
  }
}

const badForm = (why: string): Fault =>
  new Fault('body_malformed', { say: `For the data service it becomes a form: ${why}.`, quotes: true })

/** Names with texts; a list repeats its name. @throws Fault `body_malformed`, `body_too_large` */
function formText(value: JsonValue, most: number): string {
  if (!isJsonObject(value)) throw badForm('expected an object, whose members are the fields')
  let text = ''
  for (const name in value) {
    const member = value[name] ?? null
    for (const item of Array.isArray(member) ? member : [member]) {
      text += `${text === '' ? '' : '&'}${formPart(name, name)}=${formPart(fieldText(item, name), name)}`
      if (text.length > most) throw new Fault('body_too_large')
    }
  }
  return text
}

function fieldText(value: JsonValue, name: string): string {
  const text = scalarText(value)
  if (text !== undefined) return text
  const kind = value === null ? 'null' : Array.isArray(value) ? 'a list within a list' : 'an object'
  throw badForm(`"${name}" must be a text, a number or a boolean, and is ${kind}`)
}

function formPart(text: string, name: string): string {
  try {
    return percentEncode(text)
  } catch {
    throw badForm(`"${name}" holds half a surrogate pair`)
  }
}

interface Extent {
  /** How many characters the text outside placeholders has. */
  readonly fixed: number
  readonly placeholders: readonly Placeholder[]
}

const extents = new WeakMap<BodyRecipe, Extent>()

function extentOf(recipe: BodyRecipe): Extent {
  const known = extents.get(recipe)
  if (known !== undefined) return known
  const { template, set } = recipe
  const trees = [...(template === undefined ? [] : [template]), ...set.map(({ leaf }) => leaf)]
  const extent = {
    fixed: trees.reduce((sum, tree) => sum + fixedLength(tree), 0),
    placeholders: trees.flatMap(placeholdersInTree),
  }
  extents.set(recipe, extent)
  return extent
}

function fixedLength(tree: BodyTree): number {
  switch (tree.kind) {
    case 'constant':
      return lengthOf(tree.value, 0)
    case 'template':
      return tree.template.reduce((sum, part) => sum + (part.kind === 'text' ? part.text.length : 0), 0)
    case 'list':
      return tree.items.reduce((sum, item) => sum + fixedLength(item), 0)
    case 'members':
      return tree.members.reduce((sum, [name, value]) => sum + name.length + fixedLength(value), 0)
  }
}

const lengthOf = (value: JsonValue | undefined, most: number): number =>
  typeof value === 'string' ? value.length : typeof value === 'object' && value !== null ? most : SHORT
const SHORT = 8

/** About how many characters a body will have, so that a large one is made elsewhere. */
export function roughLength(
  recipe: BodyRecipe,
  values: PlaceholderValues,
  { value: client, bytes }: Pick<ClientBody, 'value' | 'bytes'>,
): number {
  const { fixed, placeholders } = extentOf(recipe)
  const filling: Filling = { format: recipe.format, values, client, most: 0 }
  const own = recipe.template === undefined ? (bytes?.length ?? 0) : 0
  return placeholders.reduce(
    (sum, placeholder) => sum + lengthOf(find(placeholder, filling), bytes?.length ?? 0),
    fixed + own,
  )
}
