/**
 * Writes YAML, and reads YAML 1.2 (core schema) as a tree with line numbers, by `yaml`. Its traps:
 * - `uniqueKeys` compares every pair of keys, which is quadratic: repeated keys are found here instead;
 * - aliases can expand exponentially: they are counted;
 * - `Alias.resolve` walks through the whole document each time: all targets are found in one walk here;
 * - its messages may quote the source, and so a secret: what they quote is cut off.
 */
import {
  type Alias,
  Document,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseAllDocuments,
  visit,
  type YAMLMap,
} from 'yaml'
import { type KeyPath, type SourceLocation, Problems, UNQUOTED } from './problems.ts'
import { yamlPieces } from './yaml-pieces.ts'
import type { ConfigNode, ConfigEntry, Scalar } from './tree.ts'

const MAX_ALIASES = 1000
/** A body's template may have 64, below the operation that it is in. */
const MAX_DEPTH = 80

const MERGE = '<<'

class Reader {
  readonly file: string
  readonly problems: Problems
  readonly document: Document
  readonly lines: LineCounter
  /** Where texts begin whose quotes are missing. */
  readonly unquoted: ReadonlySet<number>
  aliases = 0
  #targets: ReadonlyMap<Alias, Node> | undefined

  constructor(
    file: string,
    problems: Problems,
    document: Document,
    lines: LineCounter,
    unquoted: ReadonlySet<number>,
  ) {
    this.file = file
    this.problems = problems
    this.document = document
    this.lines = lines
    this.unquoted = unquoted
  }

  place(node: unknown, fallback: SourceLocation): SourceLocation {
    const range = (node as { range?: readonly number[] | null } | null)?.range
    return range?.[0] === undefined ? fallback : { file: this.file, line: this.lines.linePos(range[0]).line }
  }

  read(node: unknown, path: KeyPath, fallback: SourceLocation): ConfigNode {
    const at = this.place(node, fallback)
    if (path.length > MAX_DEPTH) return this.refuse(path, at, `is nested deeper than ${MAX_DEPTH} levels`)
    if (isAlias(node)) return this.follow(node, path, at)
    if (isMap(node)) return this.readMap(node, path, at)
    if (isSeq(node)) {
      return { shape: 'list', items: node.items.map((item, i) => this.read(item, [...path, i], at)), at }
    }
    if (isScalar(node) && this.isUnquoted(node)) return this.refuseUnquoted(path, at)
    if (!isScalar(node)) return { shape: 'scalar', value: null, at }
    const value = this.scalar(node.value, path, at)
    const { source } = node
    return typeof value === 'number' && source !== undefined && source !== String(value)
      ? { shape: 'scalar', value, source, at }
      : { shape: 'scalar', value, at }
  }

  scalar(value: unknown, path: KeyPath, at: SourceLocation): Scalar {
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value
    if (value !== null) this.problems.errorAt(at, path, 'is of a type that a configuration cannot have')
    return null
  }

  /** Counts each use, also inside the target of another alias, so that a bomb or a cycle reaches the limit. */
  follow(alias: Alias, path: KeyPath, at: SourceLocation): ConfigNode {
    this.aliases += 1
    if (this.aliases > MAX_ALIASES) {
      return this.refuse(path, at, `uses more than ${MAX_ALIASES} aliases`, this.aliases === MAX_ALIASES + 1)
    }
    this.#targets ??= targetsOf(this.document)
    const target = this.#targets.get(alias)
    return target
      ? this.read(target, path, at)
      : this.refuse(path, at, 'is an alias without a target: put a text that begins with * in quotes')
  }

  refuse(path: KeyPath, at: SourceLocation, message: string, report = true): ConfigNode {
    if (report) this.problems.errorAt(at, path, message)
    return { shape: 'scalar', value: null, at }
  }

  isUnquoted = ({ range }: Node): boolean => this.unquoted.has(range?.[0] ?? Number.NaN)

  refuseUnquoted(path: KeyPath, at: SourceLocation): ConfigNode {
    this.problems.errorAt(at, path, ...UNQUOTED)
    return { shape: 'scalar', value: '', isReported: true, at }
  }

  /** Nothing else is said of a map that would be made of others. */
  refuseMerge(path: KeyPath, at: SourceLocation): ConfigNode {
    const why = 'is a merge key, which YAML 1.2 does not have'
    this.problems.errorAt(at, [...path, MERGE], why, 'write out the keys that it stands for')
    return { shape: 'scalar', value: '', isReported: true, at }
  }

  readMap(map: YAMLMap, path: KeyPath, at: SourceLocation): ConfigNode {
    const braced = bracedKey(map)
    if (isMap(braced)) return this.refuseUnquoted(path, at)
    const merge = map.items.find(({ key }) => isScalar(key) && key.type === 'PLAIN' && key.value === MERGE)
    if (merge !== undefined) return this.refuseMerge(path, this.place(merge.key, at))
    const entries = new Map<string, ConfigEntry>()
    for (const pair of map.items) {
      const keyAt = this.place(pair.key, at)
      const key = this.key(pair.key)
      if (key === undefined) this.problems.errorAt(keyAt, path, 'has a key that is not a text')
      else if (entries.has(key)) this.repeated(entries, [...path, key], keyAt)
      else entries.set(key, { node: this.read(pair.value, [...path, key], keyAt), at: keyAt })
    }
    return { shape: 'map', entries, at, ...(braced !== undefined && { isBraced: true }) }
  }

  /** The key as written: `404:` and `1.0:` are the texts "404" and "1.0". */
  key(node: unknown): string | undefined {
    if (!isScalar(node) || node.value === null || this.isUnquoted(node)) return undefined
    return typeof node.value === 'string' ? node.value : node.source
  }

  repeated(entries: ReadonlyMap<string, ConfigEntry>, path: KeyPath, at: SourceLocation): void {
    const first = entries.get(String(path.at(-1)))
    this.problems.errorAt(at, path, `is repeated (first on line ${first?.at.line ?? at.line})`)
  }
}

/** The target of each alias: the last node before it with that anchor. */
function targetsOf(document: Document): ReadonlyMap<Alias, Node> {
  const named = new Map<string, Node>()
  const targets = new Map<Alias, Node>()
  visit(document, {
    Node: (_key, node) => {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) named.set(node.anchor, node)
        return
      }
      const target = named.get(node.source)
      if (target !== undefined) targets.set(node, target)
    },
  })
  return targets
}

/** The key of `{name}`, which is a map for YAML and a placeholder for its author; undefined for any other map. */
function bracedKey({ flow, items: [pair, ...others] }: YAMLMap): unknown {
  return flow === true && pair !== undefined && pair.value === null && others.length === 0
    ? pair.key
    : undefined
}

/** The library's errors where text is behind a map, as in `{name}/y`; or, in a map in braces, a map behind text: `y/{name}`. */
const BEHIND: ReadonlySet<string> = new Set(['UNEXPECTED_TOKEN', 'MISSING_CHAR'])

/** Where texts begin that have a placeholder, and should be in quotes. */
function unquotedIn({ contents, errors }: Document, source: string): readonly number[] {
  const found = errors.filter(({ code }) => BEHIND.has(code))
  if (found.length === 0) return []
  const beginnings = new Map<number, number>()
  const beforeBraces = new Map<number, number>()
  visit(contents, {
    Scalar: (_key, { type, range }) => {
      if (type === 'PLAIN' && range) beforeBraces.set(range[1], range[0])
    },
    Map: (_key, map) => {
      if (bracedKey(map) !== undefined && map.range) beginnings.set(map.range[1], map.range[0])
    },
  })
  return found.flatMap(({ pos: [begin] }) => {
    let end = begin
    while (source[end - 1] === ' ') end -= 1
    return beginnings.get(end) ?? (source[begin] === '{' ? beforeBraces.get(end) : undefined) ?? []
  })
}

/** Where the text ends that begins there. */
function endOfText(source: string, begin: number): number {
  let depth = 0
  for (let at = begin; at < source.length; at++) {
    const character = source[at]
    if (character === '\n' || (character === '#' && source[at - 1] === ' ')) return at
    if (depth === 0 && at > begin && (character === ',' || character === ']' || character === '}')) return at
    if (character === '{') depth += 1
    else if (character === '}') depth -= 1
  }
  return source.length
}

/** The source with other texts of the same lengths, which are no maps, in place of those that begin there. */
function withPlainTexts(source: string, beginnings: readonly number[]): string {
  let made = ''
  for (const begin of beginnings.toSorted((a, b) => a - b)) {
    if (begin < made.length) continue
    made += source.slice(made.length, begin)
    made += 'x'.repeat(endOfText(source, begin) - begin)
  }
  return made + source.slice(made.length)
}

/** One such text can hide others, because the library makes errors of all that is behind it. */
const MOST_PASSES = 8

const OPTIONS = {
  version: '1.2',
  schema: 'core',
  uniqueKeys: false,
  prettyErrors: false,
  logLevel: 'error',
} as const

/** The documents of a source, and where texts begin whose quotes are missing. */
function parse(source: string) {
  const unquoted = new Set<number>()
  for (let text = source, pass = 1; ; pass++) {
    const lines = new LineCounter()
    const documents = parseAllDocuments(text, { ...OPTIONS, lineCounter: lines })
    const [document, second] = 'empty' in documents ? [] : documents
    const found = document === undefined || pass > MOST_PASSES ? [] : unquotedIn(document, text)
    if (found.length === 0) return { document, second, lines, unquoted }
    for (const begin of found) unquoted.add(begin)
    text = withPlainTexts(text, found)
  }
}

/** The library's error for a text with thousands of levels, which it cannot follow. */
const OVERFLOW = /call stack/

/** The library's message without what it quotes of the source: `password: !x` and `*x` may be passwords. */
const withoutSource = (message: string): string => (message.split(/[:("'`]/, 1)[0] ?? '').trim()

/** Letters that are read at once, about. */
const PIECE = 32_768

/** Reads a text as one YAML document. The result is what could be read. @param size letters that are read at once, about */
export const readYaml = (source: string, file: string, problems: Problems, size = PIECE): ConfigNode =>
  readPieces(source, file, size) ?? readWhole(source, file, problems)

function readWhole(source: string, file: string, problems: Problems, linesBefore = 0): ConfigNode {
  const top: SourceLocation = { file, line: linesBefore + 1 }
  const { document, second, lines, unquoted } = parse(source)
  const { linePos } = lines
  lines.linePos = (offset) => ({ ...linePos(offset), line: linePos(offset).line + linesBefore })
  if (document === undefined) return { shape: 'map', entries: new Map(), at: top }
  const deep = document.errors.find(({ message }) => OVERFLOW.test(message))
  if (deep !== undefined) {
    const at = { file, line: lines.linePos(deep.pos[0]).line }
    problems.errorAt(at, [], `is nested deeper than ${MAX_DEPTH} levels`)
    return { shape: 'map', entries: new Map(), at: top }
  }
  if (second) problems.errorAt(top, [], 'contains several YAML documents; expected one')
  for (const trouble of [...document.errors, ...document.warnings]) {
    const at = { file, line: lines.linePos(trouble.pos[0]).line }
    problems.errorAt(at, [], `is not valid YAML: ${withoutSource(trouble.message)}`)
  }
  return new Reader(file, problems, document, lines, unquoted).read(document.contents, [], top)
}

/** Undefined for a text that is to be read whole: one with any problem too, so that it is told as ever. */
function readPieces(source: string, file: string, size: number): ConfigNode | undefined {
  const entries = new Map<string, ConfigEntry>()
  let first: ConfigNode | undefined
  for (const { text, linesBefore, continues } of yamlPieces(source, size) ?? []) {
    const problems = new Problems()
    const read = readWhole(text, file, problems, linesBefore)
    if (problems.list.length > 0 || read.shape !== 'map') return undefined
    for (const [key, entry] of read.entries) {
      const before = entries.get(key)
      const node = before === undefined ? entry.node : joined(before.node, entry.node)
      // One that is repeated is a problem.
      if (node === undefined || (before !== undefined && !continues)) return undefined
      entries.set(key, { ...(before ?? entry), node })
    }
    first ??= read
  }
  return first && { ...first, shape: 'map', entries }
}

/** A section with what follows of it; undefined if both do not go together. */
function joined(one: ConfigNode, other: ConfigNode): ConfigNode | undefined {
  if (one.shape === 'list' && other.shape === 'list') {
    const items = one.items as ConfigNode[]
    for (const item of other.items) items.push(item)
    return one
  }
  if (one.shape !== 'map' || other.shape !== 'map') return undefined
  const entries = one.entries as Map<string, ConfigEntry>
  for (const [key, entry] of other.entries) {
    if (entries.has(key)) return undefined
    entries.set(key, entry)
  }
  return one
}

const WIDTH = 116
/** Levels of lists and maps that are still read easily on one line. */
const FLAT = 2
const LONG_TEXT = 80
/** The steps to a section of the document: the document, its map, a pair of it. */
const SECTION = 3

const nodesOf = (node: Node): readonly unknown[] =>
  isMap(node) ? node.items.map(({ value }) => value) : isCollection(node) ? node.items : []

const isLong = (node: unknown): boolean =>
  isScalar(node) &&
  typeof node.value === 'string' &&
  (node.value.length > LONG_TEXT || node.value.includes('\n'))

/** Whether a list or map has few levels and short texts. */
const isFlat = (node: Node, levels: number): boolean =>
  levels > 0 && nodesOf(node).every((each) => (isCollection(each) ? isFlat(each, levels - 1) : !isLong(each)))

/** A value as YAML 1.2: a small value is on one line (flow style), the rest on a line for each entry. */
export function writeYaml(value: unknown): string {
  const document = new Document(value, { version: '1.2', aliasDuplicateObjects: false })
  visit(document, {
    Collection: (_key, node, path) => {
      if (path.length > SECTION && isFlat(node, FLAT)) node.flow = true
    },
  })
  return document.toString({ lineWidth: WIDTH, flowCollectionPadding: true })
}
