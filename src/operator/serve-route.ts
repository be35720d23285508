/** Serves one route of the admin API: who may use it, what is asked, what is answered. */
import { type AuditTrail, MOST_REASON } from '../contracts/audit.ts'
import { readIfMatch } from './conditions.ts'
import { AdminError } from './errors.ts'
import type { AdminApp, IncomingRequest, RequestSchema } from './framework.ts'
import type { OperatorControl } from './operator-control.ts'
import {
  type AuthenticatedOperator,
  expiredOperator,
  type Operators,
  refusedOperator,
  unknownOperator,
} from './operators.ts'
import { withoutPeople } from './people-in-answers.ts'
import { hasRight } from './rights.ts'
import { type AdminRequest, type Operation, members, MERGE_PATCH, type Schema } from './operation.ts'

export interface AdminApi {
  readonly audit: Pick<AuditTrail, 'note'>
  readonly routes: readonly Operation[]
  readonly control: OperatorControl
}

/** The API, and who may use it. */
export type GuardedApi = AdminApi & { readonly operators: Operators }

/**
 * Throws AdminError 401 or 403, unless the request shows a token whose role has the right. A token that was good, and a
 * role that does not suffice, are recorded; guesses are not, so that nobody without a token fills the trail.
 */
function authorize(
  request: IncomingRequest,
  route: Operation,
  { operators, audit }: GuardedApi,
): AuthenticatedOperator {
  const operator = operators.find(request.headers.authorization)
  if (operator === undefined) throw unknownOperator(request.headers.authorization)
  const expired = operators.hasExpired(operator)
  if (!expired && hasRight(operator.role, route.needs)) return operator
  const { operationId: id, method, needs } = route
  audit.note({
    event: 'operator.refused',
    outcome: 'refused',
    actor: { kind: 'operator', operator: operator.name, via: 'admin' },
    on: { kind: 'operation', id, method },
    change: { role: operator.role, needs, expired },
    personal: { 'actor.address': request.ip },
  })
  throw expired ? expiredOperator(operator) : refusedOperator(operator, needs)
}

const bodySchemaOf = ({ bodyOptional, checksBody }: Operation, body: Schema): RequestSchema => ({
  optional: bodyOptional === true,
  schema: checksBody === true ? { type: 'object' } : body,
})

export function addRoute(app: AdminApp, route: Operation, api: GuardedApi): void {
  const { method, path: url, body, query = {}, params, handle } = route
  const known = new WeakMap<IncomingRequest, AuthenticatedOperator>()
  app.route({
    method,
    url,
    schema: {
      querystring: { optional: false, schema: members(query) } satisfies RequestSchema,
      ...(params && { params: { optional: false, schema: members(params) } satisfies RequestSchema }),
      ...(body && { body: bodySchemaOf(route, body) }),
    },
    // Before the body is read.
    onRequest: (request, _reply, done) => {
      known.set(request, authorize(request, route, api))
      refuseOtherTypes(request)
      done()
    },
    handler: async (request, reply) => {
      const operator = known.get(request)
      const answer = await handle(api.control, readRequest(request, route, operator))
      const { status, type, tag, location } = answer
      const sent = tellsPeople(route, operator) ? answer.body : withoutPeople(answer.body)
      if (type !== undefined) reply.type(type)
      if (tag !== undefined) reply.header('ETag', `"${tag}"`)
      if (location !== undefined) reply.header('Location', location)
      return reply.code(status).send(sent)
    },
  })
}

/** Whether an answer may name people: by the role of who asks, or because the route is for that. */
const tellsPeople = ({ namesPeople }: Operation, operator: AuthenticatedOperator | undefined): boolean =>
  namesPeople === true || (operator !== undefined && hasRight(operator.role, 'administer'))

/** Only PATCH takes a merge patch. Throws AdminError 415. */
function refuseOtherTypes({ method, headers }: IncomingRequest): void {
  if (method !== 'PATCH' && headers['content-type']?.startsWith(MERGE_PATCH) === true)
    throw new AdminError(415, 'send the body as application/json')
}

function readRequest(
  request: IncomingRequest,
  route: Operation,
  known: AuthenticatedOperator | undefined,
): AdminRequest {
  const body = (request.body ?? {}) as AdminRequest['body']
  const query = (request.query ?? {}) as AdminRequest['query']
  const params = (request.params ?? {}) as AdminRequest['params']
  const { by, reason } = { ...query, ...body }
  const said = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  const told = { by: said(by), reason: shortReason(said(reason)) }
  return {
    body,
    query,
    params,
    ifMatch: ifMatchOf(request, route),
    operator: { operator: known?.name, ...told, via: request.ip, channel: 'admin' },
  }
}

/** Throws AdminError 400 where a version is named and the route cannot hold to it: ignored, another would be changed. */
function ifMatchOf(
  { headers }: IncomingRequest,
  { conditional, method }: Operation,
): AdminRequest['ifMatch'] {
  const header = headers['if-match']
  if (conditional === true) return readIfMatch(header)
  if (header === undefined || method === 'GET') return undefined
  throw new AdminError(400, 'the request does not fit', [
    'If-Match  is not known here: this is done to the latest version',
  ])
}

/** Throws AdminError 400 on a reason that a record has no room for. */
function shortReason(reason: string | undefined): string | undefined {
  if (reason === undefined || Buffer.byteLength(reason) <= MOST_REASON) return reason
  throw new AdminError(400, 'the request does not fit', [`reason  is longer than ${MOST_REASON} bytes`])
}
