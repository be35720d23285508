import { describe, expect, it } from 'vitest'
import {
  matchAction,
  refuseInPlaceMaintenance,
  requireApiVersion,
  requirePlace,
  requireScope,
  takesWebsocket,
} from '../../../src/gateway/checks.ts'
import type { Places } from '../../../src/contracts/places.ts'
import type { RequestTarget } from '../../../src/http/request-target.ts'
import { code, scopeOf } from '../../support/scope.ts'
import { closureFor, exchangeOf, FUND_LIST, makeGateway, principalWith } from '../../support/gateway.ts'

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

  it('T2.5 takes a websocket only where it says so', () => {
    expect([takesWebsocket(runtime, targetOf(FUND_LIST)), takesWebsocket(runtime, targetOf('b'))]).toEqual([
      false,
      false,
    ])
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
  const places = (funds: 'any' | readonly string[]): Places => ({
    findBusiness: (business) =>
      business === 'ACME'
        ? { code: code('ACME'), name: 'Acme', funds: funds === 'any' ? funds : new Set(funds.map(code)) }
        : undefined,
  })
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
    ['a business that is not there', business, FUND_LIST, { findBusiness: () => undefined }],
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
      client === undefined ? undefined : principalWith({ client }),
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
