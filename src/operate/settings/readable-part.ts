import type { KeyPath, Problem, Problems } from '../../base/config/problems.ts'
import type { Configuration } from './configuration.ts'

/** The lists and maps whose entries are checked one by one. `*` stands for any key. Inner ones come first. */
const ENTRIES: readonly KeyPath[] = [
  ['actions', '*', 'methods', '*'],
  ...['actions', 'areas', 'backends', 'issuers', 'maintenance', 'schemas', 'scopes'].map((section) => [
    section,
    '*',
  ]),
  ...['businesses', 'clients', 'roles', 'users'].map((kind) => ['directory', kind, '*']),
]

/** The path of the entry that a problem is in. Undefined if it is in none: then its whole section could not be read. */
const entryOf = (path: KeyPath): KeyPath | undefined => {
  const pattern = ENTRIES.find(
    (each) => each.length <= path.length && each.every((key, at) => key === '*' || key === path[at]),
  )
  return pattern && path.slice(0, pattern.length)
}

/** The parts that are taken out, by key. An empty map: all below. */
type Gone = Map<string | number, Gone>

function takeOut(gone: Gone, path: KeyPath): void {
  let at = gone
  for (const [depth, key] of path.entries()) {
    const below = at.get(key)
    if (below?.size === 0) return // what it is in goes already
    const isLast = depth === path.length - 1
    const next: Gone = below === undefined || isLast ? new Map<string | number, Gone>() : below
    at.set(key, next)
    at = next
  }
}

type Entry = readonly [key: string | number, value: unknown]

const entriesOf = (value: object): readonly Entry[] =>
  Array.isArray(value) ? [...(value as unknown[]).entries()] : Object.entries(value)

function without(value: unknown, gone: Gone): unknown {
  if (typeof value !== 'object' || value === null) return value
  const left = entriesOf(value).flatMap(([key, item]): Entry[] => {
    const below = gone.get(key)
    if (below === undefined) return [[key, item]]
    return below.size === 0 ? [] : [[key, without(item, below)]]
  })
  return Array.isArray(value) ? left.map(([, item]) => item) : Object.fromEntries(left)
}

export interface ReadablePart {
  /** The configuration without the entries that could not be read. No part of a section in `unreadable` may be used. */
  readonly configuration: Configuration
  /** Sections that have no entries that could be read one by one. */
  readonly unreadable: ReadonlySet<unknown>
  readonly partial: ReadonlySet<unknown>
  /** A path of `configuration` as it is in the file: indexes of lists differ where entries before were taken out. */
  readonly pathInFile: (path: KeyPath) => KeyPath
}

function keptIndexes(list: unknown, gone: Gone | undefined): readonly number[] {
  if (!Array.isArray(list)) return []
  return [...list.keys()].filter((index) => gone?.get(index)?.size !== 0)
}

/** The entries without a problem. Names of those left out go to `problems.unread`: others rightly refer to them. */
export function readablePart(read: Configuration, problems: Problems): ReadablePart {
  const gone: Gone = new Map()
  const [unreadable, partial] = [new Set<unknown>(), new Set<unknown>()]
  for (const { path } of problems.list.filter(isError)) {
    const entry = entryOf(path)
    if (entry === undefined) unreadable.add(path[0])
    else {
      takeOut(gone, entry)
      partial.add(entry[0])
      problems.unread.add(String(entry.at(-1)))
    }
  }
  const kept = new Map(entriesOf(read).map(([key, list]) => [key, keptIndexes(list, gone.get(key))]))
  return {
    configuration: without(read, gone) as Configuration,
    unreadable,
    partial,
    pathInFile: ([section = '', index, ...rest]) =>
      typeof index === 'number'
        ? [section, kept.get(section)?.[index] ?? index, ...rest]
        : [section, ...(index === undefined ? [] : [index]), ...rest],
  }
}

const isError = ({ severity }: Problem): boolean => severity === 'error'
