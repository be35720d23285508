import { defineConfig } from 'vitest/config'

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/property-seed.ts'],
    // Real sockets, real servers: generous, and never a way to be right (no test sleeps).
    testTimeout: 30_000,
    hookTimeout: 60_000,
    sequence: { shuffle: true },
  },
})
