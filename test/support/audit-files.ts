import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { StartedPostern } from './start-postern.ts'

/** A record of the trail, as its line says, with its personal values put back. */
export type WrittenRecord = Readonly<Record<string, unknown>> & {
  readonly event: string
  readonly values: Readonly<Record<string, string>>
}

interface Value {
  readonly seq: number
  readonly name: string
  readonly value: string
}

const linesOf = (path: string): readonly unknown[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as unknown)

/** Every record of a service's trail, by file, each in its order. */
export function auditRecords({ data }: Pick<StartedPostern, 'data'>): readonly WrittenRecord[] {
  const folder = join(data, 'audit')
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const segments = names.filter((name) => /\.\d+\.jsonl$/.test(name)).toSorted()
  return segments.flatMap((name) => {
    const values = linesOf(join(folder, name.replace(/\.jsonl$/, '.personal.jsonl'))) as Value[]
    const records = linesOf(join(folder, name)) as (WrittenRecord & { seq: number })[]
    return records.map((record) => ({
      ...record,
      values: Object.fromEntries(
        values.filter(({ seq }) => seq === record.seq).map(({ name: where, value }) => [where, value]),
      ),
    }))
  })
}

/** The records of one event. */
export const recordsOf = (service: Pick<StartedPostern, 'data'>, event: string): readonly WrittenRecord[] =>
  auditRecords(service).filter((record) => record.event === event)
