/** Which configuration a verb means, and how its problems are told. */
import { parseArgs } from 'node:util'
import { printReport } from '../config/print-report.ts'
import type { Report } from '../config/report.ts'
import { UsageError, type Terminal } from './verb.ts'

const DEMO = 'config/demo.yaml'

/** The file named on the command line, else by POSTERN_CONFIG, else the demo world's. Throws UsageError. */
export function configurationFile(args: readonly string[], { env }: Terminal): string {
  const { positionals } = parseArgs({ args: [...args], allowPositionals: true, options: {} })
  if (positionals.length > 1) throw new UsageError(`expected one file, got ${positionals.length}`)
  return positionals[0] ?? (env['POSTERN_CONFIG'] || DEMO)
}

const count = (number: number, of: string): string => `${number} ${of}${number === 1 ? '' : 's'}`

/** Writes every problem to stderr, and how many there are. */
export function tellReport(file: string, report: Report, { stderr }: Terminal): void {
  const errors = report.problems.filter((problem) => problem.severity === 'error').length
  const warnings = report.problems.length - errors
  const told = [errors && count(errors, 'problem'), warnings && count(warnings, 'warning')].filter(Boolean)
  if (told.length > 0) stderr.write(`${printReport(report)}${file}: ${told.join(', ')}\n`)
}
