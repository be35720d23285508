import type { Answer } from '../../base/contracts/calls/exchange.ts'
import type { Client } from '../../base/contracts/people/people.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { withQuery } from '../authorize/answer-client.ts'
import { checkRequestSize } from '../authorize/read-request.ts'
import { isRegistered } from '../authorize/redirect-uri.ts'
import { type BrowserContext, browserContextOf, isOwnForm, seeOther } from '../steps/browser-context.ts'
import { noteCall, orUnavailable } from '../dependencies/dependencies.ts'
import { type Arrived, flow, type Step, type StepDependencies } from '../steps/endpoint.ts'
import { pageAnswer } from '../pages/layout.ts'
import { confirmLogoutPage, loggedOutPage } from '../pages/notices.ts'
import { TEXTS } from '../pages/texts.ts'
import { loginEnded, took } from '../steps/records.ts'
import { encodedQuery, formParameters, readFields, readQueryFields } from '../steps/read-form.ts'
import { type Hint, readHint } from '../tokens/find-token.ts'

const PATH = '/connect/endsession'

type Params = ReadonlyMap<string, string>

interface LogoutParsed extends Arrived {
  readonly params: Params
  /** The fields, if it is our own form that was sent. */
  readonly own: Params | undefined
  /** It came in a body, from another site perhaps. */
  readonly posted: boolean
}

interface LogoutRead extends LogoutParsed {
  readonly hint: Hint | undefined
  readonly namedClient: Client | undefined
  /** Where the browser goes afterwards: one of the client's own addresses, `state` included. */
  readonly next: string | undefined
}

/** By GET in the query, by POST in the body (RP-Initiated Logout §2); our own form keeps the request in its query. */
const readLogout: Step<Arrived, LogoutParsed> = async (context) => {
  const { exchange } = context
  const query = (): Params => formParameters(readQueryFields(exchange))
  if (exchange.head.method !== 'POST') return { ...context, params: query(), own: undefined, posted: false }
  const body = formParameters(await readFields(exchange))
  return body.has('csrf')
    ? { ...context, params: query(), own: body, posted: false }
    : { ...context, params: body, own: undefined, posted: true }
}

/** The client is the one that the hint was issued to, or the one that is named; they must not differ. */
async function clientOf(
  params: Params,
  hint: Hint | undefined,
  { people }: StepDependencies,
): Promise<Client | undefined> {
  const named = params.get('client_id')
  if (hint !== undefined && named !== undefined && named !== hint.client)
    throw new Fault('oauth_bad_request', { say: 'The client_id is not that of the id_token_hint.' })
  const id = hint?.client ?? named
  return id === undefined ? undefined : orUnavailable(people.findClient(id))
}

/**
 * Undefined without an address, or where nothing says whose it is: a person who wants to sign out may.
 * @throws Fault authorize_bad_redirect for any address that is not the client's own (T6: open redirect)
 */
function nextOf(params: Params, hint: Hint | undefined, client: Client | undefined): string | undefined {
  const uri = params.get('post_logout_redirect_uri')
  if (uri === undefined || (hint === undefined && !params.has('client_id'))) return undefined
  if (client === undefined || !isRegistered(uri, client.postLogoutRedirectUris, client))
    throw new Fault('authorize_bad_redirect')
  const state = params.get('state')
  return withQuery(uri, state === undefined ? {} : { state })
}

const checkLogout: Step<LogoutParsed, LogoutRead> = async (context, dependencies) => {
  const { params } = context
  checkRequestSize(carry(params), params.get('state'), dependencies.longestTarget)
  const hint = await readHint(context.params.get('id_token_hint'), dependencies)
  const namedClient = await clientOf(context.params, hint, dependencies)
  return { ...context, hint, namedClient, next: nextOf(context.params, hint, namedClient) }
}

const CARRIED = ['id_token_hint', 'client_id', 'post_logout_redirect_uri', 'state'] as const

const carry = (params: Params): string => encodedQuery(CARRIED, (name) => params.get(name))

function own({ params }: LogoutParsed, { theme }: StepDependencies): string {
  const query = carry(params)
  return theme.at(query === '' ? PATH : `${PATH}?${query}`)
}

/** The user said so, or the client proved by its hint that it speaks of this very user. */
function isMeant(
  { exchange, hint, own }: LogoutRead,
  browser: BrowserContext,
  dependencies: StepDependencies,
): boolean {
  if (own !== undefined && own.get('decision') === 'logout')
    return isOwnForm(exchange, own.get('csrf'), browser, dependencies)
  return hint !== undefined && hint.subject === browser.login?.user.subject
}

const answerLogout: Step<LogoutRead, Answer> = async (context, dependencies) => {
  const { exchange, hint, own: confirmed, posted } = context
  const browser = await browserContextOf(exchange, dependencies, 'end')
  if (posted && browser.fresh) return seeOther(own(context, dependencies))
  const { login } = browser
  if (login === undefined)
    return goodbye(context, hint !== undefined || confirmed !== undefined, dependencies)
  if (!isMeant(context, browser, dependencies)) return confirm(context, browser, dependencies)
  const { key } = login.session
  const parties = { subject: login.user.subject, client: context.namedClient?.id }
  if (await dependencies.sessions.end(key, parties.subject))
    await took(loginEnded(exchange, { key, ...parties }), dependencies)
  noteCall(exchange, dependencies, 'info', 'logout', parties)
  return goodbye(context, true, dependencies)
}

function confirm(context: LogoutRead, browser: BrowserContext, dependencies: StepDependencies): Answer {
  const { namedClient, next } = context
  const page = confirmLogoutPage({
    form: { action: own(context, dependencies), csrf: browser.csrf },
    client: namedClient?.name,
    leadsTo: next,
    stay: dependencies.theme.at('/connect/account'),
    notice: context.own && TEXTS.logout.outdated,
  })
  return pageAnswer(dependencies.theme, page)
}

/** Redirects to the client if the user surely meant it. Otherwise shows the logged-out page, with a button to the client. */
function goodbye({ namedClient, next }: LogoutRead, sure: boolean, dependencies: StepDependencies): Answer {
  const headers = { 'Set-Cookie': dependencies.cookie.clear() }
  if (next !== undefined && sure) return seeOther(next, headers)
  const back =
    next === undefined || namedClient === undefined ? undefined : { client: namedClient.name, uri: next }
  const signIn = dependencies.theme.at('/connect/account')
  return pageAnswer(dependencies.theme, loggedOutPage({ back, signIn }), headers)
}

/** The logout endpoint (C6.3.3, OpenID Connect RP-Initiated Logout 1.0). */
export const endSession: Step<Arrived, Answer> = flow(readLogout, checkLogout, answerLogout)
