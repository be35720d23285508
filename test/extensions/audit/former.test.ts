/** The trail of Postern 0.2, which is kept aside (C12.4.8). */
import fs, { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { basename, join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { openTrailOwner } from '../../../src/extensions/audit/trail-owner.ts'
import { openAuditKeys } from '../../../src/extensions/audit/format/keys.ts'
import {
  FORMER_ADVICE,
  formerFolder,
  isFormer,
  readFormerManifest,
} from '../../../src/extensions/audit/format/former.ts'
import type { AuditPlan } from '../../../src/extensions/audit/format/schema.ts'
import { readAnchors } from '../../../src/extensions/audit/format/anchors.ts'
import { queryTrail } from '../../../src/extensions/audit/read/read-trail.ts'
import { readRow } from '../../../src/extensions/audit/read/rows.ts'
import { verifyTrail } from '../../../src/extensions/audit/read/verify.ts'
import { tryLock } from '../../../src/operate/trail/lock.ts'
import { moveFormer } from '../../../src/extensions/audit/write/move-former.ts'
import { Retention } from '../../../src/extensions/audit/write/retention.ts'
import { readTrail } from './support/audit-chain.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { writeFormerTrail } from './support/former-trail.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { manifestOf, record, restarted } from './support/recorded-trail.ts'

const DAY = 86_400_000
const MOVED = [
  '2026-01-10',
  '2026-01-12',
  'abandoned.json',
  'announced',
  'manifest-key.pem',
  'manifest.jsonl',
]

/** Everything in a folder, with the texts of its files. */
function textsIn(folder: string): ReadonlyMap<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) =>
    each.isFile(),
  )
  const paths = entries.map((each) => join(each.parentPath, each.name))
  return new Map(paths.map((path) => [path.slice(folder.length + 1), readFileSync(path, 'utf8')]))
}

/** A start of a service, or of a command, with what it logs. */
async function start(folder: string, here = false) {
  const lock = tryLock(folder)
  if (lock === undefined) throw new Error('the lock is taken')
  const noted: string[] = []
  const plan: AuditPlan = { folder, durability: 'disk', timeout: 20_000, retention: undefined, anchors: [] }
  const owner = await openTrailOwner(plan, 'own', {
    ...{ lock, here, clock: movableClock(), after: manualAfter().after },
    recorder: { note: (_level, event) => void noted.push(event) },
  })
  return { owner, noted }
}

describe('C12.4.8 a trail of Postern 0.2', () => {
  it('C12.4.8 is known by how its manifest begins', async () => {
    const folder = await dataFolder()
    expect(isFormer(folder)).toBe(false)
    expect(await readFormerManifest(folder)).toBeUndefined()
    const { first, last } = await writeFormerTrail(folder)
    expect(isFormer(folder)).toBe(true)
    const [begin, end] = [first, last].map(({ n, time, hash }) => ({ n, time, hash }))
    expect(await readFormerManifest(folder)).toMatchObject({ first: begin, last: end })
    // A power cut may have left half a line.
    writeFileSync(manifestOf(folder), '{"v":1,"n":9', { flag: 'a' })
    expect(await readFormerManifest(folder)).toMatchObject({ first: begin, last: end })
    const own = await dataFolder()
    await restarted(own, movableClock())
    expect(isFormer(own)).toBe(false)
    expect(await readFormerManifest(own)).toBeUndefined()
  })

  it.each([false, true])(
    'C12.4.8 is moved aside by the first start, whole, and the new trail says so (of a command: %s)',
    async (here) => {
      const folder = await dataFolder()
      const { last } = await writeFormerTrail(folder)
      const before = textsIn(folder)
      const { publicPem } = await openAuditKeys(folder)
      const { owner, noted } = await start(folder, here)
      await owner.close()
      expect(noted).toEqual(['audit_trail_moved'])
      const former = formerFolder(folder) ?? ''
      expect(readdirSync(former).toSorted()).toEqual(MOVED)
      for (const [name, text] of textsIn(former)) expect([name, text]).toEqual([name, before.get(name)])
      expect(readFileSync(join(folder, 'manifest-key.pem'), 'utf8')).toBe(publicPem)
      expect(readdirSync(folder)).not.toContain('announced')
      const copy = await dataFolder()
      cpSync(folder, copy, { recursive: true, filter: (path) => basename(path) !== '0.2' })
      expect(readTrail(copy)).toMatchObject([
        { seq: 1, event: 'writer.opened' },
        {
          event: 'audit.trail_moved',
          on: { kind: 'trail', id: '0.2' },
          change: { line: last.n, hash: last.hash },
        },
        { event: 'writer.closed' },
      ])
      expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, records: 3, former })
      const next = await start(folder, here)
      await next.owner.close()
      expect(next.noted).toEqual([])
      expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, records: 3 })
    },
  )

  it('C12.4.8 is not verified, and says which version does; its records are found', async () => {
    const folder = await dataFolder()
    await writeFormerTrail(folder)
    expect(() => verifyTrail({ folder })).toThrow(`${folder} is ${FORMER_ADVICE}`)
    await moveFormer(folder)
    const former = join(folder, '0.2')
    expect(() => verifyTrail({ folder: former })).toThrow(`${former} is ${FORMER_ADVICE}`)
    const rows: string[] = []
    for await (const step of queryTrail({ folders: [former], query: { by: 'ann' } }))
      if (step.kind === 'rows') rows.push(...step.lines.map((line) => String(readRow(line).requestId)))
    expect(rows).toHaveLength(4)
  })

  it.each(['2026-01-12', 'abandoned.json', 'announced', 'manifest-key.pem', 'manifest.jsonl'])(
    'C12.4.8 whose move was cut off at %s is moved by the next start',
    async (name) => {
      const folder = await dataFolder()
      await writeFormerTrail(folder)
      const before = textsIn(folder)
      const failing = vi.spyOn(fs.promises, name === 'manifest-key.pem' ? 'copyFile' : 'rename')
      failing.mockImplementation((from: fs.PathLike, to: fs.PathLike) => {
        if (basename(String(from)) === name) return Promise.reject(new Error('cut off'))
        fs.renameSync(from, to)
        return Promise.resolve()
      })
      syncBuiltinESMExports()
      const restore = (): void => {
        failing.mockRestore()
        syncBuiltinESMExports()
      }
      onTestFinished(restore)
      await expect(moveFormer(folder)).rejects.toThrow('cut off')
      restore()
      // Its manifest goes last, so it is known again.
      expect(isFormer(folder)).toBe(true)
      expect(await moveFormer(folder)).toBe(true)
      expect(readdirSync(join(folder, '0.2')).toSorted()).toEqual(MOVED)
      for (const [file, text] of textsIn(join(folder, '0.2'))) expect(text).toBe(before.get(file))
      expect(await moveFormer(folder)).toBe(false)
    },
  )

  it('C12.4.8 beside another one that was moved already stops the start: nothing is moved', async () => {
    const folder = await dataFolder()
    await writeFormerTrail(folder)
    await moveFormer(folder)
    await writeFormerTrail(folder, ['2026-01-13'])
    const before = textsIn(folder)
    await expect(start(folder)).rejects.toMatchObject({
      name: 'AuditFolderError',
      message: expect.stringContaining(
        `has two audit trails of Postern 0.2: its own, and the one in ${folder}/0.2`,
      ),
    })
    expect(new Map([...textsIn(folder)].filter(([name]) => name !== 'writer.lock'))).toEqual(before)
    // The lock was released.
    const lock = tryLock(folder)
    expect(lock).toBeDefined()
    lock?.release()
  })

  it('C12.4.8 with a day that was moved already stops the start, and names the day', async () => {
    const folder = await dataFolder()
    await writeFormerTrail(folder)
    mkdirSync(join(folder, '0.2', '2026-01-12', 'x'), { recursive: true })
    const before = textsIn(folder)
    await expect(moveFormer(folder)).rejects.toMatchObject({
      name: 'AuditFolderError',
      message: expect.stringContaining(`${folder}/2026-01-12 is part of an audit trail of Postern 0.2`),
    })
    expect(textsIn(folder)).toEqual(before)
  })

  it.each<[string, (trail: { hash: string; time: string }) => Promise<string>]>([
    ['the hash of another', ({ hash, time }) => Promise.resolve(JSON.stringify({ v: 1, n: 1, time, hash }))],
    [
      'the signature of another key',
      async () => {
        const other = await dataFolder()
        await writeFormerTrail(other)
        return readFileSync(manifestOf(other), 'utf8').trimEnd()
      },
    ],
  ])('T5.17 C12.4.8 moves nothing where the manifest has %s: the start refuses it', async (_, forge) => {
    const folder = await dataFolder()
    await restarted(folder, movableClock())
    const [first = ''] = readFileSync(manifestOf(folder), 'utf8').split('\n')
    writeFileSync(manifestOf(folder), `${await forge(JSON.parse(first) as { hash: string; time: string })}\n`)
    mkdirSync(join(folder, '2026-01-01'))
    await expect(start(folder)).rejects.toThrow(/damaged or was changed/)
    expect(readdirSync(folder)).toContain('2026-01-01')
    expect(existsSync(join(folder, '0.2'))).toBe(false)
  })

  it('C12.4.8 leaves a trail of this version alone', async () => {
    const folder = await dataFolder()
    await restarted(folder, movableClock())
    mkdirSync(join(folder, '2026-01-01'))
    expect(await moveFormer(folder)).toBe(false)
    expect(existsSync(join(folder, '0.2'))).toBe(false)
  })
})

describe('C12.4.7 retention of a trail of Postern 0.2', () => {
  it('C12.4.7 C12.4.8 removes it when all of it is too old, and says so before', async () => {
    const folder = await dataFolder()
    await writeFormerTrail(folder)
    await moveFormer(folder)
    const clock = movableClock(Date.UTC(2026, 0, 13))
    const recording = await record({ folder, clock })
    const retention = new Retention({
      ...{ folder, days: 10, clock, recorder: { note: () => undefined } },
      ...{ trail: recording.trail, signer: recording.signer },
    })
    await recording.change('ann')
    clock.step(10 * DAY - 1)
    await retention.run()
    expect(readdirSync(join(folder, '0.2')).toSorted()).toEqual(MOVED)
    clock.step(1)
    await retention.run()
    expect(existsSync(join(folder, '0.2'))).toBe(false)
    await retention.run()
    await recording.close()
    const removed = readTrail(folder).filter(({ event }) => event === 'audit.segment_removed')
    expect(removed).toMatchObject(
      ['2026-01-10', '2026-01-12'].map((until) => ({ on: { kind: 'trail', id: '0.2' }, change: { until } })),
    )
    expect(verifyTrail({ folder })).toMatchObject({
      findings: [],
      whole: true,
      removed: 0,
      former: undefined,
    })
  })

  it('C12.4.7 leaves it where its removal cannot be recorded', async () => {
    const folder = await dataFolder()
    await writeFormerTrail(folder)
    await moveFormer(folder)
    const noted: string[] = []
    const retention = new Retention({
      ...{ folder, days: 10, clock: movableClock(Date.UTC(2027, 0, 1)) },
      recorder: { note: (_level, event) => void noted.push(event) },
      trail: { require: () => Promise.reject(new Error('the trail cannot be written')) },
      signer: {
        end: { writer: 'w', head: { seq: 0, hash: '' }, number: 0 },
        remove: () => Promise.resolve(),
      },
    })
    await retention.run()
    expect(readdirSync(join(folder, '0.2')).toSorted()).toEqual(MOVED)
    expect(noted).toEqual(['audit_retention_failed'])
  })
})

it('C12.4.5 anchors of Postern 0.2 are passed over: they hold lines of the trail that was moved', async () => {
  const folder = await dataFolder()
  const { last } = await writeFormerTrail(folder)
  await moveFormer(folder)
  const file = join(await dataFolder(), 'anchors.jsonl')
  const { signature } = JSON.parse(last.text) as { readonly signature: string }
  const anchor = { line: last.n, signed: last.time, hash: last.hash, signature }
  writeFileSync(file, `${JSON.stringify(anchor)}\n${JSON.stringify({ v: 1, ...anchor })}\n`)
  expect(readAnchors(file)).toEqual([])
  const recording = await record({ folder, anchors: [{ to: 'file', file, every: 1 }] })
  await recording.change('ann')
  await recording.close()
  expect(readAnchors(file).map(({ v, line, at }) => [v, line, at])).toEqual([
    [2, 1, 3],
    [2, 2, 4],
  ])
  expect(verifyTrail({ folder, anchors: [file] })).toMatchObject({
    ...{ findings: [], whole: true, anchoredUntil: expect.stringMatching(/^2026-01-15T/) },
  })
  rmSync(join(folder, '0.2'), { recursive: true })
  expect(verifyTrail({ folder, anchors: [file] })).toMatchObject({ findings: [], former: undefined })
})
