/** Carries out the orders for test tokens: asks a serving process, records, and tells (C11.5.7). */
import type { AuditEntry, AuditTrail } from '../contracts/audit.ts'
import type { Recorder } from '../contracts/recorder.ts'
import type { TestToken, TestTokenAnswer, TestTokenRequest } from '../contracts/claimed-callers.ts'
import { Fault } from '../kernel/faults.ts'
import { AdminError } from '../operator/errors.ts'
import { byOperator, type Operator } from '../audit/audited-change.ts'
import type { TestTokenOrders, TestTokenOutcome, TestTokenWish } from '../operator/test-token-orders.ts'
import { serviceUrls } from '../server/schema.ts'
import { type Configuration, isSidecar } from '../settings/configuration.ts'
import { openDoors } from '../settings/dangers.ts'
import { WorkerRequestError } from '../processes/open-requests.ts'
import type { WorkerPool } from '../processes/worker-pool.ts'

export interface TestTokenParts {
  readonly pool: Pick<WorkerPool<Configuration>, 'issueTestToken' | 'port'>
  readonly audit: AuditTrail
  readonly recorder: Pick<Recorder, 'note'>
  /** The one in force. */
  readonly configuration: () => Configuration
}

/** Refusals that are no answer: what should judge could not be reached. */
const UNREACHABLE = ['identity_unavailable', 'people_unavailable', 'internal'] as const

/** Why nobody is issued one; undefined if test tokens are issued. */
function closedBy(configuration: Configuration): string | undefined {
  if (isSidecar(configuration)) return 'a sidecar issues no tokens: get one of its issuer'
  const open = openDoors(configuration).map((path) => path.join('.'))
  if (open.length === 0) return undefined
  return `${open.join(', ')}: only a service that is on loopback issues test tokens`
}

const recordOf = (
  issued: Pick<TestToken, 'business' | 'client' | 'fund' | 'id' | 'scope' | 'subject' | 'target'>,
  operator: Operator,
): AuditEntry => {
  const { business, client, fund, id, scope, subject, target } = issued
  return {
    ...{ event: 'token.issued', outcome: 'success', ...byOperator(operator) },
    on: { kind: 'token', id, business, fund, client, subject },
    grant: { grant: 'test', scope, target },
  }
}

const refusalOf = (
  { client, target, scope }: TestTokenWish,
  reason: string,
  operator: Operator,
): AuditEntry => ({
  ...{ event: 'token.refused', outcome: 'refused', reason, ...byOperator(operator) },
  on: { kind: 'token', client },
  grant: { grant: 'test', scope, target },
})

export class TestTokenControl implements TestTokenOrders {
  readonly #parts: TestTokenParts

  constructor(parts: TestTokenParts) {
    this.#parts = parts
  }

  async issue(wish: TestTokenWish, operator: Operator): Promise<TestTokenOutcome> {
    const { audit, recorder } = this.#parts
    const configuration = this.#parts.configuration()
    const why = closedBy(configuration)
    if (why !== undefined) return { outcome: 'closed', why }
    const answer = await this.#ask({ ...wish, from: operator.via })
    if (answer.outcome === 'refused') {
      audit.note(refusalOf(wish, answer.reason, operator))
      return answer
    }
    const { issued } = answer
    await audit.require(recordOf(issued, operator))
    const { client, subject, target } = issued
    recorder.note('info', 'test_token_issued', { client, subject, target, ...operator })
    const { baseUrl: api } = serviceUrls(configuration.server, this.#parts.pool.port)
    return { outcome: 'issued', issued: { ...issued, api } }
  }

  async #ask(order: TestTokenRequest): Promise<TestTokenAnswer> {
    const answer = await this.#parts.pool.issueTestToken(order).catch((error: unknown) => {
      if (!(error instanceof WorkerRequestError)) throw error
      throw new AdminError(503, 'no process could be asked: try again')
    })
    const unreachable = UNREACHABLE.find((reason) => answer.outcome === 'refused' && answer.reason === reason)
    if (unreachable !== undefined) throw new Fault(unreachable)
    return answer
  }
}
