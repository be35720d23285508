/** What identity counts of clients, their keys and proofs: one table of families and the values of their labels. */
import { CLIENT_AUTH_METHODS } from '../../../base/contracts/people/people.ts'
import type { IdentityCount, Recorder } from '../../../base/contracts/records/recorder.ts'
import { type Counts, positionsOf, UNKNOWN } from './counts.ts'
import { FAMILIES } from './families.ts'

/** In the order of the family's labels. */
type Labels = readonly (readonly string[])[]

/** What became of a proof, by its fault. */
const PROOF_RESULTS = [
  ...['accepted', 'invalid_dpop_proof', 'proof_replayed', 'use_dpop_nonce'],
  ...['bound_token', 'unbound_token', 'other_key'],
  // It was dropped from memory while it could still have been used again.
  'forgotten',
]

const LABELS = {
  dpopProofs: [['token', 'par', 'api', 'userinfo'], PROOF_RESULTS],
  clientAuthentications: [CLIENT_AUTH_METHODS, ['ok', 'refused', 'failed']],
  clientKeyFetches: [['ok', 'refused', 'failed']],
  logoutNotices: [['arrived', 'retried', 'failed']],
  pushedRequests: [['pushed', 'refused', 'too_many', 'failed', 'decided', 'invalid']],
} as const satisfies Partial<Record<IdentityCount, Labels>>

/** The recorder’s `count`. */
export function planIdentityCounts(counts: Counts): NonNullable<Recorder['count']> {
  const planned = Object.entries(LABELS).map(([name, values]) => {
    const family = FAMILIES[name as keyof typeof LABELS]
    const known = values.map((each) => [...each, UNKNOWN])
    const axes = family.labels.map((label, at) => ({ [label]: known[at] ?? [] }))
    const rows = known.map((each) => positionsOf(each))
    const series = counts.plan(family, ...axes)
    const count = (labels: readonly string[]): void => {
      const [first = 0, second = 0] = rows.map((place, at) => place(labels[at] ?? UNKNOWN))
      series.add(1, first, second)
    }
    return [name, count] as const
  })
  const byName = new Map<string, (labels: readonly string[]) => void>(planned)
  return (of, ...labels) => byName.get(of)?.(labels)
}
