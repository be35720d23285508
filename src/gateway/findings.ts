import type { AuditOutcome } from '../contracts/audit.ts'
import type { Principal } from '../contracts/principal.ts'
import { type Fault, toFault } from '../kernel/faults.ts'
import type { Operation } from './action-table.ts'
import type { NamedAction } from './checks.ts'

export interface OutcomeRecord {
  /**
   * Resolves when it is written, or cannot be: it changes no answer.
   * @returns false if the call has no intent that waits for its outcome
   */
  settle(outcome: CallOutcome): Promise<boolean>
}

export interface CallOutcome {
  readonly outcome: AuditOutcome
  /** The fault's code. */
  readonly reason: string | undefined
  readonly status: number
  /** Of the answer that the client gets. */
  readonly upstreamStatus: number | undefined
}

const NONE: NamedAction['params'] = Object.freeze({})

/**
 * What a decision has found out so far: it is logged and counted, also of a call that is refused half way. Every
 * member exists from the start: objects of one shape are faster.
 */
export class Findings {
  principal: Principal | undefined = undefined
  operation: Operation | undefined = undefined
  business: string | undefined = undefined
  fund: string | undefined = undefined
  params: NamedAction['params'] = NONE
  /** Headers that go on the answer, whatever it is (rate limits). */
  headers: Readonly<Record<string, string>> | undefined = undefined
  /** Milliseconds spent waiting for the backend. */
  upstreamMs: number | undefined = undefined
  upstreamStatus: number | undefined = undefined
  /** Set for a call of a report-only area. */
  observation: Observation | undefined = undefined
  /** Set for a call that has a record in the audit trail, or may get one. */
  record: OutcomeRecord | undefined = undefined

  matched({ operation, params, business, fund }: NamedAction): void {
    this.operation = operation
    this.params = params
    this.business = business
    this.fund = fund
  }
}

/** Keeps the fault for which a call of a report-only area would have been refused. */
export class Observation {
  readonly area: string
  #fault: Fault | undefined

  constructor(area: string) {
    this.area = area
  }

  /** The first one, which would have won (C4). */
  get fault(): Fault | undefined {
    return this.#fault
  }

  /** Makes a check. Keeps what it throws, and answers undefined then. */
  hold<T>(check: () => T): T | undefined {
    try {
      return check()
    } catch (thrown) {
      this.keep(thrown)
      return undefined
    }
  }

  async holdLater<T>(check: () => Promise<T>): Promise<T | undefined> {
    try {
      return await check()
    } catch (thrown) {
      this.keep(thrown)
      return undefined
    }
  }

  keep(thrown: unknown): void {
    this.#fault ??= toFault(thrown)
  }

  /** The value of `X-Postern-Decision`, for the upstream. No client can send that header (C8.2). */
  get header(): string {
    return this.#fault === undefined ? 'allow' : `would-refuse; reason=${this.#fault.code}`
  }
}
