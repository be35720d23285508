import { describe, expect, it } from 'vitest'
import type { Answer } from '../../../src/base/contracts/calls/exchange.ts'
import { type FaultRow, FAULTS } from '../../../src/base/kernel/fault-table.ts'
import { Fault, type FaultCode, type FaultFacts } from '../../../src/base/kernel/faults.ts'
import { renderFault } from '../../support/gateway.ts'

const render = (code: FaultCode, facts?: FaultFacts): Answer => renderFault(new Fault(code, facts), undefined)
const rows = Object.entries(FAULTS) as [FaultCode, FaultRow][]

describe('C2.3 a fault as an answer', () => {
  it('C4.13 has a challenge if its status is 401, and none otherwise', () => {
    for (const [code] of rows) {
      const { status, headers } = render(code, { scope: 'fund.read' })
      expect([code, 'WWW-Authenticate' in headers]).toEqual([code, status === 401])
    }
  })

  it('C4.13 its challenge names the error, and the scope only where there is one', () => {
    const challenge = 'WWW-Authenticate'
    expect(render('invalid_token').headers[challenge]).toContain('error="invalid_token"')
    expect(render('invalid_token').headers[challenge]).not.toContain('scope=')
    expect(render('insufficient_scope', { scope: 'fund.read' }).headers[challenge]).toMatch(
      /error="insufficient_scope".*scope="fund\.read"/,
    )
  })

  it('C2.6 names a time to try again if its status is 503 or 429 or it has one, and none otherwise', () => {
    for (const [code] of rows) {
      const { status, headers } = render(code)
      expect([code, headers['Retry-After']]).toEqual([
        code,
        status === 503 || status === 429 ? '5' : undefined,
      ])
      expect(render(code, { retryAfter: 7.2 }).headers['Retry-After']).toBe('8')
    }
    expect(render('service_maintenance', { retryAfter: 0 }).headers['Retry-After']).toBe('1')
  })

  it('C4.6 lists the methods that are allowed', () => {
    expect(render('method_not_allowed', { allow: ['GET', 'HEAD'] }).headers['Allow']).toBe('GET, HEAD')
    expect('Allow' in render('method_not_allowed').headers).toBe(false)
  })
})
