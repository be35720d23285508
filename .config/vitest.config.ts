import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/property-seed.ts', 'test/support/compile-cache.ts'],
    reporters: ['default', 'test/support/machine-reporter.ts'],
    // Real sockets, real servers: generous, and never a way to be right (no test sleeps).
    testTimeout: 30_000,
    hookTimeout: 60_000,
    sequence: { shuffle: true },
    // Files share a process and its loaded modules, which takes a third of the time. No file may leave anything behind.
    isolate: false,
    unstubEnvs: true,
    unstubGlobals: true,
    // Half of the time a test waits for a socket or a process.
    maxWorkers: availableParallelism() + 1,
  },
})
