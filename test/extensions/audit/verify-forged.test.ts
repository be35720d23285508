import { createPrivateKey, sign, type webcrypto } from 'node:crypto'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { chainHash } from './support/audit-chain.ts'
import { besideOf } from '../../../src/extensions/audit/format/segment.ts'
import { verifyTrail } from '../../../src/extensions/audit/read/verify.ts'
import { edit, linesIn, manifestOf, record, writeLines } from './support/recorded-trail.ts'

let recorded: string

beforeAll(async () => {
  recorded = mkdtempSync(join(tmpdir(), 'postern-forged-'))
  const anchors = [{ to: 'file', file: join(recorded, 'anchors.jsonl'), every: 1 } as const]
  const recording = await record({ folder: recorded, anchors })
  for (const subject of ['ann', 'bob']) {
    await recording.change(subject)
    await recording.sign()
  }
  await recording.close()
  return () => rmSync(recorded, { recursive: true, force: true })
})

interface Copy {
  readonly folder: string
  /** The one segment, below the folder. */
  readonly file: string
  readonly anchors: string
}

function copyTrail(): Copy {
  const folder = mkdtempSync(join(tmpdir(), 'postern-forged-copy-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  cpSync(recorded, folder, { recursive: true })
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const file = names.find((name) => name.endsWith('.1.jsonl')) ?? ''
  return { folder, file, anchors: join(folder, 'anchors.jsonl') }
}

/** A line of the manifest with other members and a hash of its own, which needs no key. */
function reheaded(line: string, change: (members: Record<string, unknown>) => object): string {
  const { signature, ...members } = JSON.parse(line) as Record<string, unknown>
  const text = JSON.stringify({ ...change(members), hash: undefined })
  return `${text.slice(0, -1)},"hash":"${chainHash('', text)}","signature":"${signature as string}"}`
}

interface Forgery {
  readonly title: string
  readonly tamper: (copy: Copy) => void
  readonly what: RegExp
}

const editLine =
  (index: number, change: (line: string) => string) =>
  ({ folder, file }: Copy): void =>
    edit(join(folder, file), (lines) => lines.map((line, n) => (n === index ? change(line) : line)))

const editManifest =
  (change: (members: Record<string, unknown>) => object) =>
  ({ folder }: Copy): void =>
    edit(manifestOf(folder), (lines) => lines.map((line, n) => (n === 1 ? reheaded(line, change) : line)))

const FORGERIES: readonly Forgery[] = [
  {
    title: 'a hash of a personal value with a control character',
    tamper: editLine(1, (line) => line.replace('"actor.address":"', '"actor.address":"\0')),
    what: /^record 2 was changed$/,
  },
  {
    title: 'a record of a redaction that is no JSON',
    tamper: editLine(2, (line) =>
      line.replace(/"event":"[^"]*"/, '"event":"audit.redacted"').replace('{"kind"', '}'),
    ),
    what: /^record 3 was changed$/,
  },
  {
    title: 'a line of the manifest that names no head',
    tamper: editManifest((members) => ({ ...members, head: null })),
    what: /^this line was changed$/,
  },
  {
    title: 'a line of the manifest with a head that is none',
    tamper: editManifest((members) => ({ ...members, head: { seq: 1 } })),
    what: /^this line was changed$/,
  },
  {
    title: 'a line of the manifest with removed segments that are none',
    tamper: editManifest((members) => ({ ...members, removed: [{ number: '7' }] })),
    what: /^this line was changed$/,
  },
  {
    title: 'a personal value that was put before those of the first record',
    tamper: ({ folder, file }) =>
      edit(besideOf(join(folder, file)), ([first = '', ...lines]) => [
        first.replace(/"seq":\d+/, '"seq":0'),
        first,
        ...lines,
      ]),
    what: /^this value belongs to no record, or is not in its place$/,
  },
  {
    title: 'a second value of an earlier record, behind those of the last one',
    tamper: ({ folder, file }) =>
      edit(besideOf(join(folder, file)), (lines) => [
        ...lines,
        (lines[0] ?? '').replace('192.0.2.7', '192.0.2.8'),
      ]),
    what: /^this value belongs to no record, or is not in its place$/,
  },
  {
    title: 'a file that was moved to another day, where nobody looks for it',
    tamper: ({ folder, file }) => {
      mkdirSync(join(folder, '2020-01-01'))
      for (const end of ['.jsonl', '.personal.jsonl']) {
        const name = file.replace(/\.jsonl$/, end)
        renameSync(join(folder, name), join(folder, '2020-01-01', basename(name)))
      }
    },
    what: /^the records from this one on are of 2026-01-15: the file was moved to another day$/,
  },
]

describe('C12.4.6 what a verification survives', () => {
  for (const { title, tamper, what } of FORGERIES)
    it(`C12.4.6 tells of ${title}`, () => {
      const copy = copyTrail()
      tamper(copy)
      const { whole, findings } = verifyTrail({ folder: copy.folder })
      expect(whole).toBe(false)
      expect(findings[0]?.what).toMatch(what)
    })

  it('C12.4.6 compares each of several anchors of one line: one of the time before a cut is enough', () => {
    const { folder, anchors } = copyTrail()
    const [first = '', ...others] = linesIn(anchors)
    const key = createPrivateKey({
      key: (
        JSON.parse(readFileSync(join(folder, 'keys', 'audit-keys.json'), 'utf8')) as {
          manifest: webcrypto.JsonWebKey
        }
      ).manifest,
      format: 'jwk',
    })
    const earlier = { ...(JSON.parse(first) as object), hash: chainHash('', 'another line') }
    const signature = sign(null, Buffer.from(earlier.hash), key).toString('base64url')
    const file = join(folder, 'more.jsonl')
    writeLines(file, [JSON.stringify({ ...earlier, signature }), first, ...others])
    expect(verifyTrail({ folder, anchors: [file] })).toMatchObject({
      findings: [
        { file: 'manifest.jsonl', line: 1, what: expect.stringContaining(`${file}, line 1, holds`) },
      ],
    })
  })

  it('C12.4.6 reads files only: a named pipe, or a link to something endless, stops nothing', () => {
    const { folder, file } = copyTrail()
    symlinkSync('/dev/zero', join(folder, dirname(file), 'other.1.jsonl'))
    expect(verifyTrail({ folder })).toMatchObject({ whole: true, segments: 1 })
  })

  it('C12.4.5 reads anchors of a file that does not end with a line end', () => {
    const { folder, anchors } = copyTrail()
    const file = join(folder, 'cut.jsonl')
    writeFileSync(file, linesIn(anchors).join('\n'))
    const [given, cut] = [anchors, file].map((each) => verifyTrail({ folder, anchors: [each] }))
    expect(cut).toEqual(given)
    expect(() => verifyTrail({ folder, anchors: [join(folder, 'none')] })).toThrow(/cannot be read/)
  })
})
