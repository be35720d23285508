/** The segments that retention may remove, and the lines that it signs then (C12.4.7). */
import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readManifestLine } from '../../../src/extensions/audit/format/manifest.ts'
import { besideOf } from '../../../src/extensions/audit/format/segment.ts'
import { verifyTrail } from '../../../src/extensions/audit/read/verify.ts'
import { Retention } from '../../../src/extensions/audit/write/retention.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { movableClock, type MovableClock } from '../../support/movable-clock.ts'
import { linesIn, manifestOf, record, type Recording, segmentNames } from './support/recorded-trail.ts'

const DAY = 86_400_000

const daysIn = (folder: string): readonly string[] =>
  readdirSync(folder)
    .filter((name) => /^\d{4}-/.test(name))
    .toSorted()

const removedIn = (folder: string) =>
  linesIn(manifestOf(folder)).flatMap((line) => readManifestLine(line)?.removed ?? [])

const matching = (text: string): string => expect.stringContaining(text) as string
const MISSING = matching('missing: the first files of the trail')

interface Kept extends Recording {
  readonly folder: string
  readonly notes: string[]
  readonly writer: string
  /** One look of a retention of ten days. */
  look(): Promise<void>
}

/** A trail with a change on each of some days, with a retention of ten days. */
async function kept(subjects: readonly string[], clock: MovableClock = movableClock()): Promise<Kept> {
  const folder = await dataFolder()
  const recording = await record({ folder, clock, here: true })
  for (const [at, subject] of subjects.entries()) {
    if (at > 0) clock.advance(DAY)
    await recording.change(subject)
    await recording.sign()
  }
  const notes: string[] = []
  const retention = new Retention({
    ...{ folder, days: 10, clock, trail: recording.trail, signer: recording.signer },
    recorder: { note: (_level, event) => void notes.push(event) },
  })
  const look = async (): Promise<void> => {
    await retention.run()
    await recording.sign()
  }
  return { ...recording, folder, notes, writer: recording.trail.writer, look }
}

/** A segment of one line with a hash that is none. */
function plant(folder: string, name: string, seq = Number.MAX_SAFE_INTEGER): void {
  const writer = basename(name).split('.')[0] ?? ''
  mkdirSync(join(folder, dirname(name)), { recursive: true })
  const members = `"time":"2020-01-01T00:00:00.000Z","event":"writer.opened","outcome":"success","actor":{"kind":"service"}`
  const line = `{"v":1,"writer":"${writer}","seq":${seq},${members},"hash":"${'A'.repeat(43)}"}\n`
  writeFileSync(join(folder, name), line)
}

describe('C12.4.7 retention signs', () => {
  it('C12.4.7 what the next segment names as the last record before it, and the trail is whole', async () => {
    const { folder, clock, ...trail } = await kept(['ann', 'bob', 'cyd'])
    const [, second = '', third = ''] = segmentNames(folder)
    const named = [second, third].map((name) => {
      const first = JSON.parse(linesIn(join(folder, name))[0] ?? '') as {
        change: { before: { seq: number; hash: string } }
      }
      return { seq: first.change.before.seq, hash: first.change.before.hash }
    })
    clock.step(20 * DAY)
    await trail.change('dee')
    await trail.look()
    await trail.close()
    expect(daysIn(folder)).toHaveLength(2)
    expect(removedIn(folder)).toEqual(named.map((head, at) => ({ number: at + 1, ...head })))
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, removed: 2 })
  })

  it('T5.17 C12.4.7 no file of another name, and leaves it: verification still names what is gone', async () => {
    const { folder, ...trail } = await kept(['ann', 'bob', 'cyd'])
    plant(folder, '2020-01-01/x.1.jsonl')
    await trail.look()
    await trail.close()
    expect(existsSync(join(folder, '2020-01-01', 'x.1.jsonl'))).toBe(true)
    expect(removedIn(folder)).toEqual([])
    for (const day of daysIn(folder).slice(0, -1)) rmSync(join(folder, day), { recursive: true })
    expect(verifyTrail({ folder }).findings).toMatchObject([{ what: MISSING }])
    rmSync(join(folder, daysIn(folder)[0] ?? ''), { recursive: true })
    expect(verifyTrail({ folder }).findings).toMatchObject([{ what: 'all files of the trail are missing' }])
  })

  it.each([1, 77])('T5.17 C12.4.7 no made-up segment of its own name (number %s)', async (number) => {
    const { folder, writer, ...trail } = await kept(['ann', 'bob', 'cyd'])
    plant(folder, `2020-01-01/${writer}.${number}.jsonl`)
    await trail.look()
    await trail.close()
    expect(removedIn(folder)).toEqual([])
    for (const day of daysIn(folder).slice(0, -1)) rmSync(join(folder, day), { recursive: true })
    expect(verifyTrail({ folder }).findings).toContainEqual(expect.objectContaining({ what: MISSING }))
  })

  it('T5.17 C12.4.7 no made-up segment in the place of those that were taken away before', async () => {
    const { folder, writer, ...trail } = await kept(['ann', 'bob', 'cyd'])
    const last = segmentNames(folder).at(-1) ?? ''
    for (const day of daysIn(folder).slice(0, -1)) rmSync(join(folder, day), { recursive: true })
    plant(folder, `2020-01-01/${writer}.1.jsonl`, 3)
    // It names the same record as the one that is left.
    mkdirSync(join(folder, '2020-01-02'))
    const [opening = ''] = linesIn(join(folder, last))
    writeFileSync(join(folder, `2020-01-02/${writer}.2.jsonl`), `${opening}\n`)
    await trail.look()
    await trail.close()
    expect(removedIn(folder)).toEqual([])
    expect(verifyTrail({ folder }).findings).toMatchObject([{ what: MISSING }])
  })

  it('T5.17 C12.4.7 no segment that somebody has moved to a day of long ago', async () => {
    const { folder, ...trail } = await kept(['ann', 'bob', 'cyd'])
    renameSync(join(folder, daysIn(folder)[0] ?? ''), join(folder, '2020-01-01'))
    await trail.look()
    await trail.close()
    expect(removedIn(folder)).toEqual([])
    expect(verifyTrail({ folder }).findings).toMatchObject([{ what: MISSING }])
  })

  it('C12.4.6 excuses only the records up to the one that was signed as the last', async () => {
    const { folder, clock, ...trail } = await kept(['ann', 'bob', 'cyd'])
    clock.step(11 * DAY - 1000 * 3 - (clock.now() % DAY) - DAY)
    await trail.change('dee')
    await trail.look()
    await trail.close()
    expect(removedIn(folder)).toMatchObject([{ number: 1 }])
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true })
    rmSync(join(folder, daysIn(folder)[0] ?? ''), { recursive: true })
    expect(verifyTrail({ folder }).findings).toMatchObject([{ what: MISSING }])
  })
})

describe('C12.4.7 retention removes', () => {
  it('C12.4.7 nothing from the middle of the chain, where a clock that was wrong has put a day of long ago', async () => {
    const { folder, clock, ...trail } = await kept(['ann'])
    const now = clock.now()
    clock.step(-now)
    await trail.change('bob')
    await trail.sign()
    clock.step(now)
    await trail.change('cyd')
    await trail.look()
    expect(daysIn(folder)).toEqual(['1970-01-01', '2026-01-15'])
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, removed: 0 })
    // When those before it are too old, it goes with them.
    clock.step(20 * DAY)
    await trail.change('dee')
    await trail.look()
    await trail.close()
    expect(daysIn(folder)).toEqual([new Date(clock.now()).toISOString().slice(0, 10)])
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, removed: 3 })
  })

  it('C12.4.7 the drafts of a redaction in a day, and goes on where a file of others keeps its folder', async () => {
    const { folder, clock, notes, writer, ...trail } = await kept(['ann', 'bob', 'cyd'])
    const [first = '', second = ''] = daysIn(folder)
    writeFileSync(join(folder, first, '.nfs0001'), '')
    writeFileSync(join(folder, second, `${writer}.2.personal.jsonl.new`), '')
    clock.step(20 * DAY)
    await trail.change('dee')
    for (let look = 0; look < 3; look += 1) await trail.look()
    expect(daysIn(folder)).toHaveLength(3)
    expect(readdirSync(join(folder, first))).toEqual(['.nfs0001'])
    clock.advance(DAY + 1000)
    await trail.look()
    await trail.close()
    expect(notes).toEqual([])
    expect(daysIn(folder)).toHaveLength(3)
    expect(removedIn(folder).map(({ number }) => number)).toEqual([1, 2, 3])
    const lines = linesIn(manifestOf(folder)).map(readManifestLine)
    expect(lines.filter((line) => line?.removed?.length === 0)).toEqual([])
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true })
  })

  it('C12.4.6 no alarm is raised by a removal that was cut off, at any of its files', async () => {
    const { folder, clock, ...trail } = await kept(['ann', 'bob'])
    const [, name = ''] = segmentNames(folder)
    const copy = await dataFolder()
    cpSync(folder, copy, { recursive: true })
    clock.step(20 * DAY)
    await trail.change('cyd')
    await trail.look()
    await trail.close()
    mkdirSync(join(folder, dirname(name)))
    for (const each of [name, besideOf(name)]) {
      cpSync(join(copy, each), join(folder, each))
      expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true })
    }
  })
})

describe('C12.4.8 retention of a trail of Postern 0.2', () => {
  it('C12.4.7 removes two of its days in 24 hours, so that a clock that is ahead does not erase it', async () => {
    const { folder, clock, ...trail } = await kept(['ann'])
    for (const day of ['2025-12-01', '2025-12-02', '2025-12-03'])
      mkdirSync(join(folder, '0.2', day), { recursive: true })
    writeFileSync(join(folder, '0.2', 'manifest.jsonl'), '')
    clock.step(500 * DAY)
    for (let look = 0; look < 2; look += 1) await trail.look()
    expect(readdirSync(join(folder, '0.2'))).toEqual(['2025-12-03', 'manifest.jsonl'])
    clock.advance(DAY + 1000)
    await trail.look()
    await trail.close()
    expect(existsSync(join(folder, '0.2'))).toBe(false)
    const removed = segmentNames(folder)
      .flatMap((name) => linesIn(join(folder, name)))
      .map((line) => JSON.parse(line) as { event: string; on?: { kind: string }; change?: object })
      .filter(({ event, on }) => event === 'audit.segment_removed' && on?.kind === 'trail')
    expect(removed.map(({ on, change }) => ({ on, change }))).toEqual(
      ['2025-12-01', '2025-12-02', '2025-12-03'].map((until) => ({
        ...{ on: { kind: 'trail', id: '0.2' }, change: { until } },
      })),
    )
  })

  it('C12.4.7 removes the rest of it where a kill has left no day', async () => {
    const { folder, ...trail } = await kept(['ann'])
    mkdirSync(join(folder, '0.2', 'announced'), { recursive: true })
    await trail.look()
    await trail.close()
    expect(existsSync(join(folder, '0.2'))).toBe(false)
  })
})
