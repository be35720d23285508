import { fstatSync, write, writeSync } from 'node:fs'

/** Writes bytes of the log. A caller makes one write at a time. */
export interface LogWriter {
  /** Writes all bytes or some. Calls `done`, perhaps synchronously, with an error or with the number written. */
  write(bytes: Buffer, done: (error: NodeJS.ErrnoException | null, written: number) => void): void
  /** The same, synchronously, for a process that ends. Returns the number written. Throws the system's error. */
  writeNow(bytes: Buffer): number
  /** Whether the write under way is complete. For a process that ends: its `done` will not be called any more. */
  isWritten(): boolean
}

const STANDARD_OUTPUT = 1

/** Opens standard output: a pipe, a socket, a file or a device. */
export function openLogWriter(): LogWriter {
  const stats = fstatSync(STANDARD_OUTPUT)
  return stats.isFIFO() || stats.isSocket() ? openPipe() : openFile(stats.isFile())
}

/** An undocumented part of node's stream for a pipe. A test pins it. */
interface PipeStream {
  readonly _handle?: { setBlocking?(blocking: boolean): number }
}

/**
 * A pipe, in non-blocking mode. A blocking write would wait for a reader that does not read, and a waiting thread of
 * libuv's pool keeps the process from ending. A full pipe fails with EAGAIN instead. The flag is set before each write:
 * all processes that have the pipe share it, and a worker that ends resets it.
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

/** A file or a device. A slow disk is waited for by a thread of libuv's pool, not by the event loop. */
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
