import { describe, expect, it } from 'vitest'
import { compileAuthorities, parseRequestTarget } from '../../../src/base/http/head/request-target.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { openLog } from '../../../src/operate/watch/log/log.ts'
import type { LogConfig } from '../../../src/operate/watch/schema.ts'
import { fakeDecision, fakeExchange } from '../../support/events.ts'

function startLog(overrides: Partial<LogConfig> = {}) {
  const written: string[] = []
  const clock = { now: () => Date.UTC(2026, 0, 15), monotonic: () => 0 }
  const destination = { write: (line: string) => void written.push(line) }
  const actions = [{ area: 'fund-data', action: 'fund-list' }]
  const config: LogConfig = { level: 'debug', calls: 'all', clientAddress: true, ...overrides }
  const log = openLog(config, { clock, destination, actions })
  const lines = (): Record<string, unknown>[] => written.map((line) => JSON.parse(line))
  return { log, written, lines }
}

const target = parseRequestTarget('/api/1.0/b/ACME/fund-data/fund-list?code=sesame', compileAuthorities([]))

describe('log', () => {
  it('C2.6 tells of each call: who, what, outcome and time, with both request ids', () => {
    const { log, lines } = startLog()
    const exchange = fakeExchange({ target, headers: { 'x-request-id': 'theirs' } })
    log.decision(fakeDecision({ exchange, slot: 0, business: 'ACME', totalMs: 1.239, upstreamMs: 0.5 }))
    expect(lines()).toEqual([
      {
        level: 'info',
        time: '2026-01-15T00:00:00.000Z',
        event: 'call',
        requestId: exchange.id,
        clientRequestId: 'theirs',
        door: 'api',
        method: 'GET',
        path: '/api/1.0/b/ACME/fund-data/fund-list',
        status: 200,
        address: '192.0.2.1',
        business: 'ACME',
        area: 'fund-data',
        action: 'fund-list',
        ms: 1.24,
        upstreamMs: 0.5,
      },
    ])
  })

  it('C12 tells of each token: by which grant, whose, and for which place', () => {
    const { log, lines } = startLog()
    const exchange = fakeExchange()
    const [whose, place] = [
      { client: 'acme-books', subject: 'a' },
      { business: 'ACME', fund: 'SUPER1' },
    ]
    log.token({ exchange, grant: 'password', result: 'issued', ...whose, ...place, fault: undefined })
    const told = { event: 'token', requestId: exchange.id, grant: 'password', result: 'issued' }
    expect(lines()).toMatchObject([{ ...told, ...whose, ...place }])
  })

  it('tells the cause of a fault at the level of its row, and never to more than the log', () => {
    const { log, lines } = startLog()
    const cause = Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:80'), { code: 'ECONNREFUSED' })
    const fault = new Fault('upstream_unreachable', { cause, detail: 'pool of sample' })
    log.decision(fakeDecision({ fault, status: 503 }))
    expect(lines()).toMatchObject([
      {
        level: 'error',
        reason: 'upstream_unreachable',
        detail: 'pool of sample',
        cause: { name: 'Error', code: 'ECONNREFUSED', message: 'connect ECONNREFUSED 10.0.0.1:80' },
      },
    ])
  })

  it('never holds the query, a refused target, or what looks like a credential', () => {
    const { log, written } = startLog()
    log.decision(fakeDecision({ exchange: fakeExchange({ target }) }))
    const head = { ...fakeExchange().head, rawTarget: '/x?access_token=sesame' }
    log.decision(fakeDecision({ exchange: fakeExchange({ head }), fault: new Fault('bad_target') }))
    log.note('warn', 'odd', {
      client_secret: 'sesame',
      nested: { Authorization: 'Bearer sesame', deep: [{ refresh_token: 'sesame' }] },
      cause: new Error('sent Bearer sesame12345 and eyJhbGciOiJub25lIn0.c2VzYW1l.c2VzYW1l'),
    })
    const text = written.join('')
    expect(text).not.toMatch(/sesame|c2VzYW1l/)
    expect(text).toContain('[redacted]')
  })

  it('T2.7 writes one line per event, whatever control characters or separators are sent', () => {
    const { log, written, lines } = startLog()
    const tricks = 'a\r\n{"level":"error"}\x1b[31m\u2028\u2029\x7f\x85\u202e\0'
    log.decision(fakeDecision({ exchange: fakeExchange({ headers: { 'x-request-id': tricks } }) }))
    log.note('info', 'tricks', { name: tricks })
    expect(written).toHaveLength(2)
    for (const line of written) {
      expect(line.indexOf('\n')).toBe(line.length - 1)
      expect(line).toMatch(/^[\x20-\x7e]*\n$/)
    }
    expect(lines()).toMatchObject([{ clientRequestId: tricks }, { name: tricks }])
  })

  it('keeps calls out that are of less importance than the level', () => {
    const { log, lines } = startLog({ level: 'warn' })
    log.decision(fakeDecision())
    log.decision(fakeDecision({ fault: new Fault('upstream_unreachable'), status: 503 }))
    expect(lines()).toMatchObject([{ level: 'error', event: 'call' }])
  })

  it('T2.7 never runs what a cause brings along', () => {
    const { log, lines } = startLog()
    const toJSON = (): never => {
      throw new Error('ran')
    }
    log.decision(fakeDecision({ fault: new Fault('internal', { cause: { toJSON, kept: 1 } }) }))
    expect(lines()).toMatchObject([{ cause: { kept: 1 } }])
  })

  it('T5.11 writes a bounded line whatever a cause holds, and never fails at reading it', () => {
    const { log, written, lines } = startLog()
    const huge = 'x'.repeat(8 * 1024 ** 2)
    const wide = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`key${i}`, huge]))
    const hostile = new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error('no')
        },
      },
    )
    const causes = [
      new Error(huge),
      huge,
      wide,
      Array(10_000).fill(huge),
      hostile,
      Symbol('s'),
      10n ** 10_000n,
    ]
    for (const cause of causes)
      log.decision(fakeDecision({ fault: new Fault('internal', { cause, detail: huge }) }))
    log.note('warn', 'odd', { error: Object.assign(new Error(huge), { name: huge, code: huge }) })
    for (const line of written) expect(line.length).toBeLessThan(128 * 1024)
    expect(lines()).toHaveLength(causes.length + 1)
    expect(lines()[0]).toMatchObject({ cause: { stack: expect.stringContaining('log.test.ts') } })
    expect(lines()[4]).toMatchObject({ cause: '[unreadable]' })
  })

  it('keeps calls out when told to, but for our own trouble', () => {
    const fault = new Fault('no_credentials')
    for (const [calls, expected] of [
      ['refused', 2],
      ['none', 1],
    ] as const) {
      const { log, written } = startLog({ calls })
      log.decision(fakeDecision())
      log.decision(fakeDecision({ fault, status: 401 }))
      log.decision(fakeDecision({ fault: new Fault('internal'), status: 500 }))
      expect(written).toHaveLength(expected)
    }
  })

  it('C8.5 tells what became upstream of a call that its client did not wait for', () => {
    const { log, lines } = startLog({ level: 'info' })
    const gone = fakeExchange({ target, gone: true })
    const fault = new Fault('client_gone')
    log.decision(fakeDecision({ fault, status: 400, upstreamMs: 1 }))
    log.decision(fakeDecision({ fault: new Fault('client_gone', { upstream: 'not_sent' }), upstreamMs: 1 }))
    log.decision(fakeDecision({ fault: new Fault('client_gone', { upstream: 201 }), upstreamMs: 1 }))
    log.decision(fakeDecision({ exchange: gone, upstreamMs: 1, upstreamStatus: 204 }))
    log.decision(fakeDecision({ exchange: gone, fault: new Fault('upstream_timeout'), upstreamMs: 1 }))
    log.decision(fakeDecision({ exchange: gone }))
    // It has reached nobody: nothing was done.
    log.decision(fakeDecision({ fault, status: 400 }))
    expect(
      lines().map(({ clientGone, upstream, upstreamStatus }) => [clientGone, upstream, upstreamStatus]),
    ).toEqual([
      [true, 'cancelled', undefined],
      [true, 'not_sent', undefined],
      [true, 'answered', 201],
      [true, 'answered', 204],
      [true, 'failed', undefined],
      [true, undefined, undefined],
    ])
  })

  it('leaves addresses out when told to', () => {
    const { log, written } = startLog({ clientAddress: false })
    log.decision(fakeDecision())
    expect(written.join('')).not.toContain('192.0.2.1')
  })
})
