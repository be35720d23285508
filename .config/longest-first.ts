/** In which order the test files begin. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { randomFrom } from '../test/support/seeded-random.ts'

/** The files that take longest on two cores. The rest takes a few seconds each. */
const LONGEST = [
  'interop/pages',
  'interop/package',
  'interop/processes',
  'interop/readme',
  'interop/developer-pages',
  'interop/process-faults',
  'interop/scrapes',
  'interop/recipes',
  'interop/logins-cut-off',
  'unit/cli/record-changes',
  'unit/cli/recorded-acts',
  'security/linear-expressions',
  'wire/audit-service',
  'security/audit-changes-killed',
  'interop/idle-node',
  'interop/jumped-clock',
  'security/large-bodies',
  'wire/module-over',
  'wire/audit-redaction',
  'unit/cli/directory-life',
  'security/misbehaving-clients',
  'security/revocation-lasts',
  'security/stolen-signing-key',
  'wire/operators',
  'wire/administered-directory',
  'security/refused-start',
  'wire/stored-places',
  'unit/cli/command-line',
  'security/properties',
  'interop/foreign-readers',
  'security/store-files',
  'security/upgrades',
] as const

/** The longest first, so that none of them runs alone at the end; then the others by chance, another way in each run. */
export class LongestFirst extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root, sequence } = this.ctx.config
    const places = new Map(LONGEST.map((name, place) => [join(root, 'test', `${name}.test.ts`), place]))
    for (const file of places.keys()) if (!existsSync(file)) throw new Error(`${file} is named, but is gone`)
    const chance = randomFrom(sequence.seed)
    // By name first: the order in which they were found must not decide.
    const byName = files.toSorted((a, b) => (a.moduleId < b.moduleId ? -1 : 1))
    const keyed = byName.map(
      (file) => [places.get(file.moduleId) ?? LONGEST.length + chance(), file] as const,
    )
    return Promise.resolve(keyed.sort(([a], [b]) => a - b).map(([, file]) => file))
  }
}
