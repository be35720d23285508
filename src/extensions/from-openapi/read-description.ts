/** Reads an OpenAPI description with its lines. Only this file imports `js-yaml`, which takes a twentieth of the time of `yaml`. */
import { resolve } from 'node:path'
import { JSON_SCHEMA, load } from 'js-yaml'
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/http/body/json.ts'
import { readText } from '../../base/files/text-file.ts'
import { messageOf, reasonInWords } from '../../base/kernel/thrown.ts'
import { SourceError } from '../../operate/hooks/first-configuration.ts'
import { type Breach, breachesOf } from './breaches.ts'
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
  readonly breaches: readonly Breach[]
  /** References that lead nowhere. Their targets count as not described. */
  readonly broken: readonly BrokenReference[]
}

/** As many as `js-yaml` takes. */
const MOST_LEVELS = 100

/** Level by level, each value once: YAML can name a value many times, also within itself. */
function isTooDeep(value: unknown): boolean {
  let level = new Set([value])
  for (let depth = 0; level.size > 0; depth++) {
    if (depth > MOST_LEVELS) return true
    const objects = [...level].filter((each) => typeof each === 'object' && each !== null)
    level = new Set(objects.flatMap((each): readonly unknown[] => Object.values(each)))
  }
  return false
}

/** Text that is no YAML with the values of JSON alone, as with dates, is read with those of all YAML. */
function loadYaml(text: string): unknown {
  try {
    return load(text, { schema: JSON_SCHEMA })
  } catch {
    return load(text)
  }
}

/** JSON or YAML. @throws RangeError if it is nested too deep, and as the parser of YAML does */
function parseText(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = loadYaml(text)
  }
  if (isTooDeep(value)) throw new RangeError(`more than ${MOST_LEVELS} levels`)
  return value
}

/** @throws NotTextError, and as the file system and `parseText` do */
const parseFile = (file: string): unknown => parseText(readText(file))

/** @throws DescriptionError if it is no YAML or JSON, or of another version */
function documentIn(file: string, source: string): JsonObject {
  const expected = 'expected an OpenAPI description: its first lines have "openapi: 3.1.0" or the like'
  let document: unknown
  try {
    document = parseText(source)
  } catch (thrown) {
    const message = messageOf(thrown)
    if (thrown instanceof RangeError || message.includes('nesting exceeded'))
      throw new DescriptionError(`${file} is nested too deep to be read: ${MOST_LEVELS} levels at most`, {
        cause: thrown,
      })
    const [, line] = /\((\d+):\d+\)/.exec(message) ?? []
    const why =
      line === undefined ? ': is neither YAML nor JSON' : `:${line}: is neither YAML nor JSON from here on`
    throw new DescriptionError(`${file}${why}`, { cause: thrown })
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
export function readDescription(file: string): Description {
  let source: string
  try {
    source = readText(file)
  } catch (thrown) {
    throw new DescriptionError(`${file} cannot be read (${reasonInWords(thrown)})`, { cause: thrown })
  }
  const document = documentIn(file, source)
  const broken = followReferences(document, resolve(file), parseFile)
  const breaches = breachesOf(document)
  let lines: ReadonlyMap<string, number> | undefined
  return { document, lineOf: (path) => lineIn((lines ??= linesIn(source)), path), breaches, broken }
}
