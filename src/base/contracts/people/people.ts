import type { Address } from './places.ts'

type ClientKind = 'customer' | 'partner' | 'public' | 'machine'
export type Grant = 'password' | 'authorization_code' | 'refresh_token' | 'client_credentials'
export type SigningAlgorithm = 'ES256' | 'RS256'

/** Demands of a security profile on one client, whatever the configuration says for all. */
export interface ProfileLimits {
  readonly accessTokenAlgorithm: SigningAlgorithm
  /** The longest life of its codes, in milliseconds. */
  readonly codeLifetime: number
  /** The longest `nonce` of its requests, in characters. */
  readonly nonceLength: number
  /** Its refresh tokens are not rotated. */
  readonly keepsRefreshTokens: true
}

export interface Client {
  readonly id: string
  readonly kind: ClientKind
  /** Shown to people on the consent page and in lists. */
  readonly name: string
  /** Encoded hashes: `sha256:…` of generated secrets, otherwise `$argon2id$…`. Two during a rotation, none for public clients. */
  readonly secretHashes: readonly string[]
  readonly grants: readonly Grant[]
  /** Codes of the businesses that its tokens may have as target. */
  readonly businesses: readonly string[]
  /** Scope values that it may be granted, before implication (C5.5). */
  readonly scopes: readonly string[]
  /** Used if the request has no `scope` (C5.5). */
  readonly defaultScope?: string
  /** When the customer agreement was signed (ISO date); the password grant needs it (C6.1.5). */
  readonly agreement?: string
  readonly redirectUris: readonly string[]
  readonly postLogoutRedirectUris: readonly string[]
  /** Pages of its own, for people (RFC 7591 §2, `policy_uri` and `tos_uri`). */
  readonly policyUri?: string
  readonly tosUri?: string
  readonly disabled: boolean
  /** How long its access tokens live, in seconds. */
  readonly accessTokenLifetime?: number
  readonly idTokenAlgorithm?: SigningAlgorithm
  /** How it may authenticate (C6.1.2): `none` alone for a public client, never for another one. */
  readonly authentication: readonly ClientAuthMethod[]
  readonly requirePkce: boolean
  /** False: neither PKCE nor a nonce is needed (C6.2.1). */
  readonly requireBinding: boolean
  /** Which words the answer's `scope` has: those of the token, or those that were asked for (C6.1.3). */
  readonly answerScope: 'granted' | 'asked'
  /** Instead of `identity.strictRfc6749`, for answers to this client (C6.1.3). */
  readonly strictRfc6749?: boolean
  /** Set if it is held to a security profile. */
  readonly limits?: ProfileLimits
  /** May introspect other clients' tokens (C6.3.3). */
  readonly resource: boolean
}

/** The rights of a user at one business. */
export interface Access {
  /** Shown to people, and sent as `service_profile.service_role`. */
  readonly role: string
  /** Scope values, before implication. */
  readonly scopes: readonly string[]
}

/** Claims about a person (C5.6, OIDC Core §5.1). */
export interface PersonClaims {
  readonly name?: string
  readonly given_name?: string
  readonly middle_name?: string
  readonly family_name?: string
  readonly gender?: string
  readonly email?: string
  readonly address?: Address
  readonly phone_number?: string
}

export interface User {
  /** `sub`: stable, never reused, not the username. */
  readonly subject: string
  readonly username: string
  /** `$argon2id$…`; undefined for a user whose password code of the operator's verifies. */
  readonly passwordHash: string | undefined
  /** Ids of the customer clients that this user belongs to (C6.1.5). */
  readonly customers: readonly string[]
  readonly disabled: boolean
  /** Set by an administrator, never by failures (C6.3.5). */
  readonly locked: boolean
  readonly access: ReadonlyMap<string, Access>
  readonly claims: PersonClaims
}

/** The facts about a person that the directory tells, wherever it has them. */
export type FoundPerson = Pick<User, 'username' | 'claims'>

/** The methods with a secret. */
export const SECRET_AUTH_METHODS = ['client_secret_basic', 'client_secret_post'] as const
/** How a client authenticates at the token endpoint (RFC 7591 §2): by a secret, `none`, or by a method that an extension adds. */
export type ClientAuthMethod = string

/** A promise rejects if the directory cannot be reached. */
export interface People {
  findClient(id: string): Promise<Client | undefined>
  findUserByName(username: string): Promise<User | undefined>
  findUserBySubject(subject: string): Promise<User | undefined>
}

/** On whose behalf a secret is checked. It decides the check's place in the queue. */
export interface HashOwner {
  /** All checks of one name together get half of the queue's seats at most. */
  readonly name: string
  /** True after many failures: its checks then wait in the queue of those that are expected to fail. */
  readonly doubted: boolean
}

/** Verifies users' passwords, wherever they are kept. */
export interface PasswordVerifier {
  /**
   * Whether it is the user's password. If `user` is undefined (no such user), it takes as long as for a wrong password,
   * and answers false. Rejects with Fault `identity_unavailable` or `people_unavailable`.
   */
  verify(password: string, user: User | undefined, owner: HashOwner): Promise<boolean>
}
