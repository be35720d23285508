/** What operators are told of the version, of Accept and of the body. */
import { declaredBody } from '../../http/head.ts'
import { API_VERSION } from '../checks.ts'
import type { CheckResult, Progress, CheckDescription } from './progress.ts'

/** A fault in words: the text for the client, and what only the log has. */
const faultText = ({ fault }: CheckResult): string =>
  fault === undefined
    ? ''
    : [fault.publicText, fault.facts.say, fault.facts.detail]
        .filter(
          (part, at, all) => part !== undefined && !all.slice(0, at).some((before) => before?.includes(part)),
        )
        .join(' ')

/** The row of C4.3. */
export function describeVersion({ target }: Progress, { verdict }: CheckResult): CheckDescription {
  const named = target?.segments[1]
  return {
    facts: { named, known: [API_VERSION] },
    words:
      verdict === 'passed'
        ? `API version ${API_VERSION}.`
        : `The path names ${named === undefined ? 'no API version' : `the API version ${named}`}; there is ${API_VERSION}.`,
  }
}

/** The row of C4.10. */
export function describeAccept(
  { named, exchange, runtime }: Progress,
  result: CheckResult,
): CheckDescription {
  const accept = exchange.head.headers.accept
  if (named === undefined)
    return { facts: { accept }, words: 'What is offered is not known without the action.' }
  const { produces, versions } = named.operation
  const offered = produces ?? [`versions ${versions.versions.join(', ')} in JSON or XML`]
  const asked = accept === undefined ? 'There is no Accept header.' : `Accept is "${accept}".`
  return {
    facts: {
      accept,
      produces,
      versions: versions.versions,
      defaultVersion: versions.defaultVersion,
      errors: runtime.negotiation.formatOfErrors(accept),
    },
    words: `${asked} The action offers ${offered.join(', ')}.${result.verdict === 'failed' ? ` ${faultText(result)}` : ''}`,
  }
}

/** The row of C4.11. No part of the body is told. */
export function describeBody(
  { named, exchange, call, runtime, body }: Progress,
  result: CheckResult,
): CheckDescription {
  const { headers } = exchange.head
  const rule = named?.operation.body.kind
  const declared = declaredBody(exchange.head)
  return {
    facts: {
      contentType: headers['content-type'],
      declared,
      bytes: call.body.length,
      limit: runtime.bodyLimit,
      rule,
      consumes: named?.operation.consumes,
      taken: body?.kind,
    },
    words:
      result.verdict === 'failed'
        ? faultText(result)
        : rule === undefined
          ? 'What body it takes is not known without the action.'
          : BODIES[body?.kind ?? 'none'],
  }
}

const BODIES = {
  none: 'There is no body, and none is needed.',
  parsed: 'The body parses, and fits the action.',
  opaque: 'The body passes unread.',
} as const

/** The row of userinfo's own checks. */
export const describeUserinfo = (
  { exchange, principal }: Progress,
  result: CheckResult,
): CheckDescription => ({
  facts: { method: exchange.head.method, scope: principal?.scope, accept: exchange.head.headers.accept },
  words:
    result.verdict === 'failed' ? faultText(result) : 'Userinfo: method, scope, Accept and Content-Type.',
})
