/** The request on its way through our own pages. */
import type { AuthorizationRequest } from './request.ts'

/** The link to another account: the one wish of our own pages that a pushed request could not hold. */
export const SWITCH = 'switch'

const CARRIED = [
  'client_id',
  'redirect_uri',
  'response_type',
  'response_mode',
  'scope',
  'resource',
  'state',
  'nonce',
  'code_challenge',
  'code_challenge_method',
  'dpop_jkt',
  'prompt',
  'max_age',
  'login_hint',
  'id_token_hint',
  // Our own parameters: what the business picker shows.
  'find',
  'from',
] as const

type Carried = (typeof CARRIED)[number]

const OF_PICKER: ReadonlySet<Carried> = new Set(['find', 'from'])

/** `client_id` is known by the client's authentication. */
export const PUSHED = CARRIED.filter((name) => name !== 'client_id' && !OF_PICKER.has(name))

/** The request as a query, for our own pages; `changes` replaces parameters, or takes them out. */
export function carry(
  { params, pushed }: AuthorizationRequest,
  changes: Readonly<Partial<Record<Carried, string | undefined>>> = {},
): string {
  const valueOf = (name: Carried): string | undefined => (name in changes ? changes[name] : params.get(name))
  if (pushed === undefined) return queryOfCarried(valueOf)
  const reference = new URLSearchParams({ client_id: pushed.client, request_uri: pushed.uri }).toString()
  const ofPages = queryOfCarried((name) => (OF_PICKER.has(name) ? valueOf(name) : undefined))
  return ofPages === '' ? reference : `${reference}&${ofPages}`
}

/** Like `carry`, for a login by another person. */
export const carryToSwitch = (request: AuthorizationRequest): string =>
  request.pushed === undefined
    ? carry(request, { prompt: 'login', login_hint: undefined })
    : `${carry(request, { find: undefined, from: undefined })}&${SWITCH}=1`

export function queryOfCarried(valueOf: (name: Carried) => string | undefined): string {
  const carried = CARRIED.flatMap((name) => {
    const value = valueOf(name)
    return value === undefined ? [] : [[name, value]]
  })
  return new URLSearchParams(carried).toString()
}

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
