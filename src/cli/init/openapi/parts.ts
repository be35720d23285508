/** Reads parts of a description, which may be anything: what is of another type counts as absent. */
import { isJsonObject, parseJsonPointer, valueAt } from '../../../http/json-pointer.ts'
import type { JsonObject, JsonValue } from '../../../http/json-value.ts'

const NONE: JsonObject = {}

export const objectOf = (value: JsonValue | undefined): JsonObject => (isJsonObject(value) ? value : NONE)

export const listOf = (value: JsonValue | undefined): readonly JsonValue[] =>
  Array.isArray(value) ? value : []

/** Undefined if it is empty too. */
export const textOf = (value: JsonValue | undefined): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value : undefined

/** What a reference (`#/components/…`) names: only those were left that lead to a schema which contains itself. */
export const referenced = (document: JsonObject, pointer: string): JsonValue | undefined =>
  pointer.startsWith('#/') ? valueAt(document, parseJsonPointer(decodeURIComponent(pointer))) : undefined

/** A part, with what it refers to. */
export function partOf(document: JsonObject, value: JsonValue | undefined): JsonObject {
  const followed = new Set<string>()
  let part = objectOf(value)
  for (;;) {
    const { $ref: reference, ...own } = part
    const pointer = textOf(reference)
    if (pointer === undefined || followed.has(pointer)) return own
    followed.add(pointer)
    part = { ...objectOf(referenced(document, pointer)), ...own }
  }
}

/** A name or another short value as text; empty if it is neither a text nor a number nor a switch. */
export const nameOf = (value: JsonValue | undefined): string =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''

export const textsOf = (value: JsonValue | undefined): readonly string[] =>
  listOf(value).filter((each) => typeof each === 'string')

const LONGEST_LINE = 120
const LONGEST_TEXT = 10_000

const cut = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`

/** A text on one line, as a `summary` of the configuration may be. */
export function lineOf(value: JsonValue | undefined): string | undefined {
  const line = textOf(value)
    ?.replaceAll(/[\s<>]+/g, ' ')
    .trim()
  return line === undefined || line === '' ? undefined : cut(line, LONGEST_LINE)
}

/** A text, as a `description` of the configuration may be. */
export function wordsOf(value: JsonValue | undefined): string | undefined {
  const text = textOf(value)
  return text === undefined ? undefined : cut(text, LONGEST_TEXT)
}

/** Lower-case words with hyphens between them, as names of areas are; undefined if nothing is left. */
export function slugOf(text: string): string | undefined {
  const plain = text.normalize('NFKD').replaceAll(/\p{M}/gu, '')
  const slug = plain.replaceAll(/[^A-Za-z0-9]+/g, '-').replaceAll(/^-|-$/g, '')
  return slug === '' ? undefined : slug.toLowerCase()
}
