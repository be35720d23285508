/** Declared parameters of the query (C4.11). */
import { didYouMean } from '../../base/config/problem-text.ts'
import type { KeyPath, Problems } from '../../base/config/problems.ts'
import { type BodySchema, type BodyType, readTyped } from '../../base/http/body/body-schema.ts'
import type { ScalarValue } from '../../base/http/body/json.ts'
import { readingsOf } from '../../base/http/head/query.ts'
import {
  compileReadParameters,
  refuseParameter,
  sameParameter,
} from '../../base/http/head/query-parameters.ts'
import { type BodyProblem, compileProblems } from '../../base/http/body/validate-body.ts'
import type { ParameterConfig } from './schema.ts'

export type QueryValues = Readonly<Record<string, ScalarValue>>

export const NO_QUERY: QueryValues = Object.freeze(Object.create(null) as Record<string, never>)

interface QueryParameter {
  readonly name: string
  /** The schema of one text, number or boolean: it has a type. */
  readonly schema: BodySchema
  readonly required: boolean
  readonly default: ScalarValue | undefined
  readonly problemsOf: (value: ScalarValue) => readonly BodyProblem[]
}

export interface QueryRule {
  readonly parameters: readonly QueryParameter[]
  /** @throws Fault `query_invalid` */
  readonly read: (query: string) => QueryValues
}

/** Undefined where none is declared. */
export function compileQueryRule(
  config: Readonly<Record<string, ParameterConfig>> | undefined,
  at: KeyPath,
  problems: Problems,
): QueryRule | undefined {
  const parameters = Object.entries(config ?? {}).map(([name, given]) =>
    compileParameter(name, given, [...at, name], problems),
  )
  if (parameters.length === 0) return undefined
  const names = parameters.map(({ name }) => name)
  for (const [index, name] of names.entries()) {
    const other = names.slice(0, index).find((each) => sameParameter(each, name))
    if (other !== undefined)
      problems.error([...at, name], `could be taken for "${other}": services read some spellings alike`)
  }
  const readQuery = compileReadParameters(names)
  const read = (query: string): QueryValues => {
    const found = readQuery(query)
    const values = Object.create(null) as Record<string, ScalarValue>
    for (const parameter of parameters) {
      const text = found.get(parameter.name)
      const value = text === undefined ? absent(parameter) : checked(text, parameter)
      if (value !== undefined) values[parameter.name] = value
    }
    return values
  }
  return { parameters, read }
}

function absent({ name, required, default: value }: QueryParameter): ScalarValue | undefined {
  if (required) throw refuseParameter(name, 'is required')
  return value
}

/** Digits as they are: a service that stops at an `e` would read another number than the one that was checked. */
const PLAIN_NUMBERS: Readonly<Partial<Record<BodyType, RegExp>>> = {
  integer: /^-?(?:0|[1-9][0-9]*)$/,
  number: /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$/,
}

const SHAPES: Readonly<Partial<Record<BodyType, string>>> = {
  integer: 'must be a whole number in digits',
  number: 'must be a number in digits, without an exponent',
  boolean: 'must be true or false',
}

function checked(text: string, { name, schema, problemsOf }: QueryParameter): ScalarValue {
  const type = schema.type as BodyType
  const isPlain = PLAIN_NUMBERS[type]?.test(text) ?? true
  const value = isPlain ? (readTyped(text, schema) as ScalarValue | undefined) : undefined
  if (value === undefined) throw refuseParameter(name, SHAPES[type] ?? 'is of another type')
  const [problem] = problemsOf(value)
  if (problem !== undefined) throw refuseParameter(name, problem.why)
  return value
}

const TYPES: readonly BodyType[] = ['string', 'integer', 'number', 'boolean']

function compileParameter(
  name: string,
  config: ParameterConfig,
  at: KeyPath,
  problems: Problems,
): QueryParameter {
  const { required = false, default: given, ...own } = config
  const { type = 'string' } = own
  if (readingsOf(name).includes(''))
    problems.error(at, 'is a name of nothing but brackets, dots and the like, which services leave out')
  const parameter = (schema: BodySchema, problemsOf: QueryParameter['problemsOf']): QueryParameter => ({
    name,
    schema,
    required,
    default: given,
    problemsOf,
  })
  if (typeof type !== 'string' || !TYPES.includes(type)) {
    problems.error(
      [...at, 'type'],
      `is not one of ${TYPES.join(', ')}: a parameter is one text, number or boolean`,
      typeof type === 'string' ? didYouMean(type, TYPES) : undefined,
    )
    return parameter({ type: 'string' }, () => [])
  }
  const schema = { ...own, type }
  const problemsOf = compileProblems(schema)
  if (required && given !== undefined)
    problems.error([...at, 'default'], 'has no use: the parameter is required, so every call has it')
  checkValues(schema, given, problemsOf, at, problems)
  return parameter(schema, problemsOf)
}

function checkValues(
  schema: BodySchema,
  given: ScalarValue | undefined,
  problemsOf: QueryParameter['problemsOf'],
  at: KeyPath,
  problems: Problems,
): void {
  const values = [
    ...(given === undefined ? [] : [['default', given] as const]),
    ...(schema.enum ?? []).map((value) => ['enum', value] as const),
    ...(schema.const === undefined ? [] : [['const', schema.const] as const]),
  ]
  for (const [key, value] of values)
    for (const { why } of problemsOf(value as ScalarValue).slice(0, 1))
      problems.error([...at, key], `does not fit the parameter's own schema: ${JSON.stringify(value)} ${why}`)
}
