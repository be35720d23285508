import { describe, expect, it } from 'vitest'
import { VerifyFirst } from '../../../src/gateway/decide/checks.ts'
import { apiDoor } from '../../../src/gateway/decide/door.ts'
import { decide, decidePreflight, Findings } from '../../../src/gateway/decide/pipeline.ts'
import { decideReportOnly } from '../../../src/gateway/decide/report-only.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { PRINCIPAL } from '../../support/calls.ts'
import {
  closureFor,
  exchangeOf,
  FUND_LIST,
  type Gateway,
  type GatewayParts,
  makeGateway,
  principalWith,
  renderFault,
} from '../../support/gateway.ts'

const codeOf = (thrown: () => unknown): string => {
  try {
    thrown()
  } catch (fault) {
    return (fault as Fault).code
  }
  return 'nothing'
}

const serve = (gateway: Gateway, exchange = exchangeOf(FUND_LIST)) =>
  apiDoor(
    () => gateway.runtime,
    () => renderFault,
  )(exchange)

/** A gateway that counts what its admission lets in. */
function counting(parts: GatewayParts = {}) {
  const admitted: string[] = []
  const admission = { admit: ({ client }: { client: string }) => void admitted.push(client) }
  return { ...makeGateway({ ...parts, admission }), admitted }
}

describe('C4.4 a decision waits for nothing', () => {
  it('C4.16 a known token is decided without a promise', () => {
    const { runtime, tokens, verified, cache } = makeGateway()
    tokens.prime('token-1', PRINCIPAL)
    const decision = decide(runtime, exchangeOf(FUND_LIST), new Findings())
    expect(decision).toMatchObject({ principal: PRINCIPAL, business: 'ACME' })
    expect(verified).toEqual([])
    expect(cache).toEqual(['hit'])
  })

  it('C4.4 a token that is not known is to be verified first; nothing was counted by then', () => {
    const { runtime, admitted, cache } = counting()
    const findings = new Findings()
    const decision = decide(runtime, exchangeOf(FUND_LIST), findings)
    expect(decision).toEqual(new VerifyFirst('token-1'))
    expect([admitted, cache, findings]).toEqual([[], [], new Findings()])
  })

  it('C4.4 the second decision takes the principal that was verified', () => {
    const { runtime, verified } = makeGateway()
    const findings = new Findings()
    const decision = decide(runtime, exchangeOf(FUND_LIST), findings, PRINCIPAL)
    expect(decision).toMatchObject({ principal: PRINCIPAL })
    expect(findings.principal).toBe(PRINCIPAL)
    expect(verified).toEqual([])
  })

  it('C4.4 the second decision throws the fault of the verification, behind C4.1 to C4.3', () => {
    const { runtime } = makeGateway()
    const fault = new Fault('invalid_token')
    expect(() => decide(runtime, exchangeOf(FUND_LIST), new Findings(), fault)).toThrow(fault)
    const unknown = exchangeOf(FUND_LIST, { target: new Fault('bad_target') })
    expect(codeOf(() => decide(runtime, unknown, new Findings(), fault))).toBe('bad_target')
  })

  it('C4.16 a token whose key was withdrawn is verified again (T3.10)', () => {
    const { runtime, tokens } = makeGateway()
    tokens.prime('token-1', principalWith({ key: { isTrusted: () => false } }))
    expect(decide(runtime, exchangeOf(FUND_LIST), new Findings())).toBeInstanceOf(VerifyFirst)
  })

  it('C4.2 a client of the allow list is verified first, and only where there is a list', () => {
    const listed = makeGateway({ service: () => closureFor('client-1') })
    const call = exchangeOf(FUND_LIST)
    expect(decide(listed.runtime, call, new Findings())).toBeInstanceOf(VerifyFirst)
    expect(decide(listed.runtime, call, new Findings(), PRINCIPAL)).toMatchObject({ principal: PRINCIPAL })
    const another = principalWith({ client: 'client-2', clientKey: 'client-2' })
    expect(codeOf(() => decide(listed.runtime, call, new Findings(), another))).toBe('service_maintenance')
    const closed = makeGateway({ service: () => closureFor() })
    expect(codeOf(() => decide(closed.runtime, call, new Findings()))).toBe('service_maintenance')
  })

  it('C4.2 a bad token, or none, is 503 under maintenance', () => {
    const { runtime } = makeGateway({ service: () => closureFor('client-1') })
    const bad = new Fault('invalid_token')
    const code = (token: string, verified?: Fault): string =>
      codeOf(() => decide(runtime, exchangeOf(FUND_LIST, { token }), new Findings(), verified))
    expect([code('token-1', bad), code('')]).toEqual(['service_maintenance', 'service_maintenance'])
  })

  it('C4.2 a known token of a listed client is looked up once', () => {
    const { runtime, tokens, cache } = makeGateway({ service: () => closureFor('client-1') })
    tokens.prime('token-1', PRINCIPAL)
    void decide(runtime, exchangeOf(FUND_LIST), new Findings())
    expect(cache).toEqual(['hit'])
  })

  it('C4.18 a preflight needs no token, and C4.2 is asked about it', () => {
    const call = exchangeOf(FUND_LIST, { token: '', method: 'OPTIONS' })
    expect(decidePreflight(makeGateway().runtime, call)).toBeUndefined()
    const { runtime } = makeGateway({ service: () => closureFor('client-1') })
    expect(codeOf(() => decidePreflight(runtime, call))).toBe('service_maintenance')
  })

  it('C4.4 a report-only area has its token verified first too', () => {
    const { runtime } = makeGateway({ areas: { 'fund-data': { backend: 'funds', mode: 'report-only' } } })
    const call = exchangeOf(FUND_LIST)
    expect(decideReportOnly(runtime, call, new Findings(), 'fund-data')).toBeInstanceOf(VerifyFirst)
    const findings = new Findings()
    const refused = decideReportOnly(runtime, call, findings, 'fund-data', new Fault('invalid_token'))
    expect(refused).toMatchObject({ principal: undefined })
    expect(findings.observation?.fault?.code).toBe('invalid_token')
  })
})

describe('C4.4 the door verifies what a decision lacks', () => {
  it('C4.5 a call with an unknown token is verified, admitted and recorded once', async () => {
    const gateway = counting()
    expect(await serve(gateway)).toMatchObject({ status: 200 })
    const { verified, admitted, decisions, cache } = gateway
    expect([verified, admitted, cache]).toEqual([['token-1'], ['client-1'], ['miss']])
    expect(decisions).toMatchObject([{ status: 200, principal: PRINCIPAL, fault: undefined }])
    await serve(gateway)
    expect([verified, cache]).toEqual([['token-1'], ['miss', 'hit']])
  })

  it('C4.4 a refused token is the one fault that is recorded', async () => {
    const gateway = counting({ verify: () => Promise.reject(new Fault('invalid_token')) })
    expect(await serve(gateway)).toMatchObject({ status: 401 })
    expect(gateway.decisions.map(({ fault }) => fault?.code)).toEqual(['invalid_token'])
    expect([gateway.verified, gateway.admitted]).toEqual([['token-1'], []])
  })

  it('C4.15 what breaks in a verification is told as an internal fault', async () => {
    const gateway = makeGateway({ verify: () => Promise.reject(new Error('a defect')) })
    expect(await serve(gateway)).toMatchObject({ status: 500 })
    expect(gateway.decisions.map(({ fault }) => fault?.code)).toEqual(['internal'])
  })

  it('C4.4 a call is never decided a third time', async () => {
    const gateway = makeGateway()
    const { tokens } = gateway.runtime
    let verified = 0
    // A defect: the verification has no result, so that the second decision asks for it again.
    tokens.verify = () => {
      verified++
      return Promise.resolve(undefined as never)
    }
    await expect(serve(gateway)).rejects.toMatchObject({ code: 'internal' })
    expect(verified).toBe(1)
  })

  it('C4.4 a reload between the two decisions changes nothing for the call', async () => {
    let verifying: (() => void) | undefined
    const before = makeGateway({
      verify: () => new Promise((resolve) => (verifying = () => resolve(PRINCIPAL))),
    })
    const after = makeGateway({ service: () => closureFor() })
    let current = before
    const door = apiDoor(
      () => current.runtime,
      () => renderFault,
    )
    const answer = door(exchangeOf(FUND_LIST))
    current = after
    verifying?.()
    expect(await answer).toMatchObject({ status: 200 })
    expect([before.decisions.length, after.decisions.length]).toEqual([1, 0])
    expect(await door(exchangeOf(FUND_LIST))).toMatchObject({ status: 503 })
  })
})
