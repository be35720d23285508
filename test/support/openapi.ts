import { createRequire } from 'node:module'
import { join } from 'node:path'
import { PARTS, SERVERS } from './machine.ts'
import { send } from './requests.ts'
import type { StartedPostern } from './start-postern.ts'

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

/** What redocly and, where it is installed, spectral find wrong: errors, warnings and hints. */
export async function lint(document: unknown): Promise<readonly LintProblem[]> {
  const bySpectral = PARTS.spectral.isThere() ? await lintBySpectral(document) : []
  return [...(await lintByRedocly(document)), ...bySpectral]
}

/** The rules of `recommended`, each of them an error. It is imported only here, since it loads slowly. */
async function lintByRedocly(document: unknown): Promise<readonly LintProblem[]> {
  const { createConfig, lintFromString } = await import('@redocly/openapi-core')
  const config = await createConfig({ extends: ['recommended-strict'] })
  const problems = await lintFromString({ source: JSON.stringify(document), config })
  return problems.map(({ ruleId, message, location }) => ({
    rule: ruleId,
    message,
    pointer: location[0]?.pointer,
  }))
}

/** What is used of @stoplight/spectral-core. */
interface Spectral {
  setRuleset(ruleset: object): void
  run(document: unknown): Promise<readonly SpectralProblem[]>
}

interface SpectralProblem {
  readonly code: string | number
  readonly message: string
  readonly path: readonly (string | number)[]
}

let spectral: Spectral | undefined

/** The rules of `spectral:oas` that are recommended. */
export async function lintBySpectral(document: unknown): Promise<readonly LintProblem[]> {
  spectral ??= loadSpectral()
  const problems = await spectral.run(document)
  return problems
    .filter((problem) => !namesValuesOfAnotherScheme(problem, document))
    .map(({ code, message, path }) => ({
      rule: String(code),
      message,
      pointer: path.map(String).join('/'),
    }))
}

function loadSpectral(): Spectral {
  const load = createRequire(join(SERVERS, '..', 'package.json'))
  const { Spectral: Linter } = load('@stoplight/spectral-core') as { readonly Spectral: new () => Spectral }
  const { oas } = load('@stoplight/spectral-rulesets') as { readonly oas: object }
  const linter = new Linter()
  linter.setRuleset({ extends: [[oas, 'recommended']] })
  return linter
}

/**
 * Spectral wants every value of a security requirement listed in a flow of the scheme. Schemes without flows have nowhere to
 * list them: those of OpenID Connect name scope values and those of HTTP name roles (OpenAPI 3.1 §4.8.30).
 */
function namesValuesOfAnotherScheme({ code, path }: SpectralProblem, document: unknown): boolean {
  const { securitySchemes = {} } = (document as OpenapiDocument).components
  const scheme = securitySchemes[String(path.at(-2))]
  return (
    code === 'oas3-operation-security-defined' &&
    typeof scheme === 'object' &&
    scheme !== null &&
    !('flows' in scheme)
  )
}
