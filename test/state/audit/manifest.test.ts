import { appendFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createPublicKey } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { AnchorPlan } from '../../../src/state/audit/format/anchors.ts'
import { openAuditKeys, PUBLIC_KEY_FILE } from '../../../src/state/audit/format/keys.ts'
import { isSignedLine, readManifestLine } from '../../../src/state/audit/format/manifest.ts'
import { ManifestSigner } from '../../../src/state/audit/write/signer.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'

const head = (writer: string, seq: number) => ({ writer, seq, hash: `${writer}${seq}`.padEnd(43, 'x') })

async function opened(folder: string, anchors: readonly AnchorPlan[] = []) {
  const [clock, timer] = [movableClock(), manualAfter()]
  const notes: { event: string; facts: unknown }[] = []
  const signer = await ManifestSigner.open({
    ...{ folder, clock, anchors, durable: true, after: timer.after },
    keys: await openAuditKeys(folder),
    recorder: { note: (_level, event, facts) => notes.push({ event, facts }) },
  })
  onTestFinished(() => signer.close())
  const second = async (): Promise<void> => {
    clock.advance(1000)
    await timer.fire()
    await signer.sign()
  }
  return { signer, clock, notes, second }
}

const linesOf = async (folder: string) =>
  (await readFile(join(folder, 'manifest.jsonl'), 'utf8')).split('\n').filter(Boolean).map(readManifestLine)

describe('C12.4.4 the manifest', () => {
  it('C12.4.4 gets a line each second with news, and none without', async () => {
    const folder = await dataFolder()
    const { signer, second } = await opened(folder)
    signer.report(head('a', 1))
    signer.report(head('b', 7))
    await second()
    await second()
    signer.report(head('a', 2))
    await second()
    const lines = await linesOf(folder)
    expect(lines).toMatchObject([
      { n: 1, before: '', heads: [head('a', 1), head('b', 7)] },
      { n: 2, before: lines[0]?.hash, heads: [head('a', 2), head('b', 7)] },
    ])
    const key = createPublicKey(await readFile(join(folder, PUBLIC_KEY_FILE), 'utf8'))
    expect(lines.every((line) => line !== undefined && isSignedLine(line, key))).toBe(true)
  })

  it('C12.4.4 goes on after a restart, and cuts off what a power cut has left behind its last line', async () => {
    const folder = await dataFolder()
    const first = await opened(folder)
    first.signer.report(head('a', 1))
    await first.signer.close()
    await appendFile(join(folder, 'manifest.jsonl'), '{"v":1,"n":2,"ti')
    const next = await opened(folder)
    next.signer.report(head('b', 1))
    await next.signer.close()
    const lines = await linesOf(folder)
    expect(lines).toMatchObject([{ n: 1 }, { n: 2, before: lines[0]?.hash, heads: [head('b', 1)] }])
  })

  it('C12.4.4 is not continued with another key, nor behind a line that was changed', async () => {
    const folder = await dataFolder()
    const { signer } = await opened(folder)
    signer.report(head('a', 1))
    await signer.close()
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
    const folder = await dataFolder()
    const { signer, second } = await opened(folder)
    const day = join(folder, '2026-01-15')
    await mkdir(day)
    for (const name of later) await mkdir(join(folder, name))
    const line = (seq: number): string =>
      `{"v":1,"writer":"w","seq":${seq},"time":"2026-01-15T00:00:00.000Z","event":"lockout.cleared","outcome":"success","hash":"${head('w', seq).hash}"}\n`
    await writeFile(join(day, 'w.1.jsonl'), `${line(1)}${line(2)}{"v":1,"wri`)
    signer.report(head('w', 1))
    await second()
    signer.ended('w')
    await second()
    await second()
    expect((await linesOf(folder)).map((each) => each?.heads)).toEqual([
      [head('w', 1)],
      [{ ...head('w', 2), found: true }],
    ])
  })
})

describe('C12.4.5 an anchor', () => {
  it('C12.4.5 is told to the log at most once a minute with news, and at the end', async () => {
    const { signer, clock, notes, second } = await opened(await dataFolder(), [{ to: 'log', every: 60_000 }])
    signer.report(head('a', 1))
    await second()
    signer.report(head('a', 2))
    await second()
    expect(notes).toMatchObject([{ event: 'audit_anchor', facts: { line: 1 } }])
    clock.advance(60_000)
    await second()
    await second()
    expect(notes).toMatchObject([{ facts: { line: 1 } }, { facts: { line: 2 } }])
    signer.report(head('a', 3))
    await signer.close()
    expect(notes).toMatchObject([{ facts: { line: 1 } }, { facts: { line: 2 } }, { facts: { line: 3 } }])
  })

  it('C12.4.5 that cannot be written is counted and stops nothing', async () => {
    const folder = await dataFolder()
    const { signer, notes } = await opened(folder, [
      { to: 'file', file: join(folder, 'none', 'x'), every: 1 },
    ])
    signer.report(head('a', 1))
    await signer.sign()
    expect(signer.state).toMatchObject({ signing: true, anchoredAt: 0 })
    expect(notes).toMatchObject([{ event: 'audit_anchor_failed' }])
    expect(await linesOf(folder)).toHaveLength(1)
  })
})
