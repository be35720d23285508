import type { Answer } from '../../base/contracts/calls/exchange.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { redirectingFaults } from '../authorize/answer-client.ts'
import { carryLoggedIn } from '../authorize/carry.ts'
import { nameClient, readQuery, readRequest } from '../authorize/read-request.ts'
import type { AuthorizationRead, AuthorizationRequest } from '../authorize/request.ts'
import { type LoginNotice, restartRequest, showLogin } from '../authorize/show.ts'
import {
  type BrowserContext,
  browserContextOf,
  isForeignForm,
  isOwnForm,
  seeOther,
} from '../steps/browser-context.ts'
import { noteCall } from '../dependencies/dependencies.ts'
import { type Arrived, flow, type Step, type StepDependencies } from '../steps/endpoint.ts'
import { verifyUser } from '../grants/password.ts'
import { ACCOUNT_PATH } from '../pages/account.ts'
import type { FormProblem } from '../pages/layout.ts'
import { TEXTS } from '../pages/texts.ts'
import { recordRefusals, refused } from '../steps/records.ts'
import { signIn } from '../steps/sign-in.ts'
import { formParameters, readFields } from '../steps/read-form.ts'

const T = TEXTS.login

type Params = ReadonlyMap<string, string>

const nextOf = (request: AuthorizationRequest | undefined, { theme }: StepDependencies): string =>
  theme.at(request === undefined ? ACCOUNT_PATH : `/connect/authorize?${carryLoggedIn(request)}`)

function missingFields(params: Params): readonly FormProblem[] {
  const needed = { username: T.missingUsername, password: T.missingPassword }
  return Object.entries(needed).flatMap(([field, text]) => (params.has(field) ? [] : [{ field, text }]))
}

/** Undefined if nobody was logged in. */
async function logIn(
  context: Arrived,
  params: Params,
  browser: BrowserContext,
  dependencies: StepDependencies,
): Promise<string | undefined> {
  const { attempt, exchange } = context
  const { clientAddress } = exchange
  const username = params.get('username') ?? ''
  attempt.typed = username
  const user = await verifyUser(
    {
      // No client in the key: a browser proves none, so that naming others would buy further attempts (C6.3.5).
      key: { user: username, client: '', network: clientAddress },
      password: params.get('password') ?? '',
      mayLogIn: () => true,
      onNamed: (subject) => {
        attempt.subject = subject
      },
    },
    dependencies,
  ).catch(tooMany)
  const { client, subject } = attempt
  const event = user === undefined ? 'login_refused' : 'login'
  noteCall(exchange, dependencies, 'info', event, { client, subject, network: clientAddress })
  if (user !== undefined) return signIn({ ...context, browser, user, way: 'password' }, dependencies)
  dependencies.recorder.count?.('logins', 'password', 'refused')
  refused('login.refused', context, new Fault('invalid_grant'), dependencies)
  return undefined
}

/** Too many attempts that wait count as one that failed (C6.3.5). */
function tooMany(thrown: unknown): undefined {
  if (thrown instanceof Fault && thrown.row.oauth === 'invalid_grant') return undefined
  throw thrown
}

/** The form is of a page that was opened before this browser's cookie changed, or no cookie came with it. */
function answerOutdated(
  request: AuthorizationRequest | undefined,
  params: Params,
  browser: BrowserContext,
  dependencies: StepDependencies,
): Answer {
  if (browser.login !== undefined) return startOver(request, dependencies, 'signedIn')
  const blocked = browser.fresh && params.has('cookieless')
  return showLogin(request, browser, dependencies, {
    username: params.get('username') ?? '',
    problems: [{ text: blocked ? T.noCookie : T.outdated }],
    cookieless: browser.fresh,
  })
}

async function answerForm(
  context: Arrived,
  request: AuthorizationRequest | undefined,
  dependencies: StepDependencies,
): Promise<Answer> {
  const params = formParameters(await readFields(context.exchange))
  const browser = await browserContextOf(context.exchange, dependencies)
  const username = params.get('username') ?? ''
  const again = (problems: readonly FormProblem[]): Answer =>
    showLogin(request, browser, dependencies, { username, problems })
  if (isForeignForm(context.exchange, dependencies)) return startOver(request, dependencies)
  await request?.reference?.open(browser.cookie)
  if (request !== undefined && params.get('decision') === 'cancel') throw new Fault('access_denied')
  if (!isOwnForm(context.exchange, params.get('csrf'), browser, dependencies))
    return answerOutdated(request, params, browser, dependencies)
  const missing = missingFields(params)
  if (missing.length > 0) return again(missing)
  const cookie = await logIn(context, params, browser, dependencies)
  if (cookie === undefined) return again([{ text: T.wrong }])
  return seeOther(nextOf(request, dependencies), { 'Set-Cookie': dependencies.cookie.write(cookie) })
}

/** Redirects to the page that leads to the form: somebody opened its address, as a reload does. */
const startOver = (
  request: AuthorizationRequest | undefined,
  dependencies: StepDependencies,
  notice?: LoginNotice,
): Answer =>
  request === undefined
    ? seeOther(dependencies.theme.at(ACCOUNT_PATH))
    : restartRequest(request, dependencies, notice)

const isPost = ({ exchange }: Arrived): boolean => exchange.head.method === 'POST'

const forClient: Step<Arrived, Answer> = recordRefusals(
  'authorization.refused',
  flow(
    readQuery,
    nameClient,
    redirectingFaults(
      flow(readRequest, (context: AuthorizationRead, dependencies) =>
        isPost(context)
          ? answerForm(context, context.request, dependencies)
          : startOver(context.request, dependencies),
      ),
      false,
    ),
  ),
)

const forOurPages: Step<Arrived, Answer> = recordRefusals('login.refused', (context, dependencies) =>
  isPost(context) ? answerForm(context, undefined, dependencies) : startOver(undefined, dependencies),
)

/** The login form (C6.2.2). Its query is the request that it is for; without one it is for our own pages. */
export const login: Step<Arrived, Answer> = (context, dependencies) => {
  const { target } = context.exchange
  const ofClient = !(target instanceof Fault) && target.query.length > 1
  return (ofClient ? forClient : forOurPages)(context, dependencies)
}
