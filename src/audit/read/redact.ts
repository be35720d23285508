/**
 * Erases the personal values of a subject (C12.2.3). The lines of the records stay as they are: they hold only hashes of
 * the values, so the chain still verifies. The caller records the erasure before, and holds the lock of the folder. Nothing
 * may write to these segments any more: a file is replaced by another of its name.
 */
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncFolder } from '../segment.ts'
import { type LineVisitor, readLines } from './lines.ts'
import { hashesIn, seqOf } from './personal.ts'
import { readRecordLine, subjectsOf } from './record-line.ts'
import { type Segment, Segments } from './segments.ts'

/** The values of a subject in one file. */
export interface SubjectValues {
  /** The file beside a segment. */
  readonly path: string
  /** Of the records. */
  readonly seqs: ReadonlySet<number>
  readonly values: number
}

/** The segments that a trail has now. */
export const segmentsOf = (folder: string): readonly Segment[] => new Segments([folder]).all()

/** Finds what is to be erased in these segments: the values of all records whose actor or object is the subject. */
export function findSubjectValues(segments: readonly Segment[], subject: string): readonly SubjectValues[] {
  return segments
    .map(({ path, personalPath }) => valuesIn(personalPath, seqsOf(path, subject)))
    .filter(({ values }) => values > 0)
}

function seqsOf(path: string, subject: string): ReadonlySet<number> {
  const needle = Buffer.from(JSON.stringify(subject))
  const seqs = new Set<number>()
  const visit: LineVisitor = (bytes, start, end) => {
    const text = bytes.toString('latin1', start, end)
    const record = readRecordLine(text)
    if (record !== undefined && hashesIn(text) !== undefined && subjectsOf(text).all.includes(subject))
      seqs.add(record.seq)
  }
  readLines(path, visit, { needle })
  return seqs
}

function valuesIn(path: string, seqs: ReadonlySet<number>): SubjectValues {
  let values = 0
  if (seqs.size > 0) eachValue(path, (_line, seq) => (values += seqs.has(seq) ? 1 : 0))
  return { path, seqs, values }
}

function eachValue(path: string, visit: (line: string, seq: number) => void): void {
  readLines(path, (bytes, start, end) => {
    const line = bytes.toString('utf8', start, end)
    visit(line, seqOf(line) ?? Number.NaN)
  })
}

/** Writes the files anew, without the values, each as a whole. Rejects with the system's error; a part may be done then. */
export async function eraseSubjectValues(found: readonly SubjectValues[]): Promise<void> {
  for (const { path, seqs } of found) {
    const kept: string[] = []
    eachValue(path, (line, seq) => {
      if (!seqs.has(seq)) kept.push(`${line}\n`)
    })
    await replaceFile(path, kept.join(''))
  }
}

async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.new`
  await rm(draft, { force: true })
  {
    await using file = await open(draft, 'wx', 0o600)
    await file.writeFile(text)
    await file.sync()
  }
  await rename(draft, path)
  syncFolder(dirname(path))
}
