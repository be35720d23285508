/** A configuration file, whole: read, extended, checked, converted. Knows no room: the schema is handed in. */
import type { Static, TSchema } from './pieces.ts'
import { readTree } from './extend.ts'
import type { Environment } from './references.ts'
import { Report } from './report.ts'
import { viewOf } from './schema-view.ts'
import { placeOf } from './tree.ts'
import { load } from './validate.ts'

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
