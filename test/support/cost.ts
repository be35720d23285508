/** What a test file costs: a run is bound by processor time on few cores, so that is what its end tells (cost-reporter.ts). */
import { readFileSync } from 'node:fs'
import { afterAll } from 'vitest'

declare module 'vitest' {
  interface TaskMeta {
    /** Seconds of processor time that a file took, with the processes that it started, and until its end. */
    cost?: { readonly cpu: number; readonly seconds: number }
  }
}

/** Ticks a second in /proc, on every Linux. */
const TICKS = 100

/** Seconds of processor time of the children of this process that have ended, and of theirs; 0 where there is no /proc. */
export function cpuOfChildren(): number {
  try {
    // The name of the program stands in brackets, and may have blanks. The fields behind it begin with the third.
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? []
    return (Number(fields[13]) + Number(fields[14])) / TICKS
  } catch {
    return 0
  }
}

/** Seconds of processor time of this process and of its children that have ended. */
export function cpuSoFar(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6 + cpuOfChildren()
}

// As a setup file it runs in the process of the tests, before the first line of each file.
if (process.env['VITEST_POOL_ID'] !== undefined) {
  const [cpu, start] = [cpuSoFar(), performance.now()]
  afterAll(({}, { file }) => {
    file.meta.cost = { cpu: cpuSoFar() - cpu, seconds: (performance.now() - start) / 1000 }
  })
}
