import pino, { type DestinationStream } from 'pino'

/** Where lines go. */
export interface LogDestination extends DestinationStream {
  /** Writes what is held, and waits for nothing. */
  flush?(): void
  /** Writes what is held, and waits until it is written. */
  flushSync?(): void
}

/** Characters that are held until there is so much to write: a system call for every line would cost more than the line. */
const HELD = 64 * 1024

/** Its own types leave out that `sync` may be changed. */
type Destination = ReturnType<typeof pino.destination> & { sync: boolean }

/**
 * Standard output, written in pieces. Lines are held here and not by pino's destination: that one measures all that it
 * holds at each line, and its flush waits for the disk, once a second with the event loop standing still. Only
 * `flushSync`, for the end of the process, does that.
 */
export function standardOutput(): LogDestination {
  let held = ''
  // A reader that leaves (a shipper that restarts) takes the log with it, and must not take the service.
  let gone = false
  const flush = (): void => {
    if (held === '') return
    const text = held
    held = ''
    if (!gone) output.write(text)
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
  const output = pino.destination({ dest: 1, sync: false }) as Destination
  output.on('error', () => {
    gone = true
  })
  return {
    write: (line) => {
      held += line
      if (held.length >= HELD) flush()
    },
    flush,
    flushSync,
  }
}
