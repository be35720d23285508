/** Reads an OpenAPI description with its lines. Only this file imports `@apidevtools/swagger-parser`. */
import { resolve } from 'node:path'
import SwaggerParser from '@apidevtools/swagger-parser'
import { isJsonObject, type JsonObject, type JsonValue, parseJsonPointer } from '../../base/http/body/json.ts'
import { readText } from '../../base/files/text-file.ts'
import { messageOf, reasonInWords } from '../../base/kernel/thrown.ts'
import { SourceError } from '../../operate/hooks/first-configuration.ts'
import { type BrokenReference, followReferences } from './references.ts'

/** The description cannot be read. The message says why. */
export class DescriptionError extends SourceError {
  override readonly name = 'DescriptionError'
}

export interface Description {
  /** Every reference that is read (`#/…`) leads to a part of it: parts of other files are under `x-files`. */
  readonly document: JsonObject
  /** The line of a part, or of the last part on the way that begins a line. */
  readonly lineOf: (path: readonly string[]) => number
  /** Where the description breaks the rules of OpenAPI. */
  readonly breaches: readonly { readonly path: readonly string[]; readonly why: string }[]
  /** References that lead nowhere. Their targets count as not described. */
  readonly broken: readonly BrokenReference[]
}

const MOST_BREACHES = 20

/** The parser lays out what refers to itself again and again: here references stay as they are. */
class Parser extends SwaggerParser {
  /** Its document. */
  declare schema: unknown

  override dereference(...given: readonly unknown[]): never {
    this.schema = given.find((each) => typeof each === 'object')
    return Promise.resolve(this.schema) as never
  }
}

interface FileParser {
  readonly parse: (file: string) => Promise<unknown>
}

/** YAML or JSON, of a description or of a part of one: the parser's own `parse` refuses the latter. */
const parseFile = (file: string): Promise<unknown> =>
  (Object.getPrototypeOf(SwaggerParser.prototype) as FileParser).parse.call(new Parser(), file)

/** Its parser takes what is no UTF-8 too. */
function parsePart(file: string): Promise<unknown> {
  readText(file)
  return parseFile(file)
}

/** @throws DescriptionError if it is no YAML or JSON, or of another version */
async function documentIn(file: string): Promise<JsonObject> {
  const expected = 'expected an OpenAPI description: its first lines have "openapi: 3.1.0" or the like'
  let document: unknown
  try {
    document = await parseFile(resolve(file))
  } catch (thrown) {
    // The parser of YAML counts levels; the one of JSON continues until the stack ends.
    if (thrown instanceof RangeError || messageOf(thrown).includes('nesting exceeded'))
      throw new DescriptionError(`${file} is nested too deep to be read`, { cause: thrown })
    const message = messageOf(thrown)
    const [, line] = /\((\d+):\d+\)/.exec(message) ?? []
    const why =
      line === undefined ? ': is neither YAML nor JSON' : `:${line}: is neither YAML nor JSON from here on`
    // The parser refuses what is no map by itself.
    const isText = message.includes('is not a valid JSON Schema')
    throw new DescriptionError(isText ? `${file}: ${expected}` : `${file}${why}`, { cause: thrown })
  }
  if (!isJsonObject(document as JsonValue)) throw new DescriptionError(`${file}: ${expected}`)
  const description = document as JsonObject
  const { openapi, swagger } = description
  const version = swagger ?? openapi
  if (version === undefined || (description['paths'] === undefined && description['webhooks'] === undefined))
    throw new DescriptionError(`${file}: ${expected}`)
  if (typeof version !== 'string')
    throw new DescriptionError(
      `${file}: its version of OpenAPI must be a string: write it in quotes, such as swagger: '2.0'`,
    )
  if (swagger === undefined ? !/^3\.[01]\.\d+$/.test(version) : version !== '2.0')
    throw new DescriptionError(`${file}: expected version 3.1, 3.0 or 2.0 of OpenAPI, got "${version}"`)
  return description
}

interface SchemaBreach {
  readonly instancePath: string
  readonly keyword?: string
  readonly params?: Readonly<Record<string, unknown>>
}

/** The demand of OpenAPI's schema that is broken, in words. */
function breachText({ keyword, params = {} }: SchemaBreach): string {
  const named = (name: string): string => `"${String(params[name])}"`
  if (keyword === 'required') return `${named('missingProperty')} is missing`
  if (keyword === 'type') return `expected a value of type ${String(params['type'])}`
  if (keyword === 'additionalProperties') return `${named('additionalProperty')} is not known here`
  if (keyword === 'unevaluatedProperties') return `${named('unevaluatedProperty')} is not known here`
  if (keyword === 'enum') return 'is none of the values that there are'
  if (keyword === 'pattern' || keyword === 'format') return 'has another form'
  return 'is none of the forms that there are'
}

/** A description that breaks rules can often still be used, so the breaches are noted and do not end the work. */
async function breachesOf(document: JsonObject): Promise<Description['breaches']> {
  try {
    await new Parser().validate(document as never, { validate: { spec: false } })
    return []
  } catch (thrown) {
    const details = (thrown as { readonly details?: readonly SchemaBreach[] }).details ?? []
    return details.slice(0, MOST_BREACHES).map((breach) => ({
      path: parseJsonPointer(breach.instancePath),
      why: breachText(breach),
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
 * Reads OpenAPI 3.1, 3.0 or 2.0 as YAML or JSON, with the files that what is read refers to. Nothing is fetched.
 *
 * @throws DescriptionError
 */
export async function readDescription(file: string): Promise<Description> {
  let source: string
  try {
    source = readText(file)
  } catch (thrown) {
    throw new DescriptionError(`${file} cannot be read (${reasonInWords(thrown)})`, { cause: thrown })
  }
  const document = await documentIn(file)
  const broken = await followReferences(document, resolve(file), parsePart)
  const breaches = await breachesOf(document)
  let lines: ReadonlyMap<string, number> | undefined
  return { document, lineOf: (path) => lineIn((lines ??= linesIn(source)), path), breaches, broken }
}
