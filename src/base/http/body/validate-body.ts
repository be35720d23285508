import { Fault } from '../../kernel/faults.ts'
import { type BodySchema, type BodyType, describeTypes, FORMATS, isNothing, typesOf } from './body-schema.ts'
import {
  compareLiterals,
  isIntegerLiteral,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  literalOf,
  type RawNumber,
} from './json.ts'
import { printable } from './read-body.ts'

/** Returns if the body fits; otherwise throws Fault `body_invalid`, whose `say` names each field and why. */
export type BodyValidator = (value: JsonValue) => void

export interface BodyProblem {
  /** `Members[0].Name`; empty for the body itself. */
  readonly field: string
  /** `must be a whole number`. */
  readonly why: string
}

/** Enough to correct a form in one go; a client cannot make the answer longer than this. */
const MOST_PROBLEMS = 5

interface Findings {
  /** Names of members, and indexes of items. */
  readonly path: (string | number)[]
  readonly problems: BodyProblem[]
  /** Whether one of them names a field that the schema does not. */
  quotes: boolean
}

type Check<T extends JsonValue = JsonValue> = (value: T, findings: Findings) => void

/**
 * Compiles the schema of a request body, once, at load (C4.11). Own code rather than a library's, because numbers come as
 * literals that JavaScript cannot hold. Where the schema was read it was checked: each keyword is known, and has a value of
 * its type.
 */
export function compileValidator(schema: BodySchema): BodyValidator {
  const check = compileCheck(schema)
  return (value) => {
    const { problems, quotes } = findingsOf(check, value)
    if (problems.length > 0)
      throw new Fault('body_invalid', { say: problems.map(sentence).join(' '), quotes })
  }
}

/** As `compileValidator`, for callers with words of their own: answers the problems, at most five. */
export function compileProblems(schema: BodySchema): (value: JsonValue) => readonly BodyProblem[] {
  const check = compileCheck(schema)
  return (value) => findingsOf(check, value).problems
}

function findingsOf(check: Check, value: JsonValue): Findings {
  const findings: Findings = { path: [], problems: [], quotes: false }
  check(value, findings)
  return findings
}

const sentence = ({ field, why }: BodyProblem): string =>
  `${field === '' ? 'The body' : `Field ${field}`}: ${why}.`

const named = new WeakMap<BodySchema, Check>()

/** Compiles a schema with a name, which others may contain, and itself too. */
export function compileNamed(schema: BodySchema): Check {
  const check = compileOwn(schema)
  named.set(schema, check)
  return check
}

/** One with a name is compiled once for all that contain it, and not before it is needed, because it may contain itself. */
const compileCheck = (schema: BodySchema): Check =>
  schema.$id === undefined
    ? compileOwn(schema)
    : (value, findings) => (named.get(schema) ?? compileNamed(schema))(value, findings)

function compileOwn(schema: BodySchema): Check {
  if (isNothing(schema)) return (_value, findings) => report(findings, 'is not allowed here')
  const types = typesOf(schema)
  const values = valueChecks(schema)
  const text = sequence(textChecks(schema))
  const number = sequence(numberChecks(schema))
  const list = sequence(listChecks(schema))
  const object = sequence(objectChecks(schema))
  return (value, findings) => {
    if (types.length > 0 && !types.some((type) => TYPES[type](value))) {
      report(findings, `must be ${describeTypes(types)}`)
      return
    }
    for (const check of values) if (!check(value, findings)) return
    if (typeof value === 'string') text(value, findings)
    else if (isNumber(value)) number(value, findings)
    else if (Array.isArray(value)) list(value, findings)
    else if (isJsonObject(value)) object(value, findings)
  }
}

const isNumber = (value: JsonValue): value is number | RawNumber =>
  typeof value === 'number' || JSON.isRawJSON(value)

const TYPES: Readonly<Record<BodyType, (value: JsonValue) => boolean>> = {
  string: (value) => typeof value === 'string',
  number: isNumber,
  integer: (value) => Number.isSafeInteger(value) || (isNumber(value) && isIntegerLiteral(literalOf(value))),
  boolean: (value) => typeof value === 'boolean',
  array: Array.isArray,
  object: isJsonObject,
  null: (value) => value === null,
}

type ValueCheck = (value: JsonValue, findings: Findings) => boolean

const valueChecks = ({ enum: some, const: only }: BodySchema): readonly ValueCheck[] =>
  [some, only === undefined ? undefined : [only]]
    .filter((allowed) => allowed !== undefined)
    .map((allowed) => (value, findings) => {
      const fits = allowed.some((each) => isSame(each, value))
      if (!fits) report(findings, `must be ${allowed.map((each) => JSON.stringify(each)).join(' or ')}`)
      return fits
    })

/** Whether two values are equal as JSON Schema has it (Core §4.2.2): by value, members in any order. */
function isSame(allowed: JsonValue, value: JsonValue): boolean {
  if (typeof allowed === 'number') return isNumber(value) && compareTo(value, allowed) === 0
  if (typeof allowed !== 'object' || allowed === null) return allowed === value
  if (Array.isArray(allowed))
    return (
      Array.isArray(value) &&
      value.length === allowed.length &&
      allowed.every((item, at) => isSame(item, value[at] ?? null))
    )
  if (!isJsonObject(allowed) || !isJsonObject(value)) return false
  const names = Object.keys(allowed)
  return (
    names.length === Object.keys(value).length &&
    names.every((name) => Object.hasOwn(value, name) && isSame(allowed[name] ?? null, value[name] ?? null))
  )
}

function sequence<T extends JsonValue>(checks: readonly Check<T>[]): Check<T> {
  return (value, findings) => {
    for (const check of checks) check(value, findings)
  }
}

/** The checks of those keywords that the schema has. */
const present = <T extends JsonValue>(...checks: readonly (Check<T> | undefined)[]): readonly Check<T>[] =>
  checks.filter((check) => check !== undefined)

const given = <A, R>(argument: A | undefined, make: (argument: A) => R): R | undefined =>
  argument === undefined ? undefined : make(argument)

/** A check that reports `why` unless the value passes. */
const demand =
  <T extends JsonValue>(passes: (value: T) => boolean, why: string): Check<T> =>
  (value, findings) => {
    if (!passes(value)) report(findings, why)
  }

function textChecks({ minLength, maxLength, pattern, format }: BodySchema): readonly Check<string>[] {
  return present<string>(
    given(minLength, (least) =>
      demand((text) => lengthOf(text) >= least, `must have at least ${count(least, 'character')}`),
    ),
    given(maxLength, (most) =>
      demand((text) => lengthOf(text) <= most, `must have at most ${count(most, 'character')}`),
    ),
    given(pattern, (source) => {
      const expression = new RegExp(source, 'u')
      return demand((text) => expression.test(text), `must match the pattern ${source}`)
    }),
    given(format, (name) => demand(FORMATS[name].test, `must be ${FORMATS[name].expected}`)),
  )
}

/** In code points, as JSON Schema counts. */
function lengthOf(text: string): number {
  let length = text.length
  for (let at = 0; at < text.length; at++) if (isHighSurrogate(text.charCodeAt(at))) length--
  return length
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff

const count = (amount: number, noun: string): string => `${amount} ${noun}${amount === 1 ? '' : 's'}`

const compareTo = (value: number | RawNumber, bound: number): number =>
  compareLiterals(literalOf(value), String(bound))

function numberChecks({ minimum, maximum }: BodySchema): readonly Check<number | RawNumber>[] {
  return present<number | RawNumber>(
    given(minimum, (least) => demand((value) => compareTo(value, least) >= 0, `must be at least ${least}`)),
    given(maximum, (most) => demand((value) => compareTo(value, most) <= 0, `must be at most ${most}`)),
  )
}

function listChecks({ items, minItems, maxItems }: BodySchema): readonly Check<JsonValue[]>[] {
  return present<JsonValue[]>(
    given(minItems, (least) =>
      demand((list) => list.length >= least, `must have at least ${count(least, 'item')}`),
    ),
    given(maxItems, (most) =>
      demand((list) => list.length <= most, `must have at most ${count(most, 'item')}`),
    ),
    given(items, (schema) => {
      const check = compileCheck(schema)
      return (list, findings) =>
        list.forEach((item, index) => within(findings, index, () => check(item, findings)))
    }),
  )
}

function objectChecks({
  properties,
  required,
  additionalProperties,
}: BodySchema): readonly Check<JsonObject>[] {
  const needed = given(required, (names): Check<JsonObject> => (object, findings) => {
    for (const name of names)
      if (!Object.hasOwn(object, name)) within(findings, name, () => report(findings, 'is required'))
  })
  if (properties === undefined && (additionalProperties ?? true) === true) return present(needed)
  const members = new Map(
    Object.entries(properties ?? {}).map(([name, schema]) => [name, compileCheck(schema)]),
  )
  const others = otherMembers(additionalProperties)
  return present(needed, (object, findings) => {
    for (const name of Object.keys(object)) {
      // A body of 70,000 unknown members costs no more than one of five (T4.3).
      if (findings.problems.length >= MOST_PROBLEMS) return
      const member = members.get(name)
      const before = findings.problems.length
      within(findings, name, () => (member ?? others)(object[name] ?? null, findings))
      if (member === undefined && findings.problems.length > before) findings.quotes = true
    }
  })
}

function otherMembers(additional: BodySchema['additionalProperties']): Check {
  if (typeof additional === 'object') return compileCheck(additional)
  return additional === false ? demand(() => false, 'is not known here') : () => undefined
}

function within(findings: Findings, step: string | number, check: () => void): void {
  if (findings.problems.length >= MOST_PROBLEMS) return
  findings.path.push(step)
  check()
  findings.path.pop()
}

function report({ path, problems }: Findings, why: string): void {
  if (problems.length >= MOST_PROBLEMS) return
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${printable(step)}`))
  problems.push({ field: steps.join('').replace(/^\./, ''), why })
}
