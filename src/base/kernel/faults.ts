import { type FaultCode, type FaultRow, FAULTS } from './fault-table.ts'

export type { FaultCode } from './fault-table.ts'

export interface FaultFacts {
  /** For the log only: never reaches a client. */
  readonly cause?: unknown
  /** For the log only. */
  readonly detail?: string
  /** Whether a record of the trail is only late: it may be written yet. For operators. */
  readonly late?: boolean
  /** Public: which field and why. Shown only if the row's status is 400, or the row `explains`. Must hold no secret and no address. */
  readonly say?: string
  /** Whether `say` or the cause quotes the body. Then only the client sees it: it may be a part of a password. */
  readonly quotes?: boolean
  /** Public: the operator's own words about a maintenance, in place of the fixed text (C9.1). */
  readonly notice?: string
  /** After how many seconds a client may try again; becomes Retry-After. */
  readonly retryAfter?: number
  /** Public: the media types or versions that are configured (C2.6). Shown by rows with `offering` only. */
  readonly offered?: readonly string[]
  /** Becomes Allow. */
  readonly allow?: readonly string[]
  /** Length of the data in bytes, for Content-Range of a 416 (RFC 9110 §15.5.17). */
  readonly contentRange?: string
  /** Further headers of the answer. */
  readonly headers?: Readonly<Record<string, string>>
  /** The scope member of an insufficient_scope challenge (C4.13). */
  readonly scope?: string
  /**
   * For the log only, if the client left: the status that the upstream had answered, or `not_sent` if nothing was sent to
   * it. Absent: the call was sent and may have been carried out.
   */
  readonly upstream?: number | 'not_sent'
  /**
   * Whether it is known that the call has changed nothing: nothing was sent, or the service said that it refused. Where it
   * is not, a call that may change something fails with `outcome_unknown` (C8.4a).
   */
  readonly unchanged?: boolean
  /** The status of an upstream's 4xx that has no row of its own (C8.4). */
  readonly status?: number
}

/** `a, b or c` */
const ONE_OF = new Intl.ListFormat('en-GB', { type: 'disjunction' })

/** The error that the code throws for every row of the fault table. `facts` holds what is particular to this case. */
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

  /** The text a client reads (C2.6): fixed, plus which field and why (400), or what the configuration offers instead. */
  get publicText(): string {
    const { notice, say, offered } = this.facts
    const { status, text, offering, explains }: FaultRow = this.row
    if (notice !== undefined) return notice
    if (offered !== undefined && offering !== undefined)
      return offering.replace('{offered}', () => ONE_OF.format(offered))
    return (status === 400 || explains === true) && say !== undefined ? `${text} ${say}` : text
  }

  /** The public text, followed by the parts that only operators may read. */
  get fullText(): string {
    const { say, detail } = this.facts
    return [this.publicText, say, detail]
      .filter(
        (part, at, all) => part !== undefined && !all.slice(0, at).some((before) => before?.includes(part)),
      )
      .join(' ')
  }
}

/** The one place where an unknown throwable becomes a fault. */
export const toFault = (thrown: unknown): Fault =>
  thrown instanceof Fault ? thrown : new Fault('internal', { cause: thrown })
