import { describe, expect, it } from 'vitest'
import { compilePathTemplate } from '../../../../src/backends/forward/request.ts'
import { makeCall } from '../../../support/calls.ts'

const FUND = {
  action: {
    area: 'member-data',
    action: 'member-detail/{memberId}',
    level: 'fund',
    versioned: false,
    produces: undefined,
  },
  target: '/api/1.0/f/ACME/SUPER1/member-data/member-detail/%C3%A9%20x?a=1',
} as const

const rendered = (template: string, call = makeCall(FUND)): string => {
  const compiled = compilePathTemplate(template)
  return typeof compiled === 'string' ? expect.fail(compiled) : compiled(call)
}

describe('the template of an upstream’s path', () => {
  it.each([
    ['/v2/{business}/{fund}/{area}/{action}', '/v2/ACME/SUPER1/member-data/member-detail/%C3%A9%20x'],
    ['/{version}/{action}', '/1.0/member-detail/%C3%A9%20x'],
    ['/all', '/all'],
  ])('T1.6 T2.10 makes %s of the judged segments, escapes and all', (template, path) => {
    expect(rendered(template)).toBe(path)
  })

  it('C8.2 leaves {fund} out at business level', () => {
    expect(rendered('/v2/{business}/{fund}/{area}/{action}', makeCall())).toBe('/v2/ACME/fund-data/fund-list')
  })

  it.each([
    '',
    '/',
    'v2/{action}',
    '/v2//x',
    '/v2/',
    '/a/../b',
    '/./a',
    '/{nothing}',
    '/x{action}',
    '/%2e',
    '/a;b',
    '/a?b',
    '/a\\b',
    '/{__proto__}',
    '/{constructor}',
  ])('T1.6 %j is none, and why is said', (template) => {
    expect(compilePathTemplate(template)).toEqual(expect.any(String))
  })
})
