import type { Report } from '../config/report.ts'

/** The directory is left as it is, and why. */
export class DirectoryRefusal extends Error {
  override readonly name = 'DirectoryRefusal'
  /** Where it is the record that does not fit: every problem, by key of the record. */
  readonly report: Report | undefined

  constructor(message: string, report?: Report) {
    super(message)
    this.report = report
  }
}
