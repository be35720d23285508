/** What the token endpoint would grant a client and a user, without issuing it (C14.1). */
import type { ClaimedCaller, ClaimedCallers, ClaimedGrant } from '../contracts/claimed-callers.ts'
import type { KeyStanding } from '../contracts/keys.ts'
import type { Client, User } from '../contracts/people.ts'
import type { Principal } from '../contracts/principal.ts'
import { epochSeconds } from '../kernel/clock.ts'
import { Fault, type FaultCode } from '../kernel/faults.ts'
import { isTargetValue } from '../config/scopes/scope-token.ts'
import { orUnavailable } from './dependencies.ts'
import type { StepDependencies } from './endpoint.ts'
import { firstGrants } from './grants/grants.ts'
import { type GrantedScope, limitToClient, limitToUser, parseScope } from './scopes.ts'
import { lifetimeOf } from './tokens/signed-tokens.ts'

type Needs = Pick<StepDependencies, 'people' | 'places' | 'catalogue' | 'clock' | 'config' | 'rules' | 'urls'>

/** No key has signed it, so nothing can withdraw the key. */
const NO_KEY: KeyStanding = { isTrusted: () => true }

const refuse = (code: FaultCode, detail: string): Fault => new Fault(code, { detail })

export const claimedCallers = (dependencies: Needs): ClaimedCallers => ({
  async grant(caller): Promise<ClaimedGrant> {
    const { client, user, scope, dropped } = await resolveCaller(caller, dependencies)
    return { principal: principalOf(client, user, scope, dependencies), dropped }
  },
})

/** Whom a token would be for, and its scope. */
export interface ResolvedCaller {
  readonly client: Client
  readonly user: User
  readonly scope: GrantedScope
  /** Values that were asked for and are not granted. */
  readonly dropped: readonly string[]
}

/**
 * All checks of the token endpoint but those of secrets (C6.1.0).
 * @param withheld a value that is not granted, whoever may have it
 * @throws Fault as `ClaimedCallers.grant` rejects with
 */
export async function resolveCaller(
  caller: ClaimedCaller,
  dependencies: Needs,
  withheld?: string,
): Promise<ResolvedCaller> {
  const { catalogue, places } = dependencies
  const client = await findClient(caller, dependencies)
  const user = await findClaimedUser(caller, dependencies)
  requireGrant(client, user, dependencies)
  const requested = parseScope(scopeOf(caller, client), catalogue)
  const values = requested.values.filter((value) => value !== withheld)
  const limited = await limitToClient({ ...requested, values }, client, catalogue, places)
  const scope = limitToUser(limited, user, catalogue)
  const kept = new Set(scope.values)
  return { client, user, scope, dropped: requested.values.filter((value) => !kept.has(value)) }
}

async function findClient({ client: id }: ClaimedCaller, { people }: Needs): Promise<Client> {
  const client = await orUnavailable(people.findClient(id))
  if (client !== undefined) return client
  const exists = (await orUnavailable(people.findClientName(id))) !== undefined
  throw refuse('invalid_client', exists ? 'the client is not enabled' : 'there is no such client')
}

/** @throws Fault `invalid_grant`, `identity_unavailable` */
export async function findClaimedUser(
  { user: name }: Pick<ClaimedCaller, 'user'>,
  { people }: Pick<Needs, 'people'>,
): Promise<User> {
  const user =
    (await orUnavailable(people.findUserByName(name))) ??
    (await orUnavailable(people.findUserBySubject(name)))
  if (user !== undefined) return user
  const exists = (await orUnavailable(people.findNamed(name))) !== undefined
  throw refuse('invalid_grant', exists ? 'the user may not log in any more' : 'there is no such user')
}

function requireGrant(client: Client, user: User, { clock }: Needs): void {
  if (firstGrants(client, user, clock).length > 0) return
  if (firstGrants(client, undefined, clock).length === 0)
    throw refuse('unauthorized_client', 'the client may use no grant that gives tokens')
  throw refuse('invalid_grant', 'the user is none of this client, which may use the password grant only')
}

/** The scope that is asked for. A target that is claimed takes the place of that of the scope. */
function scopeOf({ scope, target }: ClaimedCaller, { defaultScope, scopes }: Client): string {
  const text = scope ?? defaultScope ?? scopes.join(' ')
  if (target === undefined) return text
  const values = text.split(' ').filter((value) => !isTargetValue(value))
  return [...values, `target:${target.replace(/^target:/, '')}`].join(' ')
}

function principalOf(client: Client, user: User, scope: GrantedScope, needs: Needs): Principal {
  const issuedAt = epochSeconds(needs.clock)
  return Object.freeze({
    subject: user.subject,
    client: client.id,
    clientKey: client.id,
    issuer: needs.urls.issuer,
    issuerName: undefined,
    scope: scope.text,
    scopes: new Set(scope.values),
    target: scope.target,
    tokenId: undefined,
    family: undefined,
    asOf: needs.rules.asOf,
    issuedAt,
    expiresAt: issuedAt + lifetimeOf(client, needs.config),
    key: NO_KEY,
  })
}
