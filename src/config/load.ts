/** A configuration file, whole: read, extended, checked, converted. Knows no room: the schema is handed in. */
import type { Static, TSchema } from './schema.ts'
import { beside, type Environment } from './references.ts'
import { Report } from './report.ts'
import { viewOf } from './schema-view.ts'
import { type ConfigNode, type Entry, type MapNode, placeOf } from './tree.ts'
import { load } from './validate.ts'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { readYaml } from './yaml.ts'

export interface LoadedFile<T> {
  /** Whole if the report has not failed; else what lies under a problem's path is not to be trusted. */
  readonly value?: T
  /** Knows the file and line of every path; rooms' own checks go on writing into it. */
  readonly report: Report
}

/**
 * Reads `file` (YAML, which JSON is too) and what it extends, and answers the value of `schema`'s type with units
 * converted, references resolved and defaults filled in, or a report of every problem.
 */
export function loadFile<T extends TSchema>(
  schema: T,
  file: string,
  environment: Environment,
): LoadedFile<Static<T>> {
  const report = new Report()
  const tree = readTree(file, report)
  // What is no YAML is no configuration either: its other problems would be accidents of the first.
  if (!tree || report.problems.some((problem) => problem.path.length === 0)) return { report }
  report.locate = (path) => placeOf(tree, path)
  const value = load(viewOf(schema), tree, [], { environment, report }) as Static<T>
  return { value, report }
}

/**
 * `extends: other.yaml` at the top of a file: the other file, with this one's keys laid over it. Maps are merged;
 * lists and single values replace; `key:` with nothing after it takes the key away; a map of another `kind`
 * replaces. Every value keeps the file and line it came from.
 */

export const EXTENDS = 'extends'
const MAX_DEPTH = 8

const isNothing = (node: ConfigNode): boolean => node.shape === 'scalar' && node.value === null

function kindOf(node: MapNode): unknown {
  const kind = node.entries.get('kind')?.node
  return kind?.shape === 'scalar' ? kind.value : undefined
}

function merged(under: ConfigNode, over: ConfigNode): ConfigNode {
  if (under.shape !== 'map' || over.shape !== 'map') return over
  const kind = kindOf(over)
  if (kind !== undefined && kind !== kindOf(under)) return over
  const entries = new Map<string, Entry>(under.entries)
  for (const [key, entry] of over.entries) {
    const below = under.entries.get(key)
    if (below && isNothing(entry.node)) entries.delete(key)
    else entries.set(key, below ? { ...entry, node: merged(below.node, entry.node) } : entry)
  }
  return { ...over, entries }
}

function readFile(file: string, report: Report): ConfigNode | undefined {
  report.files.add(resolve(file))
  try {
    return readYaml(readFileSync(file, 'utf8'), file, report)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error'
    report.errorAt({ file, line: 1 }, [], `cannot be read (${code})`)
    return undefined
  }
}

/** Reads a file and those that it extends, as one tree without the key `extends`. */
export function readTree(file: string, report: Report, depth = 0): ConfigNode | undefined {
  const node = readFile(file, report)
  if (node?.shape !== 'map') return node
  const parent = node.entries.get(EXTENDS)
  if (!parent) return node
  const rest = new Map([...node.entries].filter(([key]) => key !== EXTENDS))
  const own: MapNode = { ...node, entries: rest }
  const name = parent.node.shape === 'scalar' ? parent.node.value : undefined
  if (typeof name !== 'string') report.errorAt(parent.at, [EXTENDS], 'expected the name of a file')
  else if (depth >= MAX_DEPTH) report.errorAt(parent.at, [EXTENDS], 'goes round in a circle, or too deep')
  else {
    const under = readTree(nameBeside(file, beside(parent.at, name), name), report, depth + 1)
    return under ? merged(under, own) : own
  }
  return own
}

/** Files are told by names like that of the file that extends them: relative if it was. */
function nameBeside(file: string, absolute: string, name: string): string {
  const slash = file.lastIndexOf('/')
  return name.startsWith('/') ? absolute : slash < 0 ? name : file.slice(0, slash + 1) + name
}
