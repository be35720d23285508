import type { Principal } from '../contracts/principal.ts'
import type { StoredValue } from '../contracts/store.ts'
import type { Begun, RevokedTokens } from '../contracts/tokens.ts'

/** What rules look at, of a token or of what tokens come from. */
export interface Facts extends Pick<Begun, 'client' | 'business' | 'family'> {
  readonly subject: string
  readonly jti?: string | undefined
}

/** The members that a rule may name, as the key of the table of its sort. `undefined` where a fact is missing. */
export interface Sort {
  readonly members: readonly (keyof Facts)[]
  readonly keyOf: (facts: Facts) => string | undefined
  /** Whether it revokes only what was begun before the rule was heard of. */
  readonly timed: boolean
}

// A NUL stands in none of them: ids and codes come from the configuration, subjects are stable ids.
const joined = (...parts: readonly (string | undefined)[]): string | undefined =>
  parts.includes(undefined) ? undefined : parts.join('\0')

/** The sorts of rules. A rule names the members of exactly one. */
export const SORTS: readonly Sort[] = [
  { members: ['jti'], keyOf: ({ jti }) => jti, timed: false },
  { members: ['family'], keyOf: ({ family }) => family, timed: false },
  { members: ['subject'], keyOf: ({ subject }) => subject, timed: true },
  { members: ['client'], keyOf: ({ client }) => client, timed: true },
  {
    members: ['client', 'subject'],
    keyOf: ({ client, subject }) => joined(client, subject),
    timed: true,
  },
  {
    members: ['client', 'subject', 'business'],
    keyOf: ({ client, subject, business }) => joined(client, subject, business),
    timed: true,
  },
  // A business that is removed, from the directory, or from a client or a user.
  { members: ['business'], keyOf: ({ business }) => business, timed: true },
  { members: ['client', 'business'], keyOf: ({ client, business }) => joined(client, business), timed: true },
  {
    members: ['subject', 'business'],
    keyOf: ({ subject, business }) => joined(subject, business),
    timed: true,
  },
]

export const factsOf = ({ tokenId, family, subject, client, target }: Principal): Facts => ({
  jti: tokenId,
  family,
  subject,
  client,
  business: target?.business,
})

/** A rule as it is kept on the feed. */
export interface Rule {
  readonly sort: Sort
  readonly key: string
  /** Milliseconds since the epoch: for what has no `asOf`. */
  readonly issuedBefore: number
}

const MEMBERS = ['jti', 'family', 'subject', 'client', 'business'] as const

export const writeRule = (tokens: RevokedTokens, issuedBefore: number): StoredValue => ({
  ...tokens,
  issuedBefore,
})

/** Undefined if it is no rule that this version knows. */
export function readRule(value: StoredValue): Rule | undefined {
  const named = MEMBERS.filter((member) => value[member] !== undefined)
  if (named.some((member) => typeof value[member] !== 'string')) return undefined
  const sort = SORTS.find(
    ({ members }) => members.length === named.length && named.every((member) => members.includes(member)),
  )
  const key = sort?.keyOf(value as unknown as Facts)
  const { issuedBefore } = value
  if (sort === undefined || key === undefined || typeof issuedBefore !== 'number') return undefined
  return { sort, key, issuedBefore }
}
