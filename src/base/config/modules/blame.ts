/**
 * Finds for whom a module's code was running when it threw where nobody catches: in a timer, a listener, a stream, a
 * promise of its own. Left alone, each of these ends the process, and with it the calls of everybody else. Node keeps
 * the asynchronous context of what throws, so the call is known, and the process continues: what broke is the module's
 * own state.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** The one who answers for what a module's code does. */
export interface Blamed {
  /** Must not throw. */
  failed(thrown: unknown): void
}

const blamed = new AsyncLocalStorage<Blamed>()

/** Runs a module's code, and all that it sets off, on somebody's account. */
export function onAccountOf<T>(somebody: Blamed, work: () => T): T {
  install()
  return blamed.run(somebody, work)
}

/**
 * Binds to whoever answers for what runs now. The returned function runs work on that account later, for an event of
 * somebody else's: what it throws goes to the same one. Where nobody answers for it, it is thrown on.
 * @param ended called first when the work has thrown
 */
export function accountOfNow(ended: () => void): (work: () => void) => void {
  const somebody = blamed.getStore()
  const here = AsyncLocalStorage.snapshot()
  return (work) => {
    try {
      here(work)
    } catch (thrown) {
      // Node has left the context by now, so an uncaught exception would be nobody's.
      ended()
      if (somebody === undefined) throw thrown
      somebody.failed(thrown)
    }
  }
}

let installed = false

function install(): void {
  if (installed) return
  installed = true
  process.on('uncaughtException', attribute)
}

/**
 * An error that is nobody's ends the process, as it would without this listener. Rejections that nobody handles come
 * here too.
 */
function attribute(thrown: unknown): void {
  const somebody = blamed.getStore()
  if (somebody !== undefined) somebody.failed(thrown)
  else if (process.listenerCount('uncaughtException') === 1) throw thrown
}
