/** Who may write to a trail: those that were announced, and nobody else (C12.4.4, C12.4.6). */
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  announceAside,
  announcementFile,
  writeAnnouncement,
} from '../../../src/state/audit/format/announcement.ts'
import { openAuditKeys } from '../../../src/state/audit/format/keys.ts'
import { makeManifestLine, readManifestLine } from '../../../src/state/audit/format/manifest.ts'
import { ManifestSigner } from '../../../src/state/audit/write/signer.ts'
import { newWriterName, openTrail } from '../../../src/state/audit/write/trail.ts'
import { verifyTrail } from '../../../src/state/audit/read/verify.ts'
import { chainHash, lineOf, type ChainedRecord } from '../../support/audit-chain.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { needing } from '../../support/machine.ts'
import { manualAfter } from '../../support/manual-after.ts'
import type { MovableClock } from '../../support/movable-clock.ts'
import {
  changeOf,
  linesIn,
  manifestOf,
  record,
  type Recording,
  writeLines,
} from '../../support/recorded-trail.ts'

const recorder = { note: () => undefined }

const segmentsIn = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.\d+\.jsonl$/.test(name))
    .toSorted()

/** A trail of a service that has ended, with a second process. */
async function served(folder: string, clock?: MovableClock): Promise<Recording> {
  const recording = await record({ folder, ...(clock && { clock }) })
  const other = recording.addWriter()
  await recording.change('ann')
  await recording.change('bob', other)
  await recording.sign()
  return recording
}

/** A service that starts, records nothing, and ends. */
async function restarted(folder: string, { clock }: Pick<Recording, 'clock'>): Promise<readonly string[]> {
  const noted: string[] = []
  clock.advance(10_000)
  const signer = await ManifestSigner.open({
    ...{ folder, clock, anchors: [], durable: true, after: manualAfter().after },
    keys: await openAuditKeys(folder),
    recorder: { note: (_, event) => void noted.push(event) },
  })
  await signer.announce(newWriterName(clock.now()))
  clock.advance(1000)
  await signer.sign()
  await signer.close()
  return noted
}

/** The records of a segment as those of another writer, chained anew, as anybody can. */
function forge(folder: string, from: string, writer: string, change = (line: string) => line): string {
  const name = join(dirname(from), `${writer}.1.jsonl`)
  const old = (JSON.parse(linesIn(join(folder, from))[0] ?? '') as ChainedRecord).writer
  let before = ''
  const lines = linesIn(join(folder, from)).map((line) => {
    const text = change(line.replace(`"writer":"${old}"`, `"writer":"${writer}"`)).replace(
      /,"hash":"[^"]+"\}$/,
      '}',
    )
    before = chainHash(before, text)
    return lineOf(text, before)
  })
  writeFileSync(join(folder, name), lines.join(''))
  cpSync(
    join(folder, from.replace(/\.jsonl$/, '.personal.jsonl')),
    join(folder, name.replace(/\.jsonl$/, '.personal.jsonl')),
  )
  return name
}

/** Records that somebody appends to a segment, chained as anybody can. */
function append(folder: string, name: string): void {
  const last = JSON.parse(linesIn(join(folder, name)).at(-1) ?? '') as ChainedRecord
  const text = (linesIn(join(folder, name))[1] ?? '')
    .replace(/"seq":\d+/, `"seq":${last.seq + 1}`)
    .replace(/,"personal":\{[^}]*\}/, '')
    .replace(/,"hash":"[^"]+"\}$/, '}')
  appendFileSync(join(folder, name), lineOf(text, chainHash(last.hash, text)))
}

function endOf(path: string): readonly [seq: number, hash: string] {
  const { seq, hash } = JSON.parse(linesIn(path).at(-1) ?? '') as ChainedRecord
  return [seq, hash]
}

/** Gives the lines of the manifest behind the first ones the form that the version before gave them. */
async function asOlder(folder: string, first = 0): Promise<void> {
  const keys = await openAuditKeys(folder)
  const lines = linesIn(manifestOf(folder))
  const kept = lines.slice(0, first)
  let last = kept.map(readManifestLine).at(-1)
  for (const line of lines.slice(first).map(readManifestLine)) {
    if (line === undefined) throw new Error('a line was changed')
    const { time, heads, removed } = line
    const made = makeManifestLine({ time, heads: heads.filter(({ seq }) => seq > 0), removed }, last, keys)
    last = made.line
    kept.push(made.text.trimEnd())
  }
  writeLines(manifestOf(folder), kept)
}

const NOBODY = expect.stringContaining('nobody has announced this writer') as string

describe('C12.4.4 a writer', () => {
  it('C12.4.4 is announced in the manifest, or by a file that the holder of the lock takes up; each segment names that', async () => {
    const folder = await dataFolder()
    const recording = await record({ folder, segmentBytes: 1000 })
    const other = recording.addWriter()
    for (const subject of ['ann', 'bob', 'cyd']) await recording.change(subject)
    await recording.change('dee', other)
    const file = announcementFile(folder, other.writer)
    expect(existsSync(file)).toBe(true)
    await recording.sign()
    expect(existsSync(file)).toBe(false)
    await recording.close()
    const [first, second] = linesIn(manifestOf(folder)).map(
      (line) =>
        JSON.parse(line) as { n: number; hash: string; announced: { writer: string; hash?: string }[] },
    )
    const own = { line: 1, hash: first?.hash }
    expect(first?.announced).toEqual([{ writer: recording.trail.writer }])
    expect(second?.announced).toEqual([{ writer: other.writer, hash: expect.any(String) }])
    const aside = { hash: second?.announced[0]?.hash }
    const opened = segmentsIn(folder).map(
      (name) => JSON.parse(linesIn(join(folder, name))[0] ?? '') as ChainedRecord,
    )
    expect(opened.length).toBeGreaterThan(2)
    for (const { writer, change } of opened)
      expect(change).toMatchObject({ announced: writer === other.writer ? aside : own })
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true })
  })

  it('C12.4.4 killed between its announcement and its first record leaves a trail that is whole', async () => {
    const folder = await dataFolder()
    const killed = await served(folder)
    const keys = await openAuditKeys(folder)
    const aside = announceAside(newWriterName(killed.clock.now()), '2026-11-22T00:00:00.000Z', keys)
    await writeAnnouncement(folder, aside)
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true })
    await killed.signer.announce(newWriterName(killed.clock.now()))
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true })
    expect(await restarted(folder, killed)).toEqual([])
    expect(await restarted(folder, killed)).toEqual([])
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, writers: 2 })
    await killed.close()
  })

  it('C12.4.4 killed between its first record and the line that takes its announcement up is signed as found', async () => {
    const folder = await dataFolder()
    const killed = await served(folder)
    const late = killed.addWriter()
    await killed.change('cyd', late)
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true })
    cpSync(folder, `${folder}-killed`, { recursive: true })
    onTestFinished(() => rmSync(`${folder}-killed`, { recursive: true }))
    expect(await restarted(`${folder}-killed`, killed)).toEqual([])
    expect(verifyTrail({ folder: `${folder}-killed` })).toMatchObject({
      findings: [],
      whole: true,
      foundLate: 3,
    })
    await killed.close()
  })

  it('C12.4.4 of a service that was killed may go on for a while, and is signed; later records are a finding', async () => {
    const folder = await dataFolder()
    const killed = await served(folder)
    const lingering = killed.addWriter()
    await killed.change('cyd', lingering)
    await killed.sign()
    killed.clock.advance(2000)
    const next = await ManifestSigner.open({
      ...{ folder, clock: killed.clock, anchors: [], durable: true, after: manualAfter().after, recorder },
      keys: await openAuditKeys(folder),
      linger: 45_000,
    })
    onTestFinished(() => next.close())
    await killed.change('dee', lingering)
    killed.clock.advance(1000)
    await next.sign()
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], unsigned: 0 })
    killed.clock.advance(60_000)
    await next.sign()
    await next.announce(newWriterName(killed.clock.now()))
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], unsigned: 0 })
    await killed.change('eve', lingering)
    expect(verifyTrail({ folder }).findings).toMatchObject([
      { what: expect.stringContaining('were added behind the end of this writer') as string },
    ])
    await killed.close()
  })

  it('C12.4.4 of the version before is judged as it was, also if that comes back; what it only found then is foreign', async () => {
    const folder = await dataFolder()
    const old = await record({ folder, unannounced: true })
    await old.change('ann')
    await old.sign()
    await asOlder(folder)
    await old.change('bob')
    const now = await served(folder, old.clock)
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, foundLate: 2 })
    await now.close()
    const { length } = linesIn(manifestOf(folder))
    const back = await record({ folder, unannounced: true, clock: now.clock })
    await back.change('cyd')
    await back.close()
    await asOlder(folder, length)
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, writers: 4 })
    expect(await restarted(folder, now)).toEqual([])
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true })
    const last = linesIn(manifestOf(folder)).length
    const again = await record({ folder, unannounced: true, clock: now.clock })
    const name = segmentsIn(folder).find((each) => each.includes(back.trail.writer)) ?? ''
    const invented = forge(folder, name, '20261122T235959Z-invented')
    const [seq, hash] = endOf(join(folder, invented))
    again.signer.report({ writer: '20261122T235959Z-invented', seq, hash, found: true })
    await again.close()
    await asOlder(folder, last)
    expect(verifyTrail({ folder }).findings).toEqual([{ file: invented, line: 1, what: NOBODY }])
    await old.trail.close()
    await old.signer.close()
  })
})

describe('C12.4.4 an announcement that stays', () => {
  it(
    'C12.4.4 since its file cannot be removed is made once: its writer leaves when the file is gone',
    needing('a small disk'),
    async () => {
      const folder = await dataFolder()
      const recording = await record({ folder })
      const other = recording.addWriter()
      await recording.change('ann', other)
      const file = announcementFile(folder, other.writer)
      // A file on which something is mounted cannot be removed.
      execFileSync('mount', ['--bind', file, file])
      try {
        await recording.sign()
        await other.close()
        await recording.sign()
        recording.signer.ended(other.writer)
        for (const subject of ['bob', 'cyd']) {
          await recording.change(subject)
          await recording.sign()
        }
        expect(existsSync(file)).toBe(true)
      } finally {
        execFileSync('umount', ['-l', file])
      }
      await recording.sign()
      expect(existsSync(file)).toBe(false)
      expect(await restarted(folder, recording)).toEqual([])
      expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true })
      append(folder, segmentsIn(folder).find((name) => name.includes(other.writer)) ?? '')
      const added = expect.stringContaining('were added behind the end of this writer') as string
      expect(verifyTrail({ folder }).findings).toContainEqual(expect.objectContaining({ what: added }))
      await recording.close()
    },
  )
})

it('C12.4.4 a named pipe among the announcements keeps neither the signer nor verification waiting', async () => {
  const folder = await dataFolder()
  const recording = await served(folder)
  mkdirSync(join(folder, 'announced'), { recursive: true })
  execFileSync('mkfifo', [join(folder, 'announced/pipe.json')])
  await recording.change('cyd')
  await recording.sign()
  expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, unsigned: 0 })
  await recording.close()
})

it('C12.4.4 a writer leaves, too, where its end could not be read at first', async () => {
  const folder = await dataFolder()
  const recording = await record({ folder })
  const other = recording.addWriter()
  await recording.change('ann', other)
  await recording.sign()
  await other.close()
  recording.signer.ended(other.writer)
  renameSync(folder, `${folder}-away`)
  await recording.signer.sign()
  expect(recording.signer.state.signing).toBe(false)
  renameSync(`${folder}-away`, folder)
  for (const subject of ['bob', 'cyd']) {
    await recording.change(subject)
    recording.clock.advance(1000)
    await recording.signer.sign()
  }
  const last = readManifestLine(linesIn(manifestOf(folder)).at(-1) ?? '')
  expect(last?.heads.map(({ writer }) => writer)).toEqual([recording.trail.writer])
  await recording.close()
})

it('C12.4.4 of a service that waits is signed by the one that signs, as it is found, and leaves at its end', async () => {
  const folder = await dataFolder()
  const recording = await record({ folder })
  const { clock, signer } = recording
  const keys = await openAuditKeys(folder)
  const waiting = openTrail(
    { folder, durability: 'disk', timeout: 30_000 },
    {
      ...{ clock, recorder, bodyKey: keys.bodyKey },
      announced: announceAside(newWriterName(clock.now()), new Date(clock.now()).toISOString(), keys),
    },
  )
  const seconds = async (): Promise<void> => {
    for (let second = 0; second < 3; second += 1) {
      clock.advance(1000)
      await signer.sign()
    }
  }
  for (const subject of ['ann', 'bob']) {
    await recording.change(subject, waiting)
    await seconds()
    clock.advance(120_000)
    await recording.change('cyd')
    await seconds()
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, unsigned: 0 })
  }
  await waiting.close()
  await seconds()
  await recording.change('dee')
  await seconds()
  const last = readManifestLine(linesIn(manifestOf(folder)).at(-1) ?? '')
  expect(last?.heads.map(({ writer }) => writer)).toEqual([recording.trail.writer])
  expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, unsigned: 0, foundLate: 6 })
  await recording.close()
})

describe('T5.17 C12.4.6 what nobody announced', () => {
  it('C12.4.6 is shown, and never signed: the file of an invented writer, with the announcement of another or none', async () => {
    const folder = await dataFolder()
    const recording = await served(folder)
    await recording.close()
    const [first = ''] = segmentsIn(folder)
    const invented = forge(folder, first, '20261122T235959Z-invented')
    const bare = forge(folder, first, '20261122T235959Z-bare', (line) =>
      line.replace(/"announced":\{[^}]*\}/, '"x":1'),
    )
    for (let start = 0; start < 2; start += 1) {
      const noted = await restarted(folder, recording)
      expect(noted).toEqual(start === 0 ? ['audit_foreign_writers'] : expect.any(Array))
      const { findings, whole } = verifyTrail({ folder })
      expect(whole).toBe(false)
      for (const file of [invented, bare]) expect(findings).toContainEqual({ file, line: 1, what: NOBODY })
      expect(readFileSync(manifestOf(folder), 'utf8')).not.toContain('invented')
    }
  })

  it('C12.4.6 is shown if an announcement is copied to another writer, changed, or signed with another key', async () => {
    const folder = await dataFolder()
    const recording = await served(folder)
    await recording.close()
    const keys = await openAuditKeys(folder)
    const [first = ''] = segmentsIn(folder)
    const invented = '20261122T235959Z-invented'
    const genuine = announceAside('20261122T235959Z-genuine', '2026-11-22T00:00:00.000Z', keys).text ?? ''
    const other = await openAuditKeys(await dataFolder())
    const texts = [
      genuine,
      genuine.replace('Z-genuine', 'Z-invented'),
      announceAside(invented, '2026-11-22T00:00:00.000Z', other).text ?? '',
      '{}\n',
    ]
    const file = forge(folder, first, invented)
    for (const text of texts) {
      mkdirSync(dirname(announcementFile(folder, invented)), { recursive: true })
      writeFileSync(announcementFile(folder, invented), text)
      expect(await restarted(folder, recording)).toContain('audit_foreign_announcement')
      const { findings } = verifyTrail({ folder })
      expect(findings).toContainEqual({ file, line: 1, what: NOBODY })
      expect(findings).toContainEqual({
        file: `announced/${invented}.json`,
        what: expect.stringContaining('was not signed with the key of the trail') as string,
      })
    }
  })

  it('C12.4.6 is shown behind the end of a writer that has left', async () => {
    const folder = await dataFolder()
    const killed = await served(folder)
    expect(await restarted(folder, killed)).toEqual([])
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true })
    for (const name of segmentsIn(folder)) append(folder, name)
    expect(verifyTrail({ folder }).findings).toHaveLength(2)
    await restarted(folder, killed)
    expect(verifyTrail({ folder }).findings).toMatchObject([
      { what: expect.stringContaining('were added behind the end') as string },
      { what: expect.stringContaining('were added behind the end') as string },
    ])
    await killed.close()
  })

  it('C12.4.6 an announcement that was kept and is put there again makes nobody a writer', async () => {
    const folder = await dataFolder()
    const recording = await served(folder)
    const keys = await openAuditKeys(folder)
    const unused = announceAside('20261122T235959Z-unused', '2026-11-22T00:00:00.000Z', keys)
    await writeAnnouncement(folder, unused)
    await recording.sign()
    await recording.close()
    expect(await restarted(folder, recording)).toEqual([])
    await writeAnnouncement(folder, unused)
    forge(folder, segmentsIn(folder)[0] ?? '', unused.writer, (line) =>
      line.replace(/"announced":\{[^}]*\}/, `"announced":{"hash":"${unused.announcement.hash}"}`),
    )
    expect(verifyTrail({ folder }).whole).toBe(false)
    await restarted(folder, recording)
    expect(verifyTrail({ folder }).findings).toContainEqual({
      file: 'manifest.jsonl',
      line: expect.any(Number) as number,
      what: `the writer ${unused.writer} is announced a second time`,
    })
  })
})

describe('T5.17 C12.4.6 a manifest that is gone', () => {
  it.each<[string, (folder: string, earlier: string) => void]>([
    ['removed', (folder) => rmSync(manifestOf(folder))],
    ['emptied', (folder) => writeFileSync(manifestOf(folder), '')],
    ['replaced by an older one', (folder, earlier) => cpSync(manifestOf(earlier), manifestOf(folder))],
  ])('C12.4.6 %s makes a trail that is not whole, before and after the next start', async (_, change) => {
    const folder = await dataFolder()
    const earlier = await record({ folder })
    await earlier.change('ann')
    await earlier.sign()
    await earlier.close()
    cpSync(folder, `${folder}-earlier`, { recursive: true })
    onTestFinished(() => rmSync(`${folder}-earlier`, { recursive: true }))
    const recording = await served(folder, earlier.clock)
    await recording.close()
    change(folder, `${folder}-earlier`)
    expect(verifyTrail({ folder }).findings).toContainEqual(expect.objectContaining({ what: NOBODY }))
    await restarted(folder, recording)
    await restarted(folder, recording)
    expect(verifyTrail({ folder }).findings).toContainEqual(expect.objectContaining({ what: NOBODY }))
  })

  it('C12.4.6 with the beginning that the store remembers, also shows where every record is gone', async () => {
    const folder = await dataFolder()
    const recording = await served(folder)
    await recording.close()
    const [first = ''] = linesIn(manifestOf(folder))
    const { hash, time: signed } = JSON.parse(first) as { hash: string; time: string }
    const beginning = { hash, signed }
    expect(verifyTrail({ folder, beginning })).toMatchObject({ whole: true, beginningAnchored: true })
    expect(verifyTrail({ folder })).toMatchObject({ whole: true, beginningAnchored: false })
    renameSync(folder, `${folder}-gone`)
    onTestFinished(() => rmSync(`${folder}-gone`, { recursive: true }))
    mkdirSync(folder, { mode: 0o700 })
    const next = await served(folder, recording.clock)
    await next.close()
    expect(verifyTrail({ folder })).toMatchObject({ whole: true })
    expect(verifyTrail({ folder, beginning })).toMatchObject({
      findings: [{ file: 'manifest.jsonl', line: 1, what: expect.stringContaining(signed) as string }],
      beginningAnchored: false,
    })
  })
})

it('C12.4.1 a trail whose writer is not announced writes as before: nobody signs it', async () => {
  const folder = await dataFolder()
  const plan = { folder, durability: 'system', timeout: 20_000 } as const
  const recording = await record({ folder, unannounced: true })
  const trail = openTrail(plan, { clock: recording.clock, recorder, bodyKey: 'k' })
  await trail.require(changeOf('ann'))
  await trail.close()
  await recording.close()
  expect(readFileSync(join(folder, segmentsIn(folder)[0] ?? ''), 'utf8')).not.toContain('announced')
})
