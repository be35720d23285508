/** The path of an action as configured: literals and parameters (C3.3). */

/** The type of a path parameter (C3.3). Two types with the same text are the same. */
export interface ParameterType {
  /** The type as configured: `uuid`, `signed`, `/[a-z]+/`; empty for an untyped one. */
  readonly text: string
  readonly test: RegExp | undefined
  /** All values, if the pattern is a list of words such as `/open|closed/`. */
  readonly values: readonly string[] | undefined
}

/** One segment of an action's path: a literal, a parameter with an optional type, or all segments of a rest (C3.3). */
export type PatternSegment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'parameter'; readonly name: string; readonly type: ParameterType }
  /** `type` is the type of each of its segments. */
  | { readonly kind: 'rest'; readonly name: string; readonly type: ParameterType }

const LITERAL = /^[A-Za-z0-9._~-]+$/
const PARAMETER = /^\{([A-Za-z][A-Za-z0-9_]*)(\.\.\.)?(?::(.+))?\}$/s
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

const TYPES: Readonly<Record<string, RegExp>> = {
  uuid: UUID,
  integer: /^(?:0|[1-9][0-9]{0,17})$/,
  signed: /^(?:0|-?[1-9][0-9]{0,17})$/,
}

const UNTYPED: ParameterType = { text: '', test: undefined, values: undefined }

/** Words with bars between them, without any other character that means something in a regular expression. */
const WORDS = /^[A-Za-z0-9_~]+(?:\|[A-Za-z0-9_~]+)*$/

/** One of `TYPES` or `/pattern/`, which must match the whole value. Throws SyntaxError on anything else. */
function compileType(text: string): ParameterType {
  const known = Object.hasOwn(TYPES, text) ? TYPES[text] : undefined
  if (known) return { text, test: known, values: undefined }
  const pattern = /^\/(.+)\/$/s.exec(text)?.[1]
  if (pattern === undefined)
    throw new SyntaxError(`unknown parameter type "${text}"; use uuid, integer, signed or /pattern/`)
  const values = WORDS.test(pattern) ? pattern.split('|') : undefined
  return { text, test: new RegExp(`^(?:${pattern})$`, 'u'), values }
}

export const takes = ({ test }: ParameterType, value: string): boolean =>
  test === undefined || test.test(value)

/** Whether no value matches both types. False also where that cannot be known: for two patterns in general. */
export function areDisjoint(one: ParameterType, other: ParameterType): boolean {
  if (Object.hasOwn(TYPES, one.text) && Object.hasOwn(TYPES, other.text))
    return (one.text === 'uuid') !== (other.text === 'uuid')
  if (one.values) return !one.values.some((value) => takes(other, value))
  return other.values !== undefined && !other.values.some((value) => takes(one, value))
}

function parseSegment(text: string): PatternSegment {
  if (LITERAL.test(text) && text !== '.' && text !== '..') return { kind: 'literal', text }
  const [, name, dots, type] = PARAMETER.exec(text) ?? []
  if (name === undefined)
    throw new SyntaxError(`"${text}" is neither a plain segment nor {name}, {name:type} or {name...}`)
  const kind = dots === undefined ? 'parameter' : 'rest'
  return { kind, name, type: type === undefined ? UNTYPED : compileType(type) }
}

/** Splits at the slashes outside braces: a pattern may hold slashes, and braces of its own. */
function splitSegments(path: string): string[] {
  const segments = ['']
  let depth = 0
  for (const character of path) {
    if (character === '{') depth += 1
    if (character === '}') depth -= 1
    if (character === '/' && depth === 0) segments.push('')
    else segments.push(`${segments.pop() ?? ''}${character}`)
  }
  return segments
}

/** Parses an action's path. @throws SyntaxError whose message is the problem to report */
export function parsePathPattern(path: string): readonly PatternSegment[] {
  const segments = splitSegments(path).map(parseSegment)
  if (segments.filter(({ kind }) => kind === 'rest').length > 1)
    throw new SyntaxError('a path has one parameter with dots: nobody knows where the first would end')
  const names = parameterNames(segments)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new SyntaxError(`the parameter {${twice}} stands twice`)
  return segments
}

export const parameterNames = (pattern: readonly PatternSegment[]): readonly string[] =>
  pattern.flatMap((segment) => (segment.kind === 'literal' ? [] : [segment.name]))
