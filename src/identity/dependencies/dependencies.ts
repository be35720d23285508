import type { Catalogue } from '../../base/config/scopes/catalogue.ts'
import type { AuditTrail } from '../../base/contracts/records/audit.ts'
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import type { PublicKeys, SecretDeriver, Signer, TokenVerifier } from '../../base/contracts/people/keys.ts'
import type { AttemptLimiter } from '../../base/contracts/people/lockouts.ts'
import type { Client, PasswordVerifier, People, User } from '../../base/contracts/people/people.ts'
import type { Places } from '../../base/contracts/people/places.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { Store } from '../../base/contracts/records/store.ts'
import type { Switches } from '../../base/contracts/calls/switches.ts'
import type { IssuedTokens, TokenRevoker } from '../../base/contracts/records/tokens.ts'
import type { Editors } from '../directory/editors/editors.ts'
import type { Hasher } from '../directory/hashing/hasher.ts'
import { mayHold } from '../directory/records/holdings.ts'
import type { DirectoryMethods } from '../directory/records/people.ts'
import type { Cors } from '../../base/http/head/cors.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { OutboundClient } from '../keys/remote/outbound.ts'
import type { RevocationRules } from '../../state/stores/feed/revocations.ts'
import type { ClientSecurity } from './client-security.ts'
import type { LogoutNotices } from './logouts.ts'
import type { IdentityConfig } from './schema.ts'

export interface IdentityDeps {
  readonly people: People
  readonly places: Places
  readonly catalogue: Catalogue
  readonly signer: Signer
  readonly publicKeys: PublicKeys
  readonly tokenVerifier: TokenVerifier
  readonly deriver: SecretDeriver
  readonly store: Store
  readonly hasher: Pick<Hasher, 'verify'>
  /** Verifies users' passwords. By the hasher if absent: Postern has all their hashes then. */
  readonly passwords?: PasswordVerifier
  /** Given if it outlives this configuration or serves several processes. Else `openIdentity` makes one. */
  readonly attempts?: AttemptLimiter
  /** Where users of the store get another password. */
  readonly users: Editors['user']
  readonly issuedTokens: IssuedTokens
  readonly rules: Pick<RevocationRules, 'asOf' | 'hasEnded' | 'requireCurrent'>
  readonly tokenRevoker: TokenRevoker
  readonly logouts: LogoutNotices
  readonly security: ClientSecurity
  /** Calls addresses of clients. */
  readonly outbound: OutboundClient
  readonly switches: Switches
  readonly recorder: Recorder
  readonly audit: AuditTrail
  readonly clock: Clock
  readonly urls: {
    /** `{auth_url}`, the issuer: no trailing slash; it may have a path. */
    readonly issuer: string
    /** `{base_url}`, the audience of access tokens: no path. */
    readonly api: string
  }
  readonly config: IdentityConfig
  /** Whether the header must be spelled exactly `Authorization` (C4.14, C6.1.2). */
  readonly strictHeaderNames: boolean
  /** Whether `basic` is accepted like `Basic` (C6.1.3). */
  readonly anySchemeCase: boolean
  readonly changingScopes: ReadonlySet<string>
  /** The longest request target that the public listener takes, in characters. */
  readonly longestTarget: number
  readonly clientMethods: Pick<DirectoryMethods, 'current'>
  /** Undefined if pages of other origins may not call (C4.18). */
  readonly cors?: Cors | undefined
}

const holding = <T extends User | Client>(found: T | undefined): T | undefined =>
  found !== undefined && mayHold(found) ? found : undefined

/** Finds only who may hold tokens (C6.3.5). A promise rejects if the directory cannot be reached. */
export interface Holders extends People {
  /** Whom a user name means, also if that user may hold no tokens: for the log (C12), and to count failures. */
  findNamed(username: string): Promise<User | undefined>
  /** For operators: whom a subject means, also if that user may hold no tokens. */
  findPerson(subject: string): Promise<User | undefined>
  /** For lists: the name of a client, also if it may hold no tokens. */
  findClientName(id: string): Promise<string | undefined>
}

export const holdersOf = (people: People): Holders => ({
  findClient: async (id) => holding(await people.findClient(id)),
  findUserByName: async (username) => holding(await people.findUserByName(username)),
  findUserBySubject: async (subject) => holding(await people.findUserBySubject(subject)),
  findNamed: (username) => people.findUserByName(username),
  findPerson: (subject) => people.findUserBySubject(subject),
  findClientName: async (id) => (await people.findClient(id))?.name,
})

export const hashedPasswords = (hasher: Pick<Hasher, 'verify'>): PasswordVerifier => ({
  verify: (password, user, owner) => hasher.verify(password, user?.passwordHash, owner),
})

/** Waits for the directory (C6.1.4). @throws Fault `identity_unavailable` if it cannot be reached */
export async function orUnavailable<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (cause) {
    throw cause instanceof Fault ? cause : new Fault('identity_unavailable', { cause })
  }
}

/** Logs an event of a call with the call's request id (C2.6, C12). */
export function noteCall(
  { id }: Pick<Exchange, 'id'>,
  { recorder }: { readonly recorder: Pick<Recorder, 'note'> },
  level: 'info' | 'warn' | 'error',
  event: string,
  facts: Readonly<Record<string, unknown>>,
): void {
  recorder.note(level, event, { requestId: id, ...facts })
}
