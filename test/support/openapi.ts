import type { StartedPostern } from './start-postern.ts'
import { send } from './requests.ts'

export const DESCRIPTION = '/.well-known/openapi.json'

/** What tests read of a document. */
export interface OpenapiDocument {
  readonly info: Readonly<Record<string, unknown>>
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly Readonly<Record<string, unknown>>[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenapiOperation>>>>
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

export interface OpenapiOperation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters: readonly unknown[]
  readonly requestBody?: { readonly content: Readonly<Record<string, OpenapiMedia>> }
  readonly responses: Readonly<Record<string, unknown>>
  readonly 'x-postern-target': string
  readonly 'x-postern-mode'?: string
}

export interface OpenapiMedia {
  readonly schema?: unknown
  readonly examples?: Readonly<Record<string, unknown>>
}

export interface OpenapiResponse {
  readonly description: string
  readonly headers: Readonly<Record<string, unknown>>
  readonly content?: Readonly<Record<string, OpenapiMedia>>
}

export interface OpenapiHeader {
  readonly required?: boolean
  readonly schema: object
}

/** What a response says of a type, by the most exact of its ranges; undefined if it does not have it. */
export function mediaOf({ content = {} }: OpenapiResponse, contentType: string): OpenapiMedia | undefined {
  const type = contentType.split(';')[0]?.trim().toLowerCase() ?? ''
  return content[type] ?? content[`${type.split('/')[0] ?? ''}/*`] ?? content['*/*']
}

export async function readDescription(of: Pick<StartedPostern, 'port'>): Promise<OpenapiDocument> {
  const { status, body } = await send(of, { target: DESCRIPTION })
  if (status !== 200) throw new Error(`the description was answered ${status}`)
  return JSON.parse(body) as OpenapiDocument
}

/** What a reference of the document means; anything else is returned as it is. */
export function resolved(document: OpenapiDocument, node: unknown): unknown {
  if (typeof node !== 'object' || node === null || !('$ref' in node)) return node
  const steps = String(node.$ref).replace('#/', '').split('/')
  return steps.reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], document)
}

export interface LintProblem {
  readonly rule: string
  readonly message: string
  readonly pointer: string | undefined
}

/** Redocly follows no references of extensions, where the methods stand that OpenAPI has no place for. */
const UNUSED = 'no-unused-components'

/** The problems that redocly finds with its strictest rules. It is imported only here, since it loads slowly. */
export async function lint(document: unknown): Promise<readonly LintProblem[]> {
  const { createConfig, lintFromString } = await import('@redocly/openapi-core')
  const config = await createConfig({ extends: ['recommended-strict'] })
  const source = JSON.stringify(document)
  const problems = await lintFromString({ source, config })
  return problems
    .map(({ ruleId, message, location }) => ({ rule: ruleId, message, pointer: location[0]?.pointer }))
    .filter(({ rule, pointer }) => rule !== UNUSED || !source.includes(JSON.stringify({ $ref: pointer })))
}
