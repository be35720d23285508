/**
 * What a token could hold that the token endpoint or the code flow gives to a client for a user: by the same functions
 * (identity/scopes.ts, identity/grants), and nothing is issued.
 */
import type { Client, User } from '../contracts/people.ts'
import { mayHold } from '../directory/holdings.ts'
import { firstGrants } from '../identity/grants/grants.ts'
import { keepOfClient, limitToUser, type RequestedScope } from '../identity/scopes.ts'
import type { Clock } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import { businessTarget, type Code, isScopeValue } from '../config/scopes/scope-token.ts'
import type { Parties } from './parties.ts'

/** A client, a user, or both. Where one is absent, it is taken to allow everything. */
export interface Party {
  readonly client?: Client | undefined
  readonly user?: User | undefined
}

/** Something without which a call is refused, for people: `the client is disabled`. */
export interface Missing {
  readonly what: 'enabled' | 'grant' | 'business' | 'fund' | 'scope'
  readonly text: string
}

const missing = (what: Missing['what'], text: string): Missing => ({ what, text })

/** Why this party gets no token at all. Empty if it does. */
export function missingForAnyToken({ client, user }: Party, clock: Clock): readonly Missing[] {
  const found: Missing[] = []
  if (client !== undefined && !mayHold(client)) found.push(missing('enabled', 'the client is disabled'))
  if (user !== undefined && !mayHold(user))
    found.push(missing('enabled', `the user is ${user.disabled ? 'disabled' : 'locked'}`))
  if (client !== undefined && firstGrants(client, user, clock).length === 0) {
    const other = user !== undefined && firstGrants(client, undefined, clock).length > 0
    const text = other
      ? `the user is no customer of ${client.id}, which has the password grant only`
      : 'the client has no grant that it may use now'
    found.push(missing('grant', text))
  }
  return found
}

/** Why this party gets no token for a business. Empty if it does. */
export function missingAtBusiness(
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

/** Every scope value, with one business as target: who asks for all is given all that they may have (C5.5). */
const everything = ({ catalogue }: Parties, business: Code): RequestedScope => ({
  values: [...catalogue.values.filter(isScopeValue), businessTarget(business)],
  target: { level: 'business', business },
})

/** All scope values that a token of this party can hold for a business. Empty if it can have none for it. */
export function obtainableScopes(
  { client, user }: Party,
  business: Code,
  parties: Parties,
): ReadonlySet<string> {
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
