/** Reads an OpenAPI description with its lines. Only this file imports `@apidevtools/swagger-parser`. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import SwaggerParser from '@apidevtools/swagger-parser'
import { type JsonObject, parseJsonPointer } from '../../../http/json.ts'
import { messageOf, reasonInWords } from '../../../kernel/thrown.ts'
import { referenced, referencesIn } from './operations.ts'

/** The description cannot be read. The message says why. */
export class DescriptionError extends Error {
  override readonly name = 'DescriptionError'
}

export interface Description {
  /** Every reference in it (`#/…`) leads to a part of it: what other files have stands under `x-files`. */
  readonly document: JsonObject
  /** The line of a part, or of the last part on the way that begins a line. */
  readonly lineOf: (path: readonly string[]) => number
  /** Where the description breaks the rules of OpenAPI. */
  readonly breaches: readonly { readonly path: readonly string[]; readonly why: string }[]
}

/** Files beside it are read; nothing is fetched. */
const OPTIONS = { resolve: { http: false } } as const

const MOST_BREACHES = 20

/** The reader's own words for these are about programs, not about the file. */
const REASONS: readonly (readonly [pattern: RegExp, why: (found: string) => string])[] = [
  [
    /\$ref pointer "(https?:[^"]+)"/,
    (address) => `it refers to ${address}, and nothing is fetched: save that file, and refer to the copy`,
  ],
  [
    /(?:Unsupported|Unrecognized) \w+ version: ([^\s,]*[^\s,.])/,
    (version) => `expected version 3.1, 3.0 or 2.0 of OpenAPI, got "${version}"`,
  ],
  [
    /is not a valid (JSON Schema|Openapi API definition)/,
    () => 'expected an OpenAPI description: its first lines have "openapi: 3.1.0" or the like',
  ],
]

function whyNot(message: string): string {
  for (const [pattern, why] of REASONS) {
    const [, found] = pattern.exec(message) ?? []
    if (found !== undefined) return why(found)
  }
  return firstLine(message)
}

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? ''

/** The parser lays out what refers to itself again and again: here references stay as they are. */
class Parser extends SwaggerParser {
  /** Its document. */
  declare schema: unknown

  override dereference(...given: readonly unknown[]): never {
    this.schema = given.find((each) => typeof each === 'object')
    return Promise.resolve(this.schema) as never
  }
}

const FILES = 'x-files'

/** @throws DescriptionError if it is no YAML or JSON, of another version, or names what is not there */
async function wholeOf(file: string): Promise<JsonObject> {
  const main = resolve(file)
  let files: Map<string, JsonObject>
  try {
    const found = await new Parser().resolve(main, OPTIONS)
    files = new Map(Object.entries(found.values() as Record<string, JsonObject>))
  } catch (thrown) {
    throw new DescriptionError(`${file}: ${whyNot(messageOf(thrown))}`, { cause: thrown })
  }
  const document = files.get(main)
  if (document === undefined) throw new DescriptionError(`${file}: expected an OpenAPI description`)
  if (files.size > 1) joinFiles(document, main, files)
  for (const { $ref: pointer } of referencesIn(document))
    if (referenced(document, pointer) === undefined)
      throw new DescriptionError(`${file}: it refers to ${pointer}, and there is nothing of that name`)
  return document
}

/** Puts other files into the document, and makes all references lead there. */
function joinFiles(document: JsonObject, main: string, files: ReadonlyMap<string, JsonObject>): void {
  const names = [...files.keys()]
  for (const [name, content] of files)
    for (const reference of referencesIn(content)) {
      const [path = '', pointer = ''] = reference.$ref.split('#', 2)
      const target = path === '' ? name : resolve(name, '..', decodeURIComponent(path))
      const inside = target === main ? '' : `/${FILES}/${names.indexOf(target)}`
      reference.$ref = `#${inside}${pointer}`
    }
  document[FILES] = Object.fromEntries(
    names.flatMap((name, at) => (name === main ? [] : [[String(at), files.get(name) ?? {}]])),
  )
}

interface SchemaBreach {
  readonly instancePath: string
  readonly message?: string
}

/** A description that breaks rules can often be used all the same, so they are noted and do not end the work. */
async function breachesOf(document: JsonObject): Promise<Description['breaches']> {
  try {
    await new Parser().validate(document as never, { ...OPTIONS, validate: { spec: false } })
    return []
  } catch (thrown) {
    const details = (thrown as { readonly details?: readonly SchemaBreach[] }).details
    if (details === undefined) return [{ path: [], why: firstLine(messageOf(thrown)) }]
    return details.slice(0, MOST_BREACHES).map(({ instancePath, message = 'is wrong' }) => ({
      path: parseJsonPointer(instancePath),
      why: message,
    }))
  }
}

/** Deeper parts have the line of what they are in. */
const DEEPEST_LINE = 5
const KEY =
  /^( *)(?:"((?:[^"\\]|\\.)*)" *|'((?:[^']|'')*)' *|([^\s"'#{[\]},&*!|>%@-](?:[^:]|:(?=\S))*)):(?:\s|$)/

/**
 * The lines of the keys of block YAML, and of JSON with a line for each member, by their paths as JSON. A tree with a
 * place for each value would take 60 times the memory of the text.
 */
function linesIn(source: string): ReadonlyMap<string, number> {
  const lines = new Map<string, number>()
  const open: { readonly indent: number; readonly key: string }[] = []
  for (const [index, line] of source.split('\n').entries()) {
    const [, indent, double, single, plain] = KEY.exec(line) ?? []
    if (indent === undefined) continue
    while ((open.at(-1)?.indent ?? -1) >= indent.length) open.pop()
    open.push({ indent: indent.length, key: double ?? single ?? plain?.trimEnd() ?? '' })
    if (open.length > DEEPEST_LINE) continue
    const path = JSON.stringify(open.map(({ key }) => key))
    if (!lines.has(path)) lines.set(path, index + 1)
  }
  return lines
}

function lineIn(lines: ReadonlyMap<string, number>, path: readonly string[]): number {
  for (let length = path.length; length > 0; length--) {
    const line = lines.get(JSON.stringify(path.slice(0, length)))
    if (line !== undefined) return line
  }
  return 1
}

/**
 * Reads OpenAPI 3.1, 3.0 or 2.0 as YAML or JSON.
 *
 * @throws DescriptionError
 */
export async function readDescription(file: string): Promise<Description> {
  let source: string
  try {
    source = readFileSync(file, 'utf8')
  } catch (thrown) {
    throw new DescriptionError(`${file} cannot be read (${reasonInWords(thrown)})`, { cause: thrown })
  }
  const document = await wholeOf(file)
  const breaches = await breachesOf(document)
  let lines: ReadonlyMap<string, number> | undefined
  return { document, lineOf: (path) => lineIn((lines ??= linesIn(source)), path), breaches }
}
