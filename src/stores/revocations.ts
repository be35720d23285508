import type { Principal } from '../contracts/principal.ts'
import type { Recorder } from '../contracts/recorder.ts'
import type { Change } from '../contracts/store.ts'
import type { Issuance, IssueGuard, RevokedTokens, Revocations, Revoker } from '../contracts/tokens.ts'
import { epochSeconds, type Clock } from '../kernel/clock.ts'
import type { ChangeFeed } from './change-feed.ts'
import { factsOf, readRule, SORTS, writeRule, type Facts, type Rule } from './revocation-rule.ts'

export interface RevocationParts {
  readonly feed: Pick<ChangeFeed, 'subscribe' | 'append'>
  readonly clock: Clock
  readonly recorder: Pick<Recorder, 'note'>
  /** Milliseconds: the longest life of any access token, of any client. */
  readonly longestLife: number
}

/** What the rules of one key amount to. */
interface Reach {
  /** The latest of them. */
  readonly issuedBefore: number
  /** Likewise: by then, all that any of them revokes has expired. */
  readonly expiresAt: number
}

interface Table {
  readonly keyOf: (facts: Facts) => string | undefined
  readonly reaches: Map<string, Reach>
}

export const REVOCATION_TOPIC = 'revocation'

/**
 * How long after a rule was made another process may still issue by what was true before it: the second within which
 * rules reach everyone. What is issued in it is revoked too, wherever it was issued.
 */
const SPREAD = 1000
/** Clocks of several machines, and the moments between decision and signature. */
const SKEW = 60_000

/**
 * The revocation rules, in memory.
 *
 * `iat` counts whole seconds (C6.1.8), a rule has milliseconds. So that nothing issued before a rule ever lives, a
 * rule reaches all tokens with an `iat` up to the second it was made in, and one second on (SPREAD). So that
 * nothing issued after it dies with them, whoever issues asks `issueTime`, which dates a token of that subject or
 * client past the reach of the rule: at most two seconds ahead, which C4.4's check of `iat` allows for.
 */
export class RevocationRules implements Revocations, Revoker, IssueGuard {
  readonly #parts: RevocationParts
  readonly #tables: readonly Table[] = SORTS.map(({ keyOf }) => ({ keyOf, reaches: new Map() }))
  /** How many rules there are: mostly none, and then a call pays for one comparison. */
  #count = 0

  constructor(parts: RevocationParts) {
    this.#parts = parts
    parts.feed.subscribe(REVOCATION_TOPIC, {
      apply: (change) => this.#apply(change),
      expire: (change) => this.#expire(change),
    })
  }

  isRevoked(principal: Principal): boolean {
    if (this.#count === 0) return false
    return principal.issuedAt * 1000 <= this.#latest(factsOf(principal)) + SPREAD
  }

  async revoke(tokens: RevokedTokens, issuedBefore = this.#parts.clock.now()): Promise<void> {
    const { feed, clock, longestLife } = this.#parts
    const keptUntil = Math.max(issuedBefore, clock.now()) + SPREAD + longestLife + SKEW
    await feed.append(REVOCATION_TOPIC, writeRule(tokens, issuedBefore), keptUntil)
  }

  issueTime(issuance: Issuance, begunAt: number): number | undefined {
    const now = epochSeconds(this.#parts.clock)
    if (this.#count === 0) return now
    const latest = this.#latest({ ...issuance, jti: undefined })
    if (latest >= begunAt) return undefined
    return Math.max(now, Math.floor((latest + SPREAD) / 1000) + 1)
  }

  /** The latest `issuedBefore` of all rules that apply; before all time if none does. */
  #latest(facts: Facts): number {
    let latest = Number.NEGATIVE_INFINITY
    for (const { keyOf, reaches } of this.#tables) {
      if (reaches.size === 0) continue
      const key = keyOf(facts)
      const reach = key === undefined ? undefined : reaches.get(key)
      if (reach !== undefined && reach.issuedBefore > latest) latest = reach.issuedBefore
    }
    return latest
  }

  #apply(change: Change): void {
    const rule = readRule(change.value)
    if (rule === undefined)
      this.#parts.recorder.note('error', 'revocation.unknown_rule', { sequence: change.sequence })
    else this.#change(rule, (before) => extend(before, rule.issuedBefore, endOf(change)))
  }

  #expire(change: Change): void {
    const rule = readRule(change.value)
    if (rule) this.#change(rule, (before) => (before.expiresAt > endOf(change) ? before : undefined))
  }

  #change({ sort, key }: Rule, next: (before: Reach) => Reach | undefined): void {
    const reaches = this.#tables[SORTS.indexOf(sort)]?.reaches
    const reach = next(reaches?.get(key) ?? NOTHING)
    if (reach) reaches?.set(key, reach)
    else reaches?.delete(key)
    this.#count = this.#tables.reduce((sum, table) => sum + table.reaches.size, 0)
  }
}

const NOTHING: Reach = { issuedBefore: Number.NEGATIVE_INFINITY, expiresAt: Number.NEGATIVE_INFINITY }

const endOf = ({ expiresAt }: Change): number => expiresAt ?? Number.POSITIVE_INFINITY

const extend = (before: Reach, issuedBefore: number, expiresAt: number): Reach => ({
  issuedBefore: Math.max(before.issuedBefore, issuedBefore),
  expiresAt: Math.max(before.expiresAt, expiresAt),
})
