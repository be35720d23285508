/** A report as text for a person: one line for each problem, in the order of the file. */
import type { KeyPath, Problem, Report } from './report.ts'
import type { Place } from './place.ts'

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
export const printReport = (report: Report): string =>
  problemLines(report)
    .map((each) => `${each}\n`)
    .join('')

/** The same, line by line. */
export const problemLines = (report: Report): string[] =>
  report.problems
    .map((problem) => ({ problem, place: report.placeOf(problem) }))
    .sort(byPlace)
    .map(line)
