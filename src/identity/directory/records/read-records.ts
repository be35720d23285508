import { createReadStream } from 'node:fs'
import { type KeyPath, type SourceLocation, type Problem, Problems } from '../../../base/config/problems.ts'
import { MARK, type Static, type TSchema, viewOf } from '../../../base/config/schema.ts'
import { type ConfigNode, nodeOf } from '../../../base/config/tree.ts'
import { type Environment, load } from '../../../base/config/validate.ts'
import { messageOf } from '../../../base/kernel/thrown.ts'
import { durationText } from '../../../base/kernel/units.ts'

/** Collects the problems of one record. Paths are relative to the record. */
export interface RecordProblems {
  error(path: KeyPath, message: string, hint?: string): void
  warn(path: KeyPath, message: string, hint?: string): void
  /** Names of entries that could not be read: a record may refer to them. */
  readonly unread: ReadonlySet<string>
}

/** For a record in the configuration itself. `base` is its key path. */
export const problemsAt = (problems: Problems, base: KeyPath): RecordProblems => ({
  error: (path, message, hint) => problems.error([...base, ...path], message, hint),
  warn: (path, message, hint) => problems.warn([...base, ...path], message, hint),
  unread: problems.unread,
})

/** Problems reported per file, because a badly generated file has one on every line. */
const MOST = 20

/** Collects the problems of a JSON Lines file, each with file and line, under the key path that names the file. */
class FileProblems {
  readonly #problems: Problems
  readonly #base: KeyPath
  readonly #file: string
  #count = 0
  #failed = false

  constructor(problems: Problems, base: KeyPath, file: string) {
    this.#problems = problems
    this.#base = base
    this.#file = file
  }

  ofLine(line: number): RecordProblems {
    const at = { file: this.#file, line }
    return {
      error: (path, message, hint) => this.#add({ path, message, hint, at, severity: 'error' }),
      warn: (path, message, hint) => this.#add({ path, message, hint, at, severity: 'warning' }),
      unread: this.#problems.unread,
    }
  }

  #add(problem: Problem): void {
    if (problem.severity === 'error') this.#failed = true
    if (++this.#count <= MOST)
      this.#problems.list.push({ ...problem, path: [...this.#base, ...problem.path] })
  }

  finish(): void {
    if (this.#count <= MOST) return
    const message = `has ${this.#count - MOST} more problems`
    if (this.#failed) this.#problems.error(this.#base, message)
    else this.#problems.warn(this.#base, message)
  }
}

const NOWHERE = { file: '', line: 0 }

/** The record may not name files or variables, because its sender must not read the service's. Undefined: an error. */
export function readRecord<T extends TSchema>(
  schema: T,
  value: object,
  problems: Problems,
): Static<T> | undefined {
  const own = new Problems()
  const record = load(viewOf(schema), nodeOf(value, NOWHERE), [], {
    environment: {},
    problems: own,
    literal: true,
  })
  problems.list.push(...own.list)
  return own.failed ? undefined : (record as Static<T>)
}

/** Defaults for members that an older version did not write. */
export function defaultsOf(schema: TSchema): object {
  const properties = Object.entries(viewOf(schema).properties ?? {})
  return Object.fromEntries(
    properties.flatMap(([key, { default: value }]) => (value === undefined ? [] : [[key, value]])),
  )
}

/** As it could be written in a file: `readRecord` gives the same record again. Only own members may be durations. */
export function writtenForm(schema: TSchema, record: object): Readonly<Record<string, unknown>> {
  const { properties = {} } = viewOf(schema)
  const entries = Object.entries(record).map(([key, value]: [string, unknown]) => {
    const isDuration = properties[key]?.[MARK] === 'duration' && typeof value === 'number'
    return [key, isDuration ? durationText(value) : value]
  })
  return Object.fromEntries(entries) as Readonly<Record<string, unknown>>
}

/** The size of a chunk, in bytes. Its records are read without a pause, in about 2 ms, so that a reload delays no calls. */
const CHUNK = 64 * 1024
/** The longest line, in characters. A record has some hundreds. A file without line ends must not fill the memory. */
const LONGEST_LINE = 1024 * 1024

/**
 * The lines of a UTF-8 file with their numbers from 1. Throws as the file system does, RangeError for a long line,
 * TypeError for bad UTF-8.
 */
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

function parseLine(text: string, problems: RecordProblems): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message quotes the line, which contains hashes.
    problems.error([], 'is not JSON: expected one object on each line')
    return undefined
  }
}

type Convert<T> = (value: unknown, line: number, problems: RecordProblems) => T | undefined

function nodeOrReport(value: unknown, at: SourceLocation, problems: RecordProblems): ConfigNode | undefined {
  try {
    return nodeOf(value, at)
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown
    problems.error([], 'is nested too deep')
    return undefined
  }
}

/** Checks like the configuration itself: defaults, references and units included. */
function converter<T extends TSchema>(schema: T, file: string, environment: Environment): Convert<Static<T>> {
  const view = viewOf(schema)
  return (value, line, problems) => {
    const report = new Problems()
    const node = nodeOrReport(value, { file, line }, problems)
    if (node === undefined) return undefined
    const record = load(view, node, [], { environment, problems: report })
    for (const { path, message, hint } of report.list) problems.error(path, message, hint)
    return report.failed ? undefined : (record as Static<T>)
  }
}

interface RecordFile<T extends TSchema> {
  readonly file: string
  readonly path: KeyPath
  readonly schema: T
  readonly key: string
  readonly environment: Environment
  readonly problems: Problems
}

/** The name of a record that could not be read, if at least that could. */
const nameOf = (value: unknown, key: string): readonly string[] => {
  const name =
    typeof value === 'object' ? (value as Readonly<Record<string, unknown>> | null)?.[key] : undefined
  return typeof name === 'string' ? [name] : []
}

/** Valid records go to `visit`, in order; problems to `problems`; names of records with one to `unread`. */
export async function readRecords<T extends TSchema>(
  { file, path, schema, key, environment, problems }: RecordFile<T>,
  visit: (record: Static<T>, problems: RecordProblems) => void,
): Promise<void> {
  const fileProblems = new FileProblems(problems, path, file)
  const convert = converter(schema, file, environment)
  const take = (line: number, text: string): void => {
    if (text.trim() === '') return
    const ofLine = fileProblems.ofLine(line)
    const value = parseLine(text, ofLine)
    const record = value === undefined ? undefined : convert(value, line, ofLine)
    if (record !== undefined) visit(record, ofLine)
    else for (const name of nameOf(value, key)) problems.unread.add(name)
  }
  try {
    for await (const batch of batchesOfLines(file)) for (const [line, text] of batch) take(line, text)
  } catch (thrown) {
    problems.error(path, `cannot be read: ${messageOf(thrown)}`)
  }
  fileProblems.finish()
}
