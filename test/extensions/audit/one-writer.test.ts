/** One chain through restarts, kills and failures, and what others put beside it (C12.4.1, C12.4.4, C12.4.6). */
import fs, { appendFileSync, cpSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { readManifestLine } from '../../../src/extensions/audit/format/manifest.ts'
import { besideOf } from '../../../src/extensions/audit/format/segment.ts'
import { verifyTrail } from '../../../src/extensions/audit/read/verify.ts'
import { chainHash, type ChainedRecord, lineOf, readTrail } from './support/audit-chain.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { eventually } from '../../support/eventually.ts'
import {
  edit,
  linesIn,
  manifestOf,
  record,
  type Recording,
  type RecordingParts,
  restarted,
  segmentNames,
} from './support/recorded-trail.ts'

/** A trail of two starts, each with several segments, that has ended. */
async function served(folder: string, clock?: RecordingParts['clock']): Promise<Recording> {
  const first = await record({ folder, segmentBytes: 1000, here: true, ...(clock && { clock }) })
  for (const subject of ['ann', 'bob']) await first.change(subject)
  await first.close()
  const second = await record({ folder, segmentBytes: 1000, here: true, clock: first.clock })
  for (const subject of ['cyd', 'dee']) await second.change(subject)
  await second.close()
  return second
}

/** The trail of a service that was killed: the last records of its one segment are not signed. */
async function killed(): Promise<{ readonly folder: string; readonly recording: Recording }> {
  const recording = await record({ folder: await dataFolder() })
  await recording.change('ann')
  await recording.sign()
  await recording.change('bob')
  return { folder: await recording.killed(), recording }
}

const at = <T>(list: readonly T[], index: number): T => {
  const found = list.at(index)
  if (found === undefined) throw new Error(`nothing at ${index}`)
  return found
}

const recordIn = (folder: string, name: string, line: number): ChainedRecord =>
  JSON.parse(at(linesIn(join(folder, name)), line)) as ChainedRecord

const heads = (folder: string) =>
  linesIn(manifestOf(folder)).map((line) => readManifestLine(line)?.head ?? { seq: -1 })

/** Another segment with the records of one, which another name is given and which are chained anew, as anybody can. */
function forge(folder: string, from: string, name: string, change: (line: string) => string): void {
  let before = ''
  const lines = linesIn(join(folder, from)).map((line) => {
    const text = change(line).replace(/,"hash":"[^"]+"\}$/, '}')
    before = chainHash(before, text)
    return lineOf(text, before)
  })
  mkdirSync(join(folder, dirname(name)), { recursive: true })
  writeFileSync(join(folder, name), lines.join(''))
  cpSync(join(folder, besideOf(from)), join(folder, besideOf(name)))
}

/** A record that follows the last one of a segment, chained as anybody can. */
function nextLine(folder: string, name: string, change = (text: string) => text): string {
  const lines = linesIn(join(folder, name))
  const last = recordIn(folder, name, -1)
  const text = at(lines, 1)
    .replace(/"seq":\d+/, `"seq":${last.seq + 1}`)
    .replace(/,"personal":\{[^}]*\}/, '')
    .replace(/,"hash":"[^"]+"\}$/, '}')
  return lineOf(change(text), chainHash(last.hash, change(text)))
}

/** A copy of a segment under another name, with its personal values. */
function copySegment(folder: string, from: string, to: string): void {
  mkdirSync(join(folder, dirname(to)), { recursive: true })
  cpSync(join(folder, from), join(folder, to))
  cpSync(join(folder, besideOf(from)), join(folder, besideOf(to)))
}

const numbered = (name: string, number: number): string => name.replace(/\.\d+\.jsonl$/, `.${number}.jsonl`)

const matching = (text: string): string => expect.stringContaining(text) as string
const FOREIGN = matching('the manifest does not have the trail of this name')
const BEHIND_END = (what: string, seq: number): string =>
  matching(`${what} were added behind record ${seq}: the writer had ended with it`)

describe('C12.4.1 the chain of a trail', () => {
  it('C12.4.1 goes on through restarts, with its name, its numbers and its records, and is whole', async () => {
    const folder = await dataFolder()
    const { clock } = await served(folder)
    await restarted(folder, clock)
    clock.advance(24 * 3_600_000)
    await served(folder, clock)
    const names = segmentNames(folder)
    expect(names.map((name) => Number(/\.(\d+)\.jsonl$/.exec(name)?.[1]))).toEqual(
      names.map((_, index) => index + 1),
    )
    expect(new Set(names.map((name) => name.slice(0, 10))).size).toBe(2)
    // Throws unless every hash follows from the one before.
    const records = readTrail(folder)
    expect(records.map(({ seq }) => seq)).toEqual(records.map((_, index) => index + 1))
    expect(new Set(records.map(({ writer }) => writer)).size).toBe(1)
    expect(records.filter(({ event }) => event === 'writer.closed')).toHaveLength(4)
    for (const [index, name] of names.entries()) {
      const { change } = recordIn(folder, name, 0)
      const before = index === 0 ? undefined : recordIn(folder, at(names, index - 1), -1)
      expect(change?.before).toEqual(before && { writer: before.writer, seq: before.seq, hash: before.hash })
    }
    expect(verifyTrail({ folder })).toMatchObject({
      ...{ findings: [], whole: true, unsigned: 0, foundLate: 0, open: 0 },
      records: records.length,
      segments: names.length,
    })
  })

  it('C12.4.4 a start that records nothing makes no segment, and says in the manifest that it began and ended', async () => {
    const folder = await dataFolder()
    const { clock } = await served(folder)
    const names = segmentNames(folder)
    const { length } = linesIn(manifestOf(folder))
    await restarted(folder, clock)
    expect(segmentNames(folder)).toEqual(names)
    const added = linesIn(manifestOf(folder)).slice(length).map(readManifestLine)
    expect(added.map((line) => line?.closed)).toEqual([undefined, true])
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true })
  })
})

/** Syncs of segments that fail, and files that cannot be cut back or removed then, until what is given back is called. */
function failingDisk(): () => void {
  const fail = (): never => {
    throw new Error('EIO: as the test wants it')
  }
  const spies = [
    vi.spyOn(fs, 'fdatasync').mockImplementation((_descriptor, done) => {
      setImmediate(() => done(Object.assign(new Error('EIO: as the test wants it'), { code: 'EIO' })))
    }),
    vi.spyOn(fs, 'ftruncateSync').mockImplementation(fail),
    vi.spyOn(fs, 'unlinkSync').mockImplementation(fail),
  ]
  syncBuiltinESMExports()
  const restore = (): void => {
    for (const spy of spies) spy.mockRestore()
    syncBuiltinESMExports()
  }
  onTestFinished(restore)
  return restore
}

describe('C12.4.3 a write that failed', () => {
  /** A change whose records are left behind by a failure, and written again to another segment. */
  async function fail({ trail, ...recording }: Recording): Promise<void> {
    const restore = failingDisk()
    const bob = recording.change('bob').catch((fault: unknown) => fault)
    await eventually(() => expect(trail.state.writable).toBe(false))
    restore()
    expect(await bob).toMatchObject({ code: 'audit_unavailable' })
    await eventually(() => expect(trail.state).toMatchObject({ writable: true, held: 0, queue: 0 }))
    await recording.change('cyd')
  }

  /** A trail whose first segment has durable records. */
  async function failed(): Promise<Recording & { readonly folder: string }> {
    const folder = await dataFolder()
    const recording = await record({ folder, here: true })
    await recording.change('ann')
    await recording.sign()
    await fail(recording)
    return { ...recording, folder }
  }

  it('C12.4.3 in the middle of a run leaves a trail that is whole, also after the next start', async () => {
    const { folder, clock, ...recording } = await failed()
    await recording.close()
    const [first = '', second = ''] = segmentNames(folder)
    const named = recordIn(folder, second, 0).change?.before?.seq ?? 0
    expect(recordIn(folder, first, -1).seq).toBeGreaterThan(named)
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, unsigned: 0 })
    await served(folder, clock)
    readTrail(folder)
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, unsigned: 0 })
  })

  it('C12.4.4 and a kill after it leave a chain that the next start finds: what was written again counts', async () => {
    const recording = await failed()
    const { seq } = recording.trail.head
    const folder = await recording.killed()
    await restarted(folder, recording.clock)
    expect(at(heads(folder), -1)).toMatchObject({ seq })
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, unsigned: 0 })
  })

  it('C12.4.3 at the first record of all, and a kill, leave a chain that the next start finds', async () => {
    const recording = await record({ folder: await dataFolder(), here: true })
    await fail(recording)
    const { seq, hash } = recording.trail.head
    const folder = await recording.killed()
    const [first = '', second = ''] = segmentNames(folder)
    for (const name of [first, second]) expect(recordIn(folder, name, 0).seq).toBe(1)
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true })
    const next = await record({ folder, clock: recording.clock, here: true })
    expect(next.signer.end.head).toEqual({ seq, hash })
    await next.close()
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, unsigned: 0 })
  })

  it('C12.4.3 at the first record of a start leaves a segment without one that counts, and is no finding', async () => {
    const folder = await dataFolder()
    const { clock } = await served(folder)
    const { length } = segmentNames(folder)
    const recording = await record({ folder, clock, here: true })
    await fail(recording)
    const left = await recording.killed()
    await served(folder, clock)
    await served(left, clock)
    for (const each of [folder, left]) {
      const [first = '', second = ''] = segmentNames(each).slice(length)
      expect(recordIn(each, first, 0).seq).toBe(recordIn(each, second, 0).seq)
      readTrail(each)
      expect(verifyTrail({ folder: each })).toMatchObject({ findings: [], whole: true, unsigned: 0 })
    }
  })

  it('C12.4.6 T5.17 does not excuse a record that was changed or put behind the one which counts', async () => {
    const { folder, ...recording } = await failed()
    await recording.close()
    const [first = ''] = segmentNames(folder)
    const line = linesIn(join(folder, first)).length
    edit(join(folder, first), (lines) =>
      lines.map((each, index) => (index === line - 1 ? each.replace('bob', 'eve') : each)),
    )
    expect(verifyTrail({ folder }).findings).toEqual([
      { file: first, line, what: matching('it was changed or put there') },
    ])
  })
})

describe('C12.4.4 what a kill has left behind the last head', () => {
  it('C12.4.4 is signed as found, and the chain goes on behind it', async () => {
    const { folder, recording } = await killed()
    const [name = ''] = segmentNames(folder)
    const last = recordIn(folder, name, -1)
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], unsigned: 2, foundLate: 0 })
    await served(folder, recording.clock)
    expect(heads(folder)).toContainEqual(expect.objectContaining({ seq: last.seq, found: true }))
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, unsigned: 0, foundLate: 2 })
    expect(recordIn(folder, at(segmentNames(folder), 1), 0)).toMatchObject({
      seq: last.seq + 1,
      change: { before: { seq: last.seq, hash: last.hash } },
    })
  })

  it('C12.4.4 is signed as found of a start that was killed before it had signed a record', async () => {
    const recording = await record({ folder: await dataFolder() })
    await recording.change('ann')
    const folder = await recording.killed()
    await restarted(folder, recording.clock)
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, unsigned: 0, foundLate: 3 })
  })

  it.each([
    ['a torn line', '{"v":1,"writer":"20260115T0000'],
    ['zeros', '\0'.repeat(100)],
    ['zeros and the ends of lines', `${'\0'.repeat(50)}"}\n{"v":1}\n${'\0'.repeat(9)}\n`],
  ])(
    'C12.4.6 no alarm is raised by %s that a power cut has left there, before and after other starts',
    async (_, left) => {
      const { folder, recording } = await killed()
      const [name = ''] = segmentNames(folder)
      appendFileSync(join(folder, name), left)
      expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true })
      await served(folder, recording.clock)
      expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, unsigned: 0, foundLate: 2 })
    },
  )

  it.each([
    ['a torn line', '{"v":1,"writer":"20260115T0000'],
    ['zeros', '\0'.repeat(100)],
    ['nothing', ''],
  ])('C12.4.6 no alarm is raised by %s in the first segment of a start behind an end', async (_, left) => {
    const folder = await dataFolder()
    const { clock } = await served(folder)
    // The start has signed its first line.
    const start = await record({ folder, clock })
    const copy = await start.killed()
    const planned = numbered(at(segmentNames(copy), -1), segmentNames(copy).length + 1)
    for (const name of [planned, besideOf(planned)]) writeFileSync(join(copy, name), left)
    expect(verifyTrail({ folder: copy })).toMatchObject({ findings: [], whole: true })
    await served(copy, clock)
    expect(verifyTrail({ folder: copy })).toMatchObject({ findings: [], whole: true, unsigned: 0 })
  })

  it('T5.17 C12.4.6 is not signed from a record on that does not follow: verification names it', async () => {
    const { folder, recording } = await killed()
    const [name = ''] = segmentNames(folder)
    const last = recordIn(folder, name, -1)
    const line = linesIn(join(folder, name)).length + 1
    const bad = nextLine(folder, name).replace('acme-books', 'acme-looks')
    appendFileSync(join(folder, name), bad)
    expect(verifyTrail({ folder }).findings).toEqual([
      { file: name, line, what: `record ${last.seq + 1} was changed` },
    ])
    await served(folder, recording.clock)
    expect(Math.max(...heads(folder).map(({ seq }) => seq))).toBeGreaterThan(last.seq)
    expect(heads(folder)).toContainEqual(expect.objectContaining({ seq: last.seq, found: true }))
    expect(verifyTrail({ folder }).findings).toEqual([
      {
        file: name,
        line,
        what: `record ${last.seq + 1} does not follow record ${last.seq}: it was changed or put there`,
      },
    ])
  })
})

describe('T5.17 C12.4.6 what is put behind the end of a trail', () => {
  it('C12.4.6 records are never signed, and named with file and line before and after the next starts', async () => {
    const folder = await dataFolder()
    const { clock, trail } = await served(folder)
    const { seq } = trail.head
    const name = at(segmentNames(folder), -1)
    const line = linesIn(join(folder, name)).length + 1
    for (let more = 0; more < 2; more += 1) appendFileSync(join(folder, name), nextLine(folder, name))
    const { findings } = verifyTrail({ folder })
    expect(findings).toContainEqual({ file: name, line, what: BEHIND_END('records', seq) })
    await restarted(folder, clock)
    expect(verifyTrail({ folder }).findings).toContainEqual({
      ...{ file: name, line, what: BEHIND_END('records', seq) },
    })
    const next = await served(folder, clock)
    expect(verifyTrail({ folder }).findings).toEqual([{ file: name, line, what: BEHIND_END('records', seq) }])
    const after = at(segmentNames(folder), segmentNames(folder).indexOf(name) + 1)
    expect(recordIn(folder, after, 0)).toMatchObject({ seq: seq + 1, change: { before: { seq } } })
    expect(next.trail.head.seq).toBeGreaterThan(seq)
  })

  it.each(['a segment', 'the last segment'])(
    'C12.4.4 records in %s are not signed by the start behind one that was killed before its first record',
    async (where) => {
      const folder = await dataFolder()
      const { clock, trail } = await served(folder)
      const { seq, hash } = trail.head
      const last = at(segmentNames(folder), -1)
      const line = nextLine(folder, last)
      const planted = where === 'a segment' ? numbered(last, segmentNames(folder).length + 1) : last
      const finding = {
        ...{ file: planted, line: planted === last ? linesIn(join(folder, last)).length + 1 : 1 },
        what: BEHIND_END('records', seq),
      }
      appendFileSync(join(folder, planted), line)
      appendFileSync(join(folder, besideOf(planted)), '')
      clock.advance(1000)
      const killed = await (await record({ folder, clock, here: true })).killed()
      expect(verifyTrail({ folder: killed }).findings).toEqual([finding])
      const next = await record({ folder: killed, clock, here: true })
      expect(next.signer.end.head).toEqual({ seq, hash })
      await next.change('bob')
      await next.close()
      expect(verifyTrail({ folder: killed }).findings).toEqual([finding])
    },
  )

  it('C12.4.6 bytes in a segment of their own are named, before and after the next starts', async () => {
    const folder = await dataFolder()
    const { clock, trail } = await served(folder)
    const planted = numbered(at(segmentNames(folder), -1), segmentNames(folder).length + 1)
    writeFileSync(join(folder, planted), 'mine\n')
    const finding = {
      ...{ file: planted, line: expect.any(Number) as number },
      what: BEHIND_END('bytes', trail.head.seq),
    }
    for (let start = 0; start < 2; start += 1) {
      expect(verifyTrail({ folder }).findings).toEqual([finding])
      await restarted(folder, clock)
    }
    await served(folder, clock)
    expect(verifyTrail({ folder }).findings).toEqual([finding])
  })

  it('C12.4.6 no alarm is raised by what a start behind the end has left torn, though later ones record nothing', async () => {
    const folder = await dataFolder()
    const { clock } = await served(folder)
    const left = await (await record({ folder, clock, here: true })).killed()
    const torn = numbered(at(segmentNames(left), -1), segmentNames(left).length + 1)
    writeFileSync(join(left, torn), '{"v":1,"wri')
    for (let start = 0; start < 2; start += 1) {
      await restarted(left, clock)
      expect(verifyTrail({ folder: left })).toMatchObject({ findings: [], whole: true })
    }
  })

  it('C12.4.6 a segment that goes on with the chain is never signed, and named', async () => {
    const folder = await dataFolder()
    const { clock, trail } = await served(folder)
    const { seq } = trail.head
    const last = at(segmentNames(folder), -1)
    const planted = numbered(last, segmentNames(folder).length + 1)
    writeFileSync(join(folder, planted), nextLine(folder, last))
    writeFileSync(join(folder, besideOf(planted)), '')
    const finding = { file: planted, line: 1, what: BEHIND_END('records', seq) }
    expect(verifyTrail({ folder }).findings).toContainEqual(finding)
    await served(folder, clock)
    expect(verifyTrail({ folder }).findings).toEqual([finding])
  })

  it.each([
    ['half a line', '{"v":1,"wri'],
    ['a line that is no record', 'mine\n'],
    ['zeros before other lines', '\0\0\n{"v":1}\n'],
  ])('C12.4.6 bytes are named: %s', async (_, bytes) => {
    const folder = await dataFolder()
    const { clock, trail } = await served(folder)
    const name = at(segmentNames(folder), -1)
    appendFileSync(join(folder, name), bytes)
    const finding = {
      file: name,
      line: expect.any(Number) as number,
      what: BEHIND_END('bytes', trail.head.seq),
    }
    expect(verifyTrail({ folder }).findings).toEqual([finding])
    await served(folder, clock)
    expect(verifyTrail({ folder }).findings).toEqual([finding])
  })

  it('C12.4.6 is found at the end of a start before the last one, too', async () => {
    const folder = await dataFolder()
    const { clock } = await served(folder)
    const first = segmentNames(folder).findIndex(
      (name) => recordIn(folder, name, -1).event === 'writer.closed',
    )
    const name = at(segmentNames(folder), first)
    const { seq } = recordIn(folder, name, -1)
    await served(folder, clock)
    appendFileSync(join(folder, name), nextLine(folder, name))
    expect(verifyTrail({ folder }).findings).toMatchObject([{ file: name, what: BEHIND_END('records', seq) }])
  })
})

describe('T5.17 C12.4.6 segments that the writer has not made', () => {
  it('C12.4.6 of an invented trail name are never signed, and named before and after the next starts', async () => {
    const folder = await dataFolder()
    const { clock, trail } = await served(folder)
    const [first = ''] = segmentNames(folder)
    const invented = first.replace(trail.writer, '20260115T235959Z-invented')
    forge(folder, first, invented, (line) =>
      line.replaceAll(`"writer":"${trail.writer}"`, '"writer":"20260115T235959Z-invented"'),
    )
    for (let start = 0; start < 3; start += 1) {
      expect(verifyTrail({ folder })).toMatchObject({
        whole: false,
        findings: [{ file: invented, line: 1, what: FOREIGN }],
      })
      await restarted(folder, clock)
    }
    expect(linesIn(manifestOf(folder)).join('')).not.toContain('invented')
    await served(folder, clock)
    expect(verifyTrail({ folder }).findings).toEqual([{ file: invented, line: 1, what: FOREIGN }])
  })

  it('C12.4.6 the copy of one under another number is named, wherever it was taken from', async () => {
    const source = await dataFolder()
    const { clock } = await served(source)
    for (const name of segmentNames(source)) {
      const folder = await dataFolder()
      cpSync(source, folder, { recursive: true })
      copySegment(folder, name, numbered(name, segmentNames(folder).length + 1))
      expect(verifyTrail({ folder }).whole, `a copy of ${name}`).toBe(false)
      await restarted(folder, clock)
      expect(verifyTrail({ folder }).whole, `a copy of ${name}, after a start`).toBe(false)
    }
  })

  it('C12.4.6 the copy of one in the folder of another day is named', async () => {
    const folder = await dataFolder()
    const { clock } = await served(folder)
    const [first = ''] = segmentNames(folder)
    const copy = first.replace(/^[^/]+/, '2026-01-16')
    copySegment(folder, first, copy)
    const finding = { file: copy, what: matching(`another segment of that number, ${first}`) }
    expect(verifyTrail({ folder }).findings).toEqual([finding])
    await restarted(folder, clock)
    expect(verifyTrail({ folder }).findings).toEqual([finding])
  })

  it.each([5000, 999_999_999_999_999])(
    'C12.4.6 one with the number %s is named, and stops no later start',
    async (number) => {
      const folder = await dataFolder()
      const { clock } = await served(folder)
      const [first = ''] = segmentNames(folder)
      const planted = first.replace(/\.1\.jsonl$/, `.${number}.jsonl`)
      copySegment(folder, first, planted)
      expect(verifyTrail({ folder }).findings).toContainEqual({
        ...{ file: planted, line: 1, what: matching('record 1 is not in its place') },
      })
      const next = await served(folder, clock)
      expect(readManifestLine(at(linesIn(manifestOf(folder)), -1))?.head.seq).toBe(next.trail.head.seq)
      const { findings } = verifyTrail({ folder })
      expect(new Set(findings.map(({ file }) => file))).toEqual(new Set([planted]))
    },
  )

  it('C12.4.6 one that is taken out in the middle is missed, before and after the next start', async () => {
    const folder = await dataFolder()
    const { clock } = await served(folder)
    const [, second = '', third = ''] = segmentNames(folder)
    rmSync(join(folder, second))
    const finding = { file: third, line: 1, what: matching('missing before this one') }
    expect(verifyTrail({ folder }).findings).toEqual([finding])
    await served(folder, clock)
    expect(verifyTrail({ folder }).findings).toEqual([finding])
  })
})

describe('T5.17 C12.4.6 a manifest that is gone', () => {
  it.each<[string, (folder: string) => void]>([
    ['removed', (folder) => rmSync(manifestOf(folder))],
    ['emptied', (folder) => writeFileSync(manifestOf(folder), '')],
  ])('C12.4.6 %s makes a trail that is not whole, before and after the next starts', async (_, change) => {
    const folder = await dataFolder()
    const { clock, trail } = await served(folder)
    const [first = ''] = segmentNames(folder)
    change(folder)
    if (existsSync(manifestOf(folder)))
      expect(verifyTrail({ folder }).findings).toEqual([{ file: first, line: 1, what: FOREIGN }])
    const next = await served(folder, clock)
    expect(next.trail.writer).not.toBe(trail.writer)
    await restarted(folder, clock)
    expect(verifyTrail({ folder }).findings).toEqual([{ file: first, line: 1, what: FOREIGN }])
  })

  it('C12.4.6 replaced by one of an earlier end makes a trail that is not whole, before and after the next starts', async () => {
    const folder = await dataFolder()
    const { clock, trail } = await served(folder)
    const { seq } = trail.head
    const earlier = linesIn(manifestOf(folder))
    await served(folder, clock)
    edit(manifestOf(folder), () => earlier)
    expect(verifyTrail({ folder }).findings).toContainEqual(
      expect.objectContaining({ what: BEHIND_END('records', seq) }),
    )
    for (let start = 0; start < 2; start += 1) {
      await served(folder, clock)
      expect(verifyTrail({ folder }).whole).toBe(false)
    }
  })

  it('C12.4.6 cut back in the middle of a start is shown by an anchor', async () => {
    const folder = await dataFolder()
    const file = join(await dataFolder(), 'anchors.jsonl')
    const recording = await record({ folder, anchors: [{ to: 'file', file, every: 1 }] })
    for (const subject of ['ann', 'bob']) {
      await recording.change(subject)
      await recording.sign()
    }
    await recording.close()
    edit(manifestOf(folder), (lines) => lines.slice(0, 2))
    await restarted(folder, recording.clock)
    const { findings } = verifyTrail({ folder, anchors: [file] })
    expect(findings[0]).toMatchObject({
      ...{ file: 'manifest.jsonl', line: 3, what: matching('this is not the line that the anchor') },
    })
  })

  it('C12.4.6 with the beginning that the store remembers, also shows where every record is gone', async () => {
    const folder = await dataFolder()
    const { clock } = await served(folder)
    const { hash, time: signed } = JSON.parse(at(linesIn(manifestOf(folder)), 0)) as {
      hash: string
      time: string
    }
    const beginning = { hash, signed }
    expect(verifyTrail({ folder, beginning })).toMatchObject({ whole: true, beginningAnchored: true })
    expect(verifyTrail({ folder })).toMatchObject({ whole: true, beginningAnchored: false })
    renameSync(folder, `${folder}-gone`)
    onTestFinished(() => rmSync(`${folder}-gone`, { recursive: true }))
    await served(folder, clock)
    expect(verifyTrail({ folder })).toMatchObject({ whole: true })
    expect(verifyTrail({ folder, beginning })).toMatchObject({
      findings: [{ file: 'manifest.jsonl', line: 1, what: matching(signed) }],
      beginningAnchored: false,
    })
  })
})
