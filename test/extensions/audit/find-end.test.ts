/** Where the writer of a trail goes on at a start (C12.4.4). */
import fs, { appendFileSync, cpSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { ChainHead } from '../../../src/extensions/audit/format/record.ts'
import { findEnd, syncSegments } from '../../../src/extensions/audit/write/find-end.ts'
import { chainHash, lineOf, readTrail } from './support/audit-chain.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { record, segmentNames } from './support/recorded-trail.ts'
import { syncedFiles } from '../../support/synced-files.ts'

/** A trail of several segments, as a kill has left it. */
async function left(segmentBytes = 1000) {
  const recording = await record({ folder: await dataFolder(), segmentBytes })
  for (const subject of ['ann', 'bob', 'cyd']) await recording.change(subject)
  const folder = await recording.killed()
  const { writer } = recording.trail
  const records = readTrail(folder)
  const headOf = (seq: number): ChainHead => ({ seq, hash: records[seq - 1]?.hash ?? '' })
  const names = segmentNames(folder)
  const find = (seq: number, isClosed = false) => findEnd(folder, { writer, ...headOf(seq) }, { isClosed })
  return { folder, writer, names, last: headOf(records.length), headOf, find }
}

/** The name of a segment below the folder of its trail. */
const nameOf = (path: string): string => `${basename(dirname(path))}/${basename(path)}`

describe('C12.4.4 the end of a chain', () => {
  it('C12.4.4 is found from each record on that was signed, through all segments behind it', async () => {
    const { find, last, names } = await left()
    expect(names.length).toBeGreaterThan(2)
    for (let seq = 0; seq <= last.seq; seq += 1)
      expect(await find(seq), `from ${seq}`).toEqual({ head: last, number: names.length })
  })

  it('C12.4.4 is the record that was signed last where the writer has ended with it', async () => {
    const { find, headOf, names } = await left()
    for (const seq of [0, 2, 5])
      expect(await find(seq, true)).toEqual({ head: headOf(seq), number: names.length })
  })

  it('C12.4.4 is the record that was signed last where no segment has that one', async () => {
    const { folder, writer, names } = await left()
    const other = { writer, seq: 3, hash: 'x'.repeat(43) }
    expect(await findEnd(folder, other, {})).toEqual({
      ...{ head: { seq: 3, hash: other.hash }, number: names.length },
    })
    const none = { writer: 'another', seq: 0, hash: '' }
    expect(await findEnd(folder, none, {})).toEqual({ head: { seq: 0, hash: '' }, number: 0 })
  })

  it('C12.4.4 is before a segment that is gone', async () => {
    const { folder, find, names } = await left()
    rmSync(join(folder, names[1] ?? ''))
    const { head, number } = await find(1)
    expect(head.seq).toBe(readTrailUntil(folder, names[0] ?? ''))
    expect(number).toBe(names.length)
  })

  it('C12.4.4 is made durable: each segment that was walked through, and no other', async () => {
    const { find, headOf, names } = await left()
    const synced = syncedFiles(nameOf)
    await find(0)
    expect(synced.splice(0)).toEqual(names)
    // The last segment alone has the last record.
    await find(headOf(7).seq)
    const walked = synced.splice(0)
    expect(walked).toEqual(names.slice(-walked.length))
    expect(walked.length).toBeLessThan(names.length)
    await find(3, true)
    expect(synced).toEqual([])
  })

  it('C12.4.1 segments of other trails, and with numbers that no writer comes to, are not counted', async () => {
    const { folder, find, last, names } = await left()
    const [first = ''] = names
    cpSync(join(folder, first), join(folder, first.replace(/\.1\.jsonl$/, '.1000000000.jsonl')))
    cpSync(join(folder, first), join(folder, dirname(first), 'another.77.jsonl'))
    mkdirSync(join(folder, '2026-02-01'))
    writeFileSync(join(folder, '2026-02-01', basename(first).replace(/\.1\.jsonl$/, '.01.jsonl')), '')
    expect(await find(2)).toEqual({ head: last, number: names.length })
  })
})

describe('T5.17 C12.4.4 what is put beside the end of a chain', () => {
  it('C12.4.4 a far number that was taken hides nothing: a writer goes past it, and is followed there', async () => {
    const { folder, find, last, names } = await left()
    const far = (name: string, number: number): string => name.replace(/\.\d+\.jsonl$/, `.${number}.jsonl`)
    const moved = names.slice(1).map((name, at) => [name, far(name, 1_000_000_000 + at)] as const)
    for (const [name, to] of moved) renameSync(join(folder, name), join(folder, to))
    writeFileSync(join(folder, far(names[0] ?? '', 999_999_999)), '')
    const number = 1_000_000_000 + moved.length - 1
    for (const seq of [0, 2, 5, last.seq]) expect(await find(seq)).toEqual({ head: last, number })
  })

  it('C12.4.4 an empty segment hides nothing of a start that was killed before it had signed a record', async () => {
    const { find, last, names, folder } = await left()
    const [first = ''] = names
    const next = first.replace('.1.jsonl', `.${names.length + 1}.jsonl`)
    for (const name of [next, next.replace('.jsonl', '.personal.jsonl')])
      writeFileSync(join(folder, name), '')
    for (let seq = 0; seq <= last.seq; seq += 1)
      expect(await find(seq), `from ${seq}`).toEqual({ head: last, number: names.length + 1 })
  })

  it('C12.4.4 only segments that its last start has not found are followed from where that began', async () => {
    const { folder, writer, names, headOf, last } = await left()
    const found = await findEnd(folder, { writer, ...headOf(0) }, { begins: 0 })
    expect(found.head).toEqual(last)
    for (const begins of [1, names.length])
      expect(await findEnd(folder, { writer, ...headOf(0) }, { begins })).toEqual({
        ...{ head: headOf(0), number: names.length },
      })
  })

  it('C12.4.4 nothing follows a signed end of the writer', async () => {
    const folder = await dataFolder()
    const recording = await record({ folder, here: true })
    await recording.change('ann')
    await recording.close()
    const records = readTrail(folder)
    const end = records.at(-1)
    const { writer } = recording.trail
    const head = { writer, seq: end?.seq ?? 0, hash: end?.hash ?? '' }
    const [name = ''] = segmentNames(folder)
    const text = `{"v":1,"writer":"${writer}","seq":${head.seq + 1},"time":"2026-01-15T00:00:09.000Z","event":"user.disabled","outcome":"success"}`
    const line = lineOf(text, chainHash(head.hash, text))
    appendFileSync(join(folder, name), line)
    writeFileSync(join(folder, name.replace('.1.jsonl', '.2.jsonl')), line)
    expect((await findEnd(folder, head, {})).head).toEqual({ seq: head.seq, hash: head.hash })
  })
})

describe('C12.4.4 where the signed record is in no segment', () => {
  it('C12.4.4 the segments before are not read for it: a copy may be older than its manifest', async () => {
    const { folder, writer, last, names } = await left()
    const read = vi.spyOn(fs, 'openSync')
    syncBuiltinESMExports()
    onTestFinished(() => {
      read.mockRestore()
      syncBuiltinESMExports()
    })
    const head = { writer, seq: last.seq + 100, hash: 'x'.repeat(43) }
    expect((await findEnd(folder, head, {})).head.seq).toBe(head.seq)
    // One look each, at the first line.
    expect(read.mock.calls).toHaveLength(names.length)
  })
})

/** The `seq` of the last record of a segment. */
const readTrailUntil = (folder: string, name: string): number =>
  (JSON.parse(fs.readFileSync(join(folder, name), 'utf8').trimEnd().split('\n').at(-1) ?? '') as ChainHead)
    .seq

describe('C12.4.4 what is made durable before a line that signs it', () => {
  it('C12.4.4 are the segments of the trail from the last one on, of the last two days', async () => {
    const { folder, writer, names } = await left()
    const [first = ''] = names
    const now = Date.UTC(2026, 0, 17)
    const copyTo = (day: string, number: number): string => {
      const name = `${day}/${writer}.${number}.jsonl`
      mkdirSync(join(folder, day), { recursive: true })
      cpSync(join(folder, first), join(folder, name))
      return name
    }
    const [yesterday, today] = [copyTo('2026-01-16', 8), copyTo('2026-01-17', 9)]
    // A clock that was ahead has left this one behind; somebody has put those there.
    const ahead = copyTo('2026-02-01', 10)
    const far = copyTo('2026-01-16', 5000)
    cpSync(join(folder, first), join(folder, '2026-01-17', 'another.12.jsonl'))
    const synced = syncedFiles(nameOf)
    expect(await syncSegments(folder, writer, 7, now)).toBe(10)
    expect(synced.splice(0)).toEqual([yesterday, far, today, ahead])
    expect(await syncSegments(folder, writer, 9, now)).toBe(10)
    expect(synced.splice(0)).toEqual([far, today, ahead])
    expect(await syncSegments(folder, writer, 5001, now)).toBe(5001)
    expect(synced).toEqual([])
  })
})
