import { decodeSegment } from '../http/request-target.ts'
import type { PatternSegment } from './path-pattern.ts'

/** A parameter's branch; typed ones are tried before the untyped one. */
interface ParameterBranch<T> {
  readonly name: string
  readonly type: string
  readonly test: RegExp | undefined
  readonly node: Node<T>
}

interface Node<T> {
  readonly literals: Map<string, Node<T>>
  readonly parameters: ParameterBranch<T>[]
  value: T | undefined
}

const newNode = <T>(): Node<T> => ({ literals: new Map(), parameters: [], value: undefined })

export interface Match<T> {
  readonly value: T
  readonly params: Readonly<Record<string, string>>
}

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({})

/**
 * The route table: one tree per level and area, so that a lookup costs the same with ten actions or ten thousand.
 * It sees canonical segments only (C3.4), and matches them exactly, case included.
 */
export class ActionTable<T> {
  readonly #roots = new Map<string, Node<T>>()

  /** False if another action already has this very path. */
  add(level: 'b' | 'f', area: string, pattern: readonly PatternSegment[], value: T): boolean {
    const key = `${level}/${area}`
    let node = this.#roots.get(key)
    if (node === undefined) this.#roots.set(key, (node = newNode()))
    for (const segment of pattern) node = branch(node, segment)
    if (node.value !== undefined) return false
    node.value = value
    return true
  }

  /** `from` is the index of the first segment below the area. */
  find(level: string, area: string, segments: readonly string[], from: number): Match<T> | undefined {
    const root = this.#roots.get(`${level}/${area}`)
    return root === undefined ? undefined : walk(root, segments, from, undefined)
  }
}

function branch<T>(node: Node<T>, segment: PatternSegment): Node<T> {
  if (segment.kind === 'literal') {
    const next = node.literals.get(segment.text) ?? newNode<T>()
    node.literals.set(segment.text, next)
    return next
  }
  const same = node.parameters.find(({ name, type }) => name === segment.name && type === segment.type)
  if (same) return same.node
  const added = { name: segment.name, type: segment.type, test: segment.test, node: newNode<T>() }
  node.parameters.push(added)
  node.parameters.sort((a, b) => Number(a.test === undefined) - Number(b.test === undefined))
  return added.node
}

interface Bound {
  readonly name: string
  readonly value: string
  readonly before: Bound | undefined
}

function walk<T>(
  node: Node<T>,
  segments: readonly string[],
  index: number,
  bound: Bound | undefined,
): Match<T> | undefined {
  const segment = segments[index]
  if (segment === undefined)
    return node.value === undefined ? undefined : { value: node.value, params: collect(bound) }
  const literal = node.literals.get(segment)
  const found = literal && walk(literal, segments, index + 1, bound)
  if (found || node.parameters.length === 0) return found
  return walkParameters(node, decodeSegment(segment), segments, index, bound)
}

function walkParameters<T>(
  node: Node<T>,
  value: string,
  segments: readonly string[],
  index: number,
  before: Bound | undefined,
): Match<T> | undefined {
  for (const { name, test, node: next } of node.parameters) {
    if (test !== undefined && !test.test(value)) continue
    const found = walk(next, segments, index + 1, { name, value, before })
    if (found) return found
  }
  return undefined
}

function collect(bound: Bound | undefined): Readonly<Record<string, string>> {
  if (bound === undefined) return NO_PARAMS
  const params: Record<string, string> = Object.create(null) as Record<string, string>
  for (let at: Bound | undefined = bound; at; at = at.before) params[at.name] = at.value
  return params
}
