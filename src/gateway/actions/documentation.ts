import type { KeyPath, Problems } from '../../base/config/problems.ts'
import type { ExampleDescription } from '../../base/contracts/calls/api-description.ts'
import { type BodySchema, isNothing, typesOf } from '../../base/http/body/body-schema.ts'
import type { JsonValue, ScalarValue } from '../../base/http/body/json.ts'
import { type BodyProblem, compileProblems } from '../../base/http/body/validate-body.ts'
import type { Documentation } from './action-table.ts'
import { type PatternSegment, takes } from './path-pattern.ts'
import type { QueryRule } from './parameters.ts'
import { MOST_REST_SEGMENTS } from './rest-routes.ts'
import type { OperationConfig, ScopeRuleConfig } from './schema.ts'

interface OperationContext {
  readonly versions: readonly number[]
  readonly defaultVersion: number
  /** Scope values that the area requires. */
  readonly areaScopes: readonly string[]
  readonly pattern: readonly PatternSegment[]
  readonly query: QueryRule | undefined
}

/** Reports examples that do not fit their schemas. */
export function compileDocumentation(
  config: OperationConfig,
  context: OperationContext,
  path: KeyPath,
  problems: Problems,
): Documentation {
  const { summary, description, data } = config
  checkData(config, path, problems)
  return {
    summary,
    description,
    data,
    examples: compileExamples(config, context, path, problems),
    scopes: alternativesOf(config.scopes, context.areaScopes),
  }
}

function checkData({ data, produces }: OperationConfig, path: KeyPath, problems: Problems): void {
  const at = [...path, 'data']
  if (data === undefined) return
  if (produces !== undefined) problems.error(at, 'has no use with `produces`: its answers have no `Data`')
  const types = typesOf(data)
  if (isNothing(data) || (types.length > 0 && !types.includes('object')))
    problems.error([...at, 'type'], 'must be object: `Data` always is one')
}

const ANY_OBJECT: BodySchema = { type: 'object' }

type ProblemsOf = (value: JsonValue) => readonly BodyProblem[]

const problemsOf = (schema: BodySchema | undefined): ProblemsOf =>
  schema === undefined ? () => [] : compileProblems(schema)

function compileExamples(
  config: OperationConfig,
  { versions, defaultVersion, pattern, query: rule }: OperationContext,
  path: KeyPath,
  problems: Problems,
): readonly ExampleDescription[] {
  const ofData = problemsOf(config.data ?? ANY_OBJECT)
  const ofBody = problemsOf(config.body?.schema)
  return Object.entries(config.examples ?? {}).map(([name, example]) => {
    const at = [...path, 'examples', name]
    const { summary, version = defaultVersion, parameters = {}, query = {}, data, body } = example
    checkParameters(parameters, pattern, [...at, 'parameters'], problems)
    checkQuery(query, rule, [...at, 'query'], problems)
    if (!versions.includes(version))
      problems.error([...at, 'version'], `is not one of the versions ${versions.join(', ')}`)
    if (data !== undefined && config.produces !== undefined)
      problems.error([...at, 'data'], 'has no use with `produces`: its answers have no `Data`')
    else checkFits(data, ofData, [...at, 'data'], problems)
    if (body !== undefined && config.body === undefined)
      problems.error([...at, 'body'], 'has no use: the operation takes no body that is parsed')
    else checkFits(body, ofBody, [...at, 'body'], problems)
    return { name, summary, version, parameters, query, data, body }
  })
}

function checkParameters(
  values: Readonly<Record<string, string>>,
  pattern: readonly PatternSegment[],
  at: KeyPath,
  problems: Problems,
): void {
  for (const [name, value] of Object.entries(values)) {
    const segment = pattern.find((each) => each.kind !== 'literal' && each.name === name)
    if (segment === undefined || segment.kind === 'literal')
      problems.error([...at, name], 'is no parameter of the path of the action')
    else if (!fits(segment, value)) problems.error([...at, name], 'does not fit the type of the parameter')
  }
}

/** Whether a path may have the value there: no segment of one is empty (C3.4). */
function fits({ kind, type }: Exclude<PatternSegment, { kind: 'literal' }>, value: string): boolean {
  const parts = kind === 'rest' ? value.split('/') : [value]
  return parts.length <= MOST_REST_SEGMENTS && parts.every((part) => part !== '' && takes(type, part))
}

function checkQuery(
  values: Readonly<Record<string, ScalarValue>>,
  rule: QueryRule | undefined,
  at: KeyPath,
  problems: Problems,
): void {
  for (const [name, value] of Object.entries(values)) {
    const parameter = rule?.parameters.find((each) => each.name === name)
    if (parameter === undefined) problems.error([...at, name], 'is not declared in `parameters`')
    else checkFits(value, parameter.problemsOf as ProblemsOf, [...at, name], problems)
  }
}

function checkFits(
  value: JsonValue | undefined,
  problemsIn: ProblemsOf,
  at: KeyPath,
  problems: Problems,
): void {
  if (value === undefined) return
  for (const { field, why } of problemsIn(value))
    problems.error(at, `does not fit its schema: ${field === '' ? 'it' : field} ${why}`)
}

/** Each value of `any` is one alternative. The values that the area requires belong to each of them. */
const alternativesOf = (
  { any, all }: ScopeRuleConfig,
  areaScopes: readonly string[],
): readonly (readonly string[])[] =>
  (all === undefined ? (any ?? []).map((value) => [value]) : [all]).map((values) => [
    ...new Set([...values, ...areaScopes]),
  ])
