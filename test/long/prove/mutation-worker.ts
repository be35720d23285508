/**
 * A vitest that stays warm, for `npm run prove mutation`: runs the files that it is told to, with one mutant alive, and
 * answers whether a test failed.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { createVitest } from 'vitest/node'
import { ROOT } from '../../support/spawn-postern.ts'
import { instrument, type Mutant } from './mutants.ts'

export interface Order {
  readonly mutant: number
  readonly files: readonly string[]
}
export interface Outcome {
  readonly mutant: number
  /** Whether anything failed. */
  readonly failed: boolean
  readonly failedFiles: readonly string[]
  /** Milliseconds by file. */
  readonly times: Readonly<Record<string, number>>
}

const folder = process.env['POSTERN_MUTATION'] ?? ''
const mutants = JSON.parse(readFileSync(join(folder, '..', 'mutants.json'), 'utf8')) as readonly Mutant[]

const vitest = await createVitest(
  {
    config: join(ROOT, '.config/vitest.config.ts'),
    watch: false,
    reporters: [{ onInit: () => undefined }],
    maxWorkers: 1,
    // The usual cache would hand the mutants to other runs.
    fsModuleCachePath: join(folder, '..', 'cache'),
    bail: 1,
    testTimeout: Number(process.env['POSTERN_MUTATION_TIMEOUT'] ?? 8000),
    hookTimeout: 20_000,
    sequence: { shuffle: false },
  },
  {
    plugins: [
      {
        name: 'mutants',
        enforce: 'pre',
        transform: (text, path) => {
          const own = mutants.filter(({ file }) => file === relative(ROOT, path))
          return own.length === 0 ? undefined : instrument(text, own)
        },
      },
    ],
  },
)

// What is set above reaches the projects, but not this list.
for (const { config } of vitest.projects)
  config.setupFiles = ['test/support/property-seed.ts', 'test/long/prove/mutation-setup.ts'].map((file) =>
    join(ROOT, file),
  )

const resolveIds = async (files: readonly string[]) => {
  const all = await vitest.globTestSpecifications([...files])
  return all.filter(({ moduleId }) => files.includes(relative(ROOT, moduleId)))
}

process.on('message', ({ mutant, files }: Order) => {
  void (async () => {
    writeFileSync(join(folder, 'alive'), String(mutant))
    vitest.config.bail = mutant === 0 ? 0 : 1
    for (const project of vitest.projects) project.config.bail = vitest.config.bail
    const { testModules: all, unhandledErrors } = await vitest.runTestSpecifications(await resolveIds(files))
    // It tells of earlier runs too.
    const testModules = all.filter(({ moduleId }) => files.includes(relative(ROOT, moduleId)))
    const outcome: Outcome = {
      mutant,
      failed: unhandledErrors.length > 0 || testModules.some((module) => !module.ok()),
      failedFiles: testModules.filter((each) => !each.ok()).map((each) => relative(ROOT, each.moduleId)),
      times: Object.fromEntries(
        testModules.map((module) => {
          const { duration, collectDuration } = module.diagnostic()
          return [relative(ROOT, module.moduleId), duration + collectDuration]
        }),
      ),
    }
    process.send?.(outcome)
  })()
})
process.send?.('ready')
