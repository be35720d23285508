import { availableParallelism } from 'node:os'
import { configDefaults, defineConfig } from 'vitest/config'
import { IS_BUNDLE } from '../test/support/program.ts'
import { fromBundle, withoutBundle } from './from-bundle.ts'
import { LongestFirst } from './longest-first.ts'

const root = new URL('..', import.meta.url).pathname

// Each service that a test starts starts threads, and some start processes: with what was compiled before, they start in
// half the processor time. The processes of the tests and those that they start take this variable over.
process.env['NODE_COMPILE_CACHE'] ??= `${root}node_modules/.cache/compiled`

export default defineConfig({
  root,
  plugins: IS_BUNDLE ? [fromBundle(root)] : [],
  test: {
    include: ['test/**/*.test.ts'],
    ...(IS_BUNDLE && {
      exclude: [...configDefaults.exclude, ...withoutBundle(root, ['test/wire', 'test/security']).keys()],
    }),
    ...(IS_BUNDLE && { server: { deps: { external: [/\/dist\/[^?]*\.js$/] } } }),
    globalSetup: ['test/support/temporary-files.ts', 'test/support/program.ts'],
    setupFiles: ['test/support/property-seed.ts', 'test/support/cost.ts'],
    reporters: ['default', 'test/support/machine-reporter.ts', 'test/support/cost-reporter.ts'],
    // Real sockets, real servers, and machines of any speed: generous, and never a way to be right (no test sleeps).
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    // Of 12,000 tests one may meet a machine that stands still for a second. In CI it gets a second attempt, and the
    // reporter names it, so that it is mended.
    retry: process.env['POSTERN_TEST_REQUIRE_ALL'] === '1' ? 1 : 0,
    sequence: { shuffle: true, sequencer: LongestFirst },
    // Files share a process and its loaded modules, which takes a third of the time. No file may leave anything behind.
    isolate: false,
    unstubEnvs: true,
    unstubGlobals: true,
    // Most of the time a test waits for a socket, a disk or a process.
    maxWorkers: availableParallelism() * 2 + 2,
  },
})
