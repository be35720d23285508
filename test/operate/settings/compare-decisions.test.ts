import { describe, expect, it } from 'vitest'
import type { ExplainedCheck, Explanation, Verdict } from '../../../src/base/contracts/calls/explanation.ts'
import { CHECKS } from '../../../src/gateway/decide/order.ts'
import type { FaultCode } from '../../../src/base/kernel/faults.ts'
import { compareDecisions } from '../../../src/operate/settings/compare-decisions.ts'

/** An explanation whose checks pass, but for the one that this reason belongs to. */
function explained(reason?: FaultCode, verdict: Verdict = 'failed'): Explanation {
  const failing = CHECKS.find(({ faults }) => reason !== undefined && faults.includes(reason))
  const checks = CHECKS.map(({ clause, title }): ExplainedCheck => {
    const fails = title === failing?.title
    return {
      ...{ clause, title, verdict: fails ? verdict : 'passed', wouldFailToo: false, enforced: true },
      ...{ reason: fails ? reason : undefined, facts: {}, words: `What ${clause} found.` },
    }
  })
  return {
    outcome: failing === undefined ? 'let in' : verdict === 'unknown' ? 'unknown' : 'refused',
    ...{
      method: 'GET',
      path: '/api',
      kind: 'call',
      reportOnly: undefined,
      caller: undefined,
      action: undefined,
    },
    refusal:
      reason === undefined || verdict !== 'failed'
        ? undefined
        : {
            ...{ clause: failing?.clause ?? '', reason, status: 400, code: 'X', text: '' },
            retryAfter: undefined,
          },
    checks,
  }
}

interface Then {
  readonly reason?: string
  readonly wouldRefuse?: string
  readonly hasCaller?: boolean
}

const compare = (then: Then, now: Explanation | undefined) =>
  compareDecisions({ reason: undefined, wouldRefuse: undefined, hasCaller: true, ...then }, now)

describe('compareDecisions', () => {
  it.each<[Then, FaultCode | undefined, string, string, boolean, RegExp]>([
    [{}, undefined, 'let in', 'let in', true, /^It was let in, and would be now\.$/],
    [{}, 'unknown_place', 'let in', 'unknown_place', false, /^It was let in, and would be refused now\./],
    [
      { reason: 'unknown_place' },
      undefined,
      'unknown_place',
      'let in',
      false,
      /^It would be let in now\..*C4\.8/,
    ],
    [
      { reason: 'unknown_place' },
      'unknown_place',
      'unknown_place',
      'unknown_place',
      true,
      /for the same reason\./,
    ],
    [
      { reason: 'unknown_place' },
      'insufficient_scope',
      ...['unknown_place', 'insufficient_scope'],
      false,
      /another reason now\..*C4\.7.*Of the reason of then:.*C4\.8/,
    ],
    [
      { wouldRefuse: 'unknown_place' },
      undefined,
      'unknown_place',
      'let in',
      false,
      /^It would be let in now\./,
    ],
  ] as never)('C14.4 says what has changed: %j, now %s', (then, now, was, is, same, words) => {
    const difference = compare(then, explained(now))
    expect(difference).toMatchObject({ then: was, now: is, same })
    expect(difference.words).toMatch(words)
  })

  it('C14.4 takes what a backend answered for no part of the decision', () => {
    expect(compare({ reason: 'upstream_unavailable' }, explained())).toMatchObject({
      then: 'let in',
      same: true,
    })
  })

  it.each<[string, Then, Explanation | undefined, RegExp]>([
    ['too little is kept', { reason: 'bad_target' }, undefined, /^Too little of it is known/],
    [
      'its token was refused',
      { reason: 'invalid_token', hasCaller: false },
      explained('no_credentials'),
      /^Its credentials were refused, and are not kept\./,
    ],
    [
      'its token was never looked at',
      { reason: 'service_maintenance', hasCaller: false },
      explained('no_credentials'),
      /^It would be let in as far as its token/,
    ],
    ['its query was wrong', { reason: 'query_invalid' }, explained(), /^Its query is not kept/],
    ['a parameter is missing now', {}, explained('query_invalid'), /^It would be let in as far as its query/],
    ['its body was wrong', { reason: 'body_malformed' }, explained('body_missing'), /^Its body is not kept/],
    ['its body is missing now', {}, explained('body_missing'), /^It would be let in as far as its body/],
    [
      'its issuer would have to be asked',
      {},
      explained('invalid_token', 'unknown'),
      /^Somebody else would have to tell\..*C4\.4/,
    ],
  ])('C14.4 guesses nothing where %s', (_why, then, now, words) => {
    const difference = compare(then, now)
    expect(difference).toMatchObject({ now: 'unknown', same: undefined })
    expect(difference.words).toMatch(words)
  })

  it('C14.4 judges a Content-Type, which is kept', () => {
    expect(compare({ reason: 'unsupported_media_type' }, explained('unsupported_media_type'))).toMatchObject({
      now: 'unsupported_media_type',
      same: true,
    })
  })

  it('C14.4 a call without credentials is refused for the same reason again', () => {
    const difference = compare({ reason: 'no_credentials', hasCaller: false }, explained('no_credentials'))
    expect(difference.same).toBe(true)
  })
})
