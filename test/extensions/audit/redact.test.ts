import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  digestOfSubject,
  eraseSubjectValues,
  findSubjectValues,
  segmentsOf,
} from '../../../src/extensions/audit/read/personal.ts'
import { besideOf } from '../../../src/extensions/audit/format/segment.ts'
import { Retention } from '../../../src/extensions/audit/write/retention.ts'
import { verifyTrail } from '../../../src/extensions/audit/read/verify.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { manifestOf, record, restarted, segmentNames } from './support/recorded-trail.ts'

const DAY = 86_400_000

const valuesOf = (folder: string): string =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.personal.jsonl'))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('')

/** Two subjects, of a process that has ended. */
async function recorded(folder: string): Promise<void> {
  const recording = await record({ folder })
  for (const subject of ['ann', 'bob', 'ann']) await recording.change(subject)
  await recording.close()
}

describe('C12.2.3 redaction', () => {
  it('C12.2.3 erases the values of one subject alone, and the trail still verifies', async () => {
    const folder = await dataFolder()
    await recorded(folder)
    const later = await record({ folder })
    const found = findSubjectValues(segmentsOf(folder), { subject: 'ann' })
    expect(found).toMatchObject([{ values: 4 }])
    const actor = { kind: 'operator' } as const
    await later.trail.require({ event: 'audit.redacted', outcome: 'success', actor, on: { subject: 'ann' } })
    await eraseSubjectValues(found)
    await later.close()
    expect(valuesOf(folder)).not.toContain('membér of ann')
    expect(valuesOf(folder)).toContain('membér of bob')
    expect(verifyTrail({ folder })).toMatchObject({ whole: true, erased: 4, findings: [] })
  })

  it('C12.2.3 finds the same by the digest of a subject, which the records themselves name', async () => {
    const folder = await dataFolder()
    await recorded(folder)
    const later = await record({ folder })
    for (const subject of ['ann', 'annie']) await later.change(subject)
    await later.close()
    const segments = segmentsOf(folder)
    const found = findSubjectValues(segments, { digest: digestOfSubject('ann') })
    expect(found.map(({ subject, values }) => [subject, values])).toEqual([
      ['ann', 4],
      ['ann', 2],
    ])
    expect(found).toEqual(findSubjectValues(segments, { subject: 'ann' }))
    for (const other of ['an', 'ANN', 'ann ']) {
      expect(findSubjectValues(segments, { digest: digestOfSubject(other) })).toEqual([])
      expect(findSubjectValues(segments, { subject: other })).toEqual([])
    }
    await eraseSubjectValues(found)
    expect(findSubjectValues(segments, { digest: digestOfSubject('ann') })).toEqual([])
    expect(valuesOf(folder)).toContain('membér of annie')
  })

  it('C12.2.3 finds by digest an object of a record too, and subjects with characters that JSON escapes', async () => {
    const folder = await dataFolder()
    const recording = await record({ folder })
    const subject = 'ä "quoted" \\ 🗝️'
    await recording.change(subject)
    await recording.trail.require({
      ...{ event: 'user.added', outcome: 'success', actor: { kind: 'operator', operator: 'boss' } },
      on: { kind: 'user', subject },
      personal: { 'on.id': 'dora' },
    })
    await recording.close()
    const found = findSubjectValues(segmentsOf(folder), { digest: digestOfSubject(subject) })
    expect(found).toMatchObject([{ subject, values: 3 }])
    expect(found).toEqual(findSubjectValues(segmentsOf(folder), { subject }))
  })

  it('C12.2.3 an erasure that nobody recorded, or a value that was changed, is found', async () => {
    const folder = await dataFolder()
    await recorded(folder)
    await eraseSubjectValues(findSubjectValues(segmentsOf(folder), { subject: 'ann' }))
    expect(verifyTrail({ folder }).findings).toMatchObject([
      { line: 2, what: expect.stringMatching(/erased without a record of it: 4/) },
    ])
    const [name = ''] = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((each) =>
      each.endsWith('.personal.jsonl'),
    )
    const path = join(folder, name)
    writeFileSync(path, readFileSync(path, 'utf8').replace('membér of bob', 'membér of joe'))
    expect(verifyTrail({ folder }).findings).toContainEqual({
      ...{ file: name, line: 2, what: 'this personal value was changed' },
    })
  })
})

describe('C12.4.7 retention', () => {
  it('C12.4.7 removes whole days, two at most in 24 hours, and says so before', async () => {
    const folder = await dataFolder()
    const { clock, ...first } = await record({ folder })
    await first.change('ann')
    await first.close()
    for (const subject of ['bob', 'cy']) {
      clock.step(DAY)
      const next = await record({ folder, clock })
      await next.change(subject)
      await next.close()
    }
    clock.step(20 * DAY)
    const last = await record({ folder, clock })
    await last.change('dee')
    await last.sign()
    const retention = new Retention({ ...last, folder, days: 10, recorder: { note: () => undefined } })
    const days = (): number => readdirSync(folder).filter((name) => name.startsWith('2026-')).length
    expect(days()).toBe(4)
    await retention.run()
    await retention.run()
    expect(days()).toBe(2)
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, removed: 2 })
    clock.advance(DAY + 1000)
    await retention.run()
    expect(days()).toBe(2)
    await last.close()
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, removed: 3 })
    expect(readFileSync(manifestOf(folder), 'utf8').match(/"removed":/g)).toHaveLength(3)
    const kept = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
      /\.\d+\.jsonl$/.test(name),
    )
    const lines = kept.map((name) => readFileSync(join(folder, name), 'utf8')).join('')
    expect(lines.match(/"event":"audit.segment_removed"/g)).toHaveLength(3)
  })

  it('C12.4.7 leaves the trail of today alone, however the clock stands', async () => {
    const folder = await dataFolder()
    const recording = await record({ folder })
    await recording.change('ann')
    await recording.sign()
    recording.clock.step(1000 * DAY)
    await new Retention({ ...recording, folder, days: 10, recorder: { note: () => undefined } }).run()
    await recording.close()
    expect(verifyTrail({ folder })).toMatchObject({ whole: true, removed: 0 })
  })
})

describe('C12.4.6 no false alarm', () => {
  it('C12.4.6 no alarm is raised by torn ends of records, values and manifest, or zeros that a power cut left', async () => {
    const recording = await record({ folder: await dataFolder() })
    await recording.change('ann')
    await recording.sign()
    const folder = await recording.killed()
    const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.jsonl'),
    )
    for (const name of names)
      writeFileSync(join(folder, name), `${name.startsWith('2026') ? '\0'.repeat(50) : ''}{"v":1,"wri`, {
        flag: 'a',
      })
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, torn: expect.any(Number) })
    const next = await record({ folder, clock: recording.clock })
    await next.change('bob')
    await next.close()
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, segments: 2 })
  })

  it('C12.4.6 no alarm is raised by a process that ended before its last records were signed', async () => {
    const recording = await record({ folder: await dataFolder() })
    await recording.change('ann')
    await recording.sign()
    await recording.change('bob')
    const folder = await recording.killed()
    expect(verifyTrail({ folder })).toMatchObject({ whole: true, unsigned: 2 })
    await restarted(folder, recording.clock)
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, unsigned: 0, foundLate: 2 })
  })

  it('C12.4.6 no alarm is raised by values that a power cut took, behind the last head that was told; of told ones it is', async () => {
    const cut = await record({ folder: await dataFolder() })
    await cut.change('ann')
    await cut.sign()
    await cut.change('bob')
    await cut.change('cyd')
    const folder = await cut.killed()
    const [values = ''] = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.personal.jsonl'),
    )
    const path = join(folder, values)
    const lines = readFileSync(path, 'utf8').split('\n')
    writeFileSync(path, lines.slice(0, 3).join('\n'))
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], tornValues: 4, erased: 0 })
    // The next start goes on with the chain, and tells what it has written itself.
    const next = await record({ folder, clock: cut.clock })
    await next.change('dee')
    await next.close()
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], tornValues: 4, foundLate: 4 })
    writeFileSync(path, lines.slice(1, 3).join('\n'))
    expect(verifyTrail({ folder })).toMatchObject({ found: 1, tornValues: 4 })
    const [, later = ''] = segmentNames(folder)
    writeFileSync(join(folder, besideOf(later)), '')
    expect(verifyTrail({ folder })).toMatchObject({ found: 2, tornValues: 4 })
  })

  it('C12.4.6 a trail without its public key is unreadable', async () => {
    const folder = await dataFolder()
    await recorded(folder)
    rmSync(join(folder, 'manifest-key.pem'))
    expect(() => verifyTrail({ folder })).toThrow(/public key/)
  })
})
