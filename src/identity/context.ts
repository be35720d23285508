import type { Exchange } from '../contracts/exchange.ts'
import type { Client, Grant, User } from '../contracts/people.ts'
import type { Fault } from '../kernel/faults.ts'
import type { GrantedScope, RequestedScope } from './scopes.ts'

/**
 * What is known about a call, step by step. Each type holds what the step before could not know; `client` exists
 * from authentication on only, under this name only, so nothing can use a client that has merely been named.
 */
export interface Arrived {
  readonly exchange: Exchange
  readonly attempt: Attempt
  /** The latest rule that was known before anything was looked up (RuleGuard): it stands with whatever the call begins. */
  readonly asOf: number
}

/** For the record alone (C12), of a call that is refused half way too: steps write it, none reads it. */
export interface Attempt {
  grant: string
  client: string | undefined
  subject: string | undefined
  /** Of the target that was granted. */
  business?: string | undefined
  fund?: string | undefined
  /** A refusal that was told to the client by redirect: the answer is no failure of its own then. */
  redirectedFault?: Fault
}

/** Parameters, each at most once, none empty (C6.0). */
export interface Parsed extends Arrived {
  readonly params: ReadonlyMap<string, string>
}

export interface ClientAuthenticated extends Parsed {
  readonly client: Client
}

/** The grant is known, and this client may use it. */
export interface GrantChosen extends ClientAuthenticated {
  readonly grant: Grant
}

/** Within what the client may have (C5.5). */
export interface ScopeRequested extends GrantChosen {
  readonly requested: RequestedScope
}

export interface UserVerified extends ScopeRequested {
  readonly user: User
  /** When the user proved who they are, seconds since the epoch. */
  readonly authTime: number
}

/** What every grant comes to: all that is needed to issue tokens. */
export interface Granted extends GrantChosen {
  readonly user: User
  readonly authTime: number
  readonly scope: GrantedScope
  /** Whether an id_token is due: `openid` was granted, now or to the family (C6.1.7). */
  readonly openid: boolean
  readonly nonce: string | undefined
  readonly refresh: RefreshPlan
  /** The family of what is issued now, where its id was drawn earlier (with a code, C6.1.6). */
  readonly family?: string
  /** Done when the tokens are made, before they are answered. */
  readonly conclude?: () => Promise<void>
}

export type RefreshPlan =
  /** A new family, if `offline_access` was granted. */
  | { readonly kind: 'open' }
  /** The grant was a refresh token, and this is its successor. */
  | { readonly kind: 'rotated'; readonly family: string; readonly token: string }
