import type { Answer, Exchange } from '../../base/contracts/calls/exchange.ts'
import type {
  Client,
  ClientAuthMethod,
  Grant,
  PasswordVerifier,
  User,
} from '../../base/contracts/people/people.ts'
import type { NewRecord } from '../../base/contracts/records/store.ts'
import type { Fault } from '../../base/kernel/faults.ts'
import type { Consents } from '../stored/consents.ts'
import type { OwnCookie } from '../stored/own-cookies.ts'
import type { Sessions } from '../stored/sessions.ts'
import type { AnswerHeaders, ProvenKey } from '../dependencies/client-security.ts'
import type { Holders, IdentityDeps } from '../dependencies/dependencies.ts'
import type { ClientFailures } from '../guessing/failures.ts'
import type { FamiliarNetworks } from '../guessing/familiar-networks.ts'
import type { GuessingGuard } from '../guessing/guessing.ts'
import type { Theme } from '../pages/theme.ts'
import type { GrantedScope, RequestedScope } from '../dependencies/scopes.ts'
import type { Codes } from '../stored/codes.ts'
import type { Families } from '../stored/families.ts'
import type { ScopeText } from '../../base/config/scopes/scope-token.ts'

/*
 * What is known about a call after each step. Each type adds what one step has found out. `client` exists only after
 * authentication, so no step can use a client that is only named in the request.
 */

export interface Arrived {
  readonly exchange: Exchange
  readonly attempt: Attempt
  /** `RevocationRules.asOf` before the first look-up. It is stored with everything that the call begins. */
  readonly asOf: number
}

/** Facts for log and trail (C12), also of a refused call. Steps write them and do not read them. */
export interface Attempt {
  grant: string
  /** Named, not proven, unless `proven` says so. So is `subject`. */
  client: string | undefined
  subject: string | undefined
  /** Who has proven who they are: the client by its secret, or the user by a session. */
  proven?: 'client' | 'user'
  /** The name of a client that failed to authenticate, or of a user, as somebody typed it. */
  typed?: string | undefined
  business?: string | undefined
  fund?: string | undefined
  /** The fault that was sent to the client by a redirect. The answer itself is then a success (303 or a form). */
  redirectedFault?: Fault
  /** How the client wants its answers, once it has authenticated: a refusal must not tell who exists (C6.1.3). */
  asker?: Pick<Client, 'strictRfc6749'>
  /** Headers of every answer, refusals too: those of a fault count before them. */
  headers?: AnswerHeaders
}

/** The parameters were read: each at most once, none empty (C6.0). */
export interface Parsed extends Arrived {
  readonly params: ReadonlyMap<string, string>
}

export interface ClientAuthenticated extends Parsed {
  readonly client: Client
  /** How it has authenticated. */
  readonly method: ClientAuthMethod
  /** Uses up credentials that count once. False: they were used before. */
  readonly useUp?: () => Promise<boolean>
}

/** The proof of possession was checked and used up (C6.1.0). */
export interface ProofChecked extends ClientAuthenticated {
  /** Undefined if none was sent. */
  readonly proof: ProvenKey | undefined
}

export interface GrantChosen extends ProofChecked {
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

export interface Granted extends GrantChosen {
  /** Whom the tokens speak for. Absent: the client is a machine, and they speak for itself (C6.1.5a). */
  readonly user?: User
  /** Time of the user's authentication, seconds since the epoch. Absent together with `user`. */
  readonly authTime?: number
  readonly scope: GrantedScope
  /** Whether an id_token is issued: `openid` was granted now, or to the family (C6.1.7). */
  readonly openid: boolean
  readonly nonce: string | undefined
  /** The id of the session that it was granted in; absent without a session, or if the client is not told of its end. */
  readonly sid?: string | undefined
  readonly refresh: RefreshPlan
  /** The scope as the client has asked for it, now or when its login began (C6.1.3). Absent if nobody knows any more. */
  readonly words?: string
  /** Id of the family of the tokens, if it was drawn earlier (with a code, C6.1.6). */
  readonly family?: string
  /**
   * Uses up what was redeemed, and stores what begins with the tokens. Called when they are made and recorded, before they
   * are sent, so that a failure before that uses nothing up. Absent where nothing is used up.
   */
  readonly take?: (begun: readonly NewRecord[]) => Promise<void>
}

export type GrantedForUser = Granted & Required<Pick<Granted, 'user' | 'authTime'>>

export const isForUser = (granted: Granted): granted is GrantedForUser => granted.user !== undefined

/** Which refresh token the answer gets. */
type RefreshPlan =
  | { readonly kind: 'none' }
  /** The token of a new family, if `offline_access` was granted. */
  | { readonly kind: 'open' }
  /** The grant was a refresh token: its successor, which is good after `take`, or itself. */
  | { readonly kind: 'continued'; readonly family: string; readonly token: string }

export interface StepDependencies extends IdentityDeps {
  readonly people: Holders
  readonly passwords: PasswordVerifier
  readonly families: Families
  readonly codes: Codes
  readonly guessing: GuessingGuard
  readonly networks: FamiliarNetworks
  readonly clientFailures: ClientFailures
  readonly sessions: Sessions
  readonly consents: Consents
  readonly cookie: OwnCookie
  /** Has the code of a link by which somebody sets a password. */
  readonly linkCookie: OwnCookie
  readonly theme: Theme
  /** The discovery document, as JSON, with every method of authentication that an endpoint takes. */
  readonly metadata: string
  /** Headers of every answer: where the issuer is https, browsers come by https only. */
  readonly transport: Answer['headers']
}

/** One step of an endpoint: takes what is known so far, and returns it with what it has found out, or throws a Fault. */
export type Step<In, Out> = (context: In, dependencies: StepDependencies) => Out | Promise<Out>

/** Turns a fault into the answer of an endpoint: JSON, or a page that shows the request id (C2.6). */
export type RenderRefusal = (fault: Fault, dependencies: StepDependencies, about: Refused) => Answer

/** The call that is refused. */
interface Refused extends Pick<Attempt, 'asker'> {
  readonly id: string
}

export interface Endpoint {
  readonly name: string
  /** Its canonical path. `issuerPath` is the path of the issuer's URL: empty, or `/…` without a trailing slash. */
  readonly path: (issuerPath: string) => string
  readonly methods: readonly string[]
  /** Whether the maintenance switch of identity closes it. Discovery and keys are always served (C9.2). */
  readonly closes: boolean
  /** True if pages of the origins that may call the API may call this too (C4.18). */
  readonly crossOrigin?: true
  readonly steps: Step<Arrived, Answer>
  readonly refuse: RenderRefusal
  /** The member of the discovery document that has its URL; absent if it is not announced. */
  readonly announcedAs?: string
  /** Which clients authenticate there, for `…_auth_methods_supported` of the discovery document (RFC 8414 §2). */
  readonly authenticates?: 'all' | 'confidential'
}

/** Runs steps one after another. The types keep the order of C6.1.0: a step needs what those before it have found. */
export function flow<A, B>(ab: Step<A, B>): Step<A, B>
export function flow<A, B, C>(ab: Step<A, B>, bc: Step<B, C>): Step<A, C>
export function flow<A, B, C, D>(ab: Step<A, B>, bc: Step<B, C>, cd: Step<C, D>): Step<A, D>
export function flow<A, B, C, D, E>(
  ab: Step<A, B>,
  bc: Step<B, C>,
  cd: Step<C, D>,
  de: Step<D, E>,
): Step<A, E>
export function flow<A, B, C, D, E, F>(
  ab: Step<A, B>,
  bc: Step<B, C>,
  cd: Step<C, D>,
  de: Step<D, E>,
  ef: Step<E, F>,
): Step<A, F>
export function flow<A, B, C, D, E, F, G>(
  ab: Step<A, B>,
  bc: Step<B, C>,
  cd: Step<C, D>,
  de: Step<D, E>,
  ef: Step<E, F>,
  fg: Step<F, G>,
): Step<A, G>
export function flow<A, B, C, D, E, F, G, H>(
  ab: Step<A, B>,
  bc: Step<B, C>,
  cd: Step<C, D>,
  de: Step<D, E>,
  ef: Step<E, F>,
  fg: Step<F, G>,
  gh: Step<G, H>,
): Step<A, H>
export function flow(...steps: readonly Step<never, unknown>[]): Step<never, unknown> {
  return async (context, dependencies) => {
    let result: unknown = context
    for (const step of steps) result = await step(result as never, dependencies)
    return result
  }
}

export interface FoundToken {
  readonly kind: 'access_token' | 'refresh_token'
  /** What revokes it: the `jti` of an access token, the family of a refresh token. */
  readonly id: string
  readonly client: string
  /** The `sub`: of a user, or the client's own id of a machine. */
  readonly subject: string
  readonly isMachine: boolean
  readonly scope: ScopeText
  /** When it expires, in seconds since the epoch. */
  readonly expiresAt: number | undefined
  /** When it was issued, in seconds since the epoch; undefined for refresh tokens. */
  readonly issuedAt: number | undefined
  /** The thumbprint of the key that an access token is bound to (RFC 9449 §6.2). */
  readonly jkt?: string | undefined
  /** True for a used refresh token that must not be used again, although its family is valid. */
  readonly spent: boolean
}

/** The `sub` of its user; undefined where it speaks for a machine. */
export const subjectOf = ({ isMachine, subject }: FoundToken): string | undefined =>
  isMachine ? undefined : subject
