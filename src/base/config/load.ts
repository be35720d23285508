import { resolve } from 'node:path'
import { NotTextError, readText } from '../files/text-file.ts'
import { reasonInWords } from '../kernel/thrown.ts'
import { Problems } from './problems.ts'
import { section, type Static, type TSchema, viewOf } from './schema.ts'
import { type ConfigNode, type ConfigEntry, type MapNode, placeOf } from './tree.ts'
import { besideFile, type Environment, load } from './validate.ts'
import { readYaml } from './yaml.ts'

interface LoadedFile<T> {
  /** Complete unless `problems` has failed. Do not use what is below the path of a problem. */
  readonly value?: T
  /** Knows the file and line of every path. The checks of the folders add their problems to it. */
  readonly problems: Problems
}

/**
 * Loads `file` (YAML, which includes JSON) and what it extends. The value has the type of `schema`: units converted,
 * references resolved, defaults filled in. Never throws because of the file.
 */
export function loadFile<T extends TSchema>(
  schema: T,
  file: string,
  environment: Environment,
): LoadedFile<Static<T>> {
  const problems = new Problems()
  const tree = readTree(file, problems)
  // In a file that is not valid YAML, further problems would only follow from the first.
  if (!tree || problems.list.some((problem) => problem.path.length === 0)) return { problems }
  problems.locate = (path) => placeOf(tree, path)
  const value = load(viewOf(schema), tree, [], { environment, problems }) as Static<T>
  return { value, problems }
}

/**
 * One key of a file that may have mistakes elsewhere, even some that make it no valid YAML; its default where the file does
 * not have it. Undefined if the file, or the value, cannot be read.
 */
export function loadKey<T extends TSchema>(
  schema: T,
  file: string,
  key: string,
  environment: Environment,
): Static<T> | undefined {
  const problems = new Problems()
  const tree = readTree(file, problems)
  if (tree?.shape !== 'map') return undefined
  const only: MapNode = { ...tree, entries: new Map([...tree.entries].filter(([name]) => name === key)) }
  const found = new Problems()
  const value = load(viewOf(section({ [key]: schema })), only, [], {
    environment,
    problems: found,
  }) as Readonly<Record<string, Static<T>>>
  return found.failed ? undefined : value[key]
}

const EXTENDS = 'extends'
const MAX_DEPTH = 8

const isNothing = (node: ConfigNode): boolean => node.shape === 'scalar' && node.value === null

function kindOf(node: MapNode): unknown {
  const kind = node.entries.get('kind')?.node
  return kind?.shape === 'scalar' ? kind.value : undefined
}

/**
 * The tree `under` with `over` laid over it: maps are merged; lists, single values and maps of another `kind` replace;
 * `key:` without a value removes the key. Every value keeps its own file and line.
 */
function merged(under: ConfigNode, over: ConfigNode): ConfigNode {
  if (under.shape !== 'map' || over.shape !== 'map') return over
  const kind = kindOf(over)
  if (kind !== undefined && kind !== kindOf(under)) return over
  const entries = new Map<string, ConfigEntry>(under.entries)
  for (const [key, entry] of over.entries) {
    const below = under.entries.get(key)
    if (below && isNothing(entry.node)) entries.delete(key)
    else entries.set(key, below ? { ...entry, node: merged(below.node, entry.node) } : entry)
  }
  return { ...over, entries }
}

/** A file without problems, as it was read last. */
interface ParsedFile {
  readonly source: string
  readonly tree: ConfigNode
}

/**
 * By name. Parsing takes most of the time of reading a configuration, which is often read twice in a row: to preview a
 * change, then to make it. Held weakly: the garbage collector may take a tree at any time, which costs one more parse.
 */
const parsedFiles = new Map<string, WeakRef<ParsedFile>>()
const MAX_PARSED_FILES = 16

function readFile(file: string, problems: Problems): ConfigNode | undefined {
  problems.files.add(resolve(file))
  try {
    const source = readText(file)
    const parsed = parsedFiles.get(file)?.deref()
    if (parsed?.source === source) return parsed.tree
    const problemsBefore = problems.list.length
    const tree = readYaml(source, file, problems)
    parsedFiles.delete(file)
    if (problems.list.length === problemsBefore) parsedFiles.set(file, new WeakRef({ source, tree }))
    const [oldest] = parsedFiles.keys()
    if (oldest !== undefined && parsedFiles.size > MAX_PARSED_FILES) parsedFiles.delete(oldest)
    return tree
  } catch (error) {
    const line = error instanceof NotTextError ? error.line : 1
    problems.errorAt({ file, line }, [], `cannot be read (${reasonInWords(error)})`)
    return undefined
  }
}

/** Reads a file and the files that it extends, as one tree without the key `extends`. */
function readTree(file: string, problems: Problems, depth = 0): ConfigNode | undefined {
  const node = readFile(file, problems)
  if (node?.shape !== 'map') return node
  const parent = node.entries.get(EXTENDS)
  if (!parent) return node
  const rest = new Map([...node.entries].filter(([key]) => key !== EXTENDS))
  const own: MapNode = { ...node, entries: rest }
  const name = parent.node.shape === 'scalar' ? parent.node.value : undefined
  if (typeof name !== 'string') problems.errorAt(parent.at, [EXTENDS], 'expected the name of a file')
  else if (depth >= MAX_DEPTH)
    problems.errorAt(parent.at, [EXTENDS], `extends itself, or more than ${MAX_DEPTH} files in a row`)
  else {
    const under = readTree(nameBeside(file, besideFile(parent.at, name), name), problems, depth + 1)
    return under ? merged(under, own) : own
  }
  return own
}

/** The name of an extended file in problems: relative if the name of the extending file is. */
function nameBeside(file: string, absolute: string, name: string): string {
  const slash = file.lastIndexOf('/')
  return name.startsWith('/') ? absolute : slash < 0 ? name : file.slice(0, slash + 1) + name
}
