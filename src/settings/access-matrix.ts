/** The matrix of who may call what (C14.5): for each operation yes, or what is missing. */
import type { Client, User } from '../contracts/people.ts'
import type { ConfiguredBusiness } from '../contracts/places.ts'
import { leastOf } from '../config/scopes/alternatives.ts'
import { missingAtBusiness, missingForAnyToken, obtainableScopes, type Missing } from './obtainable.ts'
import type { ListedOperation, Parties } from './parties.ts'

export interface OperationAccess {
  readonly operation: ListedOperation
  /** `report-only`: its area refuses nothing. */
  readonly access: 'yes' | 'no' | 'report-only'
  /** Empty unless `access` is `no`. */
  readonly missing: readonly Missing[]
}

/** One client, one user, or the two together, at one business. */
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

function judge(place: Place, operation: ListedOperation): OperationAccess {
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
    ...{ client, user, business },
    operations: parties.operations.map((operation) => judge(place, operation)),
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
 * The sections of the matrix, one by one. A client by itself is judged as if it acted for a user who may do everything,
 * a user as if through a client that may have everything.
 */
export function* accessMatrix(parties: Parties, filter: MatrixFilter): Generator<MatrixSection> {
  for (const party of partiesOf(parties, filter))
    for (const business of businessesOf(parties, party)) yield sectionOf(parties, party, business)
}
