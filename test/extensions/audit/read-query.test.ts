import { describe, expect, it } from 'vitest'
import { CHANGES, type QueryTexts, readAuditQuery } from '../../../src/extensions/audit/read/query.ts'

const timesOf = (texts: QueryTexts): readonly (string | undefined)[] => {
  const { query } = readAuditQuery(texts)
  return [query?.from, query?.until].map((time) =>
    time === undefined ? undefined : new Date(time).toISOString(),
  )
}
const problemsOf = (texts: QueryTexts): readonly string[] => readAuditQuery(texts).problems ?? []

describe('C12.5 a query', () => {
  it('names months and days whole, in UTC, and times as they are', () => {
    expect(timesOf({ month: '2026-02' })).toEqual(['2026-02-01T00:00:00.000Z', '2026-03-01T00:00:00.000Z'])
    expect(timesOf({ month: '2026-12' })).toEqual(['2026-12-01T00:00:00.000Z', '2027-01-01T00:00:00.000Z'])
    expect(timesOf({ from: '2026-03-30', until: '2026-03-31' })).toEqual([
      '2026-03-30T00:00:00.000Z',
      '2026-04-01T00:00:00.000Z',
    ])
    expect(timesOf({ from: '2026-03', until: '2026-03-31T18:00+02:00' })).toEqual([
      '2026-03-01T00:00:00.000Z',
      '2026-03-31T16:00:00.000Z',
    ])
    expect(timesOf({ from: '2024-02-29' })).toEqual(['2024-02-29T00:00:00.000Z', undefined])
  })

  it('is refused dates that do not exist, and times without a zone', () => {
    expect(problemsOf({ month: '2026-13' })).toEqual([
      'month  there is no month 2026-13: expected a month such as 2026-03',
    ])
    expect(problemsOf({ from: '2026-02-29' })[0]).toMatch(/^from {2}there is no day 2026-02-29: expected /)
    expect(problemsOf({ until: '2026-02-30T10:00Z' })[0]).toMatch(/^until {2}there is no day 2026-02-30/)
    for (const text of ['yesterday', '2026-3-1', '2026-03-01T10:00', '2026-03-01T25:00Z', '26-03', ''])
      expect(problemsOf({ from: text })[0], text).toMatch(/^from {2}expected a month, a day or a time/)
    expect(problemsOf({ month: '2026-03-01' })).toEqual([
      'month  expected a month such as 2026-03, got "2026-03-01"',
    ])
    expect(problemsOf({ from: '2026-04', until: '2026-03' })).toEqual(['until  is not after `from`'])
    expect(problemsOf({ month: '2026-04', until: '2026-05' })).toHaveLength(1)
  })

  it('names events and groups of them; others are refused with a suggestion', () => {
    expect(readAuditQuery({ event: 'lockout.*,token.issued' }).query?.events).toEqual([
      'lockout.began',
      'lockout.cleared',
      'token.issued',
    ])
    expect(problemsOf({ event: 'call.intendet' })).toEqual([
      'event  there is no event "call.intendet" — did you mean "call.intended"?',
    ])
    expect(problemsOf({ event: 'users.*' })).toEqual([
      'event  there is no event "users.*" — did you mean "user.*"?',
    ])
    expect(problemsOf({ event: '__proto__' })).toHaveLength(1)
  })

  it('names an outcome; others are refused with a suggestion', () => {
    expect(problemsOf({ outcome: 'sucess' })).toEqual([
      'outcome  expected one of success, refused, failed, open, got "sucess" — did you mean "success"?',
    ])
  })

  it('is refused values that no record can have', () => {
    expect(problemsOf({ fund: '' })).toEqual(['fund  is empty'])
    expect(problemsOf({ client: 'x'.repeat(257) })).toEqual([
      'client  is longer than 256 bytes: no record has that',
    ])
  })

  it('with `changed` asks for what changes data or the service, not for tokens and logins', () => {
    expect(CHANGES).toEqual(expect.arrayContaining(['call.intended', 'user.added', 'keys.signing']))
    for (const event of ['token.issued', 'login.succeeded', 'call.refused', 'audit.queried'])
      expect(CHANGES).not.toContain(event)
  })
})
