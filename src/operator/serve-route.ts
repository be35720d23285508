/** Serves one operation by HTTP: who may use it, what is sent, what is answered. */
import type { Operator } from '../audit/audited-change.ts'
import type { AuditTrail } from '../contracts/audit.ts'
import type { JsonValue } from '../http/json.ts'
import { withStoreBudget } from '../kernel/store-budget.ts'
import { AdminError } from './errors.ts'
import type { AdminApp, IncomingRequest } from './framework.ts'
import { MERGE_PATCH, type Operation } from './operation.ts'
import type { ServiceContext } from './context.ts'
import { type AuthenticatedOperator, type Operators, unknownOperator } from './operators.ts'
import { authorize, performerOf } from './perform.ts'

export interface AdminApi {
  readonly audit: Pick<AuditTrail, 'note'>
  readonly routes: readonly Operation[]
  readonly context: ServiceContext
}

/** The API, and who may use it. */
export type GuardedApi = AdminApi & { readonly operators: Operators }

/** The header by which a command says what it is. Nobody has proven it: it stands in records as `by` does. */
export const VIA_HEADER = 'postern-via'

const fromOf = ({ headers, ip }: IncomingRequest): Pick<Operator, 'via' | 'channel'> => ({
  via: ip,
  channel: headers[VIA_HEADER] === 'cli' ? 'cli' : 'admin',
})

/** Throws AdminError 401 or 403, unless the request shows a token that may do this. */
function authorized(request: IncomingRequest, route: Operation, api: GuardedApi): AuthenticatedOperator {
  const operator = api.operators.find(request.headers.authorization)
  if (operator === undefined) throw unknownOperator(request.headers.authorization)
  const { audit, operators } = api
  return authorize(operator, operators.hasExpired(operator), route, { audit, from: fromOf(request) })
}

export function addRoute(app: AdminApp, route: Operation, api: GuardedApi): void {
  const { method, path: url } = route
  const known = new WeakMap<IncomingRequest, AuthenticatedOperator>()
  const perform = performerOf<ServiceContext>(route, route.handle)
  app.route({
    method,
    url,
    // Before the body is read.
    onRequest: (request, _reply, done) => {
      known.set(request, authorized(request, route, api))
      refuseOtherTypes(request)
      done()
    },
    handler: async (request, reply) => {
      const operator = known.get(request)
      if (operator === undefined) throw unknownOperator(undefined)
      const { params, query, body, headers } = request as IncomingRequest &
        Record<'body', JsonValue | undefined>
      const received = {
        params: (params ?? {}) as JsonValue,
        query: (query ?? {}) as JsonValue,
        body: body ?? null,
        ifMatch: headers['if-match'],
        operator,
        from: fromOf(request),
      }
      const answer = await withPatience(headers, () => perform(api.context, received))
      const { status, type, tag, location } = answer
      if (type !== undefined) reply.type(type)
      if (tag !== undefined) reply.header('ETag', `"${tag}"`)
      if (location !== undefined) reply.header('Location', location)
      return reply.code(status).send(answer.body)
    },
  })
}

/** Only PATCH takes a merge patch. Throws AdminError 415. */
function refuseOtherTypes({ method, headers }: IncomingRequest): void {
  if (method !== 'PATCH' && headers['content-type']?.startsWith(MERGE_PATCH) === true)
    throw new AdminError(415, 'send the body as application/json')
}

/** Seconds that a client may have the store waited for. */
const MOST_PATIENCE = 10
const WAIT = /(?:^|,)\s*wait=(\d{1,3})\s*(?:,|;|$)/

/** A client says by `Prefer: wait=…` (RFC 7240) how long the store may take, beyond what it is given for others. */
function withPatience<T>({ prefer }: IncomingRequest['headers'], work: () => Promise<T>): Promise<T> {
  const [, seconds] = WAIT.exec([prefer].flat().join()) ?? []
  if (seconds === undefined) return work()
  return withStoreBudget(work, Math.min(Number(seconds), MOST_PATIENCE) * 1000)
}
