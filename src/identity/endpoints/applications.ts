import type { Answer, Exchange } from '../../base/contracts/calls/exchange.ts'
import { describeScope, shownName, showLogin } from '../authorize/show.ts'
import {
  type BrowserContext,
  browserContextOf,
  isForeignForm,
  isOwnForm,
  type Login,
  seeOther,
} from '../steps/browser-context.ts'
import { type Consent, endConsent } from '../stored/consents.ts'
import { noteCall, orUnavailable } from '../dependencies/dependencies.ts'
import type { Arrived, Step, StepDependencies } from '../steps/endpoint.ts'
import { applicationsPage, type ConsentListed, type Done, type SessionListed } from '../pages/applications.ts'
import { pageAnswer } from '../pages/layout.ts'
import { loggedOutPage } from '../pages/notices.ts'
import { TEXTS } from '../pages/texts.ts'
import { consentWithdrawn, loginEnded, sessionRevoked, took } from '../steps/records.ts'
import { formParameters, readFields, readQueryFields } from '../steps/read-form.ts'

async function withdrawConsent(
  key: string,
  { user }: Login,
  exchange: Exchange,
  dependencies: StepDependencies,
): Promise<void> {
  const consent = await dependencies.consents.find(key)
  // A consent of another user counts as one that does not exist.
  if (consent?.subject !== user.subject) return
  const families = await endConsent(consent, dependencies, { via: 'withdrawn by the user' })
  await took(consentWithdrawn(exchange, consent, families), dependencies)
  const { business, client, subject } = consent
  noteCall(exchange, dependencies, 'info', 'consent_withdrawn', { client, subject, business })
}

const PATH = '/connect/applications'

const isDone = (text: string | undefined): text is Done =>
  text !== undefined && Object.hasOwn(TEXTS.applications.done, text)

function doneOf(exchange: Exchange): Done | undefined {
  const done = readQueryFields(exchange).get('done')?.[0]
  return isDone(done) ? done : undefined
}

async function listConsent(consent: Consent, dependencies: StepDependencies): Promise<ConsentListed> {
  const name = await orUnavailable(dependencies.people.findClientName(consent.client))
  const { about, data, lasting } = describeScope(consent.scopes, dependencies)
  const { at, business, key } = consent
  const found = await dependencies.places.findBusinesses(business === null ? [] : [business])
  return {
    key,
    client: name ?? consent.client,
    business: business === null ? undefined : (found.get(business)?.name ?? business),
    scopes: [...about, ...data.map(({ text }) => text)],
    lasting,
    at,
  }
}

async function showApplications(
  { session, user }: Login,
  browser: BrowserContext,
  done: Done | undefined,
  dependencies: StepDependencies,
): Promise<Answer> {
  const consents = await dependencies.consents.listOf(user.subject)
  const all = await dependencies.sessions.listOf(user.subject)
  const isHere = ({ key }: { readonly key: string }): boolean => key === session.key
  const sessions = [...all.filter(isHere), ...all.filter((each) => !isHere(each))]
  const page = applicationsPage({
    form: { action: dependencies.theme.at(PATH), csrf: browser.csrf },
    user: shownName({ session, user }),
    consents: await Promise.all(consents.map((consent) => listConsent(consent, dependencies))),
    sessions: sessions.map(({ address, authTime, browser, key, lastUsedAt }): SessionListed => ({
      address,
      browser,
      key,
      lastUsedAt,
      current: key === session.key,
      at: authTime * 1000,
    })),
    done,
    timeZone: dependencies.theme.timeZone,
  })
  return pageAnswer(dependencies.theme, page)
}

async function endSession(
  key: string,
  { session, user }: Login,
  exchange: Exchange,
  dependencies: StepDependencies,
): Promise<void> {
  const login = { key, subject: user.subject }
  if (!(await dependencies.sessions.end(key, user.subject))) return
  const own = key === session.key
  await took(own ? loginEnded(exchange, login) : sessionRevoked(exchange, login, 'user'), dependencies)
}

/** The user's own session comes last, so that the form can be sent again where the others could not all be ended. */
async function endEverywhere(
  login: Login,
  exchange: Exchange,
  dependencies: StepDependencies,
): Promise<void> {
  const { session, user } = login
  const all = await dependencies.sessions.listOf(user.subject)
  const others = all.filter(({ key }) => key !== session.key)
  for (const { key } of [...others, session]) await endSession(key, login, exchange, dependencies)
}

function sayGoodbye({ cookie, theme }: StepDependencies, everywhere: boolean): Answer {
  const page = loggedOutPage({ back: undefined, signIn: theme.at(PATH), everywhere })
  return pageAnswer(theme, page, { 'Set-Cookie': cookie.clear() })
}

async function answerForm(
  { exchange }: Arrived,
  login: Login,
  browser: BrowserContext,
  dependencies: StepDependencies,
): Promise<Answer> {
  const params = formParameters(await readFields(exchange))
  const over = (done: Done): Answer => seeOther(dependencies.theme.at(`${PATH}?done=${done}`))
  if (!isOwnForm(exchange, params.get('csrf'), browser, dependencies)) return over('expired')
  const consent = params.get('withdraw')
  if (consent !== undefined) {
    await withdrawConsent(consent, login, exchange, dependencies)
    return over('withdrawn')
  }
  const session = params.get('end')
  const everywhere = params.has('everywhere')
  if (session === undefined && !everywhere) return seeOther(dependencies.theme.at(PATH))
  if (session === undefined) await endEverywhere(login, exchange, dependencies)
  else await endSession(session, login, exchange, dependencies)
  noteCall(exchange, dependencies, 'info', 'logout', { subject: login.user.subject })
  return everywhere || session === login.session.key ? sayGoodbye(dependencies, everywhere) : over('ended')
}

/** The page is all of an account that its owner can see here. */
export const leadToAccount: Step<Arrived, Answer> = (_, { theme }) => seeOther(theme.at(PATH))

/** "Your connected applications": lists what was consented to and where one is logged in, and ends either (C6.2.2). */
export const applications: Step<Arrived, Answer> = async (context, dependencies) => {
  const { exchange } = context
  const browser = await browserContextOf(exchange, dependencies)
  const posted = exchange.head.method === 'POST'
  if (posted && isForeignForm(exchange, dependencies)) return seeOther(dependencies.theme.at(PATH))
  if (browser.login === undefined)
    return showLogin(
      undefined,
      browser,
      dependencies,
      posted ? { notice: TEXTS.login.notices.unanswered } : {},
    )
  if (posted) return answerForm(context, browser.login, browser, dependencies)
  return showApplications(browser.login, browser, doneOf(exchange), dependencies)
}
