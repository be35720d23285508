/** A configuration as written: each value with its file and line. */
import type { KeyPath, SourceLocation } from './problems.ts'

export type Scalar = string | number | boolean | null

export interface ScalarNode {
  readonly shape: 'scalar'
  readonly value: Scalar
  /** A problem of it was reported: it stands for a value of any kind. */
  readonly isReported?: true
  /** A number as it is written, where JavaScript would write it otherwise: `1.50`, twenty digits. */
  readonly source?: string
  readonly at: SourceLocation
}

export interface ListNode {
  readonly shape: 'list'
  readonly items: readonly ConfigNode[]
  readonly at: SourceLocation
}

export interface ConfigEntry {
  readonly node: ConfigNode
  readonly at: SourceLocation
}

export interface MapNode {
  readonly shape: 'map'
  readonly entries: ReadonlyMap<string, ConfigEntry>
  /** Whether it is written as `{key}`: where a text is expected, its quotes are missing. */
  readonly isBraced?: true
  readonly at: SourceLocation
}

export type ConfigNode = ScalarNode | ListNode | MapNode

/** The plain value of a node. A key `__proto__` is plain data. */
export function valueOf(node: ConfigNode): unknown {
  if (node.shape === 'scalar') return node.value
  if (node.shape === 'list') return node.items.map(valueOf)
  return Object.fromEntries([...node.entries].map(([key, entry]) => [key, valueOf(entry.node)]))
}

/** As the admin API takes JSON. */
const MOST_LEVELS = 100

/**
 * A node for a value that is in no file (a default, a record), with the place to report.
 * @throws RangeError for what is nested too deep
 */
export function nodeOf(value: unknown, at: SourceLocation, depth = 0): ConfigNode {
  if (depth > MOST_LEVELS) throw new RangeError(`it is nested deeper than ${MOST_LEVELS} levels`)
  const below = (item: unknown): ConfigNode => nodeOf(item, at, depth + 1)
  if (Array.isArray(value)) return { shape: 'list', items: value.map(below), at }
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(([key, item]) => [key, { node: below(item), at }] as const)
    return { shape: 'map', entries: new Map(entries), at }
  }
  return { shape: 'scalar', value: value as Scalar, at }
}

interface Step {
  readonly node: ConfigNode
  readonly at: SourceLocation
}

function step(node: ConfigNode, key: string | number): Step | undefined {
  if (node.shape === 'map') return node.entries.get(String(key))
  const item = node.shape === 'list' ? node.items[Number(key)] : undefined
  return item && { node: item, at: item.at }
}

/** The place of `path`. Of a missing key, the place where its section begins. */
export function placeOf(root: ConfigNode, path: KeyPath): SourceLocation {
  let here: Step = { node: root, at: root.at }
  for (const key of path) {
    const next = step(here.node, key)
    if (next === undefined) break
    here = next
  }
  return here.at
}
