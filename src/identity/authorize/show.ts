import type { Answer } from '../../contracts/exchange.ts'
import { isIdentityScope } from '../../config/scopes/catalogue.ts'
import { isTargetValue } from '../../config/scopes/scope-token.ts'
import type { Form } from '../../http/form.ts'
import { cookieHeaders, type Login, seeOther, type BrowserContext } from '../browser/browser-context.ts'
import type { StepDependencies } from '../endpoint.ts'
import { type AskingClient, consentPage, type ConsentFacts, type DataWord } from '../pages/consent.ts'
import { pageAnswer, type Problem } from '../pages/layout.ts'
import { type LoginFacts, loginPage } from '../pages/login.ts'
import { TEXTS } from '../pages/texts.ts'
import type { GrantedScope } from '../scopes.ts'
import { anyAppMayTake } from './answer-client.ts'
import { pickerOf } from './choices.ts'
import type { Candidate } from './decide.ts'
import { type AuthorizationRequest, carry, onlyValue } from './request.ts'
import { DAY_MS } from '../../kernel/units.ts'

/** What a login page is shown again with. */
export interface LoginAgain extends Pick<LoginFacts, 'notice' | 'cookieless'> {
  readonly username?: string
  readonly problems?: readonly Problem[]
}

/**
 * What happened before a page, which tells it: a form came from a page that was out of date, or was not needed any more.
 * It is a parameter of the address, so it may not matter who wrote it: it chooses one of our own texts.
 */
export type Notice = keyof typeof TEXTS.login.notices

const isNotice = (text: string | undefined): text is Notice =>
  text !== undefined && Object.hasOwn(TEXTS.login.notices, text)

export const noticeIn = (form: Form): Notice | undefined => {
  const text = onlyValue(form, 'notice')
  return isNotice(text) ? text : undefined
}

/** The request once more, from its beginning. By GET, so that the cookie of this browser comes along, whoever posted. */
export function restartRequest(
  request: AuthorizationRequest,
  { theme }: StepDependencies,
  notice?: Notice,
): Answer {
  const told = notice === undefined ? '' : `&notice=${notice}`
  return seeOther(theme.at(`/connect/authorize?${carry(request)}${told}`))
}

/** Longer is no name that anybody typed. */
const HINT_LENGTH = 200

/** The login page: for a client's request, or for our own pages where there is none. */
export function showLogin(
  request: AuthorizationRequest | undefined,
  browser: BrowserContext,
  dependencies: StepDependencies,
  again?: LoginAgain,
): Answer {
  const query = request === undefined ? '' : `?${carry(request)}`
  const page = loginPage({
    form: { action: dependencies.theme.at(`/connect/login${query}`), csrf: browser.csrf },
    client: request && { name: request.namedClient.name, leadsTo: request.back.redirectUri },
    username: (again?.username ?? request?.loginHint ?? '').slice(0, HINT_LENGTH),
    problems: again?.problems ?? [],
    notice: again?.notice,
    cookieless: again?.cookieless ?? false,
  })
  return pageAnswer(dependencies.theme, page, cookieHeaders(browser, dependencies))
}

/** What the user is asked: the scope as it stands, or businesses to choose from. */
export type Question = { readonly scope: GrantedScope } | { readonly candidates: readonly Candidate[] }

/** Scope values in people's words: those about the person, and those about data; in request order. */
export function describeScope(
  values: readonly string[],
  { catalogue, changingScopes }: StepDependencies,
): { about: readonly string[]; data: readonly DataWord[]; lasting: boolean } {
  const said = values.filter((value) => !isTargetValue(value) && value !== 'offline_access')
  const wordOf = (value: string): string => catalogue.get(value)?.description ?? value
  return {
    about: said.filter(isIdentityScope).map(wordOf),
    data: said
      .filter((value) => !isIdentityScope(value))
      .map((value) => ({ text: wordOf(value), changes: changingScopes.has(value) })),
    lasting: values.includes('offline_access'),
  }
}

/** What any of the businesses would give, in the order of the request. */
const grantedSomewhere = (
  { scope }: AuthorizationRequest,
  candidates: readonly Candidate[],
): readonly string[] =>
  scope.values.filter((value) => candidates.some((candidate) => candidate.scope.values.includes(value)))

export const nameOf = ({ user }: Login): string => user.claims.name ?? user.username

async function placeOf(question: Question, { places }: StepDependencies): Promise<ConsentFacts['place']> {
  const target = 'scope' in question ? question.scope.target : undefined
  if (target === undefined) return undefined
  const found = await places.findBusinesses([target.business])
  const business = found.get(target.business)?.name ?? target.business
  return { business, fund: target.level === 'fund' ? target.fund : undefined }
}

/** Who asks. An address on the person's own device says nothing to them. */
function askingClient({ back, namedClient }: AuthorizationRequest): AskingClient {
  const { name, policyUri, tosUri } = namedClient
  const isOnDevice = anyAppMayTake(back.redirectUri, namedClient)
  return { name, policyUri, tosUri, host: isOnDevice ? undefined : new URL(back.redirectUri).host }
}

/** The consent page (C6.2.2). */
export async function showConsent(
  request: AuthorizationRequest,
  question: Question,
  browser: BrowserContext & { readonly login: Login },
  dependencies: StepDependencies,
  { notice, problems = [] }: { notice?: string | undefined; problems?: readonly Problem[] } = {},
): Promise<Answer> {
  const { login, csrf } = browser
  const candidates = 'candidates' in question ? question.candidates : undefined
  const values = 'scope' in question ? question.scope.values : grantedSomewhere(request, question.candidates)
  const { about, data, lasting } = describeScope(values, dependencies)
  const parts = { consents: dependencies.consents, at: dependencies.theme.at }
  const page = consentPage({
    form: { action: dependencies.theme.at(`/connect/consent?${carry(request)}`), csrf },
    client: askingClient(request),
    leadsTo: request.back.redirectUri,
    user: nameOf(login),
    switchUser: dependencies.theme.at(
      `/connect/authorize?${carry(request, { prompt: 'login', login_hint: undefined })}`,
    ),
    applications: dependencies.theme.at('/connect/applications'),
    about,
    data,
    lastingDays: lasting ? Math.ceil(dependencies.config.refreshToken.lifetime / DAY_MS) : undefined,
    place: await placeOf(question, dependencies),
    picker: candidates && (await pickerOf(request, login.user.subject, candidates, parts)),
    problems,
    notice,
  })
  return pageAnswer(dependencies.theme, page)
}
