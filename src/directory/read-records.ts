import { createReadStream } from 'node:fs'
import type { Static, TSchema } from '../config/pieces.ts'
import type { Environment } from '../config/references.ts'
import { Report, type KeyPath } from '../config/report.ts'
import { viewOf } from '../config/schema-view.ts'
import { nodeOf } from '../config/tree.ts'
import { load } from '../config/validate.ts'
import { FileComplaints, type Complaints } from './complaints.ts'

/** A chunk's records are read in one go: some 2 ms, so that a reload does not hold up the calls of others. */
const CHUNK = 64 * 1024
/** Characters. A record is some hundreds; a file without line ends must not fill the memory. */
const LONGEST_LINE = 1024 * 1024

/** The lines of a UTF-8 file with their numbers from 1; CR before LF is left out, empty lines too. */
async function* batchesOfLines(file: string): AsyncGenerator<readonly (readonly [number, string])[]> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let rest = ''
  let line = 0
  for await (const chunk of createReadStream(file, { highWaterMark: CHUNK })) {
    const lines = (rest + decoder.decode(chunk as Buffer, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > LONGEST_LINE)
      throw new RangeError(`line ${line + lines.length + 1} is longer than 1 MiB`)
    yield lines.map((text) => [++line, text] as const)
  }
  yield [[++line, rest + decoder.decode()]]
}

function parseLine(text: string, complaints: Complaints): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's message quotes the line, which holds hashes.
    complaints.error([], 'is not JSON: expected one object a line')
    return undefined
  }
}

type Convert<T> = (value: unknown, line: number, complaints: Complaints) => T | undefined

/** As the configuration itself is checked: every problem told, defaults filled in, references and units resolved. */
function converter<T extends TSchema>(schema: T, file: string, environment: Environment): Convert<Static<T>> {
  const view = viewOf(schema)
  return (value, line, complaints) => {
    const report = new Report()
    const record = load(view, nodeOf(value, { file, line }), [], { environment, report })
    for (const { path, message, hint } of report.problems) complaints.error(path, message, hint)
    return report.failed ? undefined : (record as Static<T>)
  }
}

export interface RecordFile<T extends TSchema> {
  /** Absolute. */
  readonly file: string
  /** The key that names the file. */
  readonly path: KeyPath
  readonly schema: T
  readonly environment: Environment
  readonly report: Report
}

/** Hands every well-formed record of a JSON Lines file to `visit`, in order; problems go to the report. */
export async function readRecords<T extends TSchema>(
  { file, path, schema, environment, report }: RecordFile<T>,
  visit: (record: Static<T>, complaints: Complaints) => void,
): Promise<void> {
  const told = new FileComplaints(report, path, file)
  const convert = converter(schema, file, environment)
  const take = (line: number, text: string): void => {
    if (text.trim() === '') return
    const complaints = told.ofLine(line)
    const value = parseLine(text, complaints)
    const record = value === undefined ? undefined : convert(value, line, complaints)
    if (record !== undefined) visit(record, complaints)
  }
  try {
    for await (const batch of batchesOfLines(file)) for (const [line, text] of batch) take(line, text)
  } catch (thrown) {
    report.error(path, `cannot be read: ${thrown instanceof Error ? thrown.message : String(thrown)}`)
  }
  told.finish()
}
