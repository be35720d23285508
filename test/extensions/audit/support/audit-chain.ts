/** Reads a trail as its proof does: in the order of its chain, and every hash checked. */
import { hash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { personalHash } from '../../../../src/extensions/audit/format/record.ts'

export type ChainedRecord = Readonly<Record<string, unknown>> & {
  readonly writer: string
  readonly seq: number
  readonly event: string
  readonly outcome: string
  readonly hash: string
  readonly intent?: number
  readonly requestId?: string
  readonly change?: { readonly before?: { readonly seq: number; readonly hash: string } }
  readonly personal?: Readonly<Record<string, string>>
}

export interface ReadSegment {
  readonly name: string
  readonly number: number
  readonly records: readonly ChainedRecord[]
}

interface Value {
  readonly seq: number
  readonly name: string
  readonly salt: string
  readonly value: string
}

/** The hash of a record: of the hash before it, and of its line without the hash (C12.4.1). base64url. */
export const chainHash = (before: string, text: string): string => hash('sha256', before + text, 'base64url')

/** The whole line, with its line end. */
export const lineOf = (text: string, recordHash: string): string =>
  `${text.slice(0, -1)},"hash":"${recordHash}"}\n`

const SEGMENT = /(?<writer>[^/]+)\.(?<number>\d+)\.jsonl$/

/** Whole lines only: a torn one is legal at the end of a segment (C12.4.3). */
const wholeLines = (path: string): readonly string[] => readFileSync(path, 'utf8').split('\n').slice(0, -1)

/** The segments of each writer, in their order. */
export function segmentsOf(folder: string): ReadonlyMap<string, readonly ReadSegment[]> {
  const names = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : []
  const found = new Map<string, ReadSegment[]>()
  for (const name of names) {
    const { writer = '', number } = SEGMENT.exec(name)?.groups ?? {}
    if (number === undefined) continue
    const records = wholeLines(join(folder, name)).map((line) => JSON.parse(line) as ChainedRecord)
    found.set(writer, [...(found.get(writer) ?? []), { name, number: Number(number), records }])
  }
  for (const segments of found.values()) segments.sort((one, other) => one.number - other.number)
  return found
}

/** What stands in a segment behind the record that the next one names was not durable, and is written again there. */
function joined(segments: readonly ReadSegment[]): readonly ChainedRecord[] {
  const chain: ChainedRecord[] = []
  for (const { records } of segments) {
    const named = records[0]?.change?.before
    if (named !== undefined) chain.splice(chain.findIndex(({ seq }) => seq === named.seq) + 1)
    chain.push(...records)
  }
  return chain
}

function checkChain(folder: string, segments: readonly ReadSegment[]): readonly ChainedRecord[] {
  const chain = joined(segments)
  const texts = new Map(
    segments.flatMap(({ name }) => wholeLines(join(folder, name)).map((line) => [hashOf(line), line])),
  )
  let before = ''
  for (const [index, record] of chain.entries()) {
    const line = texts.get(record.hash) ?? ''
    const text = line.replace(/,"hash":"[^"]*"}$/, '}')
    if (record.seq !== index + 1) throw new Error(`${record.writer}: ${record.seq} stands at ${index + 1}`)
    if (record.hash !== chainHash(before, text)) throw new Error(`${record.writer} ${record.seq}: wrong hash`)
    before = record.hash
  }
  return chain
}

const hashOf = (line: string): string => (JSON.parse(line) as ChainedRecord).hash

function checkValues(folder: string, { name, records }: ReadSegment): void {
  const path = join(folder, name.replace(/\.jsonl$/, '.personal.jsonl'))
  // Of a trail that is written meanwhile a segment may have no line yet, and not this file either: it is opened second.
  const values = existsSync(path) ? wholeLines(path).map((line) => JSON.parse(line) as Value) : []
  for (const { seq, personal = {} } of records)
    for (const [where, kept] of Object.entries(personal)) {
      const found = values.find((value) => value.seq === seq && value.name === where)
      if (found === undefined || personalHash(found.salt, found.value) !== kept)
        throw new Error(`${name} ${seq}: ${where} has another value`)
    }
}

/** The records of each writer. Throws unless every chain is whole. */
export function readChains(folder: string): ReadonlyMap<string, readonly ChainedRecord[]> {
  const found = segmentsOf(folder)
  for (const segments of found.values()) for (const segment of segments) checkValues(folder, segment)
  return new Map([...found].map(([writer, segments]) => [writer, checkChain(folder, segments)]))
}

/** The records of all writers. Throws unless every chain is whole. */
export const readTrail = (folder: string): readonly ChainedRecord[] => [...readChains(folder).values()].flat()

/** The intents that no other record settles. */
export const openIntents = (folder: string): readonly ChainedRecord[] =>
  [...readChains(folder).values()].flatMap((records) => {
    const settled = new Set(records.map(({ intent }) => intent))
    return records.filter(({ outcome, seq }) => outcome === 'pending' && !settled.has(seq))
  })
