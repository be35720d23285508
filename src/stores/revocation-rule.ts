/** A revocation rule: what it names, and how the change feed holds it. */
import type { StoredValue } from '../contracts/store.ts'
import type { Begun, RevocationCause, RevokedTokens } from '../contracts/tokens.ts'
import { roleMark } from '../kernel/ids.ts'

/** What rules compare: facts of a token, or of what tokens come from (a session, a code, a family). */
export interface RuleFacts extends Pick<Begun, 'client' | 'business' | 'family'> {
  /** Of everything: so one rule fits all. */
  readonly before?: 'now'
  readonly subject: string
  readonly jti?: string | undefined
  readonly issuer?: string | undefined
  /** Of the target of a token, or of a rule. */
  readonly fund?: string | undefined
  /** The mark of a role (kernel/ids.ts). */
  readonly role?: string | undefined
  /** Of a rule: the scope value that it names. */
  readonly scope?: string | undefined
  /** Of a token: its scope values. What tokens come from has none here, so no rule that names one ends it. */
  readonly scopes?: ReadonlySet<string>
}

/** One kind of rule: the members that it names, and the key under which such rules are kept. */
export interface RuleKind {
  readonly members: readonly Exclude<keyof RuleFacts, 'issuer' | 'scopes'>[]
  /** Undefined if a fact is missing. */
  readonly keyOf: (facts: RuleFacts) => string | undefined
  /** Whether it revokes only what was begun by a process that did not know the rule yet. */
  readonly timed: boolean
}

// None of them can contain a NUL: the directory's schema forbids it.
const joined = (...parts: readonly (string | undefined)[]): string | undefined =>
  parts.includes(undefined) ? undefined : parts.join('\0')

/** A rule names the members of exactly one of these. */
export const RULE_KINDS: readonly RuleKind[] = [
  // What was given until the rule was made: as after a restored backup.
  { members: ['before'], keyOf: () => '', timed: true },
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
  // A scope value that nobody, a client, a role, or a user at a business may not have any more.
  { members: ['scope'], keyOf: ({ scope }) => scope, timed: true },
  { members: ['client', 'scope'], keyOf: ({ client, scope }) => joined(client, scope), timed: true },
  { members: ['role', 'scope'], keyOf: ({ role, scope }) => joined(role, scope), timed: true },
  {
    members: ['subject', 'business', 'scope'],
    keyOf: ({ subject, business, scope }) => joined(subject, business, scope),
    timed: true,
  },
  { members: ['role'], keyOf: ({ role }) => role, timed: true },
  { members: ['business', 'fund'], keyOf: ({ business, fund }) => joined(business, fund), timed: true },
  // A business that was removed from the directory, from a client or from a user.
  { members: ['business'], keyOf: ({ business }) => business, timed: true },
  { members: ['client', 'business'], keyOf: ({ client, business }) => joined(client, business), timed: true },
  {
    members: ['subject', 'business'],
    keyOf: ({ subject, business }) => joined(subject, business),
    timed: true,
  },
]

export interface Rule {
  readonly kind: RuleKind
  readonly key: string
  /** The name of the role that it names, for people: the key has its mark. */
  readonly roleName: string | undefined
  /** Undefined: it ends tokens of every issuer. */
  readonly issuer: string | undefined
  /** Milliseconds since the epoch. Used only for what has no `asOf`. */
  readonly issuedBefore: number
  readonly order: RevocationCause | undefined
  /** Of a rule that a store had lost, and that was appended again: its first number. */
  readonly number: number | undefined
}

const MEMBERS = ['before', 'jti', 'family', 'subject', 'client', 'business', 'fund', 'role', 'scope'] as const

export const writeRule = (
  tokens: RevokedTokens,
  issuedBefore: number,
  order: RevocationCause | undefined,
): StoredValue => ({ ...tokens, issuedBefore, ...(order && { order }) })

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** Used to explain only, so what cannot be read is left out. */
function readOrder(order: unknown): RevocationCause | undefined {
  if (typeof order !== 'object' || order === null) return undefined
  const { operator, by, reason, via } = order as Record<string, unknown>
  return { operator: text(operator), by: text(by), reason: text(reason), via: text(via) }
}

/**
 * A rule as it is appended again after the store has lost it. It keeps its number: with a new one it would end what was
 * begun after it.
 */
export const renewedRule = (value: StoredValue, sequence: number): StoredValue => ({
  number: sequence,
  ...value,
})

/** The members of a rule as tokens have them: a role by its mark. */
function factsOf(value: StoredValue): RuleFacts {
  const facts = value as unknown as RuleFacts
  return facts.role === undefined ? facts : { ...facts, role: roleMark(facts.role) }
}

/** Undefined if this version does not know such a rule. */
export function readRule(value: StoredValue): Rule | undefined {
  const { issuedBefore, issuer } = value
  if (issuer !== undefined && typeof issuer !== 'string') return undefined
  const named = MEMBERS.filter((member) => value[member] !== undefined)
  if (named.some((member) => typeof value[member] !== 'string')) return undefined
  const kind = RULE_KINDS.find(
    ({ members }) => members.length === named.length && named.every((member) => members.includes(member)),
  )
  const key = kind?.keyOf(factsOf(value))
  if (kind === undefined || key === undefined || typeof issuedBefore !== 'number') return undefined
  const number = typeof value['number'] === 'number' ? value['number'] : undefined
  return {
    kind,
    key,
    roleName: text(value['role']),
    issuer,
    issuedBefore,
    order: readOrder(value['order']),
    number,
  }
}
