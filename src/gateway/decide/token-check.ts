import { LRUCache } from 'lru-cache'
import type { Caller } from '../../base/contracts/people/keys.ts'
import type { ClientTally, Principal } from '../../base/contracts/people/principal.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { IssuedTokens, RevocationRule } from '../../base/contracts/records/tokens.ts'
import { type Clock, epochSeconds } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
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

export interface CallTokens {
  readonly isKnown: (token: string) => boolean
  find(token: string): Principal | undefined
  verify(token: string, caller?: Caller): Promise<Principal>
  verifyLocally(token: string): Promise<Principal>
  /** The principal that a token claims, unverified; undefined if it cannot be read. */
  claimed(token: string): Principal | undefined
  ruleFor(principal: Principal): RevocationRule | undefined
  isCurrent(principal: Principal): boolean
  refusal(principal: Principal, why: 'expired' | 'revoked'): Fault
}

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
export class TokenCheck implements IssuedTokens, CallTokens {
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
