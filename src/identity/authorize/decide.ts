import type { User } from '../../base/contracts/people/people.ts'
import type { Business } from '../../base/contracts/people/places.ts'
import { epochSeconds } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { BrowserContext, Login } from '../steps/browser-context.ts'
import type { StepDependencies } from '../steps/endpoint.ts'
import {
  chooseBusiness,
  demandsChoice,
  type GrantedScope,
  leavesChoice,
  limitToUser,
} from '../dependencies/scopes.ts'
import { readHint } from '../tokens/find-token.ts'
import { anyAppMayTake } from './redirect-uri.ts'
import type { AuthorizationRequest } from './request.ts'

export interface Candidate {
  readonly business: Business
  readonly role: string
  readonly scope: GrantedScope
}

export type AuthorizationDecision =
  | { readonly kind: 'login' }
  | { readonly kind: 'choice'; readonly login: Login; readonly candidates: readonly Candidate[] }
  | { readonly kind: 'consent'; readonly login: Login; readonly scope: GrantedScope }
  | { readonly kind: 'code'; readonly login: Login; readonly scope: GrantedScope }

/**
 * OIDC Core §3.1.2.3, C6.2.2.
 * @throws Fault login_required, interaction_required, consent_required where a page would be due and `prompt=none`
 *   forbids it; invalid_scope where the user may have nothing of it
 */
export async function decideAuthorization(
  request: AuthorizationRequest,
  browser: BrowserContext,
  dependencies: StepDependencies,
): Promise<AuthorizationDecision> {
  const { namedClient, prompt, scope } = request
  const silent = prompt.has('none')
  const login = await sufficientLogin(request, browser, dependencies)
  if (login === undefined) return silent ? refuse('login_required') : { kind: 'login' }
  const candidates = leavesChoice(scope) ? await candidatesOf(request, login.user, dependencies) : []
  if (candidates.length > 0 || demandsChoice(scope))
    return silent ? refuse('interaction_required') : { kind: 'choice', login, candidates }
  const granted = limitToUser(scope, login.user, dependencies.catalogue)
  // Nobody proves that it is the app that was allowed before: it is asked every time, and without a page not at all.
  if (anyAppMayTake(request.back.redirectUri, namedClient))
    return silent ? refuse('interaction_required') : { kind: 'consent', login, scope: granted }
  const consenting = { client: namedClient.id, subject: login.user.subject, scope: granted }
  if (!prompt.has('consent') && (await dependencies.consents.covers(consenting)))
    return { kind: 'code', login, scope: granted }
  return silent ? refuse('consent_required') : { kind: 'consent', login, scope: granted }
}

function refuse(code: 'login_required' | 'interaction_required' | 'consent_required'): never {
  throw new Fault(code)
}

/** The login, if it is of the person and of the age that the request wants. */
async function sufficientLogin(
  { idTokenHint, loggedIn, maxAge, prompt }: AuthorizationRequest,
  { login }: BrowserContext,
  dependencies: StepDependencies,
): Promise<Login | undefined> {
  if (login === undefined || loggedIn) return login
  if (prompt.has('login') || prompt.has('select_account')) return undefined
  // OIDC Core §3.1.2.1: 0 always asks for a login, also within the second of the last one.
  const age = epochSeconds(dependencies.clock) - login.session.authTime
  if (maxAge === 0 || (maxAge !== undefined && age > maxAge)) return undefined
  const hint = await readHint(idTokenHint, dependencies)
  return hint === undefined || hint.subject === login.user.subject ? login : undefined
}

/** Only businesses that both client and user may use are read, however many there are (C6.2.2). */
async function candidatesOf(
  { namedClient, scope }: AuthorizationRequest,
  user: User,
  dependencies: StepDependencies,
): Promise<readonly Candidate[]> {
  const both = namedClient.businesses.filter((code) => user.access.has(code))
  const businesses = await dependencies.places.findBusinesses(both)
  return both.flatMap((code) => {
    const business = businesses.get(code)
    const access = user.access.get(code)
    if (business === undefined || access === undefined) return []
    try {
      const granted = limitToUser(chooseBusiness(scope, business.code), user, dependencies.catalogue)
      return [{ business, role: access.role, scope: granted }]
    } catch {
      return []
    }
  })
}
