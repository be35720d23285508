import type { Place } from './place.ts'

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
