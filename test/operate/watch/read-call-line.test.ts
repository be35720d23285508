import { describe, expect, it } from 'vitest'
import { compileAuthorities, parseRequestTarget } from '../../../src/base/http/head/request-target.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { compileCallLine, readCallLine } from '../../../src/operate/watch/log/call-lines.ts'
import { fakeDecision, fakeExchange } from '../../support/events.ts'
import { code, scopeOf } from '../../support/scope.ts'

const callLine = compileCallLine({
  actions: [{ area: 'fund-data', action: 'fund-list' }],
  clientAddress: true,
  timestamp: () => ',"time":"2026-03-01T00:00:00.000Z"',
})

const target = parseRequestTarget('/api/1.0/b/ACME/x/y?a=b', compileAuthorities(['http://127.0.0.1']))

const LINE = callLine(
  fakeDecision({
    exchange: fakeExchange({ target, headers: { accept: 'text/html' } }),
    fault: new Fault('insufficient_scope', { detail: 'why' }),
    status: 401,
    slot: 0,
    principal: {
      ...{ subject: 'sub', client: 'acme-books', clientKey: 'acme-books', issuer: 'i' },
      ...scopeOf('fund.read target:b/ACME'),
      target: { level: 'business', business: code('ACME') },
      ...{ tokenId: undefined, family: undefined, issuedAt: 0, expiresAt: 1 },
      key: { isTrusted: () => true },
    },
    business: 'ACME',
    traceId: 'a'.repeat(32),
    version: 2,
  }),
  'info',
)

describe('readCallLine', () => {
  it('C14.4 reads what the log writes of a refused call', () => {
    expect(readCallLine(LINE)).toEqual({
      ...{ requestId: '0123456789abcdef0123456789abcdef', at: Date.UTC(2026, 2, 1) },
      ...{ method: 'GET', path: '/api/1.0/b/ACME/x/y', status: 401, reason: 'insufficient_scope' },
      ...{ wouldRefuse: undefined, detail: 'why', contentType: undefined, websocket: false },
      caller: {
        ...{ client: 'acme-books', subject: 'sub', issuer: undefined },
        ...{ scope: 'fund.read target:b/ACME', target: 'target:b/ACME' },
      },
      ...{ accept: 'text/html', business: 'ACME', traceId: 'a'.repeat(32), version: 2 },
    })
  })

  it('C14.4 reads a line before which a collector has put a time', () => {
    expect(readCallLine(`2026-03-01T00:00:00Z stdout F ${LINE}`).requestId).toHaveLength(32)
  })

  it.each([
    ['', 'it is no JSON object'],
    ['no line', 'it is no JSON object'],
    ['{"event":"call"', 'it is no JSON object'],
    ['{"event":"started"}', 'it is of another event'],
    ['{"event":"call","method":"GET"}', 'it has no `requestId`, `method` or `status`'],
    [
      '{"event":"call","requestId":"a","method":"POST","status":400,"door":"identity"}',
      'it is of an identity endpoint',
    ],
  ])('C14.4 refuses what is no line of a call: %s', (line, why) => {
    expect(() => readCallLine(line)).toThrow(why)
  })
})
