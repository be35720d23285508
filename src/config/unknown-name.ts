/** What is said of a name that refers to nothing, wherever names are: scopes, backends, areas, businesses, clients, roles. */
import { didYouMeanOfFew, FEW } from './problem-text.ts'
import type { KeyPath } from './problems.ts'

/** Takes problems: a report, or the problems of one record. */
interface NamedProblems {
  error(path: KeyPath, message: string, hint?: string): void
  /** Names of entries that could not be read. */
  readonly unread: ReadonlySet<string>
}

interface UnknownName {
  readonly message: string
  readonly hint: string | undefined
}

/** So many names are listed where none is near. */
const LISTED = 10

function listOf(names: readonly string[]): string | undefined {
  if (names.length === 0) return 'there is none'
  if (names.length > LISTED) return undefined
  return `there ${names.length === 1 ? 'is' : 'are'} ${names.join(', ')}`
}

/**
 * What is wrong with a name that is not a known one: `names no area: "fnud-data"`, `did you mean "fund-data"?`.
 * @param unread names of entries that could not be read: one of them may be meant
 */
export function unknownName(
  what: string,
  name: string,
  known: Iterable<string>,
  unread: ReadonlySet<string> = new Set(),
): UnknownName {
  const names = [...Iterator.from(known).take(FEW + 1)]
  const near = didYouMeanOfFew(name, unread.size > FEW ? names : [...names, ...unread])
  return {
    message: `names no ${what}: "${name}"`,
    hint: near ?? (unread.size === 0 ? listOf(names) : undefined),
  }
}

/** Reports a name that is not a known one. Nothing if it is that of an entry that could not be read. */
export function reportUnknownName(
  problems: NamedProblems,
  path: KeyPath,
  what: string,
  name: string,
  known: Iterable<string>,
): void {
  if (problems.unread.has(name)) return
  const { message, hint } = unknownName(what, name, known, problems.unread)
  problems.error(path, message, hint)
}
