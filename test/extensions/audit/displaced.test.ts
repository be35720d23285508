import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openAuditKeys } from '../../../src/extensions/audit/format/keys.ts'
import { readManifestLine } from '../../../src/extensions/audit/format/manifest.ts'
import { openTrail } from '../../../src/extensions/audit/write/writing-trail.ts'
import { verifyTrail } from '../../../src/extensions/audit/read/verify.ts'
import type { AuditEntry } from '../../../src/base/contracts/records/audit.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { eventually } from '../../support/eventually.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { changeOf, manifestOf, record } from './support/recorded-trail.ts'

const DAY = '2026-11-22'
const NOTE: AuditEntry = { event: 'service.started', outcome: 'success', actor: { kind: 'service' } }

async function opened(durability: 'disk' | 'system' = 'disk') {
  const folder = join(await dataFolder(), 'audit')
  const noted: string[] = []
  let counted = 0
  const trail = openTrail(
    { folder, durability, timeout: 30_000 },
    {
      clock: movableClock(Date.UTC(2026, 10, 22, 12)),
      bodyKey: 'k',
      recorder: { note: (_, event) => void noted.push(event) },
      metrics: {
        recorded: () => undefined,
        refusedUnrecorded: () => undefined,
        recordDropped: () => undefined,
        trailSynced: () => undefined,
        anchorFailed: () => undefined,
        fileDisplaced: () => (counted += 1),
      },
    },
  )
  onTestFinished(() => trail.close())
  const day = join(folder, DAY)
  return {
    ...{ folder, trail, noted, day, moved: `${folder}-moved` },
    counted: () => counted,
    lines: join(day, `${trail.writer}.1.jsonl`),
    values: join(day, `${trail.writer}.1.personal.jsonl`),
  }
}

type Opened = Awaited<ReturnType<typeof opened>>

const DISPLACEMENTS: Readonly<Record<string, (of: Opened) => void>> = {
  'the segment is removed': ({ lines }) => rmSync(lines),
  'the segment is moved': ({ lines, moved }) => renameSync(lines, moved),
  'the segment is moved and a copy of it is put there': ({ lines, moved }) => {
    renameSync(lines, moved)
    copyFileSync(moved, lines)
  },
  'the segment is moved and a link to it is put there': ({ lines, moved }) => {
    renameSync(lines, moved)
    symlinkSync(moved, lines)
  },
  'the segment is emptied': ({ lines }) => truncateSync(lines),
  'somebody appends to the segment': ({ lines }) => appendFileSync(lines, '{"v":1}\n'),
  'the file with the personal values is removed': ({ values }) => rmSync(values),
  'the folder of the day is removed': ({ day }) => rmSync(day, { recursive: true }),
  'the folder of the day is moved': ({ day, moved }) => renameSync(day, moved),
  'the folder of the day is moved and another one is put there': ({ day, moved }) => {
    renameSync(day, moved)
    mkdirSync(day, { mode: 0o700 })
  },
  'the folder of the trail is removed': ({ folder }) => rmSync(folder, { recursive: true }),
  'the folder of the trail is moved': ({ folder, moved }) => renameSync(folder, moved),
}

const textIn = (folder: string): string =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.\d+\.jsonl$/.test(name))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('')

describe('T5.15 C12.4.3 a segment whose file is not in its place any more', () => {
  const cases = Object.keys(DISPLACEMENTS).flatMap((name) => [
    [name, 'disk'] as const,
    [name, 'system'] as const,
  ])
  it.each(cases)(
    'is left for another one, and no record that was answered since is lost: %s (%s)',
    async (name, durability) => {
      const one = await opened(durability)
      const { trail } = one
      await trail.require(changeOf('before'))
      DISPLACEMENTS[name]?.(one)
      const after = Array.from({ length: 40 }, (_, at) => `after-${at}`)
      const callers = [0, 1, 2, 3].map(async (caller) => {
        for (const subject of after.filter((_, at) => at % 4 === caller)) {
          const intent = await trail.require(changeOf(subject))
          await trail.settle({ ...NOTE, event: 'call.settled', intent, requestId: `outcome of ${subject}` })
        }
      })
      await Promise.all(callers)
      const text = textIn(one.folder)
      expect(after.filter((subject) => !text.includes(`"request of ${subject}"`))).toEqual([])
      expect(after.filter((subject) => !text.includes(`"outcome of ${subject}"`))).toEqual([])
      expect(trail.state).toMatchObject({ displaced: 1, writable: true, dropped: 0 })
      expect(one.counted()).toBe(1)
      expect(one.noted).toContain('audit_file_displaced')
    },
  )

  it('is told within a second or so, though nobody records anything', async () => {
    const { trail, lines, noted } = await opened()
    await trail.require(changeOf('before'))
    rmSync(lines)
    await eventually(() => expect(noted).toEqual(['audit_file_displaced']))
    expect(trail.state.displaced).toBe(1)
  })

  it('is not removed, cut or appended to: what stands at its path is somebody else’s', async () => {
    const { trail, lines, moved } = await opened()
    await trail.require(changeOf('before'))
    renameSync(lines, moved)
    writeFileSync(lines, 'mine\n')
    await trail.require(changeOf('after'))
    await trail.close()
    expect(readFileSync(lines, 'utf8')).toBe('mine\n')
    expect(readFileSync(moved, 'utf8')).toContain('request of before')
  })
})

const numbersIn = (path: string): readonly (number | undefined)[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => readManifestLine(line)?.n)

describe('T5.15 C12.4.4 a manifest that is not in its place any more', () => {
  async function signed(own?: string, node?: string) {
    const folder = own ?? join(await dataFolder(), 'audit')
    const recording = await record({ folder, node })
    onTestFinished(() => recording.close())
    for (const subject of ['ada', 'ben']) {
      await recording.change(subject)
      await recording.sign()
    }
    return { folder, manifest: manifestOf(folder), ...recording }
  }

  it.each<[string, (manifest: string) => void, readonly (number | undefined)[]]>([
    ['is removed', (manifest) => rmSync(manifest), [4, 5]],
    ['is moved', (manifest) => renameSync(manifest, `${manifest}.old`), [4, 5]],
    ['is emptied', (manifest) => truncateSync(manifest), [4, 5]],
    [
      'gets a line of somebody else',
      (manifest) => appendFileSync(manifest, 'x\n'),
      [1, 2, 3, undefined, 4, 5],
    ],
    [
      'is replaced by its beginning, without an end',
      (manifest) => {
        const [first = ''] = readFileSync(manifest, 'utf8').split('\n')
        rmSync(manifest)
        writeFileSync(manifest, first)
      },
      [1, 4, 5],
    ],
  ])('goes on from the last line when it %s, and never begins at 1 again', async (_, change, expected) => {
    const { manifest, signer, ...recording } = await signed()
    change(manifest)
    await recording.sign()
    expect(signer.state).toMatchObject({ signing: true, displaced: 1 })
    await recording.change('cyd')
    await recording.sign()
    expect(numbersIn(manifest)).toEqual(expected)
    expect(signer.state).toMatchObject({ signing: true, displaced: 1 })
  })

  it.each([undefined, 'n1'])(
    'is whole again where it and the segments come back, the old lines before the new ones (node %s)',
    async (node) => {
      const folder = join(await dataFolder(), 'audit')
      const { manifest, signer, clock, ...recording } = await signed(folder, node)
      const [trail] = [recording.trail]
      const day = join(folder, new Date(clock.now()).toISOString().slice(0, 10))
      const moved = [manifest, ...readdirSync(day).map((name) => join(day, name))]
      for (const path of moved) renameSync(path, `${path}.moved`)
      await recording.change('cyd')
      await recording.sign()
      await trail.close()
      await recording.sign()
      expect(verifyTrail({ folder }).whole).toBe(false)
      writeFileSync(manifest, readFileSync(`${manifest}.moved`, 'utf8') + readFileSync(manifest, 'utf8'))
      for (const path of moved.slice(1)) renameSync(`${path}.moved`, path)
      expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true })
      expect(signer.state.displaced).toBe(1)
    },
  )

  it('has its keys again, also when the whole folder is gone: the next start knows the signatures', async () => {
    const { folder, manifest, ...recording } = await signed()
    const { publicPem, bodyKey } = await openAuditKeys(folder)
    renameSync(folder, `${folder}-moved`)
    await recording.change('cyd')
    await recording.sign()
    expect(numbersIn(manifest)).toEqual([4])
    expect(await openAuditKeys(folder)).toMatchObject({ publicPem, bodyKey })
    expect(readFileSync(join(folder, 'manifest-key.pem'), 'utf8')).toBe(publicPem)
    expect(existsSync(join(folder, 'keys'))).toBe(true)
  })
})
