import { Check } from 'typebox/schema'
import { expect } from 'vitest'
import { ENVELOPE_SCHEMA, readXml } from '../../src/base/http/xml/read.ts'
import {
  mediaOf,
  type OpenapiDocument,
  type OpenapiHeader,
  type OpenapiOperation,
  type OpenapiResponse,
  resolved,
} from './openapi.ts'
import type { RawResponse } from './raw-http.ts'

const wholes = new WeakMap<object, object>()

/** A schema with what its references mean in their places. */
function whole(document: OpenapiDocument, node: unknown): unknown {
  if (typeof node !== 'object' || node === null) return node
  let made = wholes.get(node)
  if (made === undefined) wholes.set(node, (made = withoutReferences(document, node)))
  return made
}

function withoutReferences(document: OpenapiDocument, node: object): object {
  if (Array.isArray(node)) return node.map((each) => whole(document, each))
  const meant = resolved(document, node) as object
  return Object.fromEntries(Object.entries(meant).map(([key, value]) => [key, whole(document, value)]))
}

/** A text of a header or of an element, as the type of its schema has it. */
const typed = (text: string, schema: object): unknown =>
  'type' in schema && schema.type === 'integer' && /^\d+$/.test(text) ? Number(text) : text

const readBody = (type: string, body: string): unknown =>
  type.endsWith('xml')
    ? JSON.parse(JSON.stringify(readXml(Buffer.from(body), ENVELOPE_SCHEMA)))
    : JSON.parse(body)

/** The names of the described headers that the answer has. */
function headersThatFit(
  document: OpenapiDocument,
  answer: RawResponse,
  response: OpenapiResponse,
  told: string,
): readonly string[] {
  return Object.entries(response.headers).flatMap(([name, node]) => {
    const { required = false, schema } = whole(document, node) as OpenapiHeader
    const value = answer.headers[name.toLowerCase()]
    if (required) expect(value, `${told} without ${name}`).toBeDefined()
    if (value === undefined) return []
    expect(Check(schema, typed(value, schema)), `${told}: ${name}: ${value}`).toBe(true)
    return [name]
  })
}

function expectBodyFits(
  document: OpenapiDocument,
  answer: RawResponse,
  response: OpenapiResponse,
  told: string,
) {
  const type = answer.headers['content-type']
  if (answer.body === '' && type === undefined) return
  const media = mediaOf(response, type ?? '')
  expect(media, `${told}: ${type ?? 'a body without a type'} is not described`).toBeDefined()
  if (media?.schema === undefined) return
  const value = readBody(type?.split(';')[0] ?? '', answer.body)
  expect(Check(whole(document, media.schema) as object, value), `${told}: ${answer.body}`).toBe(true)
}

export interface Fitted {
  /** The key of the response: `200`, `4XX`. */
  readonly status: string
  readonly headers: readonly string[]
}

/**
 * That an operation has the answer: its status, all headers with values that fit their schemas, its type, and a body that
 * fits the schema of the type.
 */
export function expectFits(
  document: OpenapiDocument,
  { operationId, responses }: OpenapiOperation,
  answer: RawResponse,
): Fitted {
  const range = `${String(answer.status).slice(0, 1)}XX`
  const status = String(answer.status) in responses ? String(answer.status) : range
  const told = `${operationId} ${answer.status}`
  expect(responses[status], `${told} is not described: ${answer.body}`).toBeDefined()
  const response = resolved(document, responses[status]) as OpenapiResponse
  const headers = headersThatFit(document, answer, response, told)
  expectBodyFits(document, answer, response, told)
  return { status, headers }
}
