import type { Exchange } from '../contracts/exchange.ts'
import type { Client, Grant, User } from '../contracts/people.ts'
import type { NewRecord } from '../contracts/store.ts'
import type { Fault } from '../kernel/faults.ts'
import type { GrantedScope, RequestedScope } from './scopes.ts'

/*
 * What is known about a call after each step. Each type adds what one step has found out. `client` exists only after
 * authentication, so no step can use a client that is only named in the request.
 */

/** A call before its first step. */
export interface Arrived {
  readonly exchange: Exchange
  readonly attempt: Attempt
  /** `RuleGuard.asOf` before the first look-up. It is stored with everything that the call begins. */
  readonly asOf: number
}

/**
 * Facts for the log and the audit trail (C12), also of a call that is refused by a later step. Steps write them and do
 * not read them.
 */
export interface Attempt {
  grant: string
  /** Named, not proven, unless `proven` says so. So is `subject`. */
  client: string | undefined
  subject: string | undefined
  /** Who has proven who they are: the client by its secret, or the user by a session. */
  proven?: 'client' | 'user'
  /** The name of a client that failed to authenticate, or of a user, as somebody typed it. */
  typed?: string | undefined
  /** Business and fund of the granted target. */
  business?: string | undefined
  fund?: string | undefined
  /** The fault that was sent to the client by a redirect. The answer itself is then a success (303 or a form). */
  redirectedFault?: Fault
}

/** The parameters were read: each at most once, none empty (C6.0). */
export interface Parsed extends Arrived {
  readonly params: ReadonlyMap<string, string>
}

export interface ClientAuthenticated extends Parsed {
  readonly client: Client
}

/** The grant_type is supported, and this client may use it. */
export interface GrantChosen extends ClientAuthenticated {
  readonly grant: Grant
}

/** The requested scope was read and limited to what the client may have (C5.5). */
export interface ScopeRequested extends GrantChosen {
  readonly requested: RequestedScope
}

export interface UserVerified extends ScopeRequested {
  readonly user: User
  /** Time of the user's authentication, seconds since the epoch. */
  readonly authTime: number
}

/** The result of every grant: all that is needed to issue tokens. */
export interface Granted extends GrantChosen {
  readonly user: User
  readonly authTime: number
  readonly scope: GrantedScope
  /** Whether an id_token is issued: `openid` was granted now, or to the family (C6.1.7). */
  readonly openid: boolean
  readonly nonce: string | undefined
  readonly refresh: RefreshPlan
  /** Id of the family of the tokens, if it was drawn earlier (with a code, C6.1.6). */
  readonly family?: string
  /**
   * Uses up what was redeemed, and stores what begins with the tokens. Called when they are made and recorded, before they
   * are sent, so that a failure before that uses nothing up. Absent where nothing is used up.
   */
  readonly take?: (begun: readonly NewRecord[]) => Promise<void>
}

/** Which refresh token the answer gets. */
export type RefreshPlan =
  /** That of a new family, if `offline_access` was granted. */
  | { readonly kind: 'open' }
  /** The grant was a refresh token: its successor, which is good after `take`. */
  | { readonly kind: 'rotated'; readonly family: string; readonly token: string }
