/** One segment of an action's path: a literal, or a parameter with an optional type (C3.3). */
export type PatternSegment =
  | { readonly kind: 'literal'; readonly text: string }
  | {
      readonly kind: 'parameter'
      readonly name: string
      readonly type: string
      readonly test: RegExp | undefined
    }

const LITERAL = /^[A-Za-z0-9._~-]+$/
const PARAMETER = /^\{([A-Za-z][A-Za-z0-9_]*)(?::(.+))?\}$/s
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

const TYPES: Readonly<Record<string, RegExp>> = { uuid: UUID, integer: /^(?:0|[1-9][0-9]{0,17})$/ }

/** `uuid`, `integer` or `/pattern/`, which must match the whole value. Throws SyntaxError on anything else. */
function compileType(type: string): RegExp {
  const known = TYPES[type]
  if (known) return known
  const pattern = /^\/(.+)\/$/s.exec(type)?.[1]
  if (pattern === undefined)
    throw new SyntaxError(`unknown parameter type "${type}"; use uuid, integer or /pattern/`)
  return new RegExp(`^(?:${pattern})$`, 'u')
}

function parseSegment(text: string): PatternSegment {
  if (LITERAL.test(text) && text !== '.' && text !== '..') return { kind: 'literal', text }
  const [, name, type] = PARAMETER.exec(text) ?? []
  if (name === undefined)
    throw new SyntaxError(`"${text}" is neither a plain segment nor {name} nor {name:type}`)
  return {
    kind: 'parameter',
    name,
    type: type ?? '',
    test: type === undefined ? undefined : compileType(type),
  }
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

/** An action's path as configured. Throws SyntaxError whose message says what is wrong. */
export function parsePathPattern(path: string): readonly PatternSegment[] {
  const segments = splitSegments(path).map(parseSegment)
  const names = segments.flatMap((segment) => (segment.kind === 'parameter' ? [segment.name] : []))
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new SyntaxError(`the parameter {${twice}} stands twice`)
  return segments
}
