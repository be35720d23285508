import { fstatSync, write, writeSync } from 'node:fs'

/** Where bytes go. One write at a time. */
export interface LogWriter {
  /** Writes the bytes or some of them; tells how many, perhaps at once, or what kept it from writing any. */
  write(bytes: Buffer, done: (error: NodeJS.ErrnoException | null, written: number) => void): void
  /** The same for a process that ends: answers how many. Throws what the system says. */
  writeNow(bytes: Buffer): number
  /** Whether all of the write that is under way has arrived. For a process that ends, and hears of it no more. */
  isWritten(): boolean
}

const STANDARD_OUTPUT = 1

/** Standard output, whatever it is. */
export function openLogWriter(): LogWriter {
  const stats = fstatSync(STANDARD_OUTPUT)
  return stats.isFIFO() || stats.isSocket() ? openPipe() : openFile(stats.isFile())
}

/** What node does not document of its stream for a pipe, though many rely on it; a test pins it. */
interface PipeStream {
  readonly _handle?: { setBlocking?(blocking: boolean): number }
}

/**
 * A pipe whose reader does not read keeps a write waiting, and a thread of the pool that waits there keeps the process
 * from ending. So it is written to without waiting: a pipe that is full says EAGAIN. That is a flag which all processes
 * share that have the pipe: a worker that ends sets it back. Hence it is set before each write.
 */
function openPipe(): LogWriter {
  const { _handle: handle } = process.stdout as unknown as PipeStream
  const writeNow = (bytes: Buffer): number => {
    handle?.setBlocking?.(false)
    return writeSync(STANDARD_OUTPUT, bytes)
  }
  return {
    write: (bytes, done) => {
      let written = 0
      try {
        written = writeNow(bytes)
      } catch (error) {
        done(error as NodeJS.ErrnoException, 0)
        return
      }
      done(null, written)
    },
    writeNow,
    isWritten: () => true,
  }
}

/** A file, whose disk may be slow: that is waited for by a thread of the pool. */
function openFile(isRegular: boolean): LogWriter {
  let expected = 0
  const sizeNow = (): number => fstatSync(STANDARD_OUTPUT).size
  return {
    write: (bytes, done) => {
      if (isRegular) expected = sizeNow() + bytes.length
      write(STANDARD_OUTPUT, bytes, (error, written) => done(error, written))
    },
    writeNow: (bytes) => writeSync(STANDARD_OUTPUT, bytes),
    isWritten: () => isRegular && sizeNow() >= expected,
  }
}
