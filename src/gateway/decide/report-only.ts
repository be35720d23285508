/**
 * Areas with `mode: report-only`, for introducing Postern in front of a service that is in use. Every check is made, in the
 * order of pipeline.ts. A call that would have been refused is let through; the fault is logged, counted and sent upstream.
 *
 * Some calls are refused nevertheless: those that cannot be forwarded (C4.1, C4.3), those that an operator stopped
 * (maintenance, C4.2 and C4.9), and those over the limits of the service or of the backend. The upstream learns who
 * calls only where C4.4 to C4.8 passed.
 */
import { Buffer } from 'node:buffer'
import { Readable } from 'node:stream'
import type { CallBody } from '../../base/contracts/calls/backend.ts'
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import type { Place } from '../../base/contracts/people/places.ts'
import type { Principal } from '../../base/contracts/people/principal.ts'
import { declaredBody, type Head, isBodiless, isSafe } from '../../base/http/head/head.ts'
import { decodeSegment, type RequestTarget } from '../../base/http/head/request-target.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { type Action, AREA_AT, type AuditRule, type Operation } from '../actions/action-table.ts'
import { type BodyPlan, type BodyRecord, checkBody, checkParameters, parseBody, planOpaque } from './body.ts'
import {
  admit,
  authenticate,
  matchAction,
  type NamedAction,
  negotiate,
  type Negotiated,
  passServiceMaintenance,
  readTarget,
  refuseInPlaceMaintenance,
  requireApiVersion,
  requirePlace,
  requireProof,
  requireScope,
  type Verification,
  VerifyFirst,
} from './checks.ts'
import type { Conversions } from '../conversion/conversions.ts'
import { NO_QUERY } from '../actions/parameters.ts'
import { type Decision, type Findings, ObservedFault } from './pipeline.ts'
import type { Runtime } from './runtime.ts'

export function reportOnlyArea({ reportOnly }: Runtime, target: RequestTarget | Fault): string | undefined {
  if (target instanceof Fault) return undefined
  const area = areaOf(target)
  return area !== undefined && reportOnly.has(area) ? area : undefined
}

const areaOf = ({ segments }: RequestTarget): string | undefined => {
  const at = AREA_AT[segments[2] ?? '']
  return at === undefined ? undefined : segments[at]
}

/**
 * `decide` of pipeline.ts for a report-only area: what a check throws is kept by the observation, unless the check is
 * enforced here too.
 * @throws the faults of C4.1, C4.2, C4.3 and C4.9
 */
export function decideReportOnly(
  runtime: Runtime,
  exchange: Exchange,
  findings: Findings,
  area: string,
  verified?: Verification,
): Decision | VerifyFirst | Promise<Decision> {
  const { head } = exchange
  const seen = (findings.observation = new ObservedFault(area))
  const target = readTarget(exchange) // C4.1, enforced
  const passed = passServiceMaintenance(runtime, exchange, verified) // C4.2, enforced
  if (passed instanceof VerifyFirst) return passed
  requireApiVersion(target) // C4.3, enforced
  const caller = seen.hold(() => authenticate(runtime, exchange, passed ?? verified)) // C4.4
  if (caller instanceof VerifyFirst) return caller
  const principal = caller && seen.hold(() => proven(runtime, exchange, caller, findings)) // C4.4a
  if (principal) findings.principal = principal
  if (principal) seen.hold(() => admit(runtime, principal, exchange, findings)) // C4.5
  const matched = seen.hold(() => matchAction(runtime.actions, target, head.method)) // C4.6
  if (matched) findings.matched(matched)
  const named = matched ?? unmatched(runtime, area, target, head.method)
  if (principal) seen.hold(() => requireScope(principal, named.operation.scopes)) // C4.7
  const place = principal && seen.hold(() => requirePlace(runtime.places, principal, named)) // C4.8
  const rest = (found: Place | undefined): Decision =>
    decideUnrefused(runtime, exchange, { target, principal, named, place: found, seen })
  return place instanceof Promise ? seen.holdLater(() => place).then(rest) : rest(place)
}

function proven(runtime: Runtime, exchange: Exchange, principal: Principal, findings: Findings): Principal {
  requireProof(runtime, exchange, principal, findings)
  return principal
}

interface Observed {
  readonly target: RequestTarget
  readonly principal: Principal | undefined
  readonly named: NamedAction
  readonly place: Place | undefined
  readonly seen: ObservedFault
}

/** Makes the checks C4.9 to C4.11. @throws the fault of C4.9 */
function decideUnrefused(
  runtime: Runtime,
  exchange: Exchange,
  { target, principal, named, place, seen }: Observed,
): Decision {
  const { head } = exchange
  const { operation, business } = named
  const vouched = seen.fault === undefined
  refuseInPlaceMaintenance(runtime, exchange, principal, operation, business) // C4.9, enforced
  const negotiated = seen.hold(() => negotiate(runtime.negotiation, head, operation)) // C4.10
  const query = seen.hold(() => checkParameters(target, operation)) // C4.11
  const body = seen.hold(() => checkBody(head, operation, runtime.bodyLimit)) // C4.11
  return {
    ...named,
    target,
    principal: vouched ? principal : undefined,
    place: vouched ? place : undefined,
    operation: negotiated === undefined ? verbatim(operation) : operation,
    negotiated: negotiated ?? passThroughAnswer(head, operation),
    query: query ?? NO_QUERY,
    body: body ?? planOpaque(head.headers['content-type'], declaredBody(head)),
    observation: seen,
  }
}

const ANYTHING = ['*/*']

const EACH: AuditRule = { calls: 'each', fields: [] }

/** The operation, with bodies that pass unchanged in both directions. */
const verbatim = (operation: Operation): Operation => ({
  ...operation,
  facts: { ...operation.facts, produces: ANYTHING },
  produces: ANYTHING,
  consumes: ANYTHING,
})

/** Stands for an action, or a method of one, that the configuration does not have. @throws Fault `internal` */
export function unmatched(
  { reportOnly }: Runtime,
  area: string,
  { segments }: RequestTarget,
  method: string,
): NamedAction {
  const backend = reportOnly.get(area)
  if (backend === undefined) throw new Fault('internal', { detail: 'a report-only area without a backend' })
  const level = segments[2] === 'f' ? 'f' : 'b'
  const action: Action = { slot: -1, level, area, name: '', parameters: [], isNested: true }
  return {
    operation: {
      action,
      method,
      backend,
      facts: {
        area,
        action: '',
        level: level === 'f' ? 'fund' : 'business',
        versioned: false,
        safe: isSafe(method),
        produces: ANYTHING,
      },
      scopes: { groups: [], challenge: '' },
      versions: { versions: [1], defaultVersion: 1 },
      produces: ANYTHING,
      consumes: ANYTHING,
      upgrade: false,
      query: undefined,
      body: { kind: 'none', schema: undefined, validate: undefined },
      audit: isSafe(method) ? undefined : EACH,
      items: {},
      documentation: undefined,
    },
    params: {},
    business: decodeSegment(segments[3] ?? ''),
    fund: level === 'f' ? decodeSegment(segments[4] ?? '') : undefined,
  }
}

const passThroughAnswer = ({ headers }: Head, { versions }: Operation): Negotiated => ({
  kind: 'own',
  version: versions.defaultVersion,
  type: headers.accept ?? '*/*',
})

/** As `readCallBody`, but a body that would be refused is sent on unparsed. Rejects with Fault `client_gone`. */
export async function readBodyUnrefused(
  { body: plan, operation, observation }: Decision,
  exchange: Exchange,
  conversions: Conversions,
  record?: BodyRecord,
): Promise<CallBody> {
  const { body, head } = exchange
  if (plan.kind === 'none' || isBodiless(head.method)) return refuseNothing(plan, observation)
  const contentType = head.headers['content-type']
  if (plan.kind === 'opaque') return { kind: 'stream', stream: body, contentType, length: plan.length }
  const { bytes, rest } = await readPrefix(body, plan.limit)
  if (rest) {
    observation?.keep(new Fault('body_too_large'))
    return { kind: 'stream', stream: rest, contentType, length: undefined }
  }
  const parsed = await observation?.holdLater(async () =>
    parseBody(plan, { bytes, onGone: (listener) => exchange.onGone(listener) }, operation, conversions),
  )
  await record?.received(bytes, parsed && plan.as)
  if (exchange.gone === true)
    throw new Fault('client_gone', { detail: 'the client left before its call went on' })
  if (parsed) return parsed
  return { kind: 'stream', stream: Readable.from([bytes]), contentType, length: bytes.length }
}

function refuseNothing(plan: BodyPlan, observation: ObservedFault | undefined): CallBody {
  if (plan.kind !== 'none') observation?.keep(new Fault('body_unexpected'))
  return { kind: 'none' }
}

interface Prefix {
  readonly bytes: Buffer
  /** The whole body, if it is longer than the limit. */
  readonly rest: Readable | undefined
}

async function readPrefix(body: Readable, limit: number): Promise<Prefix> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      length += chunk.length
      if (length > limit) return { bytes: Buffer.alloc(0), rest: Readable.from(followedBy(chunks, body)) }
    }
  } catch (cause) {
    throw cause instanceof Fault ? cause : new Fault('client_gone', { cause })
  }
  return { bytes: Buffer.concat(chunks, length), rest: undefined }
}

async function* followedBy(chunks: readonly Buffer[], body: Readable): AsyncGenerator<Buffer> {
  yield* chunks
  yield* body as AsyncIterable<Buffer>
}
