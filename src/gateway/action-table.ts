import { decodeSegment } from '../http/request-target.ts'
import { takes, type ParameterType, type PatternSegment } from './path-pattern.ts'

/** A parameter's branch: of one place and one type there is one, however the parameter is called. */
export interface ParameterBranch<T> {
  readonly type: ParameterType
  readonly node: RouteNode<T>
}

export interface RouteNode<T> {
  readonly literals: Map<string, RouteNode<T>>
  /** Typed ones come before the untyped one. */
  readonly parameters: ParameterBranch<T>[]
  value: T | undefined
}

const newNode = <T>(): RouteNode<T> => ({ literals: new Map(), parameters: [], value: undefined })

export interface Match<T> {
  readonly value: T
  /** The parameters' values, decoded, from left to right. */
  readonly values: readonly string[]
}

const NO_VALUES: readonly string[] = Object.freeze([])

/**
 * The route table: one tree per level and area, so that a lookup costs the same with ten actions or ten thousand.
 * It sees canonical segments only (C3.4), and matches them exactly, case included. A literal wins over a parameter.
 */
export class ActionTable<T> {
  readonly #roots = new Map<string, RouteNode<T>>()

  /** Puts `value` at a path, unless there is one: then that one is answered. */
  add(level: 'b' | 'f', area: string, pattern: readonly PatternSegment[], value: T): T {
    const key = `${level}/${area}`
    let node = this.#roots.get(key)
    if (node === undefined) this.#roots.set(key, (node = newNode()))
    for (const segment of pattern) node = branch(node, segment)
    return (node.value ??= value)
  }

  /** `from` is the index of the first segment below the area. */
  find(level: string, area: string, segments: readonly string[], from: number): Match<T> | undefined {
    const root = this.#roots.get(`${level}/${area}`)
    return root === undefined ? undefined : walk(root, segments, from, undefined)
  }

  rootOf(level: 'b' | 'f', area: string): RouteNode<T> | undefined {
    return this.#roots.get(`${level}/${area}`)
  }

  get roots(): Iterable<RouteNode<T>> {
    return this.#roots.values()
  }
}

function branch<T>(node: RouteNode<T>, segment: PatternSegment): RouteNode<T> {
  if (segment.kind === 'literal') {
    const next = node.literals.get(segment.text) ?? newNode<T>()
    node.literals.set(segment.text, next)
    return next
  }
  const { type } = segment
  const same = node.parameters.find((each) => each.type.text === type.text)
  if (same) return same.node
  const added = { type, node: newNode<T>() }
  node.parameters.push(added)
  node.parameters.sort((a, b) => Number(a.type.test === undefined) - Number(b.type.test === undefined))
  return added.node
}

interface Bound {
  readonly value: string
  readonly before: Bound | undefined
}

function walk<T>(
  node: RouteNode<T>,
  segments: readonly string[],
  index: number,
  bound: Bound | undefined,
): Match<T> | undefined {
  const segment = segments[index]
  if (segment === undefined)
    return node.value === undefined ? undefined : { value: node.value, values: collect(bound) }
  const literal = node.literals.get(segment)
  const found = literal && walk(literal, segments, index + 1, bound)
  if (found || node.parameters.length === 0) return found
  return walkParameters(node, decodeSegment(segment), segments, index, bound)
}

function walkParameters<T>(
  node: RouteNode<T>,
  value: string,
  segments: readonly string[],
  index: number,
  before: Bound | undefined,
): Match<T> | undefined {
  for (const { type, node: next } of node.parameters) {
    if (!takes(type, value)) continue
    const found = walk(next, segments, index + 1, { value, before })
    if (found) return found
  }
  return undefined
}

function collect(bound: Bound | undefined): readonly string[] {
  if (bound === undefined) return NO_VALUES
  const values: string[] = []
  for (let at: Bound | undefined = bound; at; at = at.before) values.unshift(at.value)
  return values
}
