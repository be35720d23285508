/** `set` and `require` of a body (C8.7): members of the client's body that only this service decides about. */
import type { KeptMembers } from '../../../base/contracts/calls/backend.ts'
import {
  isJsonObject,
  type JsonObject,
  type JsonPointer,
  type JsonValue,
  newObject,
  scalarText,
  valueAt,
} from '../../../base/http/body/json.ts'
import { LikeNames, WantedNames } from '../../../base/http/names/like-names.ts'
import { memberReadings } from '../../../base/http/names/member-names.ts'
import {
  beforeSign,
  compileFindHidden,
  decodedMemberReadings,
  decodeQueryText,
} from '../../../base/http/head/query.ts'
import { printable } from '../../../base/http/body/read-body.ts'
import { localOf } from '../../../base/http/xml/namespaces.ts'
import { ATTRIBUTE } from '../../../base/http/xml/plain-read.ts'
import { Fault } from '../../../base/kernel/faults.ts'

/** A member and the value that it is to have. */
export interface PlacedValue {
  readonly pointer: JsonPointer
  readonly value: JsonValue
}

/** The name of an XML member without its prefix, also of an attribute. */
const localName = (name: string): string => localOf(name.startsWith(ATTRIBUTE) ? name.slice(1) : name)

/** A member's name as it is compared. @param isXml whether the body is XML, or becomes XML */
export const memberName = (name: string, isXml: boolean): string => (isXml ? localName(name) : name)

const wantedNames = new WeakMap<object, { xml?: WantedNames; other?: WantedNames }>()

/**
 * Looks for members with some names in one body.
 * @param of an object that always has these names: they are compiled once for it
 * @param isXml whether the body is XML, or becomes XML
 */
export function likeNamesOf(of: object, names: () => readonly string[], isXml: boolean): LikeNames {
  const compiled = wantedNames.get(of) ?? {}
  wantedNames.set(of, compiled)
  return new LikeNames(
    (compiled[isXml ? 'xml' : 'other'] ??= new WantedNames(names(), (name) => memberName(name, isXml))),
  )
}

/** The names of all pointers. */
export const stepsOf = (placed: readonly { readonly pointer: JsonPointer }[]): readonly string[] =>
  placed.flatMap(({ pointer }) => pointer)

/** Whether each reading of a name leaves something. A name of white space and brackets would be that of any other such. */
export const isComparable = (name: string): boolean => !memberReadings(name).includes('')

const refused = (pointer: JsonPointer, upTo: number, why: string): Fault =>
  new Fault('body_invalid', { say: `Field ${pointer.slice(0, upTo + 1).join('.')}: ${why}.` })

/** In XML an element without attributes, elements and text is the empty text. */
const isEmptyElement = (value: JsonValue | undefined, isXml: boolean): boolean => isXml && value === ''

/**
 * Sets members of the client's body, which is changed. Objects that are missing are made.
 * @throws Fault `body_invalid` where it is not clear which member is meant
 */
export function setMembers(
  body: JsonValue | undefined,
  members: readonly PlacedValue[],
  isXml: boolean,
  names: LikeNames = likeNamesOf(members, () => stepsOf(members), isXml),
): JsonObject {
  const root = body === undefined ? newObject() : body
  if (!isJsonObject(root)) throw new Fault('body_invalid', { say: 'The body: must be an object.' })
  for (const { pointer, value } of members) {
    let object = root
    for (const [index, name] of pointer.entries())
      if (index === pointer.length - 1) replaceMember(object, name, value, names)
      else object = stepInto(object, pointer, index, { isXml, names })
  }
  return root
}

interface Compared {
  readonly isXml: boolean
  readonly names: LikeNames
}

function stepInto(
  object: JsonObject,
  pointer: JsonPointer,
  index: number,
  { isXml, names }: Compared,
): JsonObject {
  const name = pointer[index] ?? ''
  const [found, another] = names.like(object, name)
  if (another !== undefined) throw refused(pointer, index, 'stands twice, in different spellings')
  if (found === undefined || isEmptyElement(object[found], isXml)) {
    const made = newObject()
    object[found ?? name] = made
    names.add(object, found ?? name)
    return made
  }
  const next = object[found]
  if (!isJsonObject(next)) throw refused(pointer, index, 'must be an object')
  return next
}

/** Puts a member at the end, in the place of all that may be read as it. */
function replaceMember(object: JsonObject, name: string, value: JsonValue, names: LikeNames): void {
  for (const each of names.like(object, name)) Reflect.deleteProperty(object, each)
  object[name] = value
  names.add(object, name)
}

/**
 * Refuses a client's body unless it has these very members, and no others that may be read as one of them.
 * @throws Fault `body_invalid`
 */
export function requireMembers(
  body: JsonValue | undefined,
  members: readonly PlacedValue[],
  isXml: boolean,
  names: LikeNames = likeNamesOf(members, () => stepsOf(members), isXml),
): void {
  for (const { pointer, value } of members) {
    let here = body
    for (const [index, name] of pointer.entries()) {
      if (!isJsonObject(here)) throw refused(pointer, index - 1, 'must be an object')
      const [found, another] = names.like(here, name)
      if (another !== undefined) throw refused(pointer, index, 'stands twice, in different spellings')
      if (found !== name) throw refused(pointer, index, 'is required, in this spelling')
      here = here[name]
    }
    if (!isSame(here, value)) throw refused(pointer, pointer.length, 'is not what it must be here')
  }
}

/**
 * Refuses a client's body that has a member by which only Postern tells the service the business.
 * @param like what finds these names, if it looks for others too
 * @throws Fault `unsendable_argument`
 */
export function refuseMembers(
  body: JsonValue,
  kept: KeptMembers,
  like: LikeNames = likeNamesOf(kept, () => kept.names, kept.isXml),
): void {
  const { names, part, isDocument } = kept
  const sent = valueAt(body, part)
  const objects = isDocument && isJsonObject(sent) ? Object.values<JsonValue>(sent).flat() : [sent]
  for (const object of objects)
    for (const name of isJsonObject(object) ? names : []) {
      const [found] = like.like(object as JsonObject, name)
      if (found !== undefined) throw notTheClients(found)
    }
}

const notTheClients = (name: string): Fault =>
  new Fault('unsendable_argument', {
    say: `Field ${printable(name)}: only this service says it to the data service. Leave it out.`,
    quotes: true,
  })

/**
 * The same for a form that is sent on as it came: a service may find a field in it that its checked value does not have.
 * @throws Fault `unsendable_argument`
 */
export function refuseDivided(form: string, names: readonly string[]): void {
  const findHidden = compileFindHidden(names, decodedMemberReadings)
  for (const pair of form.split('&')) {
    const hidden = findHidden(pair, 'pair')
    if (hidden !== undefined) throw notTheClients(hidden)
  }
}

/**
 * Refuses a form that is sent on as it came, if a service that parts it at `;` too, or decodes it before it parts it, finds
 * one of these members where there is none.
 * @throws Fault `body_invalid`
 */
export function requireUndivided(form: string, members: readonly PlacedValue[]): void {
  const names = members.map(({ pointer }) => pointer[0] ?? '')
  const findHidden = compileFindHidden(names, decodedMemberReadings)
  for (const pair of form.split('&')) {
    if (names.includes(decodeQueryText(beforeSign(pair)) ?? '')) continue
    const hidden = findHidden(pair, 'pair')
    if (hidden !== undefined) throw refused([hidden], 0, 'stands twice, once behind a separator')
  }
}

/** A text and a number with the same characters are the same: no service reads them differently. */
function isSame(given: JsonValue | undefined, wanted: JsonValue): boolean {
  const text = scalarText(given)
  return text !== undefined && text === scalarText(wanted)
}
