import { describe, expect, it } from 'vitest'
import {
  MOST_CHANGE,
  MOST_PERSONAL,
  MOST_TEXT,
  personalHash,
  prepareRecord,
} from '../../../src/extensions/audit/format/record.ts'
import { type AuditEntry, MOST_REASON } from '../../../src/base/contracts/records/audit.ts'

const TIME = Date.UTC(2026, 10, 22, 23, 59, 59, 7)
const ENTRY: AuditEntry = { event: 'call.settled', outcome: 'success', actor: { kind: 'user' } }

interface Line {
  readonly [member: string]: unknown
  readonly actor: Record<string, string>
  readonly personal?: Record<string, string>
}

const parsed = (entry: Partial<AuditEntry>, time = TIME): Line =>
  JSON.parse(`{${prepareRecord({ ...ENTRY, ...entry }, time).members}`) as Line

describe('C12.2.1 the members of a record', () => {
  it('stand in one order, whatever the order in which they were given', () => {
    const given: AuditEntry = {
      personal: { 'actor.address': '192.0.2.1' },
      why: 'because',
      change: { Status: 'Active' },
      call: { body: 'b', bytes: 2, type: 't', ms: 1, upstreamStatus: 201, status: 200, version: 1 },
      grant: { target: 'b/ACME', scope: 'fund.read', grant: 'password' },
      on: { method: 'POST', action: 'fund-create', area: 'fund-data', fund: 'SUPER1', business: 'ACME' },
      actor: { via: 'cli', claimed: 'eve', operator: 'ops', client: 'c', subject: 's', kind: 'user' },
      intent: 4,
      traceId: 't',
      requestId: 'r',
      reason: 'internal',
      outcome: 'failed',
      event: 'call.settled',
    }
    const line = parsed(given)
    expect(Object.keys(line)).toEqual(
      'time event outcome reason requestId traceId intent actor on grant call change why personal'.split(' '),
    )
    expect(Object.keys(line.actor)).toEqual('kind subject client operator claimed via'.split(' '))
    expect(Object.keys(line['on'] as object)).toEqual('business fund area action method'.split(' '))
    expect(Object.keys(line['call'] as object)).toEqual(
      'version status upstreamStatus ms type bytes body'.split(' '),
    )
    expect(line['time']).toBe('2026-11-22T23:59:59.007Z')
  })

  it('are absent where they are unknown', () => {
    expect(
      parsed({ reason: undefined, on: { business: undefined }, personal: { 'actor.address': undefined } }),
    ).toEqual({
      time: '2026-11-22T23:59:59.007Z',
      ...ENTRY,
      on: {},
    })
  })

  it('tell the time in milliseconds, also before and after the turn of a second', () => {
    for (const time of [TIME, TIME + 992, TIME + 993, 0, 999, 1000])
      expect(parsed({}, time)['time']).toBe(new Date(time).toISOString())
  })

  it('hold texts of at most 256 bytes, and a reason of 500, cut at a whole character', () => {
    const line = parsed({
      requestId: 'x'.repeat(300),
      actor: { kind: 'user', subject: '𝄞'.repeat(100) },
      change: { deep: [{ text: 'ä'.repeat(200) }] },
      why: 'y'.repeat(600),
    })
    const { deep } = line['change'] as { deep: { text: string }[] }
    for (const text of [line['requestId'], line.actor['subject'], deep[0]?.text] as string[]) {
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MOST_TEXT)
      expect(Buffer.byteLength(text)).toBeGreaterThan(MOST_TEXT - 4)
      expect(text).toMatch(/^[^\ud800-\udfff�]*(?:𝄞)*…$/u)
    }
    expect(Buffer.byteLength(line['why'] as string)).toBe(MOST_REASON)
  })

  it('leave out a change that is longer than 32 KiB, and tell its length', () => {
    const rows = Array.from({ length: 1000 }, () => 'z'.repeat(100))
    const { omitted } = parsed({ change: { rows } })['change'] as { omitted: number }
    expect(omitted).toBeGreaterThan(MOST_CHANGE)
  })

  it('T2.7 let no text begin another line, act on a terminal or hold a credential', () => {
    const hostile =
      'a\nb\r\u2028\u202e\u007f\u0000"}\u009b31m\ud800 Bearer abcdefghijkl eyJhbGci.eyJzdWIi.c2ln'
    const { members, personal } = prepareRecord(
      {
        ...ENTRY,
        requestId: hostile,
        actor: { kind: 'user', claimed: hostile },
        on: { id: hostile },
        change: { [hostile]: hostile },
        why: hostile,
        personal: { [hostile]: hostile },
      },
      TIME,
    )
    for (const line of [members, ...personal]) {
      expect(line).toMatch(/^[\x20-\x7e]*$/)
      expect(line).not.toMatch(/abcdefghijkl|eyJ/)
      expect(() => JSON.parse(`{${line}`) as unknown).not.toThrow()
    }
    expect(parsed({ why: 'ä "\u2028' })['why']).toBe('ä "\u2028')
  })
})

describe('C12.2.3 personal values', () => {
  const both = (personal: Record<string, string>) => {
    const made = prepareRecord({ ...ENTRY, personal }, TIME)
    const line = JSON.parse(`{${made.members}`) as Line
    const values = made.personal.map(
      (text) => JSON.parse(`{${text}`) as { name: string; salt: string; value: string },
    )
    return { line, values, text: made.members }
  }

  it('stand in lines of their own; the record has the hash of salt and value', () => {
    const given = { 'actor.address': '192.0.2.1', 'on.params.memberId': 'é\u2028\u007f "x"' }
    const { line, values, text } = both(given)
    expect(text).not.toContain('192.0.2.1')
    expect(Object.fromEntries(values.map(({ name, value }) => [name, value]))).toEqual(given)
    for (const { name, salt, value } of values) expect(line.personal?.[name]).toBe(personalHash(salt, value))
  })

  it('have a salt of 128 bits each, also for equal values', () => {
    const made = Array.from({ length: 600 }, () => both({ a: 'same', b: 'same' }))
    const salts = made.flatMap(({ values }) => values.map(({ salt }) => salt))
    expect(new Set(salts).size).toBe(1200)
    expect(salts.every((salt) => Buffer.from(salt, 'base64url').length === 16)).toBe(true)
    expect(new Set(made.map(({ line }) => line.personal?.['a'])).size).toBe(600)
  })

  it('are hashed as they are kept: cut, and without credentials', () => {
    const { line, values } = both({ long: 'ü'.repeat(400), token: 'I am eyJhbGci.eyJzdWIi.c2ln' })
    expect(values.map(({ value }) => value)).toEqual([`${'ü'.repeat(126)}…`, 'I am [redacted]'])
    for (const { name, salt, value } of values) expect(line.personal?.[name]).toBe(personalHash(salt, value))
  })

  it('are at most 64', () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`change.${index}`, 'x']))
    expect(both(many).values).toHaveLength(MOST_PERSONAL)
  })

  it('have each name once: of names that are the same when they are cut or cleaned, the first', () => {
    const long = 'n'.repeat(300)
    const token = (letter: string): string => `eyJhbGci.eyJzdWIi.${letter.repeat(4)}`
    const { line, values } = both({
      [`${long}a`]: '1',
      [`${long}b`]: '2',
      [token('a')]: '3',
      [token('b')]: '4',
    })
    expect(values.map(({ value }) => value)).toEqual(['1', '3'])
    for (const { name, salt, value } of values) expect(line.personal?.[name]).toBe(personalHash(salt, value))
  })
})
