/** Work that is ended once it has taken more of the processor than it may. */
import { createContext, Script } from 'node:vm'

const script = new Script('work()')
/** One for all: it takes longer to make than most work takes. */
const given: { work?: () => void } = {}
const context = createContext(given)
const isTimeout = (thrown: unknown): boolean =>
  // Not an Error of this realm.
  (thrown as { code?: unknown } | undefined)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'

/** Milliseconds of the processor that this thread has taken so far. */
const taken = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/**
 * Runs work that does not wait. Ends it, in the middle of a regular expression too, once it has run for `ms` milliseconds
 * and has taken half of them of the processor; that throws an Error. Work that got less, since other programs ran, begins
 * again with twice the time. Throws what the work throws.
 */
export function within(ms: number, work: () => void): void {
  given.work = work
  for (let timeout = ms; ; timeout *= 2) {
    const before = taken()
    try {
      script.runInContext(context, { timeout })
      return
    } catch (thrown) {
      if (!isTimeout(thrown)) throw thrown
      const used = taken() - before
      if (used >= ms / 2) throw new Error(`had not ended after ${Math.round(used)} ms of the processor`)
    }
  }
}
