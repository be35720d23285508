/** The request on its way through our own pages. */
import { AUTHORIZATION_PARAMETERS, encodedQuery } from '../steps/read-form.ts'
import type { AuthorizationRequest } from './request.ts'

/** The link to another account: the one wish of our own pages that a request which was sent before could not hold. */
export const SWITCH = 'switch'

/** The last two are our own: what the business picker shows. */
const CARRIED = [...AUTHORIZATION_PARAMETERS, 'find', 'from'] as const

type Carried = (typeof CARRIED)[number]

const OF_PICKER: ReadonlySet<Carried> = new Set(['find', 'from'])

/** The request as a query, for our own pages; `changes` replaces parameters, or takes them out. */
export function carry(
  { params, reference }: AuthorizationRequest,
  changes: Readonly<Partial<Record<Carried, string | undefined>>> = {},
): string {
  const valueOf = (name: Carried): string | undefined => (name in changes ? changes[name] : params.get(name))
  if (reference === undefined) return queryOfCarried(valueOf)
  const { client, uri } = reference
  const referring = new URLSearchParams({ client_id: client, request_uri: uri }).toString()
  const ofPages = queryOfCarried((name) => (OF_PICKER.has(name) ? valueOf(name) : undefined))
  return ofPages === '' ? referring : `${referring}&${ofPages}`
}

/** Like `carry`, for a login by another person. */
export const carryToSwitch = (request: AuthorizationRequest): string =>
  request.reference === undefined
    ? carry(request, { prompt: 'login', login_hint: undefined })
    : `${carry(request, { find: undefined, from: undefined })}&${SWITCH}=1`

export const queryOfCarried = (valueOf: (name: Carried) => string | undefined): string =>
  encodedQuery(CARRIED, valueOf)

/** As `carry`, after the login: without the parameters that would ask for a login again. */
export function carryLoggedIn(request: AuthorizationRequest): string {
  const prompt = [...request.prompt].filter((word) => word === 'consent').join(' ')
  return carry(request, {
    prompt: prompt === '' ? undefined : prompt,
    max_age: undefined,
    id_token_hint: undefined,
    find: undefined,
    from: undefined,
  })
}
