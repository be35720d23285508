import { LRUCache } from 'lru-cache'
import { targetText } from '../../base/config/scopes/scope-token.ts'
import type { CheckDescription, CheckResult } from '../../base/contracts/calls/explanation.ts'
import type { ClaimedGrant } from '../../base/contracts/people/claimed-callers.ts'
import type { Caller } from '../../base/contracts/people/keys.ts'
import type { ClientTally, Principal } from '../../base/contracts/people/principal.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { IssuedTokens, RevocationRule } from '../../base/contracts/records/tokens.ts'
import { type Clock, epochSeconds } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { parseCompactToken } from '../../identity/keys/verify/token-verifier.ts'
import type { RevocationRules } from '../../state/stores/feed/revocations.ts'

/** Verifies tokens of the issuers that this service trusts. */
export interface TokenAuthority {
  /**
   * @throws Fault `invalid_token`; `token_judge_unavailable` if its key cannot be found, or too many signatures wait
   *   (C4.15); `client_gone`
   */
  verify(token: string, caller?: Caller): Promise<Principal>
  /** The same by what is known in this process: nothing is read, asked or remembered (C14.1). See `TokenVerifier.verifyLocally`. */
  verifyLocally(token: string): Promise<Principal>
  /** The claims of a token, unverified: for people only. @throws Fault `invalid_token` if they cannot be read */
  read(token: string): Principal
  /** Seconds for which a token stays valid after its expiry, by issuer; 0 for those that are not listed (C4.16). */
  readonly leeways: ReadonlyMap<string, number>
  /** The issuer that is this service: the bearers of its tokens learn why they are refused (C4.17a). */
  readonly ownIssuer?: string
}

/** The methods of TokenCheck that decisions call: all but those for tokens that are issued here. */
export type CallTokens = Omit<TokenCheck, keyof IssuedTokens>

interface TokenCheckParts {
  readonly authority: TokenAuthority
  readonly rules: Pick<RevocationRules, 'isRevoked' | 'ruleFor'>
  readonly recorder: Recorder
  readonly clock: Clock
  /** The size of the cache, in bytes. */
  readonly cacheSize: number
  /** The tally of a client of the directory. Absent where tokens are of foreign issuers, whose clients are not in it. */
  readonly tallyOf?: ((client: string) => ClientTally) | undefined
}

/** Bytes of a cached principal besides the characters of its texts: strings, set, target, the cache's own entry. */
const ENTRY_OVERHEAD = 512

/** Bytes for each character of a token: its own, and its payload's text, which the principal's texts are parts of. */
const PER_CHARACTER = 2.5

/**
 * The size of an entry, in bytes. The texts count by themselves: those of an opaque token may be much longer than it is
 * (C11.2).
 */
const sizeOf = ({ scope, subject, client, tokenId = '' }: Principal, token: string): number =>
  Math.ceil(token.length * PER_CHARACTER) +
  (scope.length + subject.length + client.length + tokenId.length) * 2 +
  ENTRY_OVERHEAD

/**
 * Checks tokens (C4.4) with the cache of C4.16. The key is the whole token, the size is bounded in bytes. What may change
 * between two calls with the same token is checked on every call: whether its key is trusted, its expiry, its revocation.
 */
export class TokenCheck implements IssuedTokens {
  readonly #parts: TokenCheckParts
  readonly #cache: LRUCache<string, Principal>

  constructor(parts: TokenCheckParts) {
    this.#parts = parts
    this.#cache = new LRUCache({
      maxSize: parts.cacheSize,
      sizeCalculation: sizeOf,
    })
  }

  /** Waits only for a token that is not known. @throws what `find` and `verify` throw */
  check(token: string): Principal | Promise<Principal> {
    return this.find(token) ?? this.verify(token)
  }

  /**
   * The principal of a known token; undefined for one that has to be verified first. A token whose key is no longer
   * trusted is verified again, with the keys of now (T3.10).
   * @throws Fault `expired_token`, `revoked_token`; of a foreign issuer's token `invalid_token`
   */
  find(token: string): Principal | undefined {
    const known = this.#cache.get(token)
    if (known?.key.isTrusted() !== true) return undefined
    this.#parts.recorder.tokenCache('hit')
    return this.#requireCurrent(known, token)
  }

  /** Whether this token was verified, or issued here. Whether it is still valid is not looked at. */
  readonly isKnown = (token: string): boolean => this.#cache.has(token)

  prime(token: string, principal: Principal): void {
    this.#remember(token, principal)
  }

  /**
   * Verifies a token, and remembers it.
   * @throws Fault `invalid_token`, of one of ours also `expired_token`, `revoked_token`, `misdirected_token`;
   *   `token_judge_unavailable` if it cannot be judged (C4.15), `client_gone` if the caller leaves before that
   */
  async verify(token: string, caller?: Caller): Promise<Principal> {
    this.#parts.recorder.tokenCache('miss')
    this.#cache.delete(token)
    const principal = await this.#parts.authority.verify(token, caller)
    if (!principal.key.isTrusted()) throw new Fault('invalid_token', { detail: 'its key was withdrawn' })
    return this.#remember(token, this.#requireCurrent(principal, token))
  }

  /**
   * As `verify`, or as `find` for a token that is known. Nothing is asked, counted or remembered (C14.1).
   * Rejects with their faults; with `token_judge_unavailable` and the detail NEEDS_ISSUER if only its issuer knows.
   */
  async verifyLocally(token: string): Promise<Principal> {
    return this.#requireCurrent(await this.#parts.authority.verifyLocally(token))
  }

  /** The principal that a token claims, unverified; undefined if it cannot be read. */
  claimed(token: string): Principal | undefined {
    try {
      return this.#parts.authority.read(token)
    } catch {
      return undefined
    }
  }

  ruleFor(principal: Principal): RevocationRule | undefined {
    return this.#parts.rules.ruleFor(principal)
  }

  /** Whether a call of this principal would still pass C4.4: for tunnels, which outlive the call that opened them. */
  isCurrent(principal: Principal): boolean {
    const { rules } = this.#parts
    return principal.key.isTrusted() && !this.#isExpired(principal) && !rules.isRevoked(principal)
  }

  /** Why a verified token is no longer good. Only the bearer of one of ours learns it (C4.17a). */
  refusal({ issuer }: Principal, why: 'expired' | 'revoked'): Fault {
    const ours = issuer === this.#parts.authority.ownIssuer
    return new Fault(ours ? `${why}_token` : 'invalid_token', { detail: why })
  }

  /** @param token forgotten if it has expired; undefined leaves the cache as it is */
  #requireCurrent(principal: Principal, token?: string): Principal {
    if (this.#isExpired(principal)) {
      if (token !== undefined) this.#cache.delete(token)
      throw this.refusal(principal, 'expired')
    }
    if (this.#parts.rules.isRevoked(principal)) throw this.refusal(principal, 'revoked')
    return principal
  }

  /** Its client has proved who it is, so that its calls are counted by its name from here on. */
  #remember(token: string, verified: Principal): Principal {
    const tally = this.#parts.tallyOf?.(verified.client)
    const principal = tally === undefined ? verified : Object.freeze({ ...verified, tally })
    this.#cache.set(token, principal)
    return principal
  }

  #isExpired({ expiresAt, issuer }: Principal): boolean {
    const { clock, authority } = this.#parts
    return expiresAt + (authority.leeways.get(issuer) ?? 0) <= epochSeconds(clock)
  }
}

/** The caller of an explained call: the token, the result of verifying it, and whom it names. */
export interface ShownCaller {
  /** Undefined if the call shows nobody. */
  readonly verified: Principal | Fault | undefined
  /** It must not become part of a fact or a text. Undefined for a caller that is claimed in place of a token. */
  readonly token: string | undefined
  /** The caller. If the token is refused, the caller that it claims. */
  readonly principal: Principal | undefined
  /** Set if the caller was claimed, and not shown by a token. */
  readonly grant: ClaimedGrant | undefined
}

/** `b/ACME`, `f/ACME/SUPER1`. */
export const targetTextOf = ({ target }: Principal): string | undefined => target && targetText(target)

const instantOfSeconds = (seconds: unknown): string | undefined =>
  typeof seconds === 'number' && Math.abs(seconds) < 8e12 ? new Date(seconds * 1000).toISOString() : undefined

type TokenParts = Pick<ReturnType<typeof parseCompactToken>, 'header' | 'payload'>

/** The header and payload of a token, unverified; undefined if it is no JWT. */
function partsOf(token: string | undefined): TokenParts | undefined {
  try {
    return token === undefined ? undefined : parseCompactToken(token)
  } catch {
    return undefined
  }
}

/** Describes the result of C4.4. No part of the token itself is among the facts. @param rule that revokes the caller's tokens */
export function explainToken(
  shown: ShownCaller,
  rule: RevocationRule | undefined,
  result: CheckResult,
): CheckDescription {
  const { token, grant, principal } = shown
  const parts = partsOf(token)
  const { alg: algorithm, typ: type, kid: key } = parts?.header ?? {}
  const { iss: issuer, aud: audience, jti: id, nbf } = parts?.payload ?? {}
  const refused = token === undefined ? undefined : result.fault
  const problem = refused && (reasonOf(refused)?.problem ?? 'other')
  return {
    facts: {
      algorithm,
      type,
      key,
      issuer,
      audience,
      id,
      notBefore: instantOfSeconds(nbf),
      client: principal?.client,
      subject: principal?.isMachine ? undefined : principal?.subject,
      scope: principal?.scope,
      target: principal && targetTextOf(principal),
      issuedAt: instantOfSeconds(principal?.issuedAt),
      expiresAt: instantOfSeconds(principal?.expiresAt),
      verified: result.verdict === 'passed',
      problem,
      revokedBy:
        problem === 'revoked' && rule ? { ...rule, madeAt: new Date(rule.madeAt).toISOString() } : undefined,
      dropped: grant?.dropped,
    },
    words: wordsOf(shown, result, (fault) => refusedWords(fault, parts, rule)),
  }
}

const CREDENTIALS: Readonly<Record<string, string>> = {
  no_credentials: 'The call has no Authorization header.',
  other_scheme: 'The Authorization header is of another scheme than Bearer; the case of its letters counts.',
  invalid_token: 'What stands behind Bearer is not one token.',
}

function wordsOf(
  { verified, token, grant, principal }: ShownCaller,
  { verdict, fault }: CheckResult,
  refused: (fault: Fault) => string,
): string {
  if (verdict === 'unknown') return 'Its issuer would have to be asked, and an explanation asks nobody.'
  if (fault === undefined) return principal === undefined ? '' : acceptedWords(principal, grant)
  if (token !== undefined) return refused(fault)
  if (verified === undefined) return CREDENTIALS[fault.code] ?? fault.publicText
  const { detail, say } = fault.facts
  const why = detail ?? say ?? fault.publicText
  return `No such token can be had (${fault.code}): ${why.endsWith('.') ? why : `${why}.`}`
}

function acceptedWords(principal: Principal, grant: ClaimedGrant | undefined): string {
  const { client, isMachine, subject, scope, expiresAt } = principal
  const who = isMachine ? `machine ${client}` : `client ${client} for subject ${subject}`
  const target = targetTextOf(principal)
  const where = target === undefined ? 'without a target' : `for ${target}`
  if (grant === undefined)
    return `The token of ${who}, ${where}, is valid until ${instantOfSeconds(expiresAt)}.`
  const dropped = grant.dropped.length === 0 ? '' : ` Not granted: ${grant.dropped.join(' ')}.`
  return `As claimed: ${who}, ${where}, with the scope ${scope}.${dropped}`
}

interface Reason {
  /** The detail of the fault: all of it, or its beginning. */
  readonly detail: string
  readonly problem: string
  /** `{exp}` stands for the claim; `{rule}` for the rule that revokes the token. */
  readonly words: string
}

const reason = (detail: string, problem: string, words: string): Reason => ({ detail, problem, words })

/** Why tokens are refused. The first row that fits counts. */
const REASONS: readonly Reason[] = [
  reason('revoked', 'revoked', 'It was revoked{rule}.'),
  reason('expired', 'expired', 'It expired{exp}.'),
  reason('claim: exp has passed', 'expired', 'It expired{exp}.'),
  reason('claim: aud', 'wrong audience', 'It is for another audience: {aud}.'),
  reason('claim: iss', 'wrong issuer', 'It comes from an issuer that is not trusted here: {iss}.'),
  reason('header: kid names no key', 'unknown key', 'Its issuer has no key with the id {kid}.'),
  reason('its key was withdrawn', 'unknown key', 'Its key was withdrawn.'),
  reason(
    'signature',
    'wrong signature',
    'Its signature is not that of the key that it names: it was changed, or made by somebody else.',
  ),
  reason(
    'not three parts',
    'not a JWT',
    'It is not a signed JWT: that has three parts, with two dots between them.',
  ),
  reason('header: not', 'not a JWT', 'It is not a JWT: its first part cannot be read.'),
  reason('payload: not', 'not a JWT', 'It is not a JWT: its second part cannot be read.'),
  reason(
    'header: typ',
    'not an access token',
    'It is of another kind: its type is {typ}. An id_token is no access token.',
  ),
  reason('claim: nbf is in the future', 'not valid yet', 'It is valid only{nbf}.'),
  reason(
    'claim: iat is in the future',
    'not valid yet',
    'It says that it was issued{iat}, which is in the future.',
  ),
  reason('claim: cnf', 'bound to a key', 'It is bound to a key that no proof is taken of here.'),
  reason('introspection: not active', 'not active', 'Its issuer says that it is not active.'),
]

const reasonOf = ({ facts: { detail = '' } }: Fault): Reason | undefined =>
  REASONS.find((each) => detail.startsWith(each.detail))

function refusedWords(fault: Fault, parts: TokenParts | undefined, rule: RevocationRule | undefined): string {
  const found = reasonOf(fault)
  if (found === undefined) return `It is refused: ${fault.facts.detail ?? fault.publicText}.`
  const { exp, nbf, iat, aud, iss } = parts?.payload ?? {}
  const { kid, typ } = parts?.header ?? {}
  const texts: Readonly<Record<string, string>> = {
    rule: ruleText(rule),
    exp: timeText(exp),
    nbf: timeText(nbf),
    iat: timeText(iat),
    aud: claimText(aud),
    iss: claimText(iss),
    kid: claimText(kid),
    typ: claimText(typ),
  }
  return found.words.replace(/\{(\w+)\}/g, (_, name: string) => texts[name] ?? '')
}

function timeText(seconds: unknown): string {
  const time = instantOfSeconds(seconds)
  return time === undefined ? '' : ` at ${time}`
}

/** Short, and on one line. */
function claimText(claim: unknown): string {
  if (claim === undefined) return 'none'
  const written = JSON.stringify(claim)
  return written.length <= 200 ? written : `${written.slice(0, 200)}…`
}

function ruleText(rule: RevocationRule | undefined): string {
  if (rule === undefined) return ''
  const { tokens, madeAt, order } = rule
  const what = Object.entries(tokens).map(([name, value]) => `${name} ${value}`)
  const name = order?.by ?? order?.operator
  const by = name === undefined ? '' : ` by ${name}`
  const via = order?.via === undefined ? '' : ` (${order.via})`
  const why = order?.reason === undefined ? '' : `: ${order.reason}`
  return ` with everything of ${what.join(', ')}, at ${new Date(madeAt).toISOString()}${by}${via}${why}`
}
