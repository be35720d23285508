/** Reads an OpenAPI description with its lines. Only this file imports `@apidevtools/swagger-parser`. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import SwaggerParser from '@apidevtools/swagger-parser'
import { Problems } from '../../../config/problems.ts'
import type { ConfigNode } from '../../../config/tree.ts'
import { readYaml } from '../../../config/yaml.ts'
import { isJsonObject, type JsonObject, type JsonValue, parseJsonPointer } from '../../../http/json.ts'
import { messageOf, reasonInWords } from '../../../kernel/thrown.ts'

/** The description cannot be read. The message says why. */
export class DescriptionError extends Error {
  override readonly name = 'DescriptionError'
}

export interface Description {
  /** References are replaced by what they name; those that lead to a schema which contains itself are left (`$ref`). */
  readonly document: JsonObject
  /** The line of a part, or of the last part on the way that is there. */
  readonly lineOf: (path: readonly string[]) => number
  /** Where the description breaks the rules of OpenAPI. */
  readonly breaches: readonly { readonly path: readonly string[]; readonly why: string }[]
}

/** Files beside it are read; nothing is fetched. */
const OPTIONS = { resolve: { http: false }, dereference: { circular: 'ignore' } } as const

const MOST_BREACHES = 20

/** Of a message of the reader; a reference to another service is not followed. */
function whyNot(message: string): string {
  const [, address] = /\$ref pointer "(https?:[^"]+)"/.exec(message) ?? []
  return address === undefined
    ? firstLine(message)
    : `it refers to ${address}, and nothing is fetched: save that file, and refer to the copy`
}

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? ''

const VERSION = /^(?:3\.[01]\.\d+|2\.0)$/

/** The reader's own words for these are about JSON Schema. @throws DescriptionError */
function checkKind(tree: ConfigNode, file: string): void {
  const versions = ['openapi', 'swagger'].flatMap((key) => childOf(tree, key) ?? [])
  const [version] = versions
  if (version === undefined)
    throw new DescriptionError(
      `${file}: expected an OpenAPI description: its first lines have "openapi: 3.1.0" or the like`,
    )
  const given = version.shape === 'scalar' ? version.value : ''
  // The reader has good words for a number.
  if (typeof given === 'string' && !VERSION.test(given))
    throw new DescriptionError(`${file}: expected version 3.1, 3.0 or 2.0 of OpenAPI, got "${given}"`)
}

/** @throws DescriptionError if it is no YAML or JSON, of another version, or names what is not there */
async function dereferenced(file: string): Promise<JsonObject> {
  try {
    // What other files have becomes a part of the document first: references that are left lead to places in it then.
    const whole = await SwaggerParser.bundle(resolve(file), OPTIONS)
    const document = (await SwaggerParser.dereference(whole, OPTIONS)) as unknown as JsonValue
    if (isJsonObject(document)) return document
  } catch (thrown) {
    throw new DescriptionError(`${file}: ${whyNot(messageOf(thrown))}`, { cause: thrown })
  }
  throw new DescriptionError(`${file}: expected an OpenAPI description`)
}

interface SchemaBreach {
  readonly instancePath: string
  readonly message?: string
}

/** A description that breaks rules can often be used all the same, so they are noted and do not end the work. */
async function breachesOf(document: JsonObject): Promise<Description['breaches']> {
  try {
    await SwaggerParser.validate(structuredClone(document) as never, OPTIONS)
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

function childOf(node: ConfigNode, step: string): ConfigNode | undefined {
  if (node.shape === 'map') return node.entries.get(step)?.node
  return node.shape === 'list' ? node.items[Number(step)] : undefined
}

function lineIn(tree: ConfigNode, path: readonly string[]): number {
  let node = tree
  let { line } = tree.at
  for (const step of path) {
    const next = childOf(node, step)
    if (next === undefined) break
    line = (node.shape === 'map' ? node.entries.get(step)?.at.line : undefined) ?? next.at.line
    node = next
  }
  return line
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
  const tree = readYaml(source, file, new Problems())
  checkKind(tree, file)
  const document = await dereferenced(file)
  return {
    document,
    lineOf: (path) => lineIn(tree, path),
    breaches: await breachesOf(document),
  }
}
