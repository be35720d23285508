/** People and clients with tokens, before and after a change of their rights. */
import { expect } from 'vitest'
import { postForm } from './oauth.ts'
import type { AdminAnswered, Operated } from './operated.ts'
import { bearer, send } from './requests.ts'
import type { Upstream } from './start-upstream.ts'

/** The scope value that the rows lose, and all that a role has before. */
export const LISTING = 'business.fund.list'
export const DATA = ['fund.read', LISTING]
export const GRANTED = ['openid', 'offline_access', ...DATA]

/** What of a service gives rights and takes them. */
export type RightsService = Pick<Operated, 'admin' | 'baseUrl' | 'authUrl'>

export type AdminChange = readonly [method: string, path: string, body?: object]

/** What becomes of the tokens: `less` and `same` are of a refresh, which works in both cases. */
export type Left = 'nothing' | 'less' | 'same'

/** What somebody holds, to be used again after a change. */
export interface Holder {
  /** Stands in the query of the calls, so that the upstream's requests can be told apart. */
  readonly name: string
  readonly client: string
  readonly secret: string
  readonly access: string
  readonly refresh: string
  readonly target: string
}

export async function logIn(
  service: RightsService,
  {
    client,
    secret,
    username,
    password,
    scope,
  }: Record<'client' | 'secret' | 'username' | 'password' | 'scope', string>,
): Promise<Pick<Holder, 'access' | 'refresh'>> {
  const params = { grant_type: 'password', username, password, scope }
  const { status, json } = await postForm(service, '/connect/token', { client, secret, params })
  expect([username, status, json]).toEqual([username, 200, json])
  return { access: String(json.access_token), refresh: String(json.refresh_token) }
}

export async function expectDone(
  service: RightsService,
  ...[method, path, body]: AdminChange
): Promise<AdminAnswered> {
  const answer = await service.admin(method, path, body)
  expect([method, path, answer.status < 300, answer.body]).toEqual([method, path, true, answer.body])
  return answer
}

/** Enough connections for both workers to answer: each connection is given to the next one. */
export const CALLS = 4

async function call(
  service: RightsService,
  { name, target, access }: Holder,
  calls: number,
): Promise<readonly number[]> {
  const port = Number(new URL(service.baseUrl).port)
  const statuses: number[] = []
  for (let n = 0; n < calls; n++) {
    const headers = { ...bearer(access), connection: 'close' }
    const answer = await send({ port }, { target: `${target}?of=${name}`, headers })
    statuses.push(answer.status)
  }
  return [...new Set(statuses)]
}

export async function refreshed(service: RightsService, { client, secret, refresh }: Holder): Promise<Left> {
  const params = { grant_type: 'refresh_token', refresh_token: refresh }
  const { status, json } = await postForm(service, '/connect/token', { client, secret, params })
  if (status === 400) return 'nothing'
  expect(status).toBe(200)
  return String(json.scope).split(' ').includes(LISTING) ? 'same' : 'less'
}

const receivedOf = ({ requests }: Upstream, { name }: Holder): number =>
  requests.filter(({ target }) => target.endsWith(`?of=${name}`)).length

/** What is left to a holder, and how many calls the upstream received of those made now. */
export async function stateOf(service: RightsService, upstream: Upstream, holder: Holder, count = CALLS) {
  const before = receivedOf(upstream, holder)
  const calls = await call(service, holder, count)
  return { calls, received: receivedOf(upstream, holder) - before }
}

export const SERVED = { calls: [200], received: CALLS }
export const REFUSED = { calls: [401], received: 0 }
