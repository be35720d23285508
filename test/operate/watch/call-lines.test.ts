import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Principal } from '../../../src/base/contracts/people/principal.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { compileCallLine, milliseconds, round } from '../../../src/operate/watch/log/call-lines.ts'
import { cleanLine, quoteClean } from '../../../src/base/kernel/clean-text.ts'
import { anyText } from '../../support/any-text.ts'
import { fakeDecision, fakeExchange } from '../../support/events.ts'
import { code, scopeOf } from '../../support/scope.ts'

const TRICKY = [
  ...[
    '"',
    '\\',
    ' ',
    '\n',
    '\x00',
    '\x1b',
    '\x7f',
    '\x85',
    '\u2028',
    '\u202e',
    '\ufeff',
    '\ud800',
    '\u{1f600}',
  ],
  ...[
    'e',
    'y',
    'J',
    'eyJ',
    'eyJhbGciOiJub25lIn0.c2VzYW1l.c2VzYW1l',
    '.',
    'Bearer ',
    'Basic ',
    'sesame',
    '/',
    '-',
  ],
]
/** Texts of any characters, and of those that something is done about. */
const text = fc.oneof(
  anyText({ maxLength: 40 }),
  fc.array(fc.constantFrom(...TRICKY), { maxLength: 12 }).map((parts) => parts.join('')),
)

const ALICE: Principal = {
  subject: 'alice',
  client: 'acme-books',
  clientKey: 'acme-books',
  issuer: 'https://id.example',
  ...scopeOf('fund.read target:b/ACME'),
  target: { level: 'business', business: code('ACME') },
  tokenId: 'id',
  family: undefined,
  issuedAt: 0,
  expiresAt: 1,
  key: { isTrusted: () => true },
}

const callLine = compileCallLine({
  actions: [{ area: 'fund-data', action: 'fund-list' }],
  clientAddress: true,
  timestamp: () => ',"time":"now"',
})

describe('a line of a call', () => {
  it('T2.7 quotes every text as JSON does, and cleans it as a whole line is cleaned', () => {
    fc.assert(fc.property(text, (value) => quoteClean(value) === cleanLine(JSON.stringify(value))))
  })

  it('T2.7 leaves nothing to clean, whatever a client, a path or a fault put into it', () => {
    fc.assert(
      fc.property(text, text, text, text, (id, business, fund, detail) => {
        const exchange = fakeExchange({ headers: { 'x-request-id': id }, method: detail, clientAddress: id })
        const fault = new Fault('internal', { detail, cause: new Error(id) })
        const event = fakeDecision({
          exchange,
          business,
          fund,
          fault,
          principal: { ...ALICE, client: detail },
        })
        const line = callLine(event, 'error')
        expect(cleanLine(line)).toBe(line)
        expect(line).toMatch(/^[^\x00-\x1f]*\n$/)
        expect(JSON.parse(line)).toMatchObject({ event: 'call' })
      }),
    )
  })

  it('C2.6 names the business of the call, be it the token’s own or another', () => {
    for (const business of ['ACME', 'GLOBEX', undefined]) {
      const line = callLine(fakeDecision({ principal: ALICE, business }), 'info')
      const { client, subject, business: told } = JSON.parse(line) as Record<string, unknown>
      expect({ client, subject, told }).toEqual({ client: 'acme-books', subject: 'alice', told: business })
    }
  })

  it('C14.4 tells of a refused call the scope and what it accepts, of another neither', () => {
    const exchange = fakeExchange({ headers: { accept: `text/plain${'x'.repeat(1000)}` } })
    const fault = new Fault('insufficient_scope')
    const refused = JSON.parse(callLine(fakeDecision({ exchange, principal: ALICE, fault }), 'info'))
    expect(refused.scope).toBe('fund.read target:b/ACME')
    expect(refused.accept).toBe(`text/plain${'x'.repeat(246)}`)
    const allowed = JSON.parse(callLine(fakeDecision({ exchange, principal: ALICE }), 'info'))
    expect([allowed.scope, allowed.accept]).toEqual([undefined, undefined])
  })

  it('writes milliseconds as their number is written, rounded to hundredths', () => {
    const anything = fc.oneof(fc.double(), fc.double({ min: 0, max: 1e5, noNaN: true }), fc.nat())
    fc.assert(fc.property(anything, (ms) => milliseconds(ms) === `${round(ms)}`))
  })
})
