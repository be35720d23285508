/** A row of an answer: a record, or a call's intent with its outcome, with the personal values in their places. */
import type { AuditRow, TrailRecord } from '../../contracts/audit-query.ts'
import type { AuditCall } from '../../contracts/audit.ts'
import { cleanLine } from '../../kernel/clean-text.ts'
import { personalHash } from '../record.ts'
import { readRecord } from './day-scan.ts'
import { FileWindows } from './file-window.ts'
import { type PersonalValue, PersonalValues } from './personal-values.ts'
import type { Place, RowTable } from './row-table.ts'

/** Reads rows. `close` it. */
export class RowReader {
  readonly #files = new FileWindows()
  readonly #values = new PersonalValues(this.#files)

  /**
   * The row as one line of JSON, without a line end; with `singly` its record alone. Undefined if its segment has been
   * removed meanwhile.
   */
  line(table: RowTable, row: number, singly = false): string | undefined {
    const record = this.#read(table.place(row))
    if (record === undefined) return undefined
    if (singly) return cleanLine(JSON.stringify(record))
    const settledAt = table.settled(row)
    const settled = settledAt && this.#read(settledAt)
    return cleanLine(JSON.stringify({ ...joined(record, settled), outcome: table.outcome(row) }))
  }

  close(): void {
    this.#files.close()
  }

  #read({ segment, offset, length }: Place): ReadRecord | undefined {
    const bytes = this.#files.read(segment.path, offset, length)
    const record = readRecord(bytes.toString('utf8', 0, length))
    if (record === undefined) return undefined
    const { personal, ...rest } = record
    if (personal === undefined) return rest
    return restore(rest, personal, this.#values.of(segment.personalPath, record.seq))
  }
}

type ReadRecord = Omit<TrailRecord, 'personal'> & Pick<AuditRow, 'erased' | 'altered'>

/** An intent and its outcome as one. What both have is told by the outcome: it is the later one. */
function joined(record: ReadRecord, settled: ReadRecord | undefined) {
  if (settled === undefined) return record
  const { seq, time, reason, change } = settled
  return {
    ...record,
    reason: reason ?? record.reason,
    call: { ...record.call, ...settled.call } satisfies AuditCall,
    change: record.change === undefined && change === undefined ? undefined : { ...record.change, ...change },
    erased: together(record.erased, settled.erased),
    altered: together(record.altered, settled.altered),
    settled: { seq, time },
  }
}

const together = (a: readonly string[] = [], b: readonly string[] = []): readonly string[] | undefined =>
  a.length + b.length === 0 ? undefined : [...new Set([...a, ...b])]

/** Puts personal values where they belong. One that does not fit its hash is left out. */
function restore(
  record: ReadRecord,
  hashes: Readonly<Record<string, string>>,
  values: readonly PersonalValue[],
): ReadRecord {
  const erased: string[] = []
  const altered: string[] = []
  for (const [name, expected] of Object.entries(hashes)) {
    const found = values.find((value) => value.name === name)
    if (found === undefined) erased.push(name)
    else if (personalHash(found.salt, found.value) !== expected) altered.push(name)
    else setAt(record, name.split('.'), found.value)
  }
  return {
    ...record,
    ...(erased.length > 0 && { erased }),
    ...(altered.length > 0 && { altered }),
  }
}

/** Names that lead out of plain data. */
const FORBIDDEN = new Set(['__proto__', 'prototype', 'constructor'])

/** Sets the member at a path such as `on.params.memberId`; what is missing on the way is made. */
function setAt(into: Record<string, unknown>, path: readonly string[], value: string): void {
  if (path.some((part) => FORBIDDEN.has(part))) return
  const [first = '', ...rest] = path
  if (rest.length === 0) {
    into[first] = value
    return
  }
  const inner = into[first]
  const next = typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>) : {}
  into[first] = next
  setAt(next, rest, value)
}

/** A row from its line. */
export const readRow = (line: string): AuditRow => JSON.parse(line) as AuditRow
