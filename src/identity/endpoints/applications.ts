import type { Answer, Exchange } from '../../contracts/exchange.ts'
import { paramsOf, readFields, readParameters } from '../steps/read-form.ts'
import { Fault } from '../../kernel/faults.ts'
import { describeScope, nameOf, showLogin } from '../authorize/show.ts'
import type { Consent } from '../browser/consents.ts'
import { withdrawConsent } from '../browser/withdraw.ts'
import {
  isOwnForm,
  type Login,
  seeOther,
  type BrowserContext,
  browserContextOf,
} from '../browser/browser-context.ts'
import type { Arrived } from '../context.ts'
import { noteCall, reach } from '../dependencies.ts'
import type { Step, StepDependencies } from '../endpoint.ts'
import { applicationsPage, type ConsentListed, type Done, type SessionListed } from '../pages/applications.ts'
import { pageAnswer } from '../pages/layout.ts'
import { loggedOutPage } from '../pages/notices.ts'
import { TEXTS } from '../pages/texts.ts'

const PATH = '/connect/applications'

const isDone = (text: string | undefined): text is Done =>
  text !== undefined && Object.hasOwn(TEXTS.applications.done, text)

function doneOf({ target }: Arrived['exchange']): Done | undefined {
  const done = target instanceof Fault ? undefined : readParameters(target.query.slice(1)).get('done')?.[0]
  return isDone(done) ? done : undefined
}

async function listConsent(consent: Consent, room: StepDependencies): Promise<ConsentListed> {
  const name = await reach(room.people.findClientName(consent.client))
  const { about, data, lasting } = describeScope(consent.scopes, room)
  const { at, business, key } = consent
  return {
    key,
    client: name ?? consent.client,
    business: business === null ? undefined : (room.places.findBusiness(business)?.name ?? business),
    scopes: [...about, ...data],
    lasting,
    at,
  }
}

async function showApplications(
  { session, user }: Login,
  visit: BrowserContext,
  done: Done | undefined,
  room: StepDependencies,
): Promise<Answer> {
  const consents = await room.consents.listOf(user.subject)
  const sessions = await room.sessions.listOf(user.subject)
  const page = applicationsPage({
    form: { action: room.look.at(PATH), csrf: visit.csrf },
    user: nameOf({ session, user }),
    consents: await Promise.all(consents.map((consent) => listConsent(consent, room))),
    sessions: sessions.map(({ authTime, browser, key }): SessionListed => ({
      key,
      browser,
      current: key === session.key,
      at: authTime * 1000,
    })),
    done,
  })
  return pageAnswer(room.look, page)
}

async function endSession(
  key: string,
  { session, user }: Login,
  exchange: Exchange,
  room: StepDependencies,
): Promise<Answer | Done> {
  await room.sessions.end(key, user.subject)
  noteCall(exchange, room, 'info', 'logout', { subject: user.subject })
  if (key !== session.key) return 'ended'
  const page = loggedOutPage({ back: undefined, signIn: room.look.at(PATH) })
  return pageAnswer(room.look, page, { 'Set-Cookie': room.cookie.clear() })
}

async function withdraw(
  key: string,
  { user }: Login,
  exchange: Exchange,
  room: StepDependencies,
): Promise<Done> {
  const consent = await room.consents.find(key)
  // Somebody else's counts as gone.
  if (consent?.subject === user.subject) await withdrawConsent(consent, exchange, room)
  return 'withdrawn'
}

async function answerForm(
  { exchange }: Arrived,
  login: Login,
  visit: BrowserContext,
  room: StepDependencies,
): Promise<Answer> {
  const params = paramsOf(await readFields(exchange))
  const over = (done: Done): Answer => seeOther(room.look.at(`${PATH}?done=${done}`))
  if (!isOwnForm(exchange, params.get('csrf'), visit)) return over('expired')
  const consent = params.get('withdraw')
  if (consent !== undefined) return over(await withdraw(consent, login, exchange, room))
  const session = params.get('end')
  if (session === undefined) return seeOther(room.look.at(PATH))
  const ended = await endSession(session, login, exchange, room)
  return typeof ended === 'string' ? over(ended) : ended
}

/** "Your connected applications": lists what was consented to and where one is logged in, and ends either (C6.2.2). */
export const applications: Step<Arrived, Answer> = async (context, room) => {
  const { exchange } = context
  const visit = await browserContextOf(exchange, room)
  if (visit.login === undefined) return showLogin(undefined, visit, room)
  if (exchange.head.method === 'POST') return answerForm(context, visit.login, visit, room)
  return showApplications(visit.login, visit, doneOf(exchange), room)
}
