/**
 * Issues a test token: asks a serving process, and records (C11.5.7). Imported only where one is issued: commands need
 * nothing of the configuration.
 */
import { byOperator, type Operator } from '../../base/contracts/records/audited-change.ts'
import type { AuditEntry } from '../../base/contracts/records/audit.ts'
import type {
  TestToken,
  TestTokenAnswer,
  TestTokenRequest,
} from '../../base/contracts/people/claimed-callers.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { serviceUrls } from '../../gateway/server/schema.ts'
import type { Configuration } from '../settings/configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import { nonLoopbackKeys } from '../settings/dangers.ts'
import type { ServiceContext } from '../operation/context.ts'
import { orNoProcess } from './explain-call.ts'

export type TestTokenWish = Omit<TestTokenRequest, 'from'>

/** A token, and where it is good. */
export interface UsableTestToken extends TestToken {
  /** The URL of the API, without a slash at its end. */
  readonly api: string
}

export type TestTokenOutcome =
  | { readonly outcome: 'issued'; readonly issued: UsableTestToken }
  | Extract<TestTokenAnswer, { outcome: 'refused' }>
  /** The service issues no test tokens. `why`: the part of its configuration that forbids it. */
  | { readonly outcome: 'closed'; readonly why: string }

/** Refusals that are no answer: the part that should decide could not be reached. */
const UNREACHABLE = ['identity_unavailable', 'people_unavailable', 'internal'] as const

/** Why no test tokens are issued; undefined if they are. */
function closedBy(configuration: Configuration): string | undefined {
  if (isSidecar(configuration)) return 'a sidecar issues no tokens: get one of its issuer'
  const open = nonLoopbackKeys(configuration).map((path) => path.join('.'))
  if (open.length === 0) return undefined
  return `${open.join(', ')}: only a service that is on loopback issues test tokens`
}

const recordOf = (
  { business, client, fund, id, scope, subject, target }: TestToken,
  operator: Operator,
): AuditEntry => ({
  event: 'token.issued',
  outcome: 'success',
  ...byOperator(operator),
  on: { kind: 'token', id, business, fund, client, subject },
  grant: { grant: 'test', scope, target },
})

const refusalOf = (
  { client, target, scope }: TestTokenWish,
  reason: string,
  operator: Operator,
): AuditEntry => ({
  event: 'token.refused',
  outcome: 'refused',
  reason,
  ...byOperator(operator),
  on: { kind: 'token', client },
  grant: { grant: 'test', scope, target },
})

/**
 * The token is recorded before it is answered. Rejects with Fault `audit_unavailable` if that is not possible, with
 * `identity_unavailable` if the directory cannot be reached, and with AdminError 503 if no process can be asked.
 */
export async function issueTestToken(
  wish: TestTokenWish,
  service: ServiceContext,
  operator: Operator,
): Promise<TestTokenOutcome> {
  const { audit, recorder, pool } = service
  const configuration = service.configuration()
  const why = closedBy(configuration)
  if (why !== undefined) return { outcome: 'closed', why }
  const answer = await orNoProcess(pool.issueTestToken({ ...wish, from: operator.via }))
  if (answer.outcome === 'refused') {
    const unreachable = UNREACHABLE.find((reason) => answer.reason === reason)
    if (unreachable !== undefined) throw new Fault(unreachable)
    audit.note(refusalOf(wish, answer.reason, operator))
    return answer
  }
  const { issued } = answer
  await audit.require(recordOf(issued, operator))
  const { client, subject, target } = issued
  recorder.note('info', 'test_token_issued', { client, subject, target, ...operator })
  const { baseUrl: api } = serviceUrls(configuration.server, pool.port)
  return { outcome: 'issued', issued: { ...issued, api } }
}
