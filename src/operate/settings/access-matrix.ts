import { type Catalogue, leastOf } from '../../base/config/scopes/catalogue.ts'
import { businessTarget, type Code, isScopeValue } from '../../base/config/scopes/scope-token.ts'
import type { Client, User } from '../../base/contracts/people/people.ts'
import type { ConfiguredBusiness } from '../../base/contracts/people/places.ts'
import { mayHold } from '../../identity/directory/records/holdings.ts'
import { compileScopeRule, satisfies } from '../../gateway/actions/action-table.ts'
import { matchAction, requireApiVersion, USERINFO_PATH } from '../../gateway/decide/checks.ts'
import type { CompiledActions } from '../../gateway/actions/compile-actions.ts'
import type { RequestTarget } from '../../base/http/head/request-target.ts'
import { firstGrants, isMachine } from '../../identity/grants/grants.ts'
import { keepOfClient, limitToUser, type RequestedScope } from '../../identity/dependencies/scopes.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { ListedOperation, Parties } from './parties.ts'

// What a token could hold that the token endpoint or the code flow gives to a client for a user: by the same functions
// (identity/dependencies/scopes.ts, identity/grants), and nothing is issued.

/** A client, a user, or both. Where one is absent, it is taken to allow everything. */
interface Party {
  readonly client?: Client | undefined
  readonly user?: User | undefined
}

/** Something without which a call is refused, for people: `the client is disabled`. */
interface Missing {
  readonly what: 'enabled' | 'grant' | 'business' | 'fund' | 'scope'
  readonly text: string
}

const missing = (what: Missing['what'], text: string): Missing => ({ what, text })

/** Why this party gets no token at all. Empty if it does. */
function missingForAnyToken({ client, user }: Party, clock: Clock): readonly Missing[] {
  const found: Missing[] = []
  if (client !== undefined && !mayHold(client)) found.push(missing('enabled', 'the client is disabled'))
  if (user !== undefined && !mayHold(user))
    found.push(missing('enabled', `the user is ${user.disabled ? 'disabled' : 'locked'}`))
  if (client !== undefined && firstGrants(client, user, clock).length === 0) {
    const other = user !== undefined && firstGrants(client, undefined, clock).length > 0
    found.push(missing('grant', other ? notForUser(client) : 'the client has no grant that it may use now'))
  }
  return found
}

/** The client has a grant, but none for this user. */
const notForUser = (client: Client): string =>
  isMachine(client)
    ? `${client.id} is a machine, which acts for no user`
    : `the user is no customer of ${client.id}, which has the password grant only`

/** Why this party gets no token for a business. Empty if it does. */
function missingAtBusiness(
  { client, user }: Party,
  business: string,
  { businesses }: Pick<Parties['directory'], 'businesses'>,
): readonly Missing[] {
  if (!businesses.has(business)) return [missing('business', `there is no business ${business}`)]
  const found: Missing[] = []
  if (client !== undefined && !client.businesses.includes(business))
    found.push(missing('business', `the client is not for ${business}`))
  if (user !== undefined && !user.access.has(business))
    found.push(missing('business', `the user has no role at ${business}`))
  return found
}

/** Every scope value, with one business as target: a request for all is given all that the party may have (C5.5). */
const everything = ({ catalogue }: Parties, business: Code): RequestedScope => ({
  values: [...catalogue.values.filter(isScopeValue), businessTarget(business)],
  target: { level: 'business', business },
})

/** All scope values that a token of this party can hold for a business. Empty if it can have none for it. */
function obtainableScopes({ client, user }: Party, business: Code, parties: Parties): ReadonlySet<string> {
  const { catalogue, directory } = parties
  if (missingAtBusiness({ client, user }, business, directory).length > 0) return new Set()
  try {
    const asked = everything(parties, business)
    const ofClient = client === undefined ? asked : keepOfClient(asked, client, catalogue)
    const ofUser = user === undefined ? ofClient : limitToUser(ofClient, user, catalogue)
    return new Set<string>(ofUser.values)
  } catch (thrown) {
    if (thrown instanceof Fault) return new Set()
    throw thrown
  }
}

export interface OperationAccess {
  readonly operation: ListedOperation
  /** `report-only`: its area refuses nothing. */
  readonly access: 'yes' | 'no' | 'report-only'
  /** Empty unless `access` is `no`. */
  readonly missing: readonly Missing[]
}

export interface MatrixSection {
  readonly client: Client | undefined
  readonly user: User | undefined
  readonly business: string
  readonly operations: readonly OperationAccess[]
}

/** Which part of the matrix. With a client and a user: what the tokens of this client for this user open. */
export interface MatrixFilter {
  readonly client?: Client | undefined
  readonly user?: User | undefined
  readonly business?: string | undefined
}

/** The values that one of several groups needs, for people: `fund.read or business.fund.list`. */
const orText = (values: readonly string[]): string => values.join(' or ')

function missingScopes(section: Place, { rule }: ListedOperation): readonly Missing[] {
  const { parties, client, user, held } = section
  const texts = rule.groups
    .filter((group) => held.both.isDisjointFrom(group))
    .map((group) => {
      const needed = orText(leastOf(group, parties.catalogue))
      const role = user?.access.get(section.business)?.role ?? ''
      const lacking = [
        ...(client !== undefined && held.client.isDisjointFrom(group) ? ['the client'] : []),
        ...(user !== undefined && held.user.isDisjointFrom(group) ? [`the role ${role}`] : []),
      ]
      return lacking.length === 0
        ? `the client and the role ${role} have no scope in common of ${needed}`
        : `${lacking.join(' and ')} ${lacking.length > 1 ? 'lack' : 'lacks'} the scope ${needed}`
    })
  return texts.map((text) => ({ what: 'scope', text }))
}

interface Held {
  readonly client: ReadonlySet<string>
  readonly user: ReadonlySet<string>
  readonly both: ReadonlySet<string>
}

interface Place {
  readonly parties: Parties
  readonly client: Client | undefined
  readonly user: User | undefined
  readonly business: string
  readonly found: ConfiguredBusiness | undefined
  readonly held: Held
  /** What is missing for every operation of the business. */
  readonly forAll: readonly Missing[]
}

const NOTHING: ReadonlySet<string> = new Set()

function heldAt(
  parties: Parties,
  { client, user }: MatrixFilter,
  found: ConfiguredBusiness | undefined,
): Held {
  if (found === undefined) return { client: NOTHING, user: NOTHING, both: NOTHING }
  const of = (party: MatrixFilter): ReadonlySet<string> => obtainableScopes(party, found.code, parties)
  return { client: of({ client }), user: of({ user }), both: of({ client, user }) }
}

function missingFor(place: Place, operation: ListedOperation): readonly Missing[] {
  if (place.forAll.length > 0) return place.forAll
  const funds = place.found?.funds
  const noFund = operation.level === 'fund' && funds !== undefined && funds !== 'any' && funds.size === 0
  return [
    ...(noFund ? [{ what: 'fund', text: `${place.business} has no fund` } as const] : []),
    ...missingScopes(place, operation),
  ]
}

function accessTo(place: Place, operation: ListedOperation): OperationAccess {
  if (operation.reportOnly) return { operation, access: 'report-only', missing: [] }
  const missing = missingFor(place, operation)
  return { operation, access: missing.length === 0 ? 'yes' : 'no', missing }
}

function sectionOf(parties: Parties, party: MatrixFilter, business: string): MatrixSection {
  const { directory, clock } = parties
  const { client, user } = party
  const found = directory.businesses.get(business)
  const forAll = [...missingForAnyToken(party, clock), ...missingAtBusiness(party, business, directory)]
  const place = { parties, client, user, business, found, held: heldAt(parties, party, found), forAll }
  return {
    client,
    user,
    business,
    operations: parties.operations.map((operation) => accessTo(place, operation)),
  }
}

/** The businesses of a party that exist, or the one that is asked for. */
function businessesOf({ directory }: Parties, { client, user, business }: MatrixFilter): readonly string[] {
  if (business !== undefined) return [business]
  const named = new Set([...(client?.businesses ?? []), ...(user?.access.keys() ?? [])])
  return [...named].filter((code) => directory.businesses.has(code))
}

function* partiesOf(parties: Parties, filter: MatrixFilter): Generator<MatrixFilter> {
  if (filter.client !== undefined || filter.user !== undefined) {
    yield filter
    return
  }
  for (const client of parties.clients.values()) yield { ...filter, client }
  for (const user of parties.users()) yield { ...filter, user }
}

/**
 * The matrix of who may call what (C14.5), section by section: for each operation yes, or what is missing. A client by
 * itself is taken to act for a user who may do everything, a user to act through a client that may have everything.
 */
export function* accessMatrix(parties: Parties, filter: MatrixFilter): Generator<MatrixSection> {
  for (const party of partiesOf(parties, filter))
    for (const business of businessesOf(parties, party)) yield sectionOf(parties, party, business)
}

// Which scopes an action needs, what implies them, and which clients and roles have them (C14.5).

/** A scope value: a token needs it or one that implies it. */
export interface NeededValue {
  readonly value: string
  readonly impliedBy: readonly string[]
}

export interface ClientWithScope {
  readonly client: Client
  /** Its configured values that count here. */
  readonly by: readonly string[]
  /** Why it gets no token nevertheless. */
  readonly missing: readonly Missing[]
}

export interface ScopeNeeds {
  readonly operation: ListedOperation
  /** A token needs one value of each group. */
  readonly groups: readonly (readonly NeededValue[])[]
  readonly clients: readonly ClientWithScope[]
  readonly roles: readonly string[]
}

/** Userinfo is no configured action (C6.3.1). */
const userinfoOf = (method: string, catalogue: Catalogue): ListedOperation => ({
  slot: -1,
  level: 'user',
  area: 'connect',
  action: 'userinfo',
  method,
  versions: [1],
  rule: compileScopeRule({ any: ['openid'] }, undefined, catalogue),
  reportOnly: false,
})

/**
 * The operation that a method and a path mean. Throws Fault `unknown_api_version`, `unknown_action`,
 * `method_not_allowed`.
 */
export function operationAt(
  method: string,
  target: RequestTarget,
  { table }: Pick<CompiledActions, 'table'>,
  { catalogue, operations }: Parties,
): ListedOperation | undefined {
  requireApiVersion(target)
  if (target.path === USERINFO_PATH) return userinfoOf(method, catalogue)
  const { operation } = matchAction(table, target, method)
  const named = operation.method === 'HEAD' ? 'GET' : operation.method
  return operations.find((each) => each.slot === operation.action.slot && each.method === named)
}

function neededOf(group: ReadonlySet<string>, catalogue: Catalogue): readonly NeededValue[] {
  return leastOf(group, catalogue).map((value) => ({
    value,
    impliedBy: [...catalogue.satisfiers(value)].filter((other) => other !== value),
  }))
}

const countingValues = (
  scopes: readonly string[],
  { rule }: ListedOperation,
  catalogue: Catalogue,
): readonly string[] =>
  scopes.filter((value) => rule.groups.some((group) => !group.isDisjointFrom(catalogue.close([value]))))

export function scopeNeeds(operation: ListedOperation, parties: Parties): ScopeNeeds {
  const { catalogue, clients, directory, clock } = parties
  const has = (scopes: readonly string[]): boolean => satisfies(catalogue.close(scopes), operation.rule)
  return {
    operation,
    groups: operation.rule.groups.map((group) => neededOf(group, catalogue)),
    clients: [...clients.values()]
      .filter(({ scopes }) => has(scopes))
      .map((client) => ({
        client,
        by: countingValues(client.scopes, operation, catalogue),
        missing: missingForAnyToken({ client }, clock),
      })),
    roles: [...directory.roles.values()].filter(({ scopes }) => has(scopes)).map(({ role }) => role),
  }
}
