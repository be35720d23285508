/**
 * Node opens its debugger at 127.0.0.1:9229 when SIGUSR1 comes, which tools that rotate logs send. Any user of the machine
 * could attach, and read the signing keys. A listener of ours takes the signal from Node; it must never be removed, because
 * SIGUSR1 would end the process then. Every program imports this first. An operator's own `--inspect` works as before.
 *
 * The option does the same from the first moment on. Versions of Node that are too old for Postern refuse to start with it, so it is
 * given only where the version is known: by the image, the unit and `npm start`, and to every process that a process of ours starts.
 */
const OPTION = '--disable-sigusr1'

/** Options of Node for a process that this one starts: the given ones, and none that lets a signal open the debugger. */
export const withoutDebugger = (options: readonly string[]): readonly string[] =>
  options.includes(OPTION) ? options : [OPTION, ...options]

process.on('SIGUSR1', () => undefined)
