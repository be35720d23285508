import type { Answer } from '../../contracts/exchange.ts'
import { Fault } from '../../kernel/faults.ts'
import { decide, type Decision } from '../authorize/decide.ts'
import { redirectingFaults } from '../authorize/refusals.ts'
import { type AuthorizationRead, nameClient, readQuery, readRequest } from '../authorize/request.ts'
import { restartRequest, showConsent } from '../authorize/show.ts'
import { isForeignForm, isOwnForm, noteUser, browserContextOf } from '../browser/browser-context.ts'
import type { Arrived } from '../context.ts'
import { noteCall } from '../dependencies.ts'
import { flow, type Step, type StepDependencies } from '../endpoint.ts'
import { TEXTS } from '../pages/texts.ts'
import { consentGiven, give, recordRefusals } from '../records.ts'
import type { GrantedScope } from '../scopes.ts'
import { paramsOf, readFields } from '../steps/read-form.ts'
import { answerCode } from './authorize.ts'

type LoggedInDecision = Exclude<Decision, { kind: 'login' }>

/** What was allowed; undefined where a business had to be chosen and none of those offered was. */
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
  const params = paramsOf(await readFields(exchange))
  const browser = await browserContextOf(exchange, dependencies)
  noteUser(attempt, browser)
  if (isForeignForm(exchange, dependencies)) return restartRequest(request, dependencies)
  // Nothing is lost by it, so it may come from a page that is out of date.
  if (params.get('decision') === 'deny') throw new Fault('access_denied')
  if (!isOwnForm(exchange, params.get('csrf'), browser, dependencies))
    return restartRequest(request, dependencies, 'unanswered')
  const asked = await decide(request, browser, dependencies)
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
