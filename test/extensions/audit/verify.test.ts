import fs, { cpSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { tmpdir } from 'node:os'
import { chainHash, lineOf } from './support/audit-chain.ts'
import { verifyTrail } from '../../../src/extensions/audit/read/verify.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { edit, linesIn, manifestOf, record, segmentNames } from './support/recorded-trail.ts'

/** A trail of two starts: the first has several segments, the second one. */
interface Recorded {
  readonly folder: string
  /** A copy of an earlier moment. */
  readonly earlier: string
  readonly anchors: string
}

let recorded: Recorded

beforeAll(async () => {
  const root = mkdtempSync(join(tmpdir(), 'postern-verify-'))
  const [folder, earlier, anchors] = ['trail', 'earlier', 'anchors.jsonl'].map((name) =>
    join(root, name),
  ) as [string, string, string]
  const sinks = [{ to: 'file', file: anchors, every: 1 }] as const
  const first = await record({ folder, segmentBytes: 1000, anchors: sinks })
  for (const subject of ['ann', 'bob', 'cy']) {
    await first.change(subject)
    await first.sign()
  }
  await first.close()
  const second = await record({ folder, anchors: sinks, clock: first.clock })
  for (const subject of ['dee', 'eve']) {
    await second.change(subject)
    await second.sign()
  }
  cpSync(folder, earlier, { recursive: true })
  for (const subject of ['fay', 'gus']) await second.change(subject)
  await second.sign()
  await second.close()
  recorded = { folder, earlier, anchors }
  return () => rmSync(root, { recursive: true, force: true })
})

interface Copy extends Recorded {
  /** Segments below the folder, of the first start, then of the second. */
  readonly first: readonly string[]
  readonly second: readonly string[]
}

/** A copy of the trail, for one test. */
function copyTrail(): Copy {
  const folder = mkdtempSync(join(tmpdir(), 'postern-copy-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  cpSync(recorded.folder, folder, { recursive: true })
  const names = segmentNames(folder)
  return { ...recorded, folder, first: names.slice(0, -1), second: names.slice(-1) }
}

/** The `seq` of a record, by its line. */
const seqAt = ({ folder }: Copy, file: string, line: number): number =>
  (JSON.parse(at(linesIn(join(folder, file)), line - 1)) as { seq: number }).seq

/** The end of the first start's last segment. */
const endOfFirst = ({ folder, first }: Copy): { seq: number; hash: string } =>
  JSON.parse(linesIn(join(folder, at(first, first.length - 1))).at(-1) ?? '') as { seq: number; hash: string }

/** Gives the lines new numbers and hashes, as somebody does who knows how the chain is made. */
function rechain(path: string, { seq, hash }: { seq: number; hash: string }): void {
  let before = hash
  edit(path, (lines) =>
    lines.map((line, at) => {
      const text = line.replace(/"seq":\d+/, `"seq":${seq + at + 1}`).replace(/,"hash":"[^"]+"\}$/, '}')
      before = chainHash(before, text)
      return lineOf(text, before).trimEnd()
    }),
  )
}

const at = (lines: readonly string[], index: number): string => lines[index] ?? ''

interface Tampering {
  readonly title: string
  readonly tamper: (copy: Copy) => void
  readonly found: (copy: Copy) => { readonly file: string; readonly line?: number; readonly what: RegExp }
  /** What else follows from it, and is told too. Default: one finding alone. */
  readonly more?: boolean
  readonly anchored?: boolean
}

const FOURTEEN: readonly Tampering[] = [
  {
    title: 'a byte that was changed',
    tamper: ({ folder, second: [file = ''] }) =>
      edit(join(folder, file), (lines) =>
        lines.map((line, n) => (n === 2 ? line.replace('ACME', 'ACMF') : line)),
      ),
    found: (copy) => {
      const file = at(copy.second, 0)
      return { file, line: 3, what: new RegExp(`^record ${seqAt(copy, file, 3)} was changed$`) }
    },
  },
  {
    title: 'a record that was deleted',
    tamper: ({ folder, second: [file = ''] }) => edit(join(folder, file), (lines) => lines.toSpliced(2, 1)),
    found: (copy) => {
      const file = at(copy.second, 0)
      const missing = seqAt(copy, file, 3) - 1
      return { file, line: 3, what: new RegExp(`^record ${missing} missing before this one$`) }
    },
  },
  {
    title: 'records that were swapped',
    tamper: ({ folder, second: [file = ''] }) =>
      edit(join(folder, file), (lines) => lines.toSpliced(2, 2, at(lines, 3), at(lines, 2))),
    found: ({ second: [file = ''] }) => ({
      file,
      line: 4,
      what: /^record \d+ is not in its place, behind record \d+$/,
    }),
    more: true,
  },
  {
    title: 'a record that was inserted',
    tamper: ({ folder, second: [file = ''] }) =>
      edit(join(folder, file), (lines) => lines.toSpliced(2, 0, at(lines, 2).replace('ACME', 'OTHER'))),
    found: ({ second: [file = ''] }) => ({ file, line: 4, what: /^record \d+ stands here a second time/ }),
    more: true,
  },
  {
    title: 'a record that was inserted, and the rest chained again',
    tamper: (copy) => {
      const path = join(copy.folder, at(copy.second, 0))
      edit(path, (lines) => lines.toSpliced(2, 0, at(lines, 2).replace('ACME', 'OTHER')))
      rechain(path, endOfFirst(copy))
    },
    found: ({ second: [file = ''] }) => ({
      file,
      line: 3,
      what: /^records? .*: not what was signed at .* line \d+\)$/,
    }),
    more: true,
  },
  {
    title: 'a record that was deleted, and the rest chained again',
    tamper: (copy) => {
      const path = join(copy.folder, at(copy.second, 0))
      edit(path, (lines) => lines.toSpliced(5, 1))
      rechain(path, endOfFirst(copy))
    },
    found: ({ second: [file = ''] }) => ({ file, what: /^records \d+ to \d+: not what was signed at/ }),
    more: true,
  },
  {
    title: 'an end that was cut off',
    tamper: ({ folder, second: [file = ''] }) => edit(join(folder, file), (lines) => lines.slice(0, -2)),
    found: ({ folder, second: [file = ''] }) => ({
      file,
      line: linesIn(join(folder, file)).length,
      what: /^records \d+ to \d+, signed at .*, missing behind this line$/,
    }),
  },
  {
    title: 'a file that was deleted from the middle',
    tamper: ({ folder, first }) => rmSync(join(folder, at(first, 1))),
    found: ({ first }) => ({
      file: at(first, 2),
      line: 1,
      what: /^records \d+ to \d+ missing before this one$/,
    }),
  },
  {
    title: 'all files deleted',
    tamper: ({ folder, first, second }) => {
      for (const file of [...first, ...second]) rmSync(join(folder, file))
    },
    found: () => ({ file: 'manifest.jsonl', line: 2, what: /^all files of the trail are missing$/ }),
  },
  {
    title: 'a file that was replaced by an older copy',
    tamper: ({ folder, earlier, second: [file = ''] }) => cpSync(join(earlier, file), join(folder, file)),
    found: ({ folder, second: [file = ''] }) => ({
      file,
      line: linesIn(join(folder, file)).length,
      what: /missing behind this line$/,
    }),
  },
  {
    title: 'a line of the manifest that was deleted',
    tamper: ({ folder }) => edit(manifestOf(folder), (lines) => lines.toSpliced(2, 1)),
    found: () => ({ file: 'manifest.jsonl', line: 3, what: /^line 3 is missing before this one$/ }),
  },
  {
    title: 'a line of the manifest that was edited',
    tamper: ({ folder }) =>
      edit(manifestOf(folder), (lines) =>
        lines.map((line, n) => (n === 2 ? line.replace('"seq":', '"seq":1') : line)),
      ),
    found: () => ({ file: 'manifest.jsonl', line: 3, what: /^this line was changed$/ }),
  },
  {
    title: 'two files, exchanged',
    tamper: ({ folder, first: [one = '', two = ''] }) => {
      renameSync(join(folder, one), join(folder, 'kept'))
      renameSync(join(folder, two), join(folder, one))
      renameSync(join(folder, 'kept'), join(folder, two))
    },
    found: ({ first: [one = ''] }) => ({
      file: one,
      line: 1,
      what: /^records? .* missing: the first files of the trail/,
    }),
    more: true,
  },
  {
    title: 'a file of another trail in the place of one',
    tamper: ({ folder, second: [file = ''] }) =>
      edit(join(folder, file), (lines) =>
        lines.map((line) => line.replace(/"writer":"[^"]*"/, '"writer":"20260115T000000Z-other"')),
      ),
    found: ({ second: [file = ''] }) => ({
      file,
      line: 1,
      what: /^the records in this file are of another trail, 20260115T000000Z-other$/,
    }),
  },
  {
    title: 'a fork: a segment that goes on in another way than the one that was signed',
    tamper: ({ folder, first }) => {
      const file = join(folder, at(first, 2))
      const { seq, hash } = JSON.parse(linesIn(join(folder, at(first, 1))).at(-1) ?? '') as {
        seq: number
        hash: string
      }
      edit(file, (lines) => lines.map((line) => line.replace('ACME', 'OTHER')))
      rechain(file, { seq, hash })
    },
    found: ({ first }) => ({ file: at(first, 2), what: /^records? .*: not what was signed at/ }),
    more: true,
  },
  {
    title: 'everything cut back to an earlier moment',
    tamper: ({ folder, earlier }) => {
      rmSync(folder, { recursive: true })
      cpSync(earlier, folder, { recursive: true })
    },
    found: () => ({
      file: 'manifest.jsonl',
      line: 8,
      what: /^the trail was cut back: it ends at .*anchors\.jsonl, line/,
    }),
    anchored: true,
  },
]

describe('C12.4.6 a verification', () => {
  it('C12.4.6 finds nothing in a trail as it was written, and says up to when it is signed and anchored', () => {
    const { folder, anchors } = copyTrail()
    expect(verifyTrail({ folder, anchors: [anchors] })).toMatchObject({
      ...{ whole: true, findings: [], open: 0, erased: 0, unsigned: 0, torn: 0 },
      signedUntil: expect.stringMatching(/^2026-01-15T/),
      anchoredUntil: expect.stringMatching(/^2026-01-15T/),
    })
  })

  for (const { title, tamper, found, more = false, anchored = false } of FOURTEEN)
    it(`C12.4.6 finds and places ${title}`, () => {
      const copy = copyTrail()
      tamper(copy)
      const order = { folder: copy.folder, anchors: anchored ? [copy.anchors] : [] }
      const { whole, findings } = verifyTrail(order)
      const { what, ...place } = found(copy)
      expect(whole).toBe(false)
      expect(findings).toContainEqual({
        line: expect.anything(),
        ...place,
        what: expect.stringMatching(what),
      })
      if (!more) expect(findings).toHaveLength(1)
    })

  it('C12.4.6 no alarm is raised by a start that signs its first line, and records, while the manifest is read', async () => {
    const { folder } = copyTrail()
    const later = copyTrail().folder
    const clock = movableClock(Date.UTC(2026, 0, 16))
    const next = await record({ folder: later, clock, here: true })
    await next.change('hal')
    await next.close()
    const { closeSync } = fs
    let closed = 0
    const spy = vi.spyOn(fs, 'closeSync').mockImplementation((descriptor) => {
      closeSync(descriptor)
      closed += 1
      // First it was looked at whether the manifest is of 0.2; now it was read.
      if (closed === 2) cpSync(later, folder, { recursive: true })
    })
    syncBuiltinESMExports()
    onTestFinished(() => {
      spy.mockRestore()
      syncBuiltinESMExports()
    })
    expect(verifyTrail({ folder })).toMatchObject({ findings: [], whole: true, torn: 0 })
    expect(closed).toBeGreaterThan(2)
  })

  it('C12.4.6 says which file it cannot read', () => {
    const { folder } = copyTrail()
    const none = join(folder, 'none')
    expect(() => verifyTrail({ folder: none })).toThrow(
      `${none} cannot be read (ENOENT: there is no such file or folder)`,
    )
    expect(() => verifyTrail({ folder, key: none })).toThrow(
      `the public key ${none} cannot be read (ENOENT: there is no such file or folder)`,
    )
    expect(() => verifyTrail({ folder, anchors: [none] })).toThrow(
      `the anchors in ${none} cannot be read (ENOENT: there is no such file or folder)`,
    )
  })

  it('C12.4.5 finds anchors in a long log, also one without a line end', () => {
    const { folder, anchors } = copyTrail()
    const expected = verifyTrail({ folder, anchors: [anchors] }).anchoredUntil
    const log = join(folder, 'long.log')
    const calls = 200_000
    writeFileSync(log, `${'{"event":"call"}\n'.repeat(calls)}${readFileSync(anchors, 'utf8').trimEnd()}`)
    expect(expected).toBeDefined()
    expect(verifyTrail({ folder, anchors: [log] })).toMatchObject({ whole: true, anchoredUntil: expected })
    const { findings } = verifyTrail({ folder: recorded.earlier, anchors: [log] })
    expect(findings.map(({ what }) => what).join()).toMatch(/long\.log, line 2000\d\d/)
  })

  it('C12.4.6 sees that everything was cut back only with an anchor', () => {
    const { folder, earlier, anchors } = recorded
    expect(existsSync(folder)).toBe(true)
    expect(verifyTrail({ folder: earlier })).toMatchObject({ whole: true, anchoredUntil: undefined })
    expect(verifyTrail({ folder: earlier, anchors: [anchors] }).whole).toBe(false)
  })
})
