import { LRUCache } from 'lru-cache'
import type { Principal } from '../contracts/principal.ts'
import type { Recorder } from '../contracts/recorder.ts'
import type { IssuedTokens, Revocations } from '../contracts/tokens.ts'
import { epochSeconds, type Clock } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'

/** Whose tokens are believed, and what they say. */
export interface TokenAuthority {
  /** Rejects with Fault `invalid_token`, or `token_judge_unavailable` where it can't be told (C4.15). */
  verify(token: string): Promise<Principal>
  /** Seconds that a token of this issuer is good for after its expiry (C4.16). */
  leewayOf(issuer: string): number
}

export interface TokenCheckParts {
  readonly authority: TokenAuthority
  readonly revocations: Revocations
  readonly recorder: Recorder
  readonly clock: Clock
  /** Bytes. */
  readonly cacheSize: number
}

// What a cached principal weighs beside its token's characters: strings, set, target, the cache's own entry.
const ENTRY_OVERHEAD = 1024

/**
 * C4.4 with the cache of C4.16: keyed by the whole token, bounded in bytes; what may change between two calls with
 * the same token (its key's standing, expiry, revocation) is looked at on every call, hit or miss.
 */
export class TokenCheck implements IssuedTokens {
  readonly #parts: TokenCheckParts
  readonly #cache: LRUCache<string, Principal>

  constructor(parts: TokenCheckParts) {
    this.#parts = parts
    this.#cache = new LRUCache({
      maxSize: parts.cacheSize,
      sizeCalculation: (principal, token) => token.length + principal.scope.length * 2 + ENTRY_OVERHEAD,
    })
  }

  /** Synchronous for a token that was seen before. */
  check(token: string): Principal | Promise<Principal> {
    const known = this.#cache.get(token)
    // What a key has verified is worth nothing without it: then the token is judged anew, by the keys of now (T3.10).
    const hit = known?.key.isBelieved() === true
    this.#parts.recorder.tokenCache(hit ? 'hit' : 'miss')
    return hit ? this.#current(known, token) : this.#verify(token)
  }

  /** Whether this very token was verified, or issued here: what it is worth now is for `check` to say. */
  readonly isKnown = (token: string): boolean => this.#cache.has(token)

  prime(token: string, principal: Principal): void {
    this.#cache.set(token, principal)
  }

  async #verify(token: string): Promise<Principal> {
    this.#cache.delete(token)
    const principal = await this.#parts.authority.verify(token)
    if (!principal.key.isBelieved()) throw new Fault('invalid_token', { detail: 'its key was withdrawn' })
    const current = this.#current(principal, token)
    this.#cache.set(token, principal)
    return current
  }

  /** Whether a principal that was let in would be still: for connections that outlive the call that opened them. */
  isCurrent(principal: Principal): boolean {
    const { revocations } = this.#parts
    return principal.key.isBelieved() && !this.#isExpired(principal) && !revocations.isRevoked(principal)
  }

  #current(principal: Principal, token: string): Principal {
    if (this.#isExpired(principal)) {
      this.#cache.delete(token)
      throw new Fault('invalid_token', { detail: 'expired' })
    }
    if (this.#parts.revocations.isRevoked(principal)) throw new Fault('invalid_token', { detail: 'revoked' })
    return principal
  }

  #isExpired({ expiresAt, issuer }: Principal): boolean {
    const { clock, authority } = this.#parts
    return expiresAt + authority.leewayOf(issuer) <= epochSeconds(clock)
  }
}
