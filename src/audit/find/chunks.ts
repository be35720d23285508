/** Reads a file of lines in pieces that hold whole lines. */
import { closeSync, openSync, readSync } from 'node:fs'
import { hasCode } from '../../kernel/thrown.ts'

const CHUNK = 1024 * 1024
const LINE_END = 0x0a

/** Whole lines of a file. It is valid until the next one is asked for. */
export interface Chunk {
  readonly bytes: Buffer
  /** Where it begins in the file. */
  readonly offset: number
}

/**
 * The whole lines of a file, in pieces of up to 1 MiB, each ending with a line end. What stands behind the last line end
 * is left out: a writer may be about to write its end. So is a line of more than 1 MiB, which is no record. Nothing if
 * the file is gone.
 *
 * @param into 1 MiB that are used again and again
 * @param start where in the file to begin: where a line does
 * @param end `open`: what stands behind the last line end is a line too
 */
export function* chunksOf(
  path: string,
  into: Buffer,
  end: 'closed' | 'open' = 'closed',
  start = 0,
): Generator<Chunk> {
  const file = openOrMissing(path)
  if (file === undefined) return
  try {
    let held = 0
    let offset = start
    for (;;) {
      const read = readSync(file, into, held, into.length - held, offset + held)
      if (read === 0) {
        if (end === 'open' && held > 0)
          yield { bytes: into.fill(LINE_END, held).subarray(0, held + 1), offset }
        return
      }
      const filled = held + read
      const whole = into.subarray(0, filled).lastIndexOf(LINE_END) + 1
      if (whole > 0) yield { bytes: into.subarray(0, whole), offset }
      const used = whole > 0 || filled < into.length ? whole : filled
      into.copyWithin(0, used, filled)
      held = filled - used
      offset += used
    }
  } finally {
    closeSync(file)
  }
}

/** The buffer that `chunksOf` reads into. */
export const chunkBuffer = (): Buffer => Buffer.allocUnsafe(CHUNK)

function openOrMissing(path: string): number | undefined {
  try {
    return openSync(path, 'r')
  } catch (thrown) {
    if (hasCode(thrown, 'ENOENT')) return undefined
    throw thrown
  }
}

/** Calls `visit` with the bounds of each line that contains the needle; of every line, if there is none. */
export function eachLine(
  bytes: Buffer,
  needle: Buffer | undefined,
  visit: (start: number, end: number, at: number) => void,
): void {
  for (let from = 0; from < bytes.length;) {
    const at = needle === undefined ? from : bytes.indexOf(needle, from)
    if (at < 0) return
    const start = needle === undefined ? from : bytes.lastIndexOf(LINE_END, at) + 1
    const end = bytes.indexOf(LINE_END, at)
    visit(start, end, at)
    from = end + 1
  }
}
