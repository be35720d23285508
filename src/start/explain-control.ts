/** Carries out the orders to explain a call, one that is described or one that was made. */
import type { AuditTrail } from '../contracts/audit.ts'
import type { DescribedCall, Explanation } from '../contracts/explanation.ts'
import { AdminError } from '../operator/errors.ts'
import type { LoggedCall } from '../watch/log/call-lines.ts'
import type { Operator } from '../audit/audited-change.ts'
import type { PastAnswer } from '../watch/past-calls.ts'
import { compareDecisions } from '../settings/compare-decisions.ts'
import type { Configuration } from '../settings/configuration.ts'
import { WorkerRequestError } from '../processes/open-requests.ts'
import type { RecalledCall, WorkerPool } from '../processes/worker-pool.ts'
import { recordOfQuestion } from './explain.ts'
import { describeLogged, recordOfPastQuestion, saysToken } from './past-calls.ts'

export interface ExplainControlParts {
  readonly pool: Pick<WorkerPool<Configuration>, 'explain' | 'recall'>
  readonly audit: AuditTrail
  /** No reload changes that. */
  readonly isSidecar: boolean
}

export class ExplainControl {
  readonly #parts: ExplainControlParts

  constructor(parts: ExplainControlParts) {
    this.#parts = parts
  }

  /** Nothing of the token and the body is recorded, and the record stops nothing (C12.1.4). */
  async explain(call: DescribedCall, operator: Operator): Promise<Explanation> {
    const { audit } = this.#parts
    const explanation = await this.#explainNow(call)
    if (audit.on) audit.note(recordOfQuestion(explanation, operator))
    return explanation
  }

  async explainPast(past: string | LoggedCall, operator: Operator): Promise<PastAnswer | undefined> {
    const { pool, audit } = this.#parts
    const found = typeof past === 'string' ? await pool.recall(past) : await this.#explainLogged(past)
    if (found === undefined) return undefined
    const { call: then, now } = found
    const difference = compareDecisions({ ...then, hasCaller: then.caller !== undefined }, now)
    if (audit.on) audit.note(recordOfPastQuestion(then, difference, operator))
    return { then, now, difference }
  }

  /** A sidecar issues no tokens, so it cannot tell which scope and target a client would be given. */
  async #explainLogged(line: LoggedCall): Promise<RecalledCall> {
    const described = describeLogged(line)
    const cannotTell = this.#parts.isSidecar && !saysToken(line)
    const now = described === undefined || cannotTell ? undefined : await this.#explainNow(described)
    return { call: line, now }
  }

  #explainNow(call: DescribedCall): Promise<Explanation> {
    return this.#parts.pool.explain(call).catch((error: unknown) => {
      if (!(error instanceof WorkerRequestError)) throw error
      throw new AdminError(503, 'no process could be asked: try again')
    })
  }
}
