import { describe, expect, it } from 'vitest'
import type { Principal } from '../../../src/base/contracts/people/principal.ts'
import type { DecisionEvent } from '../../../src/base/contracts/records/recorder.ts'
import { compileAuthorities, parseRequestTarget } from '../../../src/base/http/head/request-target.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { KEPT, PastCalls } from '../../../src/operate/watch/past-calls.ts'
import { fakeDecision, fakeExchange } from '../../support/events.ts'
import { code, scopeOf } from '../../support/scope.ts'

const ALICE: Principal = {
  subject: 'alice',
  client: 'acme-books',
  clientKey: 'acme-books',
  issuer: 'https://id.example',
  ...scopeOf('fund.read target:f/ACME/SUPER1'),
  target: { level: 'fund', business: code('ACME'), fund: code('SUPER1') },
  tokenId: 'the-id-of-the-token',
  family: 'a-family',
  issuedAt: 0,
  expiresAt: 1,
  key: { isTrusted: () => true },
}

const AUTHORITIES = compileAuthorities(['http://127.0.0.1'])

const clock = { now: () => 1_000_000, monotonic: () => 500 }

interface Told extends Partial<DecisionEvent> {
  readonly id: string
  readonly raw?: string
  readonly headers?: Record<string, string>
}

const event = ({ id, raw = '/api/1.0/b/ACME/x/y', headers = {}, ...rest }: Told): DecisionEvent =>
  fakeDecision({
    exchange: fakeExchange({
      ...{ id, headers, startedAt: 400 },
      target: parseRequestTarget(raw, AUTHORITIES),
    }),
    ...rest,
  })

describe('PastCalls', () => {
  it('C14.4 keeps who called, with which scope and target, what was asked for and why it was refused', () => {
    const past = new PastCalls(clock)
    past.decision(
      event({
        id: 'one',
        headers: { accept: 'application/xml', 'content-type': 'text/plain' },
        fault: new Fault('insufficient_scope', { detail: 'what the log says' }),
        status: 401,
        principal: ALICE,
        traceId: 'a'.repeat(32),
        version: 2,
      }),
    )
    expect(past.find('one')).toMatchObject({
      ...{ traceId: 'a'.repeat(32), version: 2 },
      ...{ requestId: 'one', at: 999_900, method: 'GET', path: '/api/1.0/b/ACME/x/y', status: 401 },
      ...{ reason: 'insufficient_scope', wouldRefuse: undefined, detail: 'what the log says' },
      caller: {
        ...{ client: 'acme-books', subject: 'alice', issuer: undefined },
        ...{ scope: 'fund.read target:f/ACME/SUPER1', target: 'target:f/ACME/SUPER1' },
      },
      ...{ accept: 'application/xml', contentType: 'text/plain', websocket: false },
    })
    expect(past.find('other')).toBeUndefined()
  })

  it(`C14.4 keeps the last ${KEPT.refused} refused calls and the last ${KEPT.allowed} others, each for itself`, () => {
    const past = new PastCalls(clock)
    past.decision(event({ id: 'allowed' }))
    past.decision(event({ id: 'refused', fault: new Fault('unknown_place') }))
    past.decision(event({ id: 'second', reported: { fault: new Fault('unknown_place'), area: 'x' } }))
    for (let at = 1; at < KEPT.refused - 1; at++)
      past.decision(event({ id: `r${at}`, fault: new Fault('unknown_place') }))
    for (let at = 1; at < KEPT.allowed; at++) past.decision(event({ id: `a${at}` }))
    expect([past.find('allowed')?.reason, past.find('refused')?.reason]).toEqual([undefined, 'unknown_place'])
    past.decision(event({ id: 'one more', fault: new Fault('unknown_place') }))
    past.decision(event({ id: 'another' }))
    expect([past.find('allowed'), past.find('refused')]).toEqual([undefined, undefined])
    expect(past.find('second')).toMatchObject({ reason: undefined, wouldRefuse: 'unknown_place' })
    expect(past.find('a1')).toBeDefined()
  })

  it('C14.4 keeps no token, no query and no other header', () => {
    const past = new PastCalls(clock)
    past.decision(
      event({
        id: 'one',
        raw: '/api/1.0/b/ACME/x/y?member=secret-1&token=secret-2',
        headers: { authorization: 'Bearer secret-3', cookie: 'secret-4', 'x-api-key': 'secret-5' },
        principal: ALICE,
      }),
    )
    const { principal, ...told } = past.find('one') ?? {}
    expect(JSON.stringify(told)).not.toMatch(/secret|the-id-of-the-token|a-family/)
    expect(principal).toBe(ALICE)
  })

  it('C14.4 keeps nothing that is long, and no target that could not be read', () => {
    const past = new PastCalls(clock)
    past.decision(
      event({ id: 'long', raw: `/api/${'x'.repeat(2000)}`, headers: { accept: 'text/x'.repeat(200) } }),
    )
    expect(past.find('long')).toMatchObject({ path: undefined, accept: undefined })
    const fault = new Fault('bad_target')
    past.decision(fakeDecision({ exchange: fakeExchange({ id: 'bad', target: fault }), fault, door: 'none' }))
    expect(past.find('bad')).toMatchObject({ path: undefined, reason: 'bad_target' })
  })

  it('C14.4 keeps no request for a token: those are told by the audit trail', () => {
    const past = new PastCalls(clock)
    past.decision(event({ id: 'token', door: 'identity', fault: new Fault('invalid_client') }))
    expect(past.find('token')).toBeUndefined()
  })
})
