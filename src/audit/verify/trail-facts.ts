/** What a verification counts beside what it finds, of all writers of a trail. */
import type { RecordLine } from './record-line.ts'

/** Values of a subject that are missing in a file. */
interface Erased {
  readonly file: string
  readonly line: number
  readonly subjects: readonly string[]
  /** Whether their process has told that the record is durable. Otherwise a power cut may have left it without values. */
  readonly told: boolean
  /** The time of the latest record. */
  time: string
  values: number
}

interface ParsedRecord {
  readonly actor?: { readonly subject?: string }
  readonly on?: { readonly subject?: string; readonly kind?: string; readonly id?: string }
}

/** Whom a record is of or about: whose redaction erases its personal values (C12.2.3). */
export function subjectsOf({ actor, on }: ParsedRecord): readonly string[] {
  const about = on?.kind === 'user' ? on.id : undefined
  return [...new Set([actor?.subject, on?.subject, about].filter((each) => each !== undefined))]
}

/** Of a line that was changed so that it is no JSON any more, nothing is known. */
export function parseRecord(line: string): ParsedRecord {
  try {
    return JSON.parse(Buffer.from(line, 'latin1').toString('utf8')) as ParsedRecord
  } catch {
    return {}
  }
}

export class TrailFacts {
  records = 0
  segments = 0
  writers = 0
  /** Records behind the last signed head of their writer. */
  unsigned = 0
  firstUnsigned: string | undefined
  lastRecord: string | undefined
  /** Intents without an outcome. */
  open = 0
  /** Records that were signed when they were found, after their process had been killed. */
  foundLate = 0
  /** Bytes that were left behind by power cuts and failed writes. */
  torn = 0
  /** Records that their writer has written again, after a failure (C12.4.3). */
  rewritten = 0
  readonly #redacted = new Map<string, string>()
  readonly #erased = new Map<string, Erased>()

  record({ time }: RecordLine, isSigned: boolean): void {
    this.records += 1
    if (this.lastRecord === undefined || time > this.lastRecord) this.lastRecord = time
    if (isSigned) return
    this.unsigned += 1
    if (this.firstUnsigned === undefined || time < this.firstUnsigned) this.firstUnsigned = time
  }

  /** A record says that the values of a subject were erased. */
  redacted({ text, time }: RecordLine): void {
    const subject = parseRecord(text).on?.subject
    if (subject !== undefined && time > (this.#redacted.get(subject) ?? '')) this.#redacted.set(subject, time)
  }

  /** Values of a record are missing. */
  missing(file: string, line: number, { text, time }: RecordLine, values: number, told: boolean): void {
    const subjects = subjectsOf(parseRecord(text))
    const key = JSON.stringify([file, subjects, told])
    const known = this.#erased.get(key)
    if (known === undefined) this.#erased.set(key, { file, line, subjects, told, time, values })
    else {
      known.values += values
      if (time > known.time) known.time = time
    }
  }

  /** Of the missing values, those that a redaction after their record explains, those that a power cut may, and the others. */
  erasures(): { readonly explained: number; readonly torn: number; readonly others: readonly Erased[] } {
    const all = [...this.#erased.values()]
    const unexplained = all.filter(
      ({ subjects, time }) => !subjects.some((subject) => (this.#redacted.get(subject) ?? '') >= time),
    )
    const others = unexplained.filter(({ told }) => told)
    const sum = (some: readonly Erased[]): number => some.reduce((total, { values }) => total + values, 0)
    return { explained: sum(all) - sum(unexplained), torn: sum(unexplained) - sum(others), others }
  }
}
