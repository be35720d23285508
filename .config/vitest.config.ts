import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { COLLECTION } from '../src/serve/processes/allocator.ts'
import { IS_BUNDLE } from '../test/support/program.ts'
import { fromBundle } from './from-bundle.ts'
import { LongestFirst } from './longest-first.ts'

/** What plays against a service over a socket: that of the bundle, which ships. */
const SERVED = ['test/**/*.{wire,attack}.test.ts']
/** Where programs of others play against it. */
const OTHERS = ['test/interop/*.test.ts', 'test/**/*.interop.test.ts']
/** Whether the rest works where an extension was deleted (`.config/doors.ts`). */
const DOORS = ['test/doors/*.test.ts']

const root = new URL('..', import.meta.url).pathname

// Each service that a test starts starts threads, and some start processes: with what was compiled before, they start in
// half the processor time. The processes of the tests and those that they start take this variable over.
process.env['NODE_COMPILE_CACHE'] ??= `${root}node_modules/.cache/compiled`

const bundle = IS_BUNDLE ? { plugins: [fromBundle(root)] } : {}
const external = IS_BUNDLE ? { server: { deps: { external: [/\/dist\/[^?]*\.js$/] } } } : {}

export default defineConfig({
  root,
  test: {
    projects: [
      {
        extends: true,
        test: { name: 'parts', include: ['test/**/*.test.ts'], exclude: [...SERVED, ...OTHERS, ...DOORS] },
      },
      { extends: true, test: { name: 'interop', include: OTHERS } },
      { extends: true, ...bundle, test: { name: 'doors', include: DOORS, ...external } },
      { extends: true, ...bundle, test: { name: 'served', include: SERVED, ...external } },
    ],
    // As every process of a service has them (src/serve/processes/allocator.ts).
    execArgv: [...COLLECTION],
    globalSetup: ['test/support/temporary-files.ts', 'test/support/program.ts'],
    setupFiles: ['test/support/property-seed.ts', 'test/support/cost.ts'],
    reporters: ['default', 'test/support/machine-reporter.ts', 'test/support/cost-reporter.ts'],
    // Real sockets, real servers, and machines of any speed: generous, and never a way to be right (no test sleeps).
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    sequence: { shuffle: true, sequencer: LongestFirst },
    // Files share a process and its loaded modules, which takes a third of the time. No file may leave anything behind.
    isolate: false,
    unstubEnvs: true,
    unstubGlobals: true,
    // With four processes on two cores a run took a sixth more processor time than with two, and two leave the cores idle where
    // tests wait: so three.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
  },
})
