import fs from 'node:fs'
import { appendFile, mkdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { basename, join } from 'node:path'
import { createPublicKey } from 'node:crypto'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { AnchorPlan } from '../../../src/extensions/audit/format/anchors.ts'
import { openAuditKeys, PUBLIC_KEY_FILE } from '../../../src/extensions/audit/format/keys.ts'
import { isSignedLine, readManifestLine } from '../../../src/extensions/audit/format/manifest.ts'
import type { ChainHead } from '../../../src/extensions/audit/format/record.ts'
import { verifyTrail } from '../../../src/extensions/audit/read/verify.ts'
import { ManifestSigner } from '../../../src/extensions/audit/write/signer.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { changeOf, record, restarted, segmentNames } from './support/recorded-trail.ts'
import { syncedFiles } from '../../support/synced-files.ts'

const NONE: ChainHead = { seq: 0, hash: '' }
const head = (seq: number): ChainHead => ({ seq, hash: `${seq}`.padEnd(43, 'x') })

async function opened(folder: string, anchors: readonly AnchorPlan[] = []) {
  const [clock, timer] = [movableClock(), manualAfter()]
  const notes: { event: string; facts: unknown }[] = []
  const signer = await ManifestSigner.open({
    ...{ folder, clock, anchors, durable: true, after: timer.after },
    keys: await openAuditKeys(folder),
    recorder: { note: (_level, event, facts) => notes.push({ event, facts }) },
  })
  onTestFinished(() => signer.close(false))
  const reach = (reached: ChainHead): void => signer.follow(() => reached)
  const second = async (): Promise<void> => {
    clock.advance(1000)
    await timer.fire()
    await signer.sign()
  }
  return { signer, clock, notes, reach, second }
}

const linesOf = async (folder: string) =>
  (await readFile(join(folder, 'manifest.jsonl'), 'utf8')).split('\n').filter(Boolean).map(readManifestLine)

describe('C12.4.4 the manifest', () => {
  it('C12.4.4 gets a line at once, then one each second with news, and none without', async () => {
    const folder = await dataFolder()
    const { signer, reach, second } = await opened(folder)
    const { writer } = signer.end
    expect(await linesOf(folder)).toMatchObject([{ n: 1, before: '', head: { writer, ...NONE } }])
    await second()
    reach(head(1))
    await second()
    await second()
    reach(head(2))
    await second()
    const lines = await linesOf(folder)
    expect(lines).toMatchObject([
      { n: 1 },
      { n: 2, before: lines[0]?.hash, head: { writer, ...head(1) } },
      { n: 3, before: lines[1]?.hash, head: { writer, ...head(2) } },
    ])
    expect(lines.some((line) => line?.closed !== undefined || line?.head.found !== undefined)).toBe(false)
    const key = createPublicKey(await readFile(join(folder, PUBLIC_KEY_FILE), 'utf8'))
    expect(lines.every((line) => line !== undefined && isSignedLine(line, key))).toBe(true)
  })

  it('C12.4.4 goes on after a restart, and cuts off what a power cut has left behind its last line', async () => {
    const folder = await dataFolder()
    const first = await opened(folder)
    first.reach(head(1))
    await first.signer.close(true)
    await appendFile(join(folder, 'manifest.jsonl'), '{"v":2,"n":3,"ti')
    const next = await opened(folder)
    expect(next.signer.end).toEqual({ writer: first.signer.end.writer, head: head(1), number: 0 })
    next.reach(head(5))
    await next.signer.close(true)
    const lines = await linesOf(folder)
    expect(lines).toMatchObject([
      { n: 1 },
      { n: 2, closed: true, head: head(1) },
      { n: 3, before: lines[1]?.hash, head: head(1) },
      { n: 4, closed: true, head: head(5) },
    ])
    expect(lines[2]?.closed).toBeUndefined()
    expect(new Set(lines.map((line) => line?.head.writer)).size).toBe(1)
  })

  it('C12.4.4 says the highest number of a segment that its start has found, until it has recorded something', async () => {
    const folder = await dataFolder()
    const recording = await record({ folder, segmentBytes: 1000 })
    await recording.signer.remove([])
    for (const subject of ['ann', 'bob']) await recording.change(subject)
    await recording.sign()
    await recording.close()
    await restarted(folder, recording.clock)
    const { length } = segmentNames(folder)
    expect((await linesOf(folder)).map((line) => line?.begins)).toEqual([
      ...[0, 0, undefined, undefined],
      ...[length, length],
    ])
  })

  it('C12.4.4 keeps its public key beside it, and writes it only where that is another', async () => {
    const folder = await dataFolder()
    const { clock } = await record({ folder }).then(async (recording) => {
      await recording.close()
      return recording
    })
    const file = join(folder, PUBLIC_KEY_FILE)
    const text = await readFile(file, 'utf8')
    await utimes(file, 1, 1)
    await restarted(folder, clock)
    expect((await stat(file)).mtimeMs).toBe(1000)
    await writeFile(file, 'another')
    await restarted(folder, clock)
    expect(await readFile(file, 'utf8')).toBe(text)
  })

  it('C12.4.4 says nothing of an end where not all could be written: what is found there later is its own', async () => {
    const folder = await dataFolder()
    const { signer, reach } = await opened(folder)
    reach(head(1))
    await signer.close(false)
    expect((await linesOf(folder)).map((line) => [line?.head.seq, line?.closed])).toEqual([
      [0, undefined],
      [1, undefined],
    ])
  })

  it('C12.4.4 is not continued with another key, nor behind a line that was changed', async () => {
    const folder = await dataFolder()
    const { signer, reach } = await opened(folder)
    reach(head(1))
    await signer.close(true)
    const file = join(folder, 'manifest.jsonl')
    const text = await readFile(file, 'utf8')
    await writeFile(file, text.replace('"seq":1', '"seq":2'))
    await expect(opened(folder)).rejects.toThrow(/damaged or was changed/)
    await writeFile(file, text)
    await rm(join(folder, 'keys'), { recursive: true })
    await expect(opened(folder)).rejects.toThrow(/signed with another key/)
  })

  it.each([
    ['', []],
    [', also beside days that a clock has left behind which was ahead', ['2026-02-01', '2026-02-02']],
  ])('C12.4.4 signs what a process wrote that ended before it could tell%s', async (_, later) => {
    const recording = await record({ folder: await dataFolder() })
    for (const subject of ['ann', 'bob']) {
      await recording.change(subject)
      if (subject === 'ann') await recording.sign()
    }
    const { seq, hash } = recording.trail.head
    const folder = await recording.killed()
    for (const name of later) await mkdir(join(folder, name))
    await restarted(folder, recording.clock)
    const heads = (await linesOf(folder)).map((line) => line?.head)
    expect(heads.map((each) => [each?.seq, each?.found])).toEqual([
      [0, undefined],
      [3, undefined],
      [5, true],
      // The end of the start that has found it.
      [5, true],
    ])
    expect(heads.at(-1)).toMatchObject({ seq, hash })
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], foundLate: 2 })
  })

  it('C12.4.4 refuses nothing where its first line cannot be written: it is tried again each second', async () => {
    const folder = await dataFolder()
    const { open } = fs.promises
    const spy = vi.spyOn(fs.promises, 'open').mockImplementation(async (path, flags, mode) => {
      if (basename(String(path)) === 'manifest.jsonl' && flags !== 'r')
        throw Object.assign(new Error('ENOSPC: as the test wants it'), { code: 'ENOSPC' })
      return open(path, flags, mode)
    })
    syncBuiltinESMExports()
    const restore = (): void => {
      spy.mockRestore()
      syncBuiltinESMExports()
    }
    onTestFinished(restore)
    const { signer, notes, second } = await opened(folder)
    let begun = false
    void signer.begun.then(() => (begun = true))
    await second()
    expect(signer.trouble).toMatchObject({ code: 'ENOSPC' })
    expect([begun, signer.state.signing]).toEqual([false, false])
    restore()
    await second()
    await signer.begun
    expect(signer.trouble).toBeUndefined()
    expect(await linesOf(folder)).toMatchObject([{ n: 1, head: NONE }])
    expect(notes.map(({ event }) => event)).toEqual(['audit_manifest_unwritable', 'audit_manifest_writable'])
  })
})

/** Without the folder and the name of the trail. */
const shortName = (path: string): string => basename(path).replace(/^.*(?=\.\d)/, '')

describe('C12.4.2 with `audit.durability: system`', () => {
  it('C12.4.4 what was written since the last line is made durable before it is signed, and nothing else', async () => {
    const folder = await dataFolder()
    const synced = syncedFiles(shortName)
    const taken = (): string[] => synced.splice(0)
    const recording = await record({ folder, durability: 'system', segmentBytes: 1000 })
    await recording.sign()
    expect(taken()).toEqual(['manifest.jsonl'])
    for (const subject of ['ann', 'bob']) await recording.change(subject)
    expect(segmentNames(folder)).toHaveLength(2)
    await recording.sign()
    expect(taken()).toEqual(['.1.jsonl', '.2.jsonl', 'manifest.jsonl'])
    await recording.sign()
    expect(taken()).toEqual([])
    await recording.trail.require(changeOf('cyd'))
    await recording.sign()
    const [, ...later] = segmentNames(folder).map((name) => name.replace(/^.*(?=\.\d)/, ''))
    expect(taken()).toEqual([...later, 'manifest.jsonl'])
    // Midnight has come.
    recording.clock.advance(24 * 3_600_000)
    await recording.trail.require(changeOf('dee'))
    await recording.close()
    expect(taken()).toEqual([later.at(-1), expect.stringMatching(/^\.\d+\.jsonl$/), 'manifest.jsonl'])
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, unsigned: 0 })
  })

  it('C12.4.4 with `disk` the segments are synced by who writes them', async () => {
    const synced = syncedFiles(shortName)
    const recording = await record({ folder: await dataFolder() })
    await recording.change('ann')
    await recording.close()
    expect(new Set(synced)).toEqual(new Set(['manifest.jsonl']))
  })
})

describe('C12.4.5 an anchor', () => {
  it('C12.4.5 is told to the log at most once a minute with news, and at the end', async () => {
    const { signer, clock, notes, reach, second } = await opened(await dataFolder(), [
      { to: 'log', every: 60_000 },
    ])
    reach(head(1))
    await second()
    reach(head(2))
    await second()
    expect(notes).toMatchObject([{ event: 'audit_anchor', facts: { v: 2, line: 1 } }])
    clock.advance(60_000)
    await second()
    await second()
    expect(notes).toMatchObject([{ facts: { line: 1 } }, { facts: { line: 3 } }])
    reach(head(3))
    await signer.close(true)
    expect(notes).toMatchObject([{ facts: { line: 1 } }, { facts: { line: 3 } }, { facts: { line: 4 } }])
  })

  it('C12.4.5 that cannot be written is counted and stops nothing', async () => {
    const folder = await dataFolder()
    const { signer, notes } = await opened(folder, [
      { to: 'file', file: join(folder, 'none', 'x'), every: 60_000 },
    ])
    await signer.sign()
    expect(signer.state).toMatchObject({ signing: true, anchoredAt: 0 })
    expect(notes).toMatchObject([{ event: 'audit_anchor_failed' }])
    expect(await linesOf(folder)).toHaveLength(1)
  })
})
