import type { Principal } from '../../../base/contracts/people/principal.ts'
import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import {
  type Change,
  changeRecord,
  OWN_VIEW,
  type Store,
  type StoredValue,
  type View,
} from '../../../base/contracts/records/store.ts'
import type {
  Begun,
  RevocationCause,
  RevocationRule,
  RevokedTokens,
} from '../../../base/contracts/records/tokens.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import { Fault } from '../../../base/kernel/faults.ts'
import { roleMark } from '../../../base/kernel/ids.ts'
import type { ChangeFeed } from './change-feed.ts'

/** Facts that rules compare: those of a token, or of its source (a session, a code, a family). */
interface RuleFacts extends Pick<Begun, 'client' | 'business' | 'family'> {
  /** Names everything, so that one rule fits all. */
  readonly before?: 'now'
  readonly subject: string
  readonly jti?: string | undefined
  readonly issuer?: string | undefined
  /** The fund of a token's target, or of a rule. */
  readonly fund?: string | undefined
  /** The mark of a role (base/kernel/ids.ts). */
  readonly role?: string | undefined
  /** The scope value that a rule names. */
  readonly scope?: string | undefined
  /** The scope values of a token. The source of a token has none here, so no rule that names one ends it. */
  readonly scopes?: ReadonlySet<string>
}

type RuleMember = Exclude<keyof RuleFacts, 'issuer' | 'scopes'>

/** One kind of rule, by the members that it names. */
interface RuleKind {
  readonly members: readonly RuleMember[]
  /** Whether it revokes only what was begun by a process that did not know the rule yet. */
  readonly timed: boolean
}

/** Nothing new is issued under either. */
const UNTIMED: readonly RuleMember[] = ['jti', 'family']

const NAMED: readonly (readonly RuleMember[])[] = [
  // All that was given until the rule was made: as after a restored backup.
  ['before'],
  ['jti'],
  ['family'],
  ['subject'],
  ['client'],
  ['client', 'subject'],
  ['client', 'subject', 'business'],
  // A scope value that nobody, a client, a role, or a user at a business may not have any more.
  ['scope'],
  ['client', 'scope'],
  ['role', 'scope'],
  ['subject', 'business', 'scope'],
  ['role'],
  ['business', 'fund'],
  // A business that was removed from the directory, from a client or from a user.
  ['business'],
  ['client', 'business'],
  ['subject', 'business'],
]

/** A rule names the members of exactly one of these. */
const RULE_KINDS: readonly RuleKind[] = NAMED.map((members) => ({
  members,
  timed: !members.some((member) => UNTIMED.includes(member)),
}))

const MEMBERS: readonly RuleMember[] = [...new Set(NAMED.flat())]

/** The key under which such rules are kept; undefined if a fact is missing. */
function keyOf({ members }: RuleKind, facts: RuleFacts): string | undefined {
  let key: string | undefined
  for (const member of members) {
    if (member === 'before') return ''
    const fact = facts[member]
    if (fact === undefined) return undefined
    // None of them can contain a NUL: the directory's schema forbids it.
    key = key === undefined ? fact : `${key}\0${fact}`
  }
  return key
}

interface Rule {
  readonly kind: RuleKind
  readonly key: string
  /** The name of the role that it names, for people: the key has its mark. */
  readonly roleName: string | undefined
  /** Undefined: it ends tokens of every issuer. */
  readonly issuer: string | undefined
  /** Compared with the time of issue of anything that has no `asOf`, in milliseconds since the epoch. */
  readonly issuedBefore: number
  readonly cause: RevocationCause | undefined
  /** The first number of a rule that a store had lost, and that was appended again. */
  readonly number: number | undefined
}

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** Used to explain only, so what cannot be read is left out. */
function readCause(cause: unknown): RevocationCause | undefined {
  if (typeof cause !== 'object' || cause === null) return undefined
  const { operator, by, reason, via } = cause as Record<string, unknown>
  return { operator: text(operator), by: text(by), reason: text(reason), via: text(via) }
}

/** The members of a rule as tokens have them: a role by its mark. */
function namedFacts(value: StoredValue): RuleFacts {
  const facts = value as unknown as RuleFacts
  return facts.role === undefined ? facts : { ...facts, role: roleMark(facts.role) }
}

/** Undefined if this version does not know such a rule. */
function readRule(value: StoredValue): Rule | undefined {
  const { issuedBefore, issuer } = value
  if (issuer !== undefined && typeof issuer !== 'string') return undefined
  const named = MEMBERS.filter((member) => value[member] !== undefined)
  if (named.some((member) => typeof value[member] !== 'string')) return undefined
  const kind = RULE_KINDS.find(
    ({ members }) => members.length === named.length && named.every((member) => members.includes(member)),
  )
  const key = kind && keyOf(kind, namedFacts(value))
  if (kind === undefined || key === undefined || typeof issuedBefore !== 'number') return undefined
  const number = typeof value['number'] === 'number' ? value['number'] : undefined
  return {
    kind,
    key,
    roleName: text(value['role']),
    issuer,
    issuedBefore,
    cause: readCause(value['order']),
    number,
  }
}

/** How long a revocation rule must be kept, in milliseconds. */
export interface LongestLife {
  /** The longest life of an access token. */
  readonly tokens: number
  /** The longest life of anything that a rule may end: access tokens, families, sessions. May grow while the process runs. */
  readonly all: number
}

type Records = Pick<Store, 'find' | 'create' | 'replace'>

/** One record `{ms}`: the longest life that any configuration used with this store ever gave. */
const LONGEST_LIFE = 'longest_life'
const KEY = 'all'

/** A configuration with shorter lives does not lower it: what was issued keeps the life it was given. */
export class RecordedLife implements LongestLife {
  readonly tokens: number
  readonly #store: Records
  #all: number

  private constructor(store: Records, tokens: number) {
    this.#store = store
    this.tokens = tokens
    this.#all = tokens
  }

  /** If the store cannot record it now (it may be full), this process still uses it, and serves. */
  static async open(store: Records, lives: LongestLife): Promise<RecordedLife> {
    const recorded = new RecordedLife(store, lives.tokens)
    recorded.#all = lives.all
    await recorded.raise(lives.all).catch((thrown: unknown) => {
      if (!(thrown instanceof Fault)) throw thrown
    })
    return recorded
  }

  get all(): number {
    return this.#all
  }

  /** To be called before anything gets a life of `ms`. Rejects with Fault `identity_unavailable`. */
  async raise(ms: number): Promise<void> {
    await changeRecord(this.#store, LONGEST_LIFE, KEY, (kept) => {
      this.#all = Math.max(Number(kept?.['ms'] ?? 0), ms, this.#all)
      return kept?.['ms'] === this.#all ? undefined : { ms: this.#all }
    })
  }
}

const factsOf = ({
  tokenId,
  family,
  subject,
  client,
  role,
  target,
  issuer,
  scopes,
}: Principal): RuleFacts => ({
  issuer,
  scopes,
  role,
  fund: target?.level === 'fund' ? target.fund : undefined,
  jti: tokenId,
  family,
  subject,
  client,
  business: target?.business,
})

/** The key of a rule for the tokens of one issuer. No id has two NULs, so it is no key of another rule. */
const ofIssuer = (key: string, issuer: string): string => `${key}\0\0${issuer}`

export interface RevocationParts {
  readonly feed: Pick<ChangeFeed, 'subscribe' | 'append'>
  readonly clock: Clock
  readonly recorder: Pick<Recorder, 'note'>
  readonly longestLife: LongestLife
  readonly view?: View
}

/** All rules of one key together: as strict as the latest, kept as long as the one that lasts longest. */
interface RuleEffect {
  readonly sequence: number
  readonly issuedBefore: number
  readonly roleName: string | undefined
  /** The cause of the latest rule. */
  readonly cause: RevocationCause | undefined
  /** When everything that the rules end has expired, in milliseconds since the epoch. */
  readonly expiresAt: number
}

interface Table {
  readonly kind: RuleKind
  readonly effects: Map<string, RuleEffect>
  /** The rules for the tokens of one issuer, by `ofIssuer`. */
  readonly effectsOfIssuers: Map<string, RuleEffect>
}

const REVOCATION_TOPIC = 'revocation'

/**
 * Milliseconds within which a new rule reaches all processes. Until then another process may still issue a token that
 * the rule should end. So of tokens without `asOf`, those issued in this time are revoked too.
 */
const SPREAD = 1000
/** Milliseconds for differences between clocks, and for the time between a decision and the signature. */
const SKEW = 60_000

/**
 * The revocation rules, in memory.
 *
 * A rule ends what was begun by a process that did not know the rule. So whatever is begun carries the number of the
 * latest rule known then (`asOf`), and a rule with a higher number ends it. The wall clock plays no part: setting it
 * changes nothing. Anything that has no `asOf` (tokens of foreign issuers, and what an older version began) is compared by the
 * time of its issue.
 */
export class RevocationRules {
  readonly #parts: RevocationParts
  readonly #view: View
  readonly #tables: readonly Table[] = RULE_KINDS.map((kind) => ({
    kind,
    effects: new Map(),
    effectsOfIssuers: new Map(),
  }))
  /** How many rules there are. Mostly none: then a call costs one comparison. */
  #count = 0
  #asOf = 0
  #changes = 0
  /** The change up to which each caller was compared, and revoked by no rule: a further call costs one look-up. */
  readonly #passed = new WeakMap<Principal, number>()

  constructor(parts: RevocationParts) {
    this.#parts = parts
    this.#view = parts.view ?? OWN_VIEW
    parts.feed.subscribe(REVOCATION_TOPIC, {
      apply: (change, early) => this.#apply(change, early),
      expire: (change) => this.#expire(change),
      // It keeps its number: with a new one it would end what was begun after it.
      restore: ({ value, sequence }) => ({ number: sequence, ...value }),
    })
  }

  /**
   * The number of the latest rule that this process knows. It is read when a call begins, before any look-up, and stored
   * with everything that the call begins: a rule with a higher number ends that.
   */
  get asOf(): number {
    return this.#asOf
  }

  /**
   * Whether a rule revokes this principal's token. From memory, because every call asks it (C4.16).
   * @throws Fault `token_judge_unavailable` if the rules that this process knows are too old
   */
  isRevoked(principal: Principal): boolean {
    if (this.#view.isOutdated)
      throw new Fault('token_judge_unavailable', { detail: 'the change feed is too old' })
    if (this.#count === 0 || this.#passed.get(principal) === this.#changes) return false
    const isRevoked = this.#covers(factsOf(principal), principal.asOf, principal.issuedAt * 1000)
    if (!isRevoked) this.#passed.set(principal, this.#changes)
    return isRevoked
  }

  /** The rule that revokes it; undefined if none does. Explains a refusal, so it may take its time (C14.3). */
  ruleFor(principal: Principal): RevocationRule | undefined {
    const facts = factsOf(principal)
    for (const table of this.#tables) {
      const found = endingOf(table, facts, principal.asOf, principal.issuedAt * 1000)
      if (found !== undefined) return describeRule(table.kind, found.facts, found.effect)
    }
    return undefined
  }

  /**
   * Resolves if this process knows the rules of a second ago. Rejects with Fault `identity_unavailable` if it does not, and
   * cannot learn them at once: then nothing must be issued.
   */
  requireCurrent(): Promise<void> {
    return this.#view.requireCurrent()
  }

  /** Whether a rule has ended it. Then it is invalid everywhere, even if it is still in the store. */
  hasEnded(begun: Begun): boolean {
    return this.#count > 0 && this.#covers(begun, begun.asOf, begun.begunAt)
  }

  /**
   * Resolves once the rule is stored and in force in this process; every other process follows within a second. Rejects
   * with Fault `identity_unavailable` if it could not be stored: then nothing is revoked (T3.7). Stored records are
   * removed by `TokenRevoker`, which makes the rule first.
   *
   * A rule for a jti or a family has no time, because nothing new is issued under either. Any other rule revokes what
   * was begun without knowledge of the rule (`asOf` is lower), and nothing that is begun later.
   * @param until milliseconds since the epoch. The rule is kept until everything that it revokes has expired, and at
   *   least until then.
   */
  async revoke(tokens: RevokedTokens, until = 0, cause?: RevocationCause): Promise<void> {
    const { feed, clock, longestLife } = this.#parts
    const now = clock.now()
    const ends = Math.max(until, now + lifeOf(tokens, longestLife))
    const rule = { ...tokens, issuedBefore: now, ...(cause && { order: cause }) }
    await feed.append(REVOCATION_TOPIC, rule, Math.ceil(ends + SKEW))
  }

  #covers(facts: RuleFacts, asOf: number | undefined, issuedAt: number): boolean {
    for (const table of this.#tables) {
      if (table.effects.size === 0 && table.effectsOfIssuers.size === 0) continue
      if (endingOf(table, facts, asOf, issuedAt) !== undefined) return true
    }
    return false
  }

  #apply(change: Change, early: boolean): void {
    const rule = readRule(change.value)
    if (rule === undefined) {
      this.#parts.recorder.note('error', 'revocation.unknown_rule', { sequence: change.sequence })
      return
    }
    const { issuedBefore, roleName, cause, number: sequence = change.sequence } = rule
    // An early change comes before rules that this process does not know yet: `asOf` must not claim to know those.
    // One that was appended again counts by its first number: others that were lost with it may follow.
    if (!early) this.#asOf = Math.max(this.#asOf, sequence)
    this.#change(rule, (before) => ({
      sequence: Math.max(before?.sequence ?? 0, sequence),
      issuedBefore: Math.max(before?.issuedBefore ?? 0, issuedBefore),
      roleName,
      cause: sequence >= (before?.sequence ?? 0) ? cause : before?.cause,
      expiresAt: Math.max(before?.expiresAt ?? 0, endOf(change)),
    }))
  }

  #expire(change: Change): void {
    const rule = readRule(change.value)
    if (rule)
      this.#change(rule, (before) => (before && before.expiresAt > endOf(change) ? before : undefined))
  }

  #change(rule: Rule, next: (before: RuleEffect | undefined) => RuleEffect | undefined): void {
    const { kind, issuer } = rule
    const table = this.#tables[RULE_KINDS.indexOf(kind)]
    const effects = issuer === undefined ? table?.effects : table?.effectsOfIssuers
    const key = issuer === undefined ? rule.key : ofIssuer(rule.key, issuer)
    if (effects === undefined) return
    const before = effects.size
    const effect = next(effects.get(key))
    if (effect) effects.set(key, effect)
    else effects.delete(key)
    this.#changes += 1
    this.#count += effects.size - before
  }
}

function shownMember(member: RuleMember, facts: RuleFacts, roleName: string | undefined): string {
  if (member === 'before') return 'now'
  return (member === 'role' ? roleName : facts[member]) ?? ''
}

const describeRule = (
  { members }: RuleKind,
  facts: RuleFacts,
  { issuedBefore, roleName, cause }: RuleEffect,
): RevocationRule => ({
  tokens: Object.fromEntries(members.map((member) => [member, shownMember(member, facts, roleName)])),
  madeAt: issuedBefore,
  order: cause,
})

/** A rule that ends something, and the facts that it fits: with the scope value that it names. */
interface Ending {
  readonly facts: RuleFacts
  readonly effect: RuleEffect
}

/** The rule of a table that ends what was begun; undefined if none does. @param issuedAt milliseconds since the epoch */
function endingOf(
  table: Table,
  facts: RuleFacts,
  asOf: number | undefined,
  issuedAt: number,
): Ending | undefined {
  if (!table.kind.members.includes('scope')) return endingOfKey(table, facts, asOf, issuedAt)
  for (const scope of facts.scopes ?? []) {
    const found = endingOfKey(table, { ...facts, scope }, asOf, issuedAt)
    if (found !== undefined) return found
  }
  return undefined
}

function endingOfKey(
  { kind, effects, effectsOfIssuers }: Table,
  facts: RuleFacts,
  asOf: number | undefined,
  issuedAt: number,
): Ending | undefined {
  const key = keyOf(kind, facts)
  if (key === undefined) return undefined
  const effect = effects.get(key)
  if (effect && ends(kind, effect, asOf, issuedAt)) return { facts, effect }
  if (effectsOfIssuers.size === 0 || facts.issuer === undefined) return undefined
  const ofOne = effectsOfIssuers.get(ofIssuer(key, facts.issuer))
  return ofOne && ends(kind, ofOne, asOf, issuedAt) ? { facts, effect: ofOne } : undefined
}

/** Whether the rules of one key end what was begun. @param issuedAt milliseconds since the epoch */
function ends({ timed }: RuleKind, effect: RuleEffect, asOf: number | undefined, issuedAt: number): boolean {
  if (!timed) return true
  return asOf === undefined ? issuedAt <= effect.issuedBefore + SPREAD : asOf < effect.sequence
}

const endOf = ({ expiresAt }: Change): number => expiresAt ?? Number.POSITIVE_INFINITY

/** Rules with one of these end nothing that lives longer than an access token. */
const OF_TOKENS = ['jti', 'family', 'scope', 'role', 'fund'] as const

/**
 * How long a rule must be kept, in milliseconds. Nothing else comes from a token. The end of a family is passed to
 * `revoke` as `until`.
 */
const lifeOf = (tokens: RevokedTokens, { tokens: ofTokens, all }: LongestLife): number =>
  OF_TOKENS.some((member) => member in tokens) ? ofTokens : all
