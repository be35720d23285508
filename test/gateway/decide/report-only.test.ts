import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import type { Exchange } from '../../../src/base/contracts/calls/exchange.ts'
import { type Decision, Findings } from '../../../src/gateway/decide/pipeline.ts'
import {
  decideReportOnly,
  readBodyUnrefused,
  reportOnlyArea,
} from '../../../src/gateway/decide/report-only.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { PRINCIPAL } from '../../support/calls.ts'
import {
  closureFor,
  exchangeOf,
  FUND_LIST,
  type GatewayParts,
  makeGateway,
  principalWith,
} from '../../support/gateway.ts'
import { code, scopeOf } from '../../support/scope.ts'

const AREAS = { 'fund-data': { backend: 'funds', mode: 'report-only' } } as const

function decideOn(
  exchange: Exchange,
  parts: GatewayParts = {},
  verified: Fault | typeof PRINCIPAL = PRINCIPAL,
) {
  const gateway = makeGateway({ areas: AREAS, ...parts })
  const findings = new Findings()
  const decision = decideReportOnly(gateway.runtime, exchange, findings, 'fund-data', verified) as Decision
  return { gateway, decision, reported: findings.observation?.fault?.code }
}

const codeOf = (attempt: () => unknown): unknown => {
  try {
    return attempt()
  } catch (thrown) {
    return (thrown as Fault).code
  }
}

describe('C4 report-only areas', () => {
  it('C4 finds the area by the path alone', () => {
    const { runtime } = makeGateway({ areas: AREAS })
    const areaOf = (path: string): string | undefined => reportOnlyArea(runtime, exchangeOf(path).target)
    expect(areaOf(FUND_LIST)).toBe('fund-data')
    expect(areaOf('f/ACME/SUPER1/fund-data/none')).toBe('fund-data')
    expect([areaOf('b/ACME/other/fund-list'), areaOf('x/ACME/fund-data')]).toEqual([undefined, undefined])
    expect(reportOnlyArea(runtime, new Fault('bad_target'))).toBeUndefined()
  })

  it('C4 reports nothing of a call that passes every check', () => {
    const { decision, reported } = decideOn(exchangeOf(FUND_LIST))
    expect(reported).toBeUndefined()
    expect(decision.observation?.header).toBe('allow')
    expect(decision).toMatchObject({ principal: PRINCIPAL, place: { business: 'ACME' } })
  })

  it.each([
    ['C4.4', 'invalid_token', FUND_LIST, new Fault('invalid_token')],
    ['C4.6', 'unknown_action', 'b/ACME/fund-data/none', PRINCIPAL],
    ['C4.7', 'insufficient_scope', FUND_LIST, principalWith(scopeOf('target:b/ACME'))],
    [
      'C4.8',
      'unknown_place',
      FUND_LIST,
      principalWith({ target: { level: 'business', business: code('OTHER') } }),
    ],
  ])(
    '%s lets a call through that would be %s, and tells the upstream nothing of who calls',
    (_clause, fault, path, verified) => {
      const { decision, reported } = decideOn(exchangeOf(path), {}, verified)
      expect(reported).toBe(fault)
      expect([decision.principal, decision.place]).toEqual([undefined, undefined])
      expect(decision.observation?.header).toBe(`would-refuse; reason=${fault}`)
    },
  )

  it('C4.10 passes both bodies on unchanged where Accept cannot be served, and still says who calls', () => {
    const { decision, reported } = decideOn(exchangeOf(FUND_LIST, { headers: { accept: 'image/png' } }))
    expect(reported).toBe('not_acceptable')
    expect(decision).toMatchObject({
      principal: PRINCIPAL,
      negotiated: { kind: 'own', type: 'image/png' },
      operation: { produces: ['*/*'], consumes: ['*/*'] },
    })
  })

  it('C4.11 passes a body on unread whose type is not supported', () => {
    const headers = { 'content-type': 'text/plain', 'content-length': '5' }
    const { decision, reported } = decideOn(exchangeOf(FUND_LIST, { method: 'POST', headers }))
    expect(reported).toBe('unsupported_media_type')
    expect(decision.body).toEqual({ kind: 'opaque', contentType: 'text/plain', length: 5 })
  })

  it('C4 refuses all the same what cannot be forwarded and what an operator stopped', () => {
    const stopped = { service: () => closureFor() }
    const place = { place: () => closureFor() }
    const unreadable = exchangeOf(FUND_LIST, { target: new Fault('bad_target') })
    expect(codeOf(() => decideOn(unreadable))).toBe('bad_target')
    expect(codeOf(() => decideOn(exchangeOf(FUND_LIST), stopped))).toBe('service_maintenance')
    expect(codeOf(() => decideOn(exchangeOf(FUND_LIST), place))).toBe('place_maintenance')
  })
})

describe('C4.11 bodies of report-only areas', () => {
  const post = (body: string, rest: Partial<Exchange> = {}): Exchange =>
    exchangeOf(FUND_LIST, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-length': String(body.length) },
      body: Readable.from([Buffer.from(body)]),
      ...rest,
    })

  async function read(exchange: Exchange, limit?: number) {
    const parts = limit === undefined ? {} : { runtime: { bodyLimit: limit } }
    const { gateway, decision } = decideOn(exchange, parts)
    const body = await readBodyUnrefused(decision, exchange, gateway.runtime.conversions)
    return { body, reported: decision.observation?.fault?.code }
  }

  it('C7.6 sends a good body on as it came', async () => {
    const { body, reported } = await read(post('{"a":1}'))
    expect(body).toMatchObject({ kind: 'bytes', contentType: 'application/json' })
    expect(reported).toBeUndefined()
  })

  it('C4.11 sends a body on that does not parse, and reports it', async () => {
    const { body, reported } = await read(post('{"a":'))
    expect(reported).toBe('body_malformed')
    expect(body).toMatchObject({ kind: 'stream', length: 5 })
    expect(body.kind === 'stream' && (await text(body.stream))).toBe('{"a":')
  })

  it('C4.11 sends all of a body on that is longer than the limit', async () => {
    const chunked = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' }
    const exchange = exchangeOf(FUND_LIST, {
      method: 'POST',
      headers: chunked,
      body: Readable.from(['{"a":"', 'bbbbbbbb', '"}'].map((piece) => Buffer.from(piece))),
    })
    const { body, reported } = await read(exchange, 10)
    expect(reported).toBe('body_too_large')
    expect(body.kind === 'stream' && (await text(body.stream))).toBe('{"a":"bbbbbbbb"}')
  })

  it('C4.11 sends a body on as its own stream where its type is not supported: nobody reads it here', async () => {
    const { head } = post('hello')
    const plain = { ...head, headers: { ...head.headers, 'content-type': 'text/plain' } }
    const exchange = post('hello', { head: plain })
    const { body, reported } = await read(exchange)
    expect(reported).toBe('unsupported_media_type')
    expect(body).toEqual({ kind: 'stream', stream: exchange.body, contentType: 'text/plain', length: 5 })
    expect(body.kind === 'stream' && body.stream).toBe(exchange.body)
  })

  it('C4.11 never sends the body of a GET on', async () => {
    const exchange = post('{"a":1}', { head: { ...post('{"a":1}').head, method: 'GET' } })
    const { body, reported } = await read(exchange)
    expect(body).toEqual({ kind: 'none' })
    expect(reported).toBe('body_unexpected')
  })

  it('C8.4 does not send a call on whose client has left', async () => {
    await expect(read(post('{"a":', { gone: true }))).rejects.toMatchObject({ code: 'client_gone' })
  })
})
