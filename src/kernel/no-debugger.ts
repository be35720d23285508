/**
 * Node opens its debugger at 127.0.0.1:9229 when SIGUSR1 comes, which tools that rotate logs send. Any user of the machine
 * could attach, and read the signing keys. A listener of ours takes the signal from Node; it must never be removed, since
 * SIGUSR1 would end the process then. Every program imports this first. An operator's own `--inspect` works as before.
 *
 * The option `--disable-sigusr1` does the same from the first moment on, but older versions of Node refuse to start with it.
 */
process.on('SIGUSR1', () => undefined)
