import type { KeyPath, Problem, Report } from '../config/report.ts'

/** Where the problems of one record are told; paths are relative to the record. */
export interface Complaints {
  error(path: KeyPath, message: string, hint?: string): void
  warn(path: KeyPath, message: string, hint?: string): void
}

/** For a record in the configuration itself: `base` is its key path. */
export const complaintsAt = (report: Report, base: KeyPath): Complaints => ({
  error: (path, message, hint) => report.error([...base, ...path], message, hint),
  warn: (path, message, hint) => report.warn([...base, ...path], message, hint),
})

/** Problems told per file: a file made wrongly has one for every line. */
const MOST = 20

/** For the records of a JSON Lines file: told at the file and line, under the key path that names the file. */
export class FileComplaints {
  readonly #report: Report
  readonly #base: KeyPath
  readonly #file: string
  #told = 0
  #failed = false

  constructor(report: Report, base: KeyPath, file: string) {
    this.#report = report
    this.#base = base
    this.#file = file
  }

  ofLine(line: number): Complaints {
    const at = { file: this.#file, line }
    return {
      error: (path, message, hint) => this.#tell({ path, message, hint, at, severity: 'error' }),
      warn: (path, message, hint) => this.#tell({ path, message, hint, at, severity: 'warning' }),
    }
  }

  #tell(problem: Problem): void {
    if (problem.severity === 'error') this.#failed = true
    if (++this.#told <= MOST)
      this.#report.problems.push({ ...problem, path: [...this.#base, ...problem.path] })
  }

  /** Says how many were left out. */
  finish(): void {
    if (this.#told <= MOST) return
    const told = `has ${this.#told - MOST} more problems`
    if (this.#failed) this.#report.error(this.#base, told)
    else this.#report.warn(this.#base, told)
  }
}
