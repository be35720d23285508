/** Counts of identity besides tokens: families of the core and of extensions, with the values of their labels. */
import { SECRET_AUTH_METHODS } from '../../../base/contracts/people/people.ts'
import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import { type Counts, positionsOf, UNKNOWN } from './counts.ts'
import { type AddedCounter, addedFamily, type CountedFamily, FAMILIES } from './families.ts'

/** In the order of the family's labels. */
type Labels = readonly (readonly string[])[]

const OF_CORE: readonly (readonly [of: string, family: CountedFamily, values: Labels])[] = [
  [
    'clientAuthentications',
    FAMILIES.clientAuthentications,
    [
      [...SECRET_AUTH_METHODS, 'private_key_jwt', 'none'],
      ['ok', 'refused', 'failed'],
    ],
  ],
  ['logins', FAMILIES.logins, [['password'], ['succeeded', 'refused']]],
  ['logoutNotices', FAMILIES.logoutNotices, [['arrived', 'retried', 'failed']]],
]

/** The recorder’s `count`. */
export function planIdentityCounts(
  counts: Counts,
  added: readonly AddedCounter[] = [],
): NonNullable<Recorder['count']> {
  const ofExtensions = added.map((each) => [each.of, addedFamily(each), Object.values(each.labels)] as const)
  const planned = [...OF_CORE, ...ofExtensions].map(([of, family, values]) => {
    const known = values.map((each) => [...each, UNKNOWN])
    const axes = family.labels.map((label, at) => ({ [label]: known[at] ?? [] }))
    const rows = known.map((each) => positionsOf(each))
    const series = counts.plan(family, ...axes)
    const count = (labels: readonly string[]): void => {
      const [first = 0, second = 0] = rows.map((place, at) => place(labels[at] ?? UNKNOWN))
      series.add(1, first, second)
    }
    return [of, count] as const
  })
  const byName = new Map<string, (labels: readonly string[]) => void>(planned)
  return (of, ...labels) => byName.get(of)?.(labels)
}
