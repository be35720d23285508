import type { Answer } from '../../base/contracts/calls/exchange.ts'
import type { Client } from '../../base/contracts/people/people.ts'
import { quotedString } from '../../base/http/head/authorization.ts'
import type { Fault } from '../../base/kernel/faults.ts'
import type { RenderRefusal, StepDependencies } from './endpoint.ts'
import { pageAnswer } from '../pages/layout.ts'
import { errorPage } from '../pages/notices.ts'

type Headers = Answer['headers']

/** `Retry-After` of a fault that names no time itself, in seconds. */
const RETRY_AFTER = 5

/** Whom an answer is for; undefined where nobody has authenticated. */
type Asker = Pick<Client, 'strictRfc6749'> | undefined

/** Whether an answer is as RFC 6749 says: the client's setting counts, then the deployment's (C6.1.3). */
const isStrict = ({ config }: StepDependencies, asker: Asker): boolean =>
  asker?.strictRfc6749 ?? config.strictRfc6749

/**
 * The type of a token, for its client (C6.1.3): some send it back as the scheme, and C4.14 takes `Bearer` only.
 * @param jkt the thumbprint of the key that the token is bound to
 */
export const tokenType = (dependencies: StepDependencies, asker: Asker, jkt: string | undefined): string => {
  if (jkt !== undefined) return dependencies.security.boundType
  return isStrict(dependencies, asker) ? 'Bearer' : 'bearer'
}

/** Headers of token answers (C6.1.3). */
const tokenHeaders = (dependencies: StepDependencies, asker: Asker): Headers => ({
  'Content-Type': 'application/json;charset=UTF-8',
  'Cache-Control': isStrict(dependencies, asker) ? 'no-store' : 'no-cache',
  Pragma: 'no-cache',
})

/** A successful answer of a token-like endpoint (C6.1.3). */
export const tokenAnswer = (body: object, dependencies: StepDependencies, asker: Asker): Answer => ({
  status: 200,
  headers: tokenHeaders(dependencies, asker),
  body: JSON.stringify(body),
})

/** A successful answer with `no-store`, for all settings. */
export const privateAnswer = (body: object, dependencies: StepDependencies): Answer => {
  const answer = tokenAnswer(body, dependencies, undefined)
  return { ...answer, headers: { ...answer.headers, 'Cache-Control': 'no-store' } }
}

/** A successful answer without a body (RFC 7009 §2.2). */
export const emptyAnswer = (): Answer => ({
  status: 200,
  headers: { 'Cache-Control': 'no-store', Pragma: 'no-cache' },
  body: '',
})

export const publicDocument = (json: string, maxAgeSeconds: number): Answer => ({
  status: 200,
  headers: {
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': `public, max-age=${maxAgeSeconds}`,
  },
  body: json,
})

/** A wrong request is 400, except a wrong method, one that is too large to be kept and an exceeded rate (C6.0, C6.1.4, C6.2.1a). */
const TOLD: ReadonlySet<number> = new Set([405, 413, 429])

function statusOf({ status }: Fault): number {
  return status >= 500 || TOLD.has(status) ? status : 400
}

/** The text as an `error_description` may have it: printable ASCII without quote and backslash (RFC 6749 §5.2). */
export const describable = (text: string): string =>
  text.replaceAll('"', "'").replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, '?')

function faultHeaders({ facts, status }: Fault): Headers {
  return {
    ...(facts.allow && { Allow: facts.allow.join(', ') }),
    ...((status === 503 || status === 429) && {
      'Retry-After': String(Math.max(1, Math.ceil(facts.retryAfter ?? RETRY_AFTER))),
    }),
  }
}

const refuse = (fault: Fault, dependencies: StepDependencies, asker: Asker): Answer => ({
  status: statusOf(fault),
  headers: { ...tokenHeaders(dependencies, asker), ...faultHeaders(fault) },
  body: JSON.stringify({ error: fault.row.oauth, error_description: describable(fault.publicText) }),
})

/** RFC 6749 JSON. A client that failed to authenticate gets 401 and a Basic challenge (RFC 6749 §5.2). */
export const refuseWithChallenge: RenderRefusal = (fault, dependencies, { asker }) => {
  const answer = refuse(fault, dependencies, asker)
  if (fault.row.oauth !== 'invalid_client') return answer
  const challenge = `Basic realm=${quotedString(dependencies.urls.issuer)}, charset="UTF-8"`
  return { ...answer, status: 401, headers: { ...answer.headers, 'WWW-Authenticate': challenge } }
}

/** RFC 6749 JSON. `invalid_client` is 400 unless `identity.strictRfc6749` is set (C6.1.2, C6.1.3). */
export const refuseAsJson: RenderRefusal = (fault, dependencies, about) =>
  dependencies.config.strictRfc6749
    ? refuseWithChallenge(fault, dependencies, about)
    : refuse(fault, dependencies, about.asker)

/** As a page; a wrong method as JSON (C6.0). Neither may be kept (C6.2.3). */
export const refuseAsPage: RenderRefusal = (fault, dependencies, about) => {
  if (fault.status === 405) {
    const answer = refuseAsJson(fault, dependencies, about)
    return { ...answer, headers: { ...answer.headers, 'Cache-Control': 'no-store' } }
  }
  const retryAfter = String(fault.facts.retryAfter ?? RETRY_AFTER)
  return pageAnswer(
    dependencies.theme,
    errorPage(fault, about.id, {
      account: dependencies.theme.at('/connect/account'),
      forgotten: dependencies.theme.forgotten,
    }),
    fault.status === 503 ? { 'Retry-After': retryAfter } : {},
  )
}
