import pino, { type DestinationStream } from 'pino'

/** Where lines go. */
export interface LogDestination extends DestinationStream {
  /** Writes what is held, and waits for nothing. */
  flush?(): void
  /** Writes what is held, and waits until it is written. */
  flushSync?(): void
}

/** Bytes that are held until there is so much to write: a system call for every line would cost more than the line. */
const HELD = 64 * 1024
/** Bytes that a character of a line, as its length counts them, may take in UTF-8. */
const WIDEST = 3

/** Its own types leave out that `sync` may be changed, and that it takes bytes. */
type Destination = Omit<ReturnType<typeof pino.destination>, 'write'> & {
  sync: boolean
  write(bytes: Buffer): boolean
}

/**
 * Standard output, written in pieces. Lines are held here, as the bytes that they will be, and not by pino's
 * destination: that one measures all that it holds at each line, and its flush waits for the disk, once a second with the
 * event loop standing still. Only `flushSync`, for the end of the process, does that.
 */
export function standardOutput(): LogDestination {
  let held = Buffer.allocUnsafeSlow(HELD)
  let length = 0
  // A reader that leaves (a shipper that restarts) takes the log with it, and must not take the service.
  let gone = false
  const write = (bytes: Buffer): void => {
    if (!gone) output.write(bytes)
  }
  const flush = (): void => {
    if (length === 0) return
    const bytes = held.subarray(0, length)
    held = Buffer.allocUnsafeSlow(HELD)
    length = 0
    write(bytes)
  }
  // What is written at the end must be written at once: nobody would wait for it.
  const flushSync = (): void => {
    if (gone) return
    output.sync = true
    try {
      flush()
      output.flushSync()
    } catch {
      gone = true
    }
    output.sync = false
  }
  // Before the destination's own listener, which closes it.
  process.once('exit', flushSync)
  const output = pino.destination({ dest: 1, sync: false, contentMode: 'buffer' }) as unknown as Destination
  output.on('error', () => {
    gone = true
  })
  return {
    write: (line) => {
      const most = line.length * WIDEST
      if (length + most > HELD) flush()
      if (most > HELD) write(Buffer.from(line))
      else length += held.write(line, length)
    },
    flush,
    flushSync,
  }
}
