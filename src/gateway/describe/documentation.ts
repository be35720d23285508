import { type KeyPath, Report } from '../../config/report.ts'
import type { ExampleDescription } from '../../contracts/api-description.ts'
import { type BodySchema, typesOf } from '../../http/body-schema.ts'
import type { JsonValue } from '../../http/json-value.ts'
import { type BodyProblem, compileProblems } from '../../http/validate-body.ts'
import type { OperationConfig, ScopeRuleConfig } from '../config.ts'
import { type PatternSegment, takes } from '../path-pattern.ts'

/** What clients are told of an operation beside what the gateway does with its calls. */
export interface Documentation {
  readonly summary: string | undefined
  readonly description: string | undefined
  /** Of `Data`. */
  readonly data: BodySchema | undefined
  readonly examples: readonly ExampleDescription[]
  /** As `OperationDescription.scopes`. */
  readonly scopes: readonly (readonly string[])[]
}

interface Surroundings {
  readonly versions: readonly number[]
  readonly defaultVersion: number
  /** Scope values that the area requires. */
  readonly areaScopes: readonly string[]
  /** The path of the action. */
  readonly pattern: readonly PatternSegment[]
}

/** Reports schemas that are not supported, and examples that do not fit them. */
export function compileDocumentation(
  config: OperationConfig,
  surroundings: Surroundings,
  path: KeyPath,
  report: Report,
): Documentation {
  const { summary, description, data } = config
  checkData(config, path, report)
  return {
    ...{ summary, description, data },
    examples: compileExamples(config, surroundings, path, report),
    scopes: alternativesOf(config.scopes, surroundings.areaScopes),
  }
}

function checkData({ data, produces }: OperationConfig, path: KeyPath, report: Report): void {
  const at = [...path, 'data']
  if (data === undefined) return
  if (produces !== undefined) report.error(at, 'has no use with `produces`: its answers have no `Data`')
  const types = typesOf(data)
  if (types.length > 0 && !types.includes('object'))
    report.error([...at, 'type'], 'must be object: `Data` always is one')
}

const ANY_OBJECT: BodySchema = { type: 'object' }

type Problems = (value: JsonValue) => readonly BodyProblem[]

/** Undefined, after it was reported, for a schema that is not supported. */
function problemsOf(schema: BodySchema | undefined, at: KeyPath, report: Report): Problems | undefined {
  if (schema === undefined) return () => []
  try {
    return compileProblems(schema)
  } catch (error) {
    report.error(at, (error as Error).message)
    return undefined
  }
}

function compileExamples(
  config: OperationConfig,
  { versions, defaultVersion, pattern }: Surroundings,
  path: KeyPath,
  report: Report,
): readonly ExampleDescription[] {
  const ofData = problemsOf(config.data ?? ANY_OBJECT, [...path, 'data'], report)
  // An unsupported schema of the body is reported where the body is compiled.
  const ofBody = problemsOf(config.body?.schema, path, new Report())
  return Object.entries(config.examples ?? {}).map(([name, example]) => {
    const at = [...path, 'examples', name]
    const { summary, version = defaultVersion, parameters = {}, data, body } = example
    checkParameters(parameters, pattern, [...at, 'parameters'], report)
    if (!versions.includes(version))
      report.error([...at, 'version'], `is not one of the versions ${versions.join(', ')}`)
    if (data !== undefined && config.produces !== undefined)
      report.error([...at, 'data'], 'has no use with `produces`: its answers have no `Data`')
    else checkFits(data, ofData, [...at, 'data'], report)
    if (body !== undefined && config.body === undefined)
      report.error([...at, 'body'], 'has no use: the operation takes no body that is parsed')
    else checkFits(body, ofBody, [...at, 'body'], report)
    return { name, summary, version, parameters, data, body }
  })
}

function checkParameters(
  values: Readonly<Record<string, string>>,
  pattern: readonly PatternSegment[],
  at: KeyPath,
  report: Report,
): void {
  for (const [name, value] of Object.entries(values)) {
    const segment = pattern.find((each) => each.kind === 'parameter' && each.name === name)
    if (segment?.kind !== 'parameter')
      report.error([...at, name], 'is no parameter of the path of the action')
    else if (!takes(segment.type, value))
      report.error([...at, name], 'does not fit the type of the parameter')
  }
}

function checkFits(
  value: JsonValue | undefined,
  problems: Problems | undefined,
  at: KeyPath,
  report: Report,
): void {
  if (value === undefined || problems === undefined) return
  for (const { field, why } of problems(value))
    report.error(at, `does not fit its schema: ${field === '' ? 'it' : field} ${why}`)
}

/** Of `any` each value is one alternative; what the area requires belongs to each of them. */
const alternativesOf = (
  { any, all }: ScopeRuleConfig,
  areaScopes: readonly string[],
): readonly (readonly string[])[] =>
  (all === undefined ? (any ?? []).map((value) => [value]) : [all]).map((values) => [
    ...new Set([...values, ...areaScopes]),
  ])
