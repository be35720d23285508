import { existsSync, readdirSync, readFileSync } from 'node:fs'
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

/** A service; without its `world`, what its thread has not written yet is not found. */
type Recorded = Pick<StartedPostern, 'data'> & { readonly world?: Pick<StartedPostern['world'], 'audit'> }

/** The trail of this process, as its extension opens it. */
interface OpenTrail {
  flush(): void
  readonly state: { readonly queue: number; readonly writable: boolean }
}

/** Blocks until the thread of the trail has written what this process has recorded so far. */
function awaitWritten({ world }: Recorded): void {
  const { audit } = world ?? {}
  if (audit === undefined || !('state' in audit)) return
  const trail = audit as object as OpenTrail
  trail.flush()
  const cell = new Int32Array(new SharedArrayBuffer(4))
  while (trail.state.queue > 0 && trail.state.writable) Atomics.wait(cell, 0, 0, 1)
}

function segmentsIn({ data }: Recorded): readonly string[] {
  const folder = join(data, 'audit')
  if (!existsSync(folder)) return []
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return names
    .filter((name) => /\.\d+\.jsonl$/.test(name))
    .toSorted()
    .map((name) => join(folder, name))
}

/** By file of a trail: how many of its records were there before the test. */
const earlier = new Map<string, number>()

/** From now on what was recorded so far counts as nothing: another test begins. */
export function forgetRecords(service: Recorded): void {
  awaitWritten(service)
  for (const path of segmentsIn(service)) earlier.set(path, linesOf(path).length)
}

/** Every record of a service's trail, by file, each in its order; of a service that tests share, those of this test. */
export function auditRecords(service: Recorded): readonly WrittenRecord[] {
  awaitWritten(service)
  return segmentsIn(service).flatMap((path) => {
    const values = linesOf(path.replace(/\.jsonl$/, '.personal.jsonl')) as Value[]
    const records = linesOf(path) as (WrittenRecord & { seq: number })[]
    const named = new Map<number, Record<string, string>>()
    for (const { seq, name, value } of values) named.set(seq, { ...named.get(seq), [name]: value })
    return records.slice(earlier.get(path)).map((record) => ({
      ...record,
      values: named.get(record.seq) ?? {},
    }))
  })
}

/** The records of one event. */
export const recordsOf = (service: Recorded, event: string): readonly WrittenRecord[] =>
  auditRecords(service).filter((record) => record.event === event)
