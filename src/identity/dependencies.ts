import type { Exchange } from '../contracts/exchange.ts'
import type { PublicKeys, SecretDeriver, Signer, TokenVerifier } from '../contracts/keys.ts'
import type { AttemptLimiter } from '../contracts/lockouts.ts'
import type { Client, PasswordHasher, People, User } from '../contracts/people.ts'
import type { Places } from '../contracts/places.ts'
import type { Recorder } from '../contracts/recorder.ts'
import type { Store } from '../contracts/store.ts'
import type { Switches } from '../contracts/switches.ts'
import type { TokenRevoker, IssuedTokens, RuleGuard } from '../contracts/tokens.ts'
import type { Cors } from '../http/cors.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Catalogue } from '../scopes/catalogue.ts'
import type { IdentityConfig } from './config.ts'
import { mayHold } from '../directory/holdings.ts'
import { Fault } from '../kernel/faults.ts'

export interface IdentityUrls {
  /** `{auth_url}`, the issuer: no trailing slash; it may have a path. */
  readonly issuer: string
  /** `{base_url}`, the audience of access tokens: no path. */
  readonly api: string
}

/** All that identity asks of other rooms. */
export interface IdentityDeps {
  readonly people: People
  readonly places: Places
  readonly catalogue: Catalogue
  readonly signer: Signer
  readonly publicKeys: PublicKeys
  /** Of our own tokens: id_token hints. */
  readonly tokenVerifier: TokenVerifier
  readonly deriver: SecretDeriver
  readonly store: Store
  readonly hasher: PasswordHasher
  /** Lets attempts at passwords in, where that outlives this configuration or serves several processes; else the dependencies's own. */
  readonly attempts?: AttemptLimiter
  readonly issuedTokens: IssuedTokens
  readonly rules: RuleGuard
  readonly tokenRevoker: TokenRevoker
  readonly switches: Switches
  readonly recorder: Recorder
  readonly clock: Clock
  readonly urls: IdentityUrls
  readonly config: IdentityConfig
  /** C4.14, C6.1.2: the header must be spelled exactly `Authorization`. */
  readonly strictHeaderNames: boolean
  /** Absent where pages of other origins may not call (C4.18). */
  readonly cors?: Cors | undefined
}

const holding = <T extends User | Client>(found: T | undefined): T | undefined =>
  found !== undefined && mayHold(found) ? found : undefined

/**
 * The people of the directory as identity sees them, at every door: whoever may not hold tokens is not found (C6.3.5). Rejects
 * where the directory cannot be reached.
 */
export interface Holders extends People {
  /** For the record (C12): whom a user name means, also of one who may hold nothing. */
  findSubject(username: string): Promise<string | undefined>
  /** For lists: the name of a client, also of one that may hold nothing. */
  findClientName(id: string): Promise<string | undefined>
}

export const holdersOf = (people: People): Holders => ({
  findClient: async (id) => holding(await people.findClient(id)),
  findUserByName: async (username) => holding(await people.findUserByName(username)),
  findUserBySubject: async (subject) => holding(await people.findUserBySubject(subject)),
  findSubject: async (username) => (await people.findUserByName(username))?.subject,
  findClientName: async (id) => (await people.findClient(id))?.name,
})

/** Waits for the directory; where it can't be reached, the answer is 503 (C6.1.4). */
export async function orUnavailable<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (cause) {
    throw cause instanceof Fault ? cause : new Fault('identity_unavailable', { cause })
  }
}

/** Notes what a call did or met, under the call's request id: nobody could tell otherwise which call it was (C2.6, C12). */
export function noteCall(
  { id }: Pick<Exchange, 'id'>,
  { recorder }: { readonly recorder: Pick<Recorder, 'note'> },
  level: 'info' | 'warn' | 'error',
  event: string,
  facts: Readonly<Record<string, unknown>>,
): void {
  recorder.note(level, event, { requestId: id, ...facts })
}
