/** The newest segments of some writers: where the intents stand that they have left open when they ended. */
import { type Segment, Segments } from './segments.ts'

/**
 * Segments of a writer, at most: 128 MiB of lines. An intent waits for its outcome as long as its call takes, so it stands
 * near the end; the last segment may have just begun.
 */
const LAST = 2

export class LastSegments extends Segments {
  readonly #chosen = new Map<string, readonly Segment[]>()

  /** Throws the system's error if a folder of the trail cannot be read. */
  constructor(folders: readonly string[], writers: readonly string[]) {
    super(folders)
    const all = new Segments(folders)
    for (const segment of writers.flatMap((writer) => lastOf(writer, all))) {
      const { day } = segment
      this.#chosen.set(day, [...(this.#chosen.get(day) ?? []), segment])
    }
  }

  override days(): readonly string[] {
    return [...this.#chosen.keys()].toSorted()
  }

  override of(day: string): readonly Segment[] {
    return this.#chosen.get(day) ?? []
  }
}

/** Looks from the last day back: all that a writer has written stands in the days of its last segments. */
function lastOf(writer: string, segments: Segments): readonly Segment[] {
  const found: Segment[] = []
  for (const day of segments.days().toReversed()) {
    if (found.length >= LAST || isBefore(day, writer)) break
    found.unshift(...segments.of(day).filter((segment) => segment.writer === writer))
  }
  return found.slice(-LAST)
}

/** The name of a writer begins with the day of its start: `20260331T…`. */
const isBefore = (day: string, writer: string): boolean => day.replaceAll('-', '') < writer.slice(0, 8)
