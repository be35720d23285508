import { FAULTS, type FaultCode, type FaultRow } from './fault-table.ts'

export type { FaultCode } from './fault-table.ts'

export interface FaultFacts {
  /** For the log only: never reaches a client. */
  readonly cause?: unknown
  /** For the log only. */
  readonly detail?: string
  /** Public: which field and why. Told only where the row's status is 400; must hold no secret and no address. */
  readonly say?: string
  /**
   * Whether `say`, or the cause, repeats what stood in the client's body. Then its client alone is told, and the log is
   * not: an unescaped `&` in a form makes the tail of a password the name of a field.
   */
  readonly quotes?: boolean
  /** Public: the operator's own words about a maintenance, in place of the fixed text (C9.1). */
  readonly notice?: string
  /** Seconds; becomes Retry-After. */
  readonly retryAfter?: number
  /** Becomes Allow. */
  readonly allow?: readonly string[]
  /** Becomes Content-Range: how long the data is that has no such range (RFC 9110 §15.5.17). */
  readonly contentRange?: string
  /** The scope member of an insufficient_scope challenge (C4.13). */
  readonly scope?: string
  /**
   * For the log only, of a call that its client did not wait for: what the upstream had answered by then, or that
   * nothing of it had been sent. Absent: it was sent, and may have been carried out.
   */
  readonly upstream?: number | 'not_sent'
  /** The status of an upstream's 4xx that has no row of its own (C8.4). */
  readonly status?: number
}

/** The one error that the code throws on purpose. `code` is the row, `facts` what is particular to this case. */
export class Fault extends Error {
  readonly code: FaultCode
  readonly facts: FaultFacts

  constructor(code: FaultCode, facts: FaultFacts = {}) {
    super(facts.detail ?? (facts.quotes === true ? undefined : facts.say) ?? code, { cause: facts.cause })
    this.name = 'Fault'
    this.code = code
    this.facts = facts
  }

  get row(): FaultRow {
    return FAULTS[this.code]
  }

  get status(): number {
    return this.facts.status ?? this.row.status
  }

  /** The text a client reads (C2.6): fixed, plus, for a 400, which field and why. */
  get publicText(): string {
    const { notice, say } = this.facts
    return (
      notice ?? (this.row.status === 400 && say !== undefined ? `${this.row.text} ${say}` : this.row.text)
    )
  }
}

/** The one place where an unknown throwable becomes a fault. */
export const toFault = (thrown: unknown): Fault =>
  thrown instanceof Fault ? thrown : new Fault('internal', { cause: thrown })
