import { describe, expect, it } from 'vitest'
import { SnapshotPlaces } from '../../../src/identity/directory/records/places.ts'
import { compileScopeRule, satisfies } from '../../../src/gateway/actions/action-table.ts'
import { checkBody } from '../../../src/gateway/decide/body.ts'
import {
  admit,
  checkUserinfo,
  matchAction,
  negotiate,
  readTarget,
  refuseInPlaceMaintenance,
  requireApiVersion,
  requirePlace,
  requireScope,
  takesUpgrade,
} from '../../../src/gateway/decide/checks.ts'
import { Findings } from '../../../src/gateway/decide/pipeline.ts'
import {
  compileAuthorities,
  parseRequestTarget,
  type RequestTarget,
} from '../../../src/base/http/head/request-target.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { PRINCIPAL } from '../../support/calls.ts'
import {
  CATALOGUE,
  closureFor,
  exchangeOf,
  FUND_LIST,
  makeGateway,
  principalWith,
} from '../../support/gateway.ts'
import { code, scopeOf } from '../../support/scope.ts'

const targetOf = (path: string): RequestTarget => exchangeOf(path).target as RequestTarget
const { runtime } = makeGateway()
const named = (path: string, method = 'GET') => matchAction(runtime.actions, targetOf(path), method)
const FUND = 'f/ACME/SUPER1/fund-data/detail/7'

describe('C4.6 the action of a call', () => {
  it('C4.6 is found with its parameters, business and fund', () => {
    expect(named(FUND)).toMatchObject({ params: { id: '7' }, business: 'ACME', fund: 'SUPER1' })
    expect(named(FUND_LIST)).toMatchObject({ params: {}, business: 'ACME', fund: undefined })
    expect(named(FUND_LIST, 'HEAD').operation.action.name).toBe('fund-list')
  })

  it.each(['b', 'b/ACME', 'b/ACME/fund-data', 'x/ACME/fund-data/fund-list', 'u/ACME/fund-data/fund-list'])(
    'C4.6 is not found at %j',
    (path) => {
      expect(() => named(path)).toThrow(expect.objectContaining({ code: 'unknown_action' }))
    },
  )

  it('C4.6 has no other methods than it is configured for, and says which', () => {
    expect(() => named(FUND_LIST, 'DELETE')).toThrow(
      expect.objectContaining({
        code: 'method_not_allowed',
        facts: { allow: expect.arrayContaining(['GET', 'HEAD', 'POST']) as unknown },
      }),
    )
  })

  it('C4.3 belongs to version 1.0', () => {
    const other = { segments: ['api', '1.1'] } as unknown as RequestTarget
    expect(() => requireApiVersion(other)).toThrow(expect.objectContaining({ code: 'unknown_api_version' }))
    expect(() => requireApiVersion(targetOf(FUND_LIST))).not.toThrow()
  })

  it('T2.5 takes an upgrade only where it says so, and only one that its backend makes', () => {
    const takes = (path: string, upgrade: boolean, asked: boolean): boolean => {
      const { actions } = makeGateway({
        backend: { upgrade: { isAsked: () => asked, take: () => Promise.reject(new Error('not taken')) } },
      }).runtime
      const { operation } = matchAction(actions, targetOf(FUND_LIST), 'GET')
      Object.assign(operation, { upgrade })
      return takesUpgrade({ ...runtime, actions }, { headers: {} }, targetOf(path))
    }
    expect(takes(FUND_LIST, true, true)).toBe(true)
    expect(takes(FUND_LIST, true, false)).toBe(false)
    expect(takes(FUND_LIST, false, true)).toBe(false)
    expect(takes('b', true, true)).toBe(false)
  })
})

describe('C4.7 the scope', () => {
  it('C4.7 C5.3 needs one value of each group', () => {
    const rule = { groups: [new Set(['a', 'b']), new Set(['c'])], challenge: 'a b c' }
    const has = (scope: string) => () => requireScope(principalWith(scopeOf(scope)), rule)
    expect(has('b c')).not.toThrow()
    for (const scope of ['a b', 'c', 'd'])
      expect(has(scope)).toThrow(
        expect.objectContaining({ code: 'insufficient_scope', facts: { scope: 'a b c' } }),
      )
  })
})

describe('C4.8 the place', () => {
  const places = (given: 'any' | readonly string[]): SnapshotPlaces => {
    const funds = given === 'any' ? given : new Set(given.map(code))
    return new SnapshotPlaces(new Map([['ACME', { code: code('ACME'), name: 'Acme', funds }]]))
  }
  const business = { level: 'business', business: code('ACME') } as const
  const fund = { level: 'fund', business: code('ACME'), fund: code('SUPER1') } as const

  it.each([
    ['a business token', business, FUND_LIST, { business: 'ACME', fund: undefined }],
    ['a business token at a fund', business, FUND, { business: 'ACME', fund: 'SUPER1' }],
    ['a fund token at its fund', fund, FUND, { business: 'ACME', fund: 'SUPER1' }],
  ])('C5.4 is %s’s', (_, target, path, place) => {
    for (const where of [places('any'), places(['SUPER1']), undefined])
      expect(requirePlace(where, principalWith({ target }), named(path))).toEqual(place)
  })

  it.each([
    ['no target', undefined, FUND_LIST, places('any')],
    ['another business', { ...business, business: code('GLOBEX') }, FUND_LIST, places('any')],
    ['a business that is not there', business, FUND_LIST, new SnapshotPlaces(new Map())],
    ['a fund token at its business', fund, FUND_LIST, places('any')],
    ['another fund', { ...fund, fund: code('GROWTH') }, FUND, places('any')],
    ['a fund that is not there', business, FUND, places(['GROWTH'])],
    ['a fund that is no code (T3.11)', business, 'f/ACME/a%20b/fund-data/detail/7', undefined],
  ])('C4.12 is refused alike: %s', (_, target, path, where) => {
    expect(() => requirePlace(where, principalWith({ target }), named(path))).toThrow(
      expect.objectContaining({ code: 'unknown_place', facts: {} }),
    )
  })
})

describe('C4.9 a place under maintenance', () => {
  const closed = (closure: Partial<ReturnType<typeof closureFor>>, client?: string) => () =>
    refuseInPlaceMaintenance(
      makeGateway({ place: () => ({ ...closureFor('friend'), ...closure }) }).runtime,
      exchangeOf(FUND_LIST),
      client === undefined ? undefined : principalWith({ client, clientKey: client }),
      named(FUND_LIST).operation,
      'ACME',
    )

  it('C9.2 lets the clients and the addresses of its list pass', () => {
    expect(closed({}, 'friend')).not.toThrow()
    expect(closed({ admitsAddress: () => true })).not.toThrow()
  })

  it('C9.1 refuses everybody else, with its own words and its time', () => {
    const facts = { retryAfter: 60, notice: 'Back at six' }
    for (const client of [undefined, 'other'])
      expect(closed({ message: 'Back at six' }, client)).toThrow(
        expect.objectContaining({ code: 'place_maintenance', facts }),
      )
    expect(closed({}, 'other')).toThrow(expect.objectContaining({ facts: { retryAfter: 60 } }))
  })
})

const { operation } = named(FUND_LIST)

function faultOf(attempt: () => unknown): Fault {
  try {
    attempt()
  } catch (thrown) {
    return thrown as Fault
  }
  throw new Error('nothing was refused')
}
const codeOf = (attempt: () => unknown): string => faultOf(attempt).code

describe('C4.1 readTarget', () => {
  it('C4.1 throws what reading met before what the load refuses, and that before another path', () => {
    const refusal = new Fault('overloaded')
    expect(codeOf(() => readTarget(exchangeOf(FUND_LIST, { target: new Fault('bad_host'), refusal })))).toBe(
      'bad_host',
    )
    const outside = parseRequestTarget('/other', compileAuthorities(['http://api.example']))
    expect(codeOf(() => readTarget(exchangeOf(FUND_LIST, { target: outside, refusal })))).toBe('overloaded')
    expect(codeOf(() => readTarget(exchangeOf(FUND_LIST, { target: outside })))).toBe('outside')
  })
})

describe('C4.5 admit', () => {
  it('C4.5 keeps the headers of the rate, also of a call that it refuses', () => {
    const headers = { RateLimit: '"client";r=0;t=1' }
    const refusal = new Fault('rate_limited')
    for (const verdict of [undefined, { headers, refusal: undefined }]) {
      const findings = new Findings()
      admit({ ...runtime, admission: { admit: () => verdict } }, PRINCIPAL, exchangeOf(FUND_LIST), findings)
      expect(findings.headers).toBe(verdict?.headers)
    }
    const findings = new Findings()
    const refusing = { ...runtime, admission: { admit: () => ({ headers, refusal }) } }
    expect(codeOf(() => admit(refusing, PRINCIPAL, exchangeOf(FUND_LIST), findings))).toBe('rate_limited')
    expect(findings.headers).toBe(headers)
  })
})

describe('C4.7 requireScope', () => {
  it('C5.2 an implying value satisfies the rule, and the challenge names the configured one', () => {
    const rule = compileScopeRule({ any: ['fund.read'] }, undefined, CATALOGUE)
    expect(() => requireScope(principalWith(scopeOf('fund.write')), rule)).not.toThrow()
    const { code: fault, facts } = faultOf(() => requireScope(principalWith(scopeOf('openid')), rule))
    expect([fault, facts.scope]).toEqual(['insufficient_scope', 'fund.read'])
  })

  it('C5.3 any needs one value, all needs each, and the area adds its own', () => {
    const held = (...values: string[]) => new Set(values)
    const any = compileScopeRule({ any: ['openid', 'email'] }, undefined, CATALOGUE)
    const all = compileScopeRule({ all: ['openid', 'email'] }, undefined, CATALOGUE)
    const area = compileScopeRule({ any: ['openid'] }, { backend: 'funds', scopes: ['fund.read'] }, CATALOGUE)
    expect([satisfies(held('email'), any), satisfies(held(), any)]).toEqual([true, false])
    expect([satisfies(held('email'), all), satisfies(held('email', 'openid'), all)]).toEqual([false, true])
    expect([satisfies(held('openid'), area), satisfies(held('openid', 'fund.write'), area)]).toEqual([
      false,
      true,
    ])
    expect([any.challenge, all.challenge, area.challenge]).toEqual([
      'openid',
      'openid email',
      'openid fund.read',
    ])
  })

  it('C5.3 a rule with both any and all, which is a problem, counts as all; no token satisfies one with neither', () => {
    const held = (...values: string[]) => new Set(values)
    const both = compileScopeRule({ any: ['openid'], all: ['email', 'fund.read'] }, undefined, CATALOGUE)
    expect(both.challenge).toBe('email fund.read')
    expect([satisfies(held('openid', 'email'), both), satisfies(held('email', 'fund.read'), both)]).toEqual([
      false,
      true,
    ])
    expect(satisfies(held('openid', 'fund.read'), compileScopeRule({}, undefined, CATALOGUE))).toBe(false)
  })
})

describe('C4.10 negotiate', () => {
  const { negotiation } = runtime
  const head = (accept?: string) =>
    exchangeOf(FUND_LIST, accept === undefined ? {} : { headers: { accept } }).head

  it('C7.1 an action with types of its own is not enveloped', () => {
    const own = { ...operation, produces: ['application/pdf'] }
    expect(negotiate(negotiation, head(), own)).toEqual({ kind: 'own', version: 1, type: 'application/pdf' })
    expect(codeOf(() => negotiate(negotiation, head('text/html'), own))).toBe('not_acceptable')
  })

  it('C4.10 the media type comes before the action version', () => {
    expect(negotiate(negotiation, head(), operation)).toMatchObject({
      kind: 'envelope',
      format: 'json',
      version: 1,
    })
    expect(
      codeOf(() => negotiate(negotiation, head('application/vnd.postern.action.v9+json'), operation)),
    ).toBe('unknown_action_version')
    expect(codeOf(() => negotiate(negotiation, head('image/png'), operation))).toBe('not_acceptable')
  })
})

describe('C4.11 checkBody', () => {
  const post = named(FUND_LIST, 'POST').operation
  const head = (headers: Record<string, string>) => exchangeOf(FUND_LIST, { headers }).head
  const json = { 'content-type': 'application/json' }

  it('C4.11 plans what to read, and refuses by the declared length alone', () => {
    const parsed = { kind: 'parsed', as: 'json', limit: 10 }
    expect(checkBody(head({ ...json, 'content-length': '10' }), post, 10)).toEqual(parsed)
    expect(checkBody(head({ ...json, 'transfer-encoding': 'chunked' }), post, 10)).toEqual(parsed)
    expect(codeOf(() => checkBody(head({ ...json, 'content-length': '11' }), post, 10))).toBe(
      'body_too_large',
    )
    const part = { ...json, 'content-length': '10', 'content-range': 'bytes 0-9/99' }
    expect(codeOf(() => checkBody(head(part), post, 10))).toBe('body_partial')
    expect(codeOf(() => checkBody(head(json), post, 10))).toBe('body_missing')
    expect(checkBody(head({}), operation, 10)).toEqual({ kind: 'none' })
    expect(codeOf(() => checkBody(head({ ...json, 'content-length': '1' }), operation, 10))).toBe(
      'body_unexpected',
    )
  })

  it('C7.1 an action with request types of its own streams, of whatever length', () => {
    const own = { ...post, consumes: ['image/*'] }
    const type = { 'content-type': 'image/png' }
    expect(checkBody(head({ ...type, 'content-length': '99' }), own, 10)).toEqual({
      kind: 'opaque',
      contentType: 'image/png',
      length: 99,
    })
    expect(checkBody(head({ ...type, 'transfer-encoding': 'chunked' }), own, 10)).toMatchObject({
      length: undefined,
    })
    expect(checkBody(head(type), own, 10)).toEqual({ kind: 'none' })
    expect(codeOf(() => checkBody(head({ ...json, 'content-length': '1' }), own, 10))).toBe(
      'unsupported_media_type',
    )
  })
})

describe('C6.3.1 checkUserinfo', () => {
  it('C6.3.1 checks method, scope, Accept and Content-Type in this order', () => {
    const headers = { accept: 'application/xml', 'content-type': 'text/plain' }
    const check = (method: string, scope: string, sent: Record<string, string> = headers) =>
      codeOf(() =>
        checkUserinfo(
          runtime,
          exchangeOf(FUND_LIST, { method, headers: sent }).head,
          principalWith(scopeOf(scope)),
        ),
      )
    expect(check('PUT', 'email')).toBe('method_not_allowed')
    expect(check('POST', 'email')).toBe('insufficient_scope')
    expect(check('POST', 'openid')).toBe('not_acceptable')
    expect(check('POST', 'openid', { ...headers, accept: '*/*' })).toBe('unsupported_media_type')
    expect(() =>
      checkUserinfo(runtime, exchangeOf(FUND_LIST).head, principalWith(scopeOf('openid'))),
    ).not.toThrow()
  })
})
