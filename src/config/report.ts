/** A place in the configuration: keys and indexes from the root. */
export type KeyPath = readonly (string | number)[]

export interface Problem {
  readonly path: KeyPath
  /** What is wrong and what is expected, one sentence, without the key's name. Never a secret's value. */
  readonly message: string
  /** "did you mean …" or what to do. */
  readonly hint?: string | undefined
  /** `warning`s are told but do not refuse the file. */
  readonly severity: 'error' | 'warning'
  /** Known where the file itself could not be read; else the report looks the path up. */
  readonly at?: Place | undefined
}

/** Collects every problem of a configuration, so that all are told at once (design: configuration). */
export class Report {
  readonly problems: Problem[] = []
  /** Absolute paths of the files that the configuration consists of, readable or not: whoever watches it watches these. */
  readonly files = new Set<string>()
  /** Where a path is written; set by the loader. */
  locate: (path: KeyPath) => Place | undefined = () => undefined

  error(path: KeyPath, message: string, hint?: string): void {
    this.problems.push({ path, message, hint, severity: 'error' })
  }

  errorAt(at: Place, path: KeyPath, message: string, hint?: string): void {
    this.problems.push({ path, message, hint, severity: 'error', at })
  }

  warn(path: KeyPath, message: string, hint?: string): void {
    this.problems.push({ path, message, hint, severity: 'warning' })
  }

  /** Where a problem is: its own place, else that of its path. */
  placeOf(problem: Problem): Place | undefined {
    return problem.at ?? this.locate(problem.path)
  }

  get failed(): boolean {
    return this.problems.some((problem) => problem.severity === 'error')
  }
}

/** Where something is written. */
export interface Place {
  /** As it was named on the command line or by `extends`. */
  readonly file: string
  /** From 1; 0 where there are no lines. */
  readonly line: number
}

/** A report as text for a person: one line for each problem, in the order of the file. */

const PLAIN_KEY = /^[A-Za-z_$][A-Za-z0-9_-]*$/

function keyText(key: string | number, index: number): string {
  if (typeof key === 'number') return `[${key}]`
  if (!PLAIN_KEY.test(key)) return `[${JSON.stringify(key)}]`
  return index === 0 ? key : `.${key}`
}

/** `actions[3].methods.GET`; keys that are no plain words in quotes. */
export const pathText = (path: KeyPath): string => path.map(keyText).join('')

const placeText = ({ file, line: number }: Place): string => (number > 0 ? `${file}:${number}` : file)

function line({ place, problem }: Located): string {
  const parts = [problem.path.length === 0 ? 'this file' : pathText(problem.path), problem.message]
  const text = `${place ? `${placeText(place)}  ` : ''}${parts.join('  ')}${problem.hint === undefined ? '' : ` — ${problem.hint}`}`
  return problem.severity === 'warning' ? `${text} (warning)` : text
}

interface Located {
  readonly place: Place | undefined
  readonly problem: Problem
}

const byPlace = (a: Located, b: Located): number =>
  (a.place?.file ?? '').localeCompare(b.place?.file ?? '') || (a.place?.line ?? 0) - (b.place?.line ?? 0)

/**
 * Every problem on a line of its own: `config/demo.yaml:31  actions[3].methods.GET.scopes  expected …, got … — did
 * you mean …?`, ending in a line end; empty if there is none. Holds no secret.
 */
export const reportText = (report: Report): string =>
  problemLines(report)
    .map((each) => `${each}\n`)
    .join('')

/** The same, line by line. */
export const problemLines = (report: Report): string[] =>
  report.problems
    .map((problem) => ({ problem, place: report.placeOf(problem) }))
    .sort(byPlace)
    .map(line)
