import type { Static, TSchema } from '../config/pieces.ts'
import { Report } from '../config/report.ts'
import { viewOf } from '../config/schema-view.ts'
import { nodeOf } from '../config/tree.ts'
import { load } from '../config/validate.ts'

const NOWHERE = { file: '', line: 0 }

/**
 * A record that somebody hands over, checked as the configuration would be: defaults filled in, units made numbers.
 * Undefined if it does not fit; the report tells every problem.
 */
export function readRecord<T extends TSchema>(
  schema: T,
  value: object,
  report: Report,
): Static<T> | undefined {
  const own = new Report()
  const record = load(viewOf(schema), nodeOf(value, NOWHERE), [], { environment: {}, report: own })
  report.problems.push(...own.problems)
  return own.failed ? undefined : (record as Static<T>)
}
