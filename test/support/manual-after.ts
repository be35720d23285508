import type { After } from '../../src/base/kernel/clock.ts'

/** Timers that a test winds itself. */
export interface ManualAfter {
  readonly after: After
  /** The delays of what is waiting, in milliseconds. */
  delays(): number[]
  /** Runs what waits now, and lets what that started settle. */
  fire(): Promise<void>
  /** Runs one of what waits now, by its place in `delays`. */
  fireAt(place: number): void
}

export function manualAfter(): ManualAfter {
  const waiting = new Map<() => void, number>()
  return {
    after: (ms, work) => {
      waiting.set(work, ms)
      return () => waiting.delete(work)
    },
    delays: () => [...waiting.values()],
    async fire() {
      const due = [...waiting.keys()]
      waiting.clear()
      for (const work of due) work()
      await new Promise((resolve) => setImmediate(resolve))
    },
    fireAt(place) {
      const work = [...waiting.keys()].at(place)
      if (work === undefined) throw new Error(`no timer at ${place}`)
      waiting.delete(work)
      work()
    },
  }
}
