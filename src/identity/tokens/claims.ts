import type { PersonClaims, User } from '../../base/contracts/people/people.ts'
import type { Address, Business, Places } from '../../base/contracts/people/places.ts'
import type { Resource } from '../../base/contracts/people/principal.ts'
import type { JsonObject } from '../../base/http/body/json.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { Target } from '../../base/config/scopes/scope-token.ts'
import type { StepDependencies } from '../steps/endpoint.ts'

/** The claims about a person that a scope value gives access to (C5.6). */
const CLAIMS_OF = {
  profile: ['name', 'given_name', 'middle_name', 'family_name', 'gender'],
  email: ['email'],
  phone: ['phone_number'],
} as const satisfies Record<string, readonly (keyof PersonClaims)[]>

/** The scope values whose claims are in the id_token; all other claims come from userinfo only (C6.1.8). */
const ID_TOKEN_SCOPES = ['profile', 'email'] as const
const TEXT_SCOPES = ['profile', 'email', 'phone'] as const

export const PERSON_CLAIMS: readonly string[] = [
  ...TEXT_SCOPES.flatMap((scope): readonly string[] => CLAIMS_OF[scope]),
  'address',
  'service_profile',
]

/** The claims that a built-in scope value gives access to; empty for any other value. */
export function claimsOf(scope: string): readonly string[] {
  if (scope === 'openid') return ['sub']
  if (scope === 'address' || scope === 'service_profile') return [scope]
  return TEXT_SCOPES.filter((each) => each === scope).flatMap((each): readonly string[] => CLAIMS_OF[each])
}

interface HasScope {
  has(value: string): boolean
}

function withoutEmpty(members: Readonly<Record<string, string | undefined>>): JsonObject {
  const object: JsonObject = {}
  for (const [name, value] of Object.entries(members))
    if (value !== undefined && value !== '') object[name] = value
  return object
}

function textClaims(user: User, scopes: HasScope, opened: readonly (keyof typeof CLAIMS_OF)[]): JsonObject {
  const names = opened.filter((scope) => scopes.has(scope)).flatMap((scope) => [...CLAIMS_OF[scope]])
  return withoutEmpty(Object.fromEntries(names.map((name) => [name, user.claims[name]])))
}

const addressOf = (address: Address = {}): JsonObject =>
  withoutEmpty({
    street_address: address.street_address,
    locality: address.locality,
    region: address.region,
    postal_code: address.postal_code,
    country: address.country,
  })

/** An object with one member, or with none if its value would be empty. */
const withObject = (name: string, object: JsonObject): JsonObject =>
  Object.keys(object).length === 0 ? {} : { [name]: object }

/** The claims of C5.6 that belong in the id_token (C6.1.8). */
export const idTokenClaims = (user: User, scopes: HasScope): JsonObject =>
  textClaims(user, scopes, ID_TOKEN_SCOPES)

/**
 * All claims of C5.6 that the scopes give access to, and `sub`.
 * @param business that of the token's target; if undefined, or if the user has no access to it, `service_profile` is an
 *   empty object
 */
function userClaims(user: User, scopes: HasScope, business: Business | undefined): JsonObject {
  return {
    sub: user.subject,
    ...textClaims(user, scopes, TEXT_SCOPES),
    ...(scopes.has('address') && withObject('address', addressOf(user.claims.address))),
    ...(scopes.has('service_profile') && { service_profile: serviceProfile(user, business) }),
  }
}

function serviceProfile(user: User, business: Business | undefined): JsonObject {
  const access = business === undefined ? undefined : user.access.get(business.code)
  if (business === undefined || access === undefined) return {}
  return {
    ...withoutEmpty({
      service_role: access.role,
      business_name: business.name,
      business_code: business.code,
    }),
    ...withObject('business_address', addressOf(business.address)),
    ...withoutEmpty({ business_phone_number: business.phoneNumber }),
  }
}

/** The business that the claims speak of; read only where they do. */
async function businessOf(
  target: Target | undefined,
  scopes: HasScope,
  places: Places,
): Promise<Business | undefined> {
  if (target === undefined || !scopes.has('service_profile')) return undefined
  const found = await places.findBusinesses([target.business]).catch((cause: unknown) => {
    throw new Fault('place_judge_unavailable', { cause })
  })
  return found.get(target.business)
}

/**
 * The userinfo resource: the claims of C5.6 for the user of an access token (C6.3.1). The gateway has checked the token
 * and that it has the scope `openid`.
 * `describe` rejects with Fault `invalid_token` if the user is gone or may hold no tokens, or if the token is of another
 * issuer; with `token_judge_unavailable` or `place_judge_unavailable` if the directory cannot be reached (C4.15).
 */
export function userinfo({
  people,
  places,
  urls,
}: Pick<StepDependencies, 'people' | 'places' | 'urls'>): Resource {
  return {
    describe: async ({ subject, issuer, scopes, target }) => {
      if (issuer !== urls.issuer) throw new Fault('invalid_token', { detail: 'of another issuer' })
      const user = await people.findUserBySubject(subject).catch((cause: unknown) => {
        throw new Fault('token_judge_unavailable', { cause })
      })
      if (user === undefined)
        throw new Fault('invalid_token', { detail: 'its user is gone or may hold no tokens' })
      return userClaims(user, scopes, await businessOf(target, scopes, places))
    },
  }
}
