import { isIdentityScope } from '../../base/config/scopes/catalogue.ts'
import { isTargetValue } from '../../base/config/scopes/scope-token.ts'
import type { Answer } from '../../base/contracts/calls/exchange.ts'
import type { Form } from '../../base/http/body/form.ts'
import { DAY_MS } from '../../base/kernel/units.ts'
import { type BrowserContext, cookieHeaders, type Login, seeOther } from '../steps/browser-context.ts'
import type { Consents } from '../stored/consents.ts'
import type { StepDependencies } from '../steps/endpoint.ts'
import {
  type AskingClient,
  type BusinessChoice,
  type ConsentDetails,
  consentPage,
  type DataWord,
  type Picker,
} from '../pages/consent.ts'
import { finderOf, searchOf } from '../pages/find.ts'
import { pageAnswer, type FormProblem } from '../pages/layout.ts'
import { type LoginForm, loginPage } from '../pages/login.ts'
import { TEXTS } from '../pages/texts.ts'
import { lifetimeOf } from '../tokens/signed-tokens.ts'
import type { GrantedScope } from '../dependencies/scopes.ts'
import { carry, carryToSwitch } from './carry.ts'
import type { Candidate } from './decide.ts'
import { anyAppMayTake } from './redirect-uri.ts'
import { type AuthorizationRequest, onlyValue } from './request.ts'

interface LoginAgain extends Pick<LoginForm, 'notice' | 'cookieless'> {
  readonly username?: string
  readonly problems?: readonly FormProblem[]
}

/** Why a page is shown again. Anybody may write this parameter, so it only chooses one of our own texts. */
export type LoginNotice = keyof typeof TEXTS.login.notices

const isNotice = (text: string | undefined): text is LoginNotice =>
  text !== undefined && Object.hasOwn(TEXTS.login.notices, text)

export const noticeIn = (form: Form): LoginNotice | undefined => {
  const text = onlyValue(form, 'notice')
  return isNotice(text) ? text : undefined
}

/** Starts the request again, by GET: then the cookie of this browser comes along, even if another site posted. */
export function restartRequest(
  request: AuthorizationRequest,
  { theme }: StepDependencies,
  notice?: LoginNotice,
): Answer {
  const noticeParameter = notice === undefined ? '' : `&notice=${notice}`
  return seeOther(theme.at(`/connect/authorize?${carry(request)}${noticeParameter}`))
}

/** The longest `login_hint`, in characters. A longer one is cut: nobody has such a user name. */
const HINT_LENGTH = 200

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
    forgotten: dependencies.theme.forgotten,
  })
  return pageAnswer(dependencies.theme, page, cookieHeaders(browser, dependencies))
}

type Question = { readonly scope: GrantedScope } | { readonly candidates: readonly Candidate[] }

/** Scope values in the words of the catalogue: first those about the person, then those about data. */
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

const grantedSomewhere = (
  { scope }: AuthorizationRequest,
  candidates: readonly Candidate[],
): readonly string[] =>
  scope.values.filter((value) => candidates.some((candidate) => candidate.scope.values.includes(value)))

export const shownName = ({ user }: Login): string => user.claims.name ?? user.username

async function placeOf(question: Question, { places }: StepDependencies): Promise<ConsentDetails['place']> {
  const target = 'scope' in question ? question.scope.target : undefined
  if (target === undefined) return undefined
  const found = await places.findBusinesses([target.business])
  const business = found.get(target.business)?.name ?? target.business
  return { business, fund: target.level === 'fund' ? target.fund : undefined }
}

/** The client as the page shows it. An address on the person's own device says nothing to them. */
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
  { notice, problems = [] }: { notice?: string | undefined; problems?: readonly FormProblem[] } = {},
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
    user: shownName(login),
    switchUser: dependencies.theme.at(`/connect/authorize?${carryToSwitch(request)}`),
    account: dependencies.theme.at('/connect/account'),
    about,
    data,
    accessLifetime: lifetimeOf(request.namedClient, dependencies.config) * 1000,
    lastingDays: lasting ? Math.ceil(dependencies.config.refreshToken.lifetime / DAY_MS) : undefined,
    place: await placeOf(question, dependencies),
    picker: candidates && (await pickerOf(request, login.user.subject, candidates, parts)),
    problems,
    notice,
  })
  return pageAnswer(dependencies.theme, page)
}

/** Businesses from which on the page has a search field. */
const SEARCHED_FROM = 8

/** Businesses on one page. */
const SHOWN = 20

interface View {
  readonly find: string
  readonly from: number
}

function viewOf({ params }: AuthorizationRequest): View {
  const from = params.get('from') ?? ''
  return {
    find: searchOf(params.get('find')),
    from: /^[0-9]{1,6}$/.test(from) ? Number(from) : 0,
  }
}

/** Whether each word of the search is in the business's name or code. */
const finds = (find: string): ((choice: BusinessChoice) => boolean) => {
  const isFound = finderOf(find)
  return ({ code, name }) => isFound(`${name} ${code}`)
}

async function allChoices(
  { namedClient }: AuthorizationRequest,
  subject: string,
  candidates: readonly Candidate[],
  consents: Pick<Consents, 'listOf'>,
): Promise<readonly BusinessChoice[]> {
  const given = await consents.listOf(subject)
  const before = new Set<string | null>(
    given.filter(({ client }) => client === namedClient.id).map(({ business }) => business),
  )
  return candidates
    .map(({ business: { code, name }, role }) => ({ code, name, role, before: before.has(code) }))
    .sort(
      (a, b) => Number(b.before) - Number(a.before) || a.name.localeCompare(b.name, 'en', { numeric: true }),
    )
}

/**
 * The candidates that the request's own parameters `find` and `from` leave. Those that the user has allowed this client
 * before come first, then by name.
 * @param at the address of an identity endpoint
 */
async function pickerOf(
  request: AuthorizationRequest,
  subject: string,
  candidates: readonly Candidate[],
  { consents, at }: { readonly consents: Pick<Consents, 'listOf'>; readonly at: (path: string) => string },
): Promise<Picker> {
  const { find, from: wanted } = viewOf(request)
  const all = await allChoices(request, subject, candidates, consents)
  const found = all.length < SEARCHED_FROM || find === '' ? all : all.filter(finds(find))
  // There may be fewer now than when the link to a later page was made.
  const from = wanted < found.length ? wanted : 0
  const shown = found.slice(from, from + SHOWN)
  const pageFrom = (start: number): string =>
    at(
      `/connect/authorize?${carry(request, { find: find || undefined, from: start > 0 ? String(start) : undefined })}`,
    )
  return {
    choices: shown,
    isOnly: all.length === 1,
    found: found.length,
    from,
    search:
      all.length < SEARCHED_FROM
        ? undefined
        : {
            action: at('/connect/authorize'),
            find,
            request: carry(request, { find: undefined, from: undefined }),
          },
    previous: from > 0 ? pageFrom(Math.max(0, from - SHOWN)) : undefined,
    next: from + SHOWN < found.length ? pageFrom(from + SHOWN) : undefined,
  }
}
