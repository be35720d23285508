/** In which order the test files begin. */
import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { keptCosts } from '../test/support/cost-reporter.ts'
import { randomFrom } from '../test/support/seeded-random.ts'

/** Seconds of processor time from which on it matters when a file begins. */
const DEAR = 3

/** Before there is a run on this machine: files that take longest on two cores, the longest first. */
const LONGEST = [
  ...[
    'interop/pages',
    'interop/package',
    'interop/processes',
    'interop/readme',
    'extensions/developers/browser.interop',
    'interop/process-faults',
    'interop/scrapes',
    'interop/recipes',
    'extensions/postgres/logins-cut-off.interop',
  ],
  ...[
    'operate/both-ways.wire',
    'state/restored-store.attack',
    'extensions/audit/redaction.wire',
    'serve/data-group.attack',
    'gateway/many-connections.attack',
    'extensions/audit/beginning.wire',
  ],
  ...[
    'extensions/audit/service.wire',
    'identity/stolen-signing-key.attack',
    'extensions/audit/displaced.attack',
    'operate/rights-that-shrink-by-configuration.wire',
  ],
  ...[
    'cli/command-line',
    'serve/debugger.attack',
    'cli/where-carried-out',
    'gateway/large-bodies.attack',
    'extensions/audit/query-trail',
  ],
  ...[
    'serve/processes/allocator',
    'state/store-faults.attack',
    'extensions/audit/one-writer',
    'serve/several-workers.wire',
  ],
]
const listed = (file: string): number => {
  const place = LONGEST.indexOf(file.replace(/^test\/|\.test\.ts$/g, ''))
  return place === -1 ? 0 : DEAR + LONGEST.length - place
}

/**
 * The files of one project together: vitest ends a process whose next file is of another project, and to start and load one
 * costs more than most files. In each project those first that took the processor longest in their last run, so that none of
 * them runs alone at its end; then the others by chance, another way in each run.
 */
export class LongestFirst extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root, sequence } = this.ctx.config
    const costs = keptCosts()
    const chance = randomFrom(sequence.seed)
    // By name first: the order in which they were found must not decide.
    const byName = files.toSorted((a, b) => (a.moduleId < b.moduleId ? -1 : 1))
    const keyed = byName.map((file) => {
      const name = relative(root, file.moduleId)
      const cost = costs[name] ?? listed(name)
      return { file, key: cost < DEAR ? chance() : cost }
    })
    const projects = [...Map.groupBy(keyed, ({ file }) => file.project.name).values()]
    const longest = (project: typeof keyed): number => Math.max(...project.map(({ key }) => key))
    const ordered = projects.toSorted((one, other) => longest(other) - longest(one))
    return Promise.resolve(
      ordered.flatMap((project) => project.toSorted((a, b) => b.key - a.key).map(({ file }) => file)),
    )
  }
}
