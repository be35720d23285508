import type { Problems } from '../config/problems.ts'
import type { Backend } from '../contracts/backend.ts'
import type { ForwardedOperation } from './forward/compile-operation.ts'

/** A backend, and what compiles the views that operations have of it. Absent where they cannot say anything different. */
export interface OpenedBackend extends Backend {
  readonly forOperation?: (operation: ForwardedOperation, problems: Problems) => Backend
  /** Reports why it cannot take calls that match no action, as a report-only area forwards them. */
  readonly checkUnmatched?: (area: string, problems: Problems) => void
}
