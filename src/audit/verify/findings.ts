/** What a verification finds (C12.4.6). */

/** Something that cannot have come about by a crash or a power cut. */
export interface Finding {
  /** The file, below the folder of the trail. */
  readonly file: string
  /** 1 for the first. Absent where the whole file is meant. */
  readonly line?: number
  /** What is wrong, in a sentence without a full stop. */
  readonly what: string
}

/** Findings that are told one by one. The others are counted. */
const MOST = 1000

export class Findings {
  readonly list: Finding[] = []
  count = 0

  add(file: string, line: number | undefined, what: string): void {
    this.count += 1
    if (this.list.length < MOST) this.list.push({ file, ...(line !== undefined && { line }), what })
  }
}

/** `record 5`, `records 5 to 7`. */
export const recordsFrom = (first: number, last: number): string =>
  first >= last ? `record ${first}` : `records ${first} to ${last}`
