import { withoutTricks } from '../kernel/clean-text.ts'

export interface SourceLocation {
  /** As named on the command line or by `extends`. */
  readonly file: string
  /** From 1; 0 if there are no lines. */
  readonly line: number
}

/** The path of a value in the configuration: keys and indexes from the root. */
export type KeyPath = readonly (string | number)[]

export interface Problem {
  readonly path: KeyPath
  /** What is wrong and what is expected, in one sentence without the name of the key. Never contains a secret. */
  readonly message: string
  /** `did you mean …`, or what to do. */
  readonly hint?: string | undefined
  /** A file with a warning is served. */
  readonly severity: 'error' | 'warning'
  /** Set if the path cannot be looked up, because the file could not be read. */
  readonly at?: SourceLocation | undefined
}

/** Message and hint for a text that YAML takes for a map. */
export const UNQUOTED = ['has a "{" outside quotes, where a map begins in YAML', 'put it in quotes'] as const

export class Problems {
  readonly list: Problem[] = []
  /** Absolute paths of all files of the configuration, readable or not: the files to watch for changes. */
  readonly files = new Set<string>()
  /** Names of entries that could not be read. Who refers to one of them is right. */
  readonly unread = new Set<string>()
  /** The place of a path in the files. Set by the loader. */
  locate: (path: KeyPath) => SourceLocation | undefined = () => undefined

  error(path: KeyPath, message: string, hint?: string): void {
    this.list.push({ path, message, hint, severity: 'error' })
  }

  errorAt(at: SourceLocation, path: KeyPath, message: string, hint?: string): void {
    this.list.push({ path, message, hint, severity: 'error', at })
  }

  warn(path: KeyPath, message: string, hint?: string): void {
    this.list.push({ path, message, hint, severity: 'warning' })
  }

  /** The place of a problem: its own, otherwise that of its path. */
  placeOf(problem: Problem): SourceLocation | undefined {
    return problem.at ?? this.locate(problem.path)
  }

  get failed(): boolean {
    return this.list.some((problem) => problem.severity === 'error')
  }
}

const PLAIN_KEY = /^[A-Za-z_$][A-Za-z0-9_-]*$/

function keyText(key: string | number, index: number): string {
  if (typeof key === 'number') return `[${key}]`
  if (!PLAIN_KEY.test(key)) return `[${JSON.stringify(key)}]`
  return index === 0 ? key : `.${key}`
}

/** A path as text: `actions[3].methods.GET`. Keys that are not plain words are in quotes. */
export const pathText = (path: KeyPath): string => path.map(keyText).join('')

const placeText = ({ file, line: number }: SourceLocation): string =>
  number > 0 ? `${file}:${number}` : file

function line({ place, problem }: Located): string {
  const parts = [problem.path.length === 0 ? 'this file' : pathText(problem.path), problem.message]
  const text = `${place ? `${placeText(place)}  ` : ''}${parts.join('  ')}${problem.hint === undefined ? '' : ` — ${problem.hint}`}`
  return withoutTricks(problem.severity === 'warning' ? `${text} (warning)` : text)
}

interface Located {
  readonly place: SourceLocation | undefined
  readonly problem: Problem
}

const byPlace = (a: Located, b: Located): number =>
  (a.place?.file ?? '').localeCompare(b.place?.file ?? '') || (a.place?.line ?? 0) - (b.place?.line ?? 0)

/** Every problem on a line of its own, with a line end; empty if there is none. Contains no secret. */
export const reportText = (problems: Problems): string =>
  problemLines(problems)
    .map((each) => `${each}\n`)
    .join('')

/** In the order of the files. */
const located = (problems: Problems): Located[] =>
  problems.list.map((problem) => ({ problem, place: problems.placeOf(problem) })).sort(byPlace)

/**
 * One line for each problem, in the order of the files: `config/demo.yaml:31  actions[3].methods.GET.scopes  expected …,
 * got … — did you mean …?`. Contains no secret. `severity`: only those; all if not given.
 */
export const problemLines = (problems: Problems, severity?: Problem['severity']): string[] =>
  located(problems)
    .filter(({ problem }) => severity === undefined || problem.severity === severity)
    .map(line)

/** A problem for programs. Null where there is none: no line in the environment, no path of a whole file. No secret. */
interface ProblemRow {
  readonly severity: Problem['severity']
  readonly file: string | null
  readonly line: number | null
  readonly path: string | null
  readonly message: string
  readonly hint: string | null
}

export const problemRows = (problems: Problems): ProblemRow[] =>
  located(problems).map(({ place, problem: { severity, path, message, hint = null } }) => ({
    severity,
    file: place?.file ?? null,
    line: place === undefined || place.line === 0 ? null : place.line,
    path: path.length === 0 ? null : pathText(path),
    message,
    hint,
  }))

/** A configuration that cannot be opened. The report lists every problem. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError'
  readonly problems: Problems

  constructor(problems: Problems) {
    super('the configuration has problems')
    this.problems = problems
  }
}
