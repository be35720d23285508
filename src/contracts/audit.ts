import type { Call } from './backend.ts'

/** The place of the audit trail (C12): awaited between the decision and the backend, and may refuse by a fault. */
export interface Audit {
  intend(call: Call): Promise<void> | undefined
}
