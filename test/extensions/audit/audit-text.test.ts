import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import type { AuditRow } from '../../../src/base/contracts/records/audit-query.ts'
import { cellsOf, CSV_HEAD, csvRow, recordText, visible } from '../../../src/extensions/audit/audit-text.ts'
import { barText, progressBar } from '../../../src/operate/operation/progress.ts'

const HOSTILE = '\u001b[2J\u009b31m\u202e\r\n\u0007=cmd|calc'
/** Characters that a terminal would act on. */

const ACTED_ON = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/

const row = (more: Partial<AuditRow> = {}): AuditRow => ({
  writer: 'w',
  seq: 1,
  time: '2026-03-05T12:00:00.000Z',
  event: 'user.changed',
  outcome: 'success',
  actor: { kind: 'operator', operator: 'anna', claimed: HOSTILE, via: 'admin' },
  on: { kind: 'user', id: HOSTILE },
  change: { [HOSTILE]: [HOSTILE, { deep: HOSTILE }] },
  why: HOSTILE,
  requestId: HOSTILE,
  ...more,
})

describe('C12.5 values of records', () => {
  it('reach no terminal as anything that it would act on', () => {
    const shown = [...cellsOf(row()), csvRow(row()).trimEnd()]
    for (const text of shown) expect(text).not.toMatch(ACTED_ON)
    for (const text of shown) expect(text).not.toContain('\n')
    expect(recordText(row())).not.toMatch(ACTED_ON)
    expect(recordText(row()).split('\n')).toHaveLength(8)
    expect(visible('tab\tquote" \u001b')).toBe('tab\\tquote" \\u001b')
  })

  it('are told as erased where they were erased', () => {
    expect(cellsOf(row({ erased: ['actor.address'] }))[1]).toMatch(/ from \(erased\)$/)
  })
})

describe('C12.5 CSV', () => {
  it('has a cell for each column, and none that a spreadsheet carries out', () => {
    const hostile = ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1']
    for (const value of hostile) {
      const line = csvRow(
        row({
          change: undefined,
          why: value,
          requestId: value,
          on: { business: value, kind: 'user', id: value },
        }),
      )
      const cells = line.trimEnd().split(',')
      expect(cells).toHaveLength(CSV_HEAD.split(',').length)
      for (const cell of cells) expect(cell.replace(/^"/, ''), value).not.toMatch(/^[=+\-@\t\r\n]/)
    }
  })

  it('keeps numbers as numbers, and quotes what divides cells', () => {
    const line = csvRow(row({ call: { status: 200, bytes: 12 }, why: 'a "b", c' }))
    expect(line).toContain(',200,12,')
    expect(line).toContain(',"a ""b"", c",')
  })
})

describe('C12.5 the progress bar', () => {
  it('appears on a terminal after half a second, is replaced, and leaves nothing behind', () => {
    let now = 0
    let written = ''
    const stderr = Object.assign(new PassThrough(), { isTTY: true })
    stderr.on('data', (text: Buffer) => (written += text.toString()))
    const bar = progressBar({ stderr }, () => now)
    bar.show({ done: 0, total: 100 })
    expect(written).toBe('')
    now = 600
    bar.show({ done: 50, total: 100 })
    bar.show({ done: 51, total: 100 })
    now = 701
    bar.show({ done: 60, total: 100 })
    bar.clear()
    expect(written.split('\r\u001b[K').map((text) => text.slice(33, 38))).toEqual(['', ' 50 %', ' 60 %', ''])
    expect(written.endsWith('\r\u001b[K')).toBe(true)
  })

  it('is shown to no file', () => {
    const stderr = new PassThrough()
    const bar = progressBar({ stderr }, () => 1e9)
    bar.show({ done: 1, total: 2 })
    bar.clear()
    expect(stderr.read()).toBeNull()
  })

  it('tells the share and the size', () => {
    const mib = 1024 ** 2
    expect(barText({ done: 240 * mib, total: 600 * mib })).toBe(
      `[${'#'.repeat(12).padEnd(30)}]  40 %  240 of 600 MiB`,
    )
    expect(barText({ done: 0, total: 0 })).toMatch(/ 100 % {2}0 of 0 MiB$/)
  })
})
