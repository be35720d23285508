import type { Answer } from '../../base/contracts/calls/exchange.ts'
import type { NewRecord } from '../../base/contracts/records/store.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { decideAuthorization, type AuthorizationDecision } from '../authorize/decide.ts'
import { answerClient, redirectingFaults } from '../authorize/answer-client.ts'
import {
  nameClient,
  readAuthorization,
  readQuery,
  readRequest,
  requireFit,
} from '../authorize/read-request.ts'
import type { AuthorizationRead } from '../authorize/request.ts'
import { noticeIn, restartRequest, showConsent, showLogin } from '../authorize/show.ts'
import {
  browserContextOf,
  isForeignForm,
  isOwnForm,
  type Login,
  noteUser,
  strangerOf,
} from '../steps/browser-context.ts'
import { noteCall } from '../dependencies/dependencies.ts'
import { type Arrived, flow, type Step, type StepDependencies } from '../steps/endpoint.ts'
import { TEXTS } from '../pages/texts.ts'
import { codeIssued, consentGiven, give, recordRefusals } from '../steps/records.ts'
import type { GrantedScope } from '../dependencies/scopes.ts'
import { formParameters, readFields } from '../steps/read-form.ts'
import { codeLifetimeOf } from '../stored/codes.ts'

/** Makes a code and sends the browser back with it (C6.2.4). */
async function answerCode(
  { asOf, exchange, request }: AuthorizationRead,
  login: Login,
  scope: GrantedScope,
  dependencies: StepDependencies,
): Promise<Answer> {
  const { logouts } = dependencies
  const { namedClient, back, challenge, jkt, nonce, reference } = request
  const { session, user } = login
  const record = {
    client: namedClient.id,
    redirectUri: back.redirectUri,
    challenge: challenge ?? null,
    nonce: nonce ?? null,
    ...(jkt !== undefined && { jkt }),
    subject: user.subject,
    scope: scope.text,
    authTime: session.authTime,
    asOf,
    ...(namedClient.answerScope === 'asked' && { words: request.scope.values.join(' ') }),
    ...(logouts.isNotified(namedClient) && session.sid !== undefined && { sid: session.sid }),
  }
  const { code, family, open } = dependencies.codes.draw(
    record,
    scope.target?.business,
    codeLifetimeOf(namedClient, dependencies.config),
  )
  const decision =
    reference &&
    (async (record: NewRecord) => {
      await reference.useUp([record])
      return true
    })
  const parties = { client: namedClient.id, subject: user.subject }
  await give(codeIssued({ exchange, ...parties, scope }, family), () => open(decision), dependencies)
  noteCall(exchange, dependencies, 'info', 'code_issued', { ...parties, scope: scope.text })
  return answerClient(back, { code }, dependencies)
}

const answerRequest: Step<AuthorizationRead, Answer> = async (context, dependencies) => {
  const { attempt, exchange, posted, request } = context
  const browser = await browserContextOf(exchange, dependencies)
  noteUser(attempt, browser)
  // A form of another site comes without our SameSite cookie: it is known only after a redirect who is logged in.
  if (posted && browser.fresh) return restartRequest(request, dependencies)
  await request.reference?.open(browser.cookie)
  const decision = await decideAuthorization(request, browser, dependencies)
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

/** Answers HEAD, which link checkers and mail scanners send: the head of the login page. Nothing is made, noted or recorded. */
const head = answering(({ exchange, request }, dependencies) =>
  showLogin(request, strangerOf(exchange, dependencies), dependencies),
)

/** The authorization endpoint (C6.2.1, C6.2.2). */
export const authorize: Step<Arrived, Answer> = (context, dependencies) =>
  (context.exchange.head.method === 'HEAD' ? head : whole)(context, dependencies)

type LoggedInDecision = Exclude<AuthorizationDecision, { kind: 'login' }>

/** The scope that was allowed; undefined if a business had to be chosen and no offered one was. */
const allowedScope = (asked: LoggedInDecision, business: string | undefined): GrantedScope | undefined =>
  asked.kind === 'choice'
    ? asked.candidates.find((candidate) => candidate.business.code === business)?.scope
    : asked.scope

async function allow(
  context: AuthorizationRead,
  { login }: LoggedInDecision,
  scope: GrantedScope,
  dependencies: StepDependencies,
): Promise<Answer> {
  const { subject } = login.user
  const client = context.request.namedClient.id
  const { exchange } = context
  await give(
    consentGiven({ exchange, client, subject, scope }),
    () => dependencies.consents.remember({ client, subject, scope }),
    dependencies,
  )
  noteCall(exchange, dependencies, 'info', 'consent', { client, subject, scope: scope.text })
  return answerCode(context, login, scope, dependencies)
}

const answerConsent: Step<AuthorizationRead, Answer> = async (context, dependencies) => {
  const { attempt, exchange, request } = context
  if (exchange.head.method !== 'POST') return restartRequest(request, dependencies)
  const params = formParameters(await readFields(exchange))
  const browser = await browserContextOf(exchange, dependencies)
  noteUser(attempt, browser)
  if (isForeignForm(exchange, dependencies)) return restartRequest(request, dependencies)
  // A refusal does no harm, so it may come from a page that is out of date.
  if (params.get('decision') === 'deny') throw new Fault('access_denied')
  if (!isOwnForm(exchange, params.get('csrf'), browser, dependencies))
    return restartRequest(request, dependencies, 'unanswered')
  const asked = await decideAuthorization(request, browser, dependencies)
  if (asked.kind === 'login') return restartRequest(request, dependencies, 'unanswered')
  if (params.get('decision') !== 'allow') return restartRequest(request, dependencies)
  const scope = allowedScope(asked, params.get('business'))
  if (scope !== undefined) return allow(context, asked, scope, dependencies)
  if (asked.kind !== 'choice') return restartRequest(request, dependencies, 'unanswered')
  const problem = { text: TEXTS.consent.missingBusiness, field: 'business-0' }
  return showConsent(request, asked, { ...browser, login: asked.login }, dependencies, {
    problems: [problem],
  })
}

/** The consent form (C6.2.2). Its query is the request, judged anew: what the page said cannot be changed on the way. */
export const consent: Step<Arrived, Answer> = recordRefusals(
  'authorization.refused',
  flow(readQuery, nameClient, redirectingFaults(flow(readRequest, answerConsent), false)),
)
