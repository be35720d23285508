/** Paths with a rest parameter (C3.3), which stands for 1 to 32 segments. They are tried after all others. */
import { decodeSegment } from '../../base/http/head/request-target.ts'
import { areDisjoint, type ParameterType, type PatternSegment, takes } from './path-pattern.ts'

/** The most segments that one value of a rest parameter may have. */
export const MOST_REST_SEGMENTS = 32

export interface RestRoute<T> {
  readonly value: T
  /** The segments before the rest parameter, and those after it. */
  readonly before: readonly PatternSegment[]
  readonly after: readonly PatternSegment[]
  /** The type of each segment of the rest parameter. */
  readonly type: ParameterType
}

/** Undefined where the pattern has no rest parameter. */
export function restRouteOf<T>(pattern: readonly PatternSegment[], value: T): RestRoute<T> | undefined {
  const at = pattern.findIndex(({ kind }) => kind === 'rest')
  const rest = pattern[at]
  if (rest?.kind !== 'rest') return undefined
  return { value, before: pattern.slice(0, at), after: pattern.slice(at + 1), type: rest.type }
}

const partOf = (segment: PatternSegment): string =>
  segment.kind === 'literal' ? segment.text : `{${segment.type.text}}`

/** The same for patterns that differ in the names of their parameters only. */
export const restShape = ({ before, after, type }: RestRoute<unknown>): string =>
  [...before.map(partOf), `{...${type.text}}`, ...after.map(partOf)].join('/')

/** Values of all parameters, decoded, from left to right; those of the rest have slashes between them. */
export function matchRest(
  { before, after, type }: RestRoute<unknown>,
  segments: readonly string[],
  from: number,
): readonly string[] | undefined {
  const count = segments.length - from - before.length - after.length
  if (count < 1 || count > MOST_REST_SEGMENTS) return undefined
  const start = from + before.length
  const values: string[] = []
  if (!takeFixed(before, segments, from, values)) return undefined
  const rest = segments.slice(start, start + count).map(decodeSegment)
  if (!rest.every((value) => takes(type, value))) return undefined
  values.push(rest.join('/'))
  return takeFixed(after, segments, start + count, values) ? values : undefined
}

function takeFixed(
  pattern: readonly PatternSegment[],
  segments: readonly string[],
  from: number,
  values: string[],
): boolean {
  for (const [index, part] of pattern.entries()) {
    const segment = segments[from + index] ?? ''
    if (part.kind === 'literal') {
      if (part.text !== segment) return false
      continue
    }
    const value = decodeSegment(segment)
    if (!takes(part.type, value)) return false
    values.push(value)
  }
  return true
}

type Step = string | ParameterType

const meet = (one: Step, other: Step): boolean =>
  typeof one === 'string'
    ? typeof other === 'string'
      ? one === other
      : takes(other, one)
    : typeof other === 'string'
      ? takes(one, other)
      : !areDisjoint(one, other)

/** The step at one place of a path that has `length` segments. */
function stepAt({ before, after, type }: RestRoute<unknown>, at: number, length: number): Step {
  const part = before[at] ?? after[at - (length - after.length)]
  if (part === undefined) return type
  return part.kind === 'literal' ? part.text : part.type
}

const shortest = ({ before, after }: RestRoute<unknown>): number => before.length + 1 + after.length

/** Whether one path could be of both. True also where that cannot be known: for two patterns in general. */
export function restsMeet(one: RestRoute<unknown>, other: RestRoute<unknown>): boolean {
  const most = MOST_REST_SEGMENTS - 1 + Math.min(shortest(one), shortest(other))
  // In longer paths than this there are only more segments that both rest parameters take.
  const enough = Math.min(most, shortest(one) + shortest(other))
  for (let length = Math.max(shortest(one), shortest(other)); length <= enough; length += 1) {
    const places = Array.from({ length }, (_, at) => at)
    if (places.every((at) => meet(stepAt(one, at, length), stepAt(other, at, length)))) return true
  }
  return false
}
