import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compilePathTemplate, encodeSegment } from '../../../src/gateway/backends/templates/places.ts'
import { canonicalSegment } from '../../../src/base/http/head/request-target.ts'
import { FAULTS } from '../../../src/base/kernel/fault-table.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { anyText } from '../../support/any-text.ts'
import { type CallOverrides, makeCall, PRINCIPAL } from '../../support/calls.ts'

const FUND = {
  action: {
    area: 'member-data',
    action: 'member-detail/{memberId}',
    level: 'fund',
    versioned: false,
    safe: true,
    produces: undefined,
  },
  version: 2,
  fund: 'SUPER1',
  params: { memberId: 'é x' },
  target: '/api/1.0/f/ACME/SUPER1/member-data/member-detail/%C3%A9%20x?a=1',
} as const

const MEMBER_ID = {
  kind: 'placeholder',
  written: 'memberId',
  to: { kind: 'name', name: 'memberId' },
  quotes: [],
} as const

const rendered = (template: string, call: CallOverrides = FUND): string => {
  const compiled = compilePathTemplate(template)
  return typeof compiled === 'string' ? expect.fail(compiled) : compiled.render(makeCall(call))
}

/** The code of the fault that a template and a value come to, or the path. */
const withValue = (template: string, memberId: string): string => {
  try {
    return rendered(template, { ...FUND, params: { memberId } })
  } catch (thrown) {
    return thrown instanceof Fault ? thrown.code : String(thrown)
  }
}

describe('the template of an upstream’s path', () => {
  it.each([
    ['/v2/{business}/{fund}/{area}/{action}', '/v2/ACME/SUPER1/member-data/member-detail/%C3%A9%20x'],
    ['/{version}/{action}', '/1.0/member-detail/%C3%A9%20x'],
    ['/v{actionVersion}/{subject}/{client}', '/v2/subject-1/client-1'],
    ['/m/{memberId}.json', '/m/%C3%A9%20x.json'],
    ['/t-{business}.{fund}/x', '/t-ACME.SUPER1/x'],
    ['/all', '/all'],
    ['/members/', '/members/'],
    ['/', '/'],
  ])('C8.7 T1.6 T2.10 makes %s of what was checked', (template, path) => {
    expect(rendered(template)).toBe(path)
  })

  it('C8.7 leaves {fund} out at business level, where it is a whole segment', () => {
    expect(rendered('/v2/{business}/{fund}/{area}/{action}', {})).toBe('/v2/ACME/fund-data/fund-list')
  })

  it('C8.7 encodes a code anew: only unreserved characters stay', () => {
    const call = { business: "A+b!'()*,=:@$&", target: '/api/1.0/b/A%2Bb/fund-data/fund-list' }
    expect(rendered('/{business}', call)).toBe('/A%2Bb%21%27%28%29%2A%2C%3D%3A%40%24%26')
  })

  it.each([
    '',
    'v2/{action}',
    '/v2//x',
    '/a/../b',
    '/./a',
    '/x{action',
    '/x}',
    '/{{x}}',
    '/{}',
    '/{a-b}',
    '/%2e',
    '/a;b',
    '/a?b',
    '/a\\b',
    '/é',
  ])('T1.6 %j is none, and why is said', (template) => {
    expect(compilePathTemplate(template)).toEqual(expect.any(String))
  })

  it.each([
    '',
    '.',
    '..',
    'a/b',
    'a\\b',
    'a;b',
    'a\0b',
    'a\nb',
    'a\x7fb',
    'a\u0085b',
    '%2f',
    '%2e%2e',
    '%252e',
    'a%25b0',
    '%u002e',
    '\ud800',
  ])('C8.7 T2.10 never sends %j of a client, whole or as a part: unsendable_argument', (value) => {
    for (const template of ['/x/{memberId}', '/x/{memberId}.json', '/x/a{memberId}'])
      expect([template, withValue(template, value)]).toEqual([template, 'unsendable_argument'])
  })

  it.each(['a?b', 'a#b', 'a&b=c', '100%', 'a%zz', 'a b', '...', 'a..b', '"<>[]^{|}`', '日本'])(
    'C8.7 T2.10 sends %j as one segment',
    (value) => {
      expect(decodeURIComponent(withValue('/x/{memberId}', value))).toBe(`/x/${value}`)
      expect(withValue('/x/{memberId}', value)).toMatch(/^\/x\/[A-Za-z0-9._~%-]+$/)
    },
  )

  it('C8.7 checks a segment as a whole: text beside a value makes no escape of it', () => {
    expect(withValue('/x/{memberId}2f', 'a%')).toBe('unsendable_argument')
    expect(withValue('/x/{memberId}', 'a%')).toBe('/x/a%25')
    expect(withValue('/x/.{memberId}', '.')).toBe('unsendable_argument')
    expect(FAULTS.unsendable_argument.status).toBe(400)
  })

  it('C8.7 is 500 where a value that is not sent is not of the client’s choice', () => {
    const subject = (value: string) => () =>
      rendered('/x/{subject}', { principal: { ...PRINCIPAL, subject: value } })
    expect(subject('a/b')).toThrow(expect.objectContaining({ code: 'unsendable_value' }))
    expect(FAULTS.unsendable_value.status).toBe(500)
  })

  it('C8.7 never sends an empty value in place of a caller, a fund or a parameter that a call does not have', () => {
    const nobody = { ...FUND, principal: undefined, place: undefined, fund: undefined, params: {} }
    for (const template of [
      '/{subject}',
      '/{client}',
      '/f-{fund}',
      '/{memberId}',
      '/{toString}',
      '/{constructor}',
    ])
      expect(() => rendered(template, nobody), template).toThrow(/is (?:missing|empty)/)
    expect(() => rendered('/{subject}', { principal: { ...PRINCIPAL, subject: 'https://id/a' } })).toThrow(
      Fault,
    )
  })

  it('C8.7 one decoding gives the value, and C3.4 takes the segment as it stands, or it is not sent', () => {
    const value = fc.oneof(
      anyText(),
      fc.string({ unit: fc.constantFrom('%', '2', 'f', 'e', '.', '/', 'u', '0', ' ', 'é') }),
    )
    fc.assert(
      fc.property(value, (text) => {
        let sent: string
        try {
          sent = encodeSegment(text, MEMBER_ID)
        } catch (thrown) {
          expect(thrown).toMatchObject({ code: 'unsendable_argument' })
          return
        }
        expect(decodeURIComponent(sent)).toBe(text)
        expect(canonicalSegment(sent)).toBe(sent)
        expect(sent).toMatch(/^[A-Za-z0-9._~%-]+$/)
      }),
    )
  })
})
