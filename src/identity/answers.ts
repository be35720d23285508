import type { Answer } from '../contracts/exchange.ts'
import type { Fault } from '../kernel/faults.ts'
import { quotedString } from '../http/authorization.ts'
import type { Refusal, StepDependencies } from './endpoint.ts'

type Headers = Answer['headers']

/** Seconds; what a 503 says if nobody knows better. */
const RETRY_AFTER = 5

/** C6.1.3; strict RFC 6749 §5.1 by the setting. */
const tokenHeaders = ({ config }: StepDependencies): Headers => ({
  'Content-Type': 'application/json;charset=UTF-8',
  'Cache-Control': config.strictRfc6749 ? 'no-store' : 'no-cache',
  Pragma: 'no-cache',
})

/** A success of a token-like endpoint (C6.1.3). */
export const tokenAnswer = (body: object, dependencies: StepDependencies): Answer => ({
  status: 200,
  headers: tokenHeaders(dependencies),
  body: JSON.stringify(body),
})

/** A success that must not be kept by anybody, whatever the settings. */
export const privateAnswer = (body: object, dependencies: StepDependencies): Answer => {
  const answer = tokenAnswer(body, dependencies)
  return { ...answer, headers: { ...answer.headers, 'Cache-Control': 'no-store' } }
}

/** A success that has nothing to tell (RFC 7009 §2.2). */
export const emptyAnswer = (): Answer => ({
  status: 200,
  headers: { 'Cache-Control': 'no-store', Pragma: 'no-cache' },
  body: '',
})

/** A document that anyone may read and keep for a while. */
export const publicDocument = (json: string, maxAgeSeconds: number): Answer => ({
  status: 200,
  headers: {
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': `public, max-age=${maxAgeSeconds}`,
  },
  body: json,
})

/**
 * The status that a token-like endpoint gives for a fault (C6.0, C6.1.4): whatever is wrong with a request is 400, a
 * method and a rate apart; our own troubles keep theirs.
 */
function statusOf({ status }: Fault): number {
  return status >= 500 || status === 405 || status === 429 ? status : 400
}

/** RFC 6749 §5.2: printable ASCII without quote and backslash. */
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

const refuse = (fault: Fault, dependencies: StepDependencies): Answer => ({
  status: statusOf(fault),
  headers: { ...tokenHeaders(dependencies), ...faultHeaders(fault) },
  body: JSON.stringify({ error: fault.row.oauth, error_description: describable(fault.publicText) }),
})

/** RFC 6749 §5.2: a client that failed to authenticate is challenged. */
export const refuseWithChallenge: Refusal = (fault, dependencies) => {
  const answer = refuse(fault, dependencies)
  if (fault.row.oauth !== 'invalid_client') return answer
  const challenge = `Basic realm=${quotedString(dependencies.urls.issuer)}, charset="UTF-8"`
  return { ...answer, status: 401, headers: { ...answer.headers, 'WWW-Authenticate': challenge } }
}

/** RFC 6749 JSON, `invalid_client` as 400 unless the strict setting says otherwise (C6.1.2, C6.1.3). */
export const refuseAsJson: Refusal = (fault, dependencies, id) =>
  dependencies.config.strictRfc6749
    ? refuseWithChallenge(fault, dependencies, id)
    : refuse(fault, dependencies)
