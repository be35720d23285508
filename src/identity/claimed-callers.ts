/** What the token endpoint would grant a client and a user (C14.1), and a token with it for an operator's test (C11.5.7). */
import { isTargetValue } from '../base/config/scopes/scope-token.ts'
import type {
  ClaimedCaller,
  ClaimedCallers,
  ClaimedGrant,
  TestToken,
  TestTokenAnswer,
  TestTokenRequest,
} from '../base/contracts/people/claimed-callers.ts'
import { NO_KEY } from '../base/contracts/people/keys.ts'
import type { Client, User } from '../base/contracts/people/people.ts'
import type { Principal } from '../base/contracts/people/principal.ts'
import { epochSeconds } from '../base/kernel/clock.ts'
import { Fault, type FaultCode, toFault } from '../base/kernel/faults.ts'
import { LONGEST_TEST_TOKEN } from '../base/kernel/lifetimes.ts'
import { orUnavailable } from './dependencies/dependencies.ts'
import type { StepDependencies } from './steps/endpoint.ts'
import { firstGrants, isMachine } from './grants/grants.ts'
import {
  type GrantedScope,
  limitToClient,
  limitToMachine,
  limitToUser,
  parseScope,
  grantedPlace,
} from './dependencies/scopes.ts'
import { issueAccessToken, lifetimeOf } from './tokens/signed-tokens.ts'

type GrantDependencies = Pick<
  StepDependencies,
  'people' | 'places' | 'catalogue' | 'clock' | 'config' | 'rules' | 'urls'
>

const refuse = (code: FaultCode, detail: string): Fault => new Fault(code, { detail })

export const claimedCallers = (dependencies: GrantDependencies): ClaimedCallers => ({
  async grant(caller): Promise<ClaimedGrant> {
    const { client, user, scope, dropped } = await resolveCaller(caller, dependencies)
    return { principal: principalOf(client, user, scope, dependencies), dropped }
  },
})

interface ResolvedCaller {
  readonly client: Client
  /** Undefined for a machine. */
  readonly user: User | undefined
  readonly scope: GrantedScope
  readonly dropped: readonly string[]
}

/**
 * All checks of the token endpoint but those of secrets (C6.1.0).
 * @param withheld a value that is not granted, even to clients and users who may have it
 * @throws Fault as `ClaimedCallers.grant` rejects with
 */
async function resolveCaller(
  caller: ClaimedCaller,
  dependencies: GrantDependencies,
  withheld?: string,
): Promise<ResolvedCaller> {
  const { catalogue, places } = dependencies
  const client = await findClient(caller, dependencies)
  const user = caller.user === undefined ? undefined : await findClaimedUser(caller.user, dependencies)
  requireGrant(client, user, dependencies)
  const requested = parseScope(scopeOf(caller, client), catalogue)
  const asked = { ...requested, values: requested.values.filter((value) => value !== withheld) }
  const scope =
    user === undefined
      ? await limitToMachine(asked, client, catalogue, places)
      : limitToUser(await limitToClient(asked, client, catalogue, places), user, catalogue)
  const kept = new Set(scope.values)
  return { client, user, scope, dropped: requested.values.filter((value) => !kept.has(value)) }
}

async function findClient({ client: id }: ClaimedCaller, { people }: GrantDependencies): Promise<Client> {
  const client = await orUnavailable(people.findClient(id))
  if (client !== undefined) return client
  const exists = (await orUnavailable(people.findClientName(id))) !== undefined
  throw refuse('invalid_client', exists ? 'the client is not enabled' : 'there is no such client')
}

/** @throws Fault `invalid_grant`, `identity_unavailable` */
async function findClaimedUser(name: string, { people }: Pick<GrantDependencies, 'people'>): Promise<User> {
  const user =
    (await orUnavailable(people.findUserByName(name))) ??
    (await orUnavailable(people.findUserBySubject(name)))
  if (user !== undefined) return user
  const exists = (await orUnavailable(people.findNamed(name))) !== undefined
  throw refuse('invalid_grant', exists ? 'the user may not log in any more' : 'there is no such user')
}

function requireGrant(client: Client, user: User | undefined, { clock }: GrantDependencies): void {
  if (user === undefined && !isMachine(client))
    throw refuse('invalid_grant', 'no user is named, and only a machine calls for itself')
  if (user !== undefined && isMachine(client))
    throw refuse('unauthorized_client', 'the client is a machine, which acts for no user')
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

function principalOf(
  client: Client,
  user: User | undefined,
  scope: GrantedScope,
  dependencies: GrantDependencies,
): Principal {
  const issuedAt = epochSeconds(dependencies.clock)
  return Object.freeze({
    subject: user?.subject ?? client.id,
    ...(user === undefined && { isMachine: true as const }),
    client: client.id,
    clientKey: client.id,
    issuer: dependencies.urls.issuer,
    issuerName: undefined,
    scope: scope.text,
    scopes: new Set(scope.values),
    target: scope.target,
    tokenId: undefined,
    family: undefined,
    asOf: dependencies.rules.asOf,
    issuedAt,
    expiresAt: issuedAt + lifetimeOf(client, dependencies.config),
    key: NO_KEY,
  })
}

/**
 * Issues an access token to an operator who tries a service (C11.5.7): what the token endpoint would give this client and
 * user, without their secrets, for a short time, and without a refresh token. It is not recorded here. Faults are answered,
 * because an error that crosses to another process keeps no reason.
 * @param candidates ids of clients that are tried one after the other, where the order names none
 */
export async function answerTestToken(
  order: TestTokenRequest,
  candidates: () => AsyncIterable<string>,
  dependencies: StepDependencies,
): Promise<TestTokenAnswer> {
  const { client } = order
  try {
    requireOpen(order.from, dependencies)
    const issued =
      client === undefined
        ? await issueToFirst(order, candidates(), dependencies)
        : await issue({ ...order, client }, dependencies)
    return { outcome: 'issued', issued }
  } catch (thrown) {
    const fault = toFault(thrown)
    return { outcome: 'refused', reason: fault.code, why: whyOf(fault) }
  }
}

const whyOf = ({ facts: { detail, say }, row }: Fault): string => detail ?? say ?? row.text

/** @throws Fault `identity_maintenance`, as the token endpoint does (C9.2) */
function requireOpen(from: string, { switches }: StepDependencies): void {
  const closure = switches.identity()
  if (closure !== undefined && !closure.admitsAddress(from)) throw new Fault('identity_maintenance')
}

/** The value that asks for a refresh token: a test token comes without one. */
const WITHHELD = 'offline_access'

async function issue(caller: ClaimedCaller, dependencies: StepDependencies): Promise<TestToken> {
  const { asOf } = dependencies.rules
  const { client, user, scope, dropped } = await resolveCaller(caller, dependencies, WITHHELD)
  const granted = { asOf, client, scope, ...(user && { user }) }
  const longest = LONGEST_TEST_TOKEN / 1000
  const { token, lifetime, principal } = await issueAccessToken(granted, undefined, dependencies, longest)
  return {
    token,
    id: principal.tokenId ?? '',
    client: client.id,
    subject: user?.subject,
    scope: scope.text,
    target: scope.values.find(isTargetValue),
    ...grantedPlace(scope),
    expiresIn: lifetime,
    // The client's default scope may contain it, though nobody has asked for it.
    dropped: caller.scope ? dropped : dropped.filter((value) => value !== WITHHELD),
  }
}

/** Reasons for a refusal, the latest check first: of several clients, the one that passed most checks is reported. */
const NEARNESS: readonly FaultCode[] = ['invalid_scope', 'invalid_grant', 'unauthorized_client']

const nearnessOf = ({ code }: Fault): number =>
  NEARNESS.includes(code) ? NEARNESS.indexOf(code) : NEARNESS.length

interface Refused {
  readonly client: string
  readonly fault: Fault
}

const nearer = (one: Refused | undefined, other: Refused): Refused =>
  one !== undefined && nearnessOf(one.fault) <= nearnessOf(other.fault) ? one : other

/** @throws Fault that of the nearest client, if none is granted a token */
async function issueToFirst(
  order: TestTokenRequest,
  candidates: AsyncIterable<string>,
  dependencies: StepDependencies,
): Promise<TestToken> {
  // First: no client is granted a token for a user who does not exist.
  if (order.user !== undefined) await findClaimedUser(order.user, dependencies)
  let nearest: Refused | undefined
  for await (const client of candidates)
    try {
      return await issue({ ...order, client }, dependencies)
    } catch (thrown) {
      const fault = toFault(thrown)
      if (fault.status >= 500) throw fault
      nearest = nearer(nearest, { client, fault })
    }
  if (nearest === undefined) throw new Fault('invalid_client', { detail: 'there is no client' })
  const { client, fault } = nearest
  throw new Fault(fault.code, { detail: `no client is granted such a token; ${client}: ${whyOf(fault)}` })
}
