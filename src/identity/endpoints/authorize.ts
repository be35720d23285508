import type { Answer } from '../../contracts/exchange.ts'
import { answerClient } from '../authorize/answer-client.ts'
import { decide } from '../authorize/decide.ts'
import { redirectingFaults } from '../authorize/refusals.ts'
import {
  type AuthorizationRead,
  nameClient,
  readAuthorization,
  readRequest,
  requireFit,
} from '../authorize/request.ts'
import { restartRequest, noticeIn, showConsent, showLogin } from '../authorize/show.ts'
import { type Login, noteUser, browserContextOf, strangerOf } from '../browser/browser-context.ts'
import type { Arrived } from '../context.ts'
import { noteCall } from '../dependencies.ts'
import { flow, type Step, type StepDependencies } from '../endpoint.ts'
import { TEXTS } from '../pages/texts.ts'
import { codeIssued, give, recordRefusals } from '../records.ts'
import type { GrantedScope } from '../scopes.ts'

/** Makes a code and sends the browser back with it (C6.2.4). */
export async function answerCode(
  { asOf, exchange, request }: AuthorizationRead,
  login: Login,
  scope: GrantedScope,
  dependencies: StepDependencies,
): Promise<Answer> {
  const { namedClient, back, challenge, nonce } = request
  const { session, user } = login
  const record = {
    client: namedClient.id,
    redirectUri: back.redirectUri,
    challenge: challenge ?? null,
    nonce: nonce ?? null,
    subject: user.subject,
    scope: scope.text,
    authTime: session.authTime,
    asOf,
  }
  const { code, family, open } = dependencies.codes.draw(record, scope.target?.business)
  const parties = { client: namedClient.id, subject: user.subject }
  await give(codeIssued({ exchange, ...parties, scope }, family), open, dependencies)
  noteCall(exchange, dependencies, 'info', 'code_issued', { ...parties, scope: scope.text })
  return answerClient(back, { code }, dependencies)
}

/** The next page, or the answer to the client. */
const answerRequest: Step<AuthorizationRead, Answer> = async (context, dependencies) => {
  const { attempt, exchange, posted, request } = context
  const browser = await browserContextOf(exchange, dependencies)
  noteUser(attempt, browser)
  // A form of another site comes without our SameSite cookie: only the browser's own next step tells who is logged in.
  if (posted && browser.fresh) return restartRequest(request, dependencies)
  const decision = await decide(request, browser, dependencies)
  const notice = noticeIn(context.form)
  if (decision.kind === 'login')
    return showLogin(request, browser, dependencies, { notice: notice && TEXTS.login.notices[notice] })
  const { login } = decision
  if (decision.kind === 'code') return answerCode(context, login, decision.scope, dependencies)
  return showConsent(request, decision, { ...browser, login }, dependencies, {
    notice: notice && TEXTS.consent.notices[notice],
  })
}

const answering = (answer: Step<AuthorizationRead, Answer>): Step<Arrived, Answer> =>
  flow(readAuthorization, nameClient, requireFit, redirectingFaults(flow(readRequest, answer), true))

const whole = recordRefusals('authorization.refused', answering(answerRequest))

/** Of HEAD, which checks of links and mail scanners send: the head of the login page. Nothing is made, noted or recorded. */
const head = answering(({ exchange, request }, dependencies) =>
  showLogin(request, strangerOf(exchange, dependencies), dependencies),
)

/** C6.2.1, C6.2.2. */
export const authorize: Step<Arrived, Answer> = (context, dependencies) =>
  (context.exchange.head.method === 'HEAD' ? head : whole)(context, dependencies)
