import { noteCall } from '../dependencies.ts'
import type { Answer } from '../../contracts/exchange.ts'
import { paramsOf, readFields } from '../steps/read-form.ts'
import { Fault } from '../../kernel/faults.ts'
import {
  type AuthorizationRead,
  type AuthorizationRequest,
  carry,
  carryLoggedIn,
  nameClient,
  readQuery,
  readRequest,
} from '../authorize/request.ts'
import { type LoginAgain, showLogin } from '../authorize/show.ts'
import { tellingClient } from '../authorize/tell-client.ts'
import {
  type BrowserContext,
  browserContextOf,
  browserName,
  isOwnForm,
  seeOther,
} from '../browser/browser-context.ts'
import { flow, type Step, type StepDependencies } from '../endpoint.ts'
import type { Arrived } from '../context.ts'
import type { Problem } from '../pages/layout.ts'
import { TEXTS } from '../pages/texts.ts'
import { verifyUser } from '../grants/password.ts'

const T = TEXTS.login

type Params = ReadonlyMap<string, string>

/** Where a login leads: on with the request, or to our own page. */
const nextOf = (request: AuthorizationRequest | undefined, { look }: StepDependencies): string =>
  look.at(request === undefined ? '/connect/applications' : `/connect/authorize?${carryLoggedIn(request)}`)

function missingFields(params: Params): readonly Problem[] {
  const needed = { username: T.missingUsername, password: T.missingPassword }
  return Object.entries(needed).flatMap(([field, text]) => (params.has(field) ? [] : [{ field, text }]))
}

/** Undefined if nobody was logged in. */
async function logIn(
  context: Arrived,
  params: Params,
  visit: BrowserContext,
  room: StepDependencies,
): Promise<string | undefined> {
  const { asOf, attempt, exchange } = context
  const { clientAddress, head } = exchange
  const username = params.get('username') ?? ''
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
    room,
  ).catch(tooMany)
  const { client, subject } = attempt
  const event = user === undefined ? 'login_refused' : 'login'
  noteCall(exchange, room, 'info', event, { client, subject, network: clientAddress })
  if (user === undefined) return undefined
  // Whoever is logged in there now is so no more.
  if (visit.login !== undefined) await room.sessions.end(visit.login.session.key, visit.login.user.subject)
  const browser = browserName(head.headers['user-agent'] ?? '', TEXTS.applications.unknownBrowser)
  return room.sessions.start({ subject: user.subject, browser, asOf })
}

/** Too many attempts that wait count as one that failed (C6.3.5). */
function tooMany(thrown: unknown): undefined {
  if (thrown instanceof Fault && thrown.row.oauth === 'invalid_grant') return undefined
  throw thrown
}

async function answerForm(
  context: Arrived,
  request: AuthorizationRequest | undefined,
  room: StepDependencies,
): Promise<Answer> {
  const params = paramsOf(await readFields(context.exchange))
  const visit = await browserContextOf(context.exchange, room)
  const username = params.get('username') ?? ''
  const again = (problems: LoginAgain['problems']): Answer =>
    showLogin(request, visit, room, { username, problems })
  if (!isOwnForm(context.exchange, params.get('csrf'), visit)) return again([{ text: T.expired }])
  if (request !== undefined && params.get('decision') === 'cancel') throw new Fault('access_denied')
  const missing = missingFields(params)
  if (missing.length > 0) return again(missing)
  const cookie = await logIn(context, params, visit, room)
  if (cookie === undefined) return again([{ text: T.wrong }])
  return seeOther(nextOf(request, room), { 'Set-Cookie': room.cookie.write(cookie) })
}

/** Opened by its address, as after a reload: the page that leads here. */
const startOver = (request: AuthorizationRequest | undefined, { look }: StepDependencies): Answer =>
  seeOther(look.at(request === undefined ? '/connect/applications' : `/connect/authorize?${carry(request)}`))

const isPost = ({ exchange }: Arrived): boolean => exchange.head.method === 'POST'

const forClient: Step<Arrived, Answer> = flow(
  readQuery,
  nameClient,
  tellingClient(
    flow(readRequest, (context: AuthorizationRead, room) =>
      isPost(context) ? answerForm(context, context.request, room) : startOver(context.request, room),
    ),
    false,
  ),
)

/** The login form (C6.2.2). Its query is the request that it is for; without one it is for our own pages. */
export const login: Step<Arrived, Answer> = (context, room) => {
  const { target } = context.exchange
  if (!(target instanceof Fault) && target.query.length > 1) return forClient(context, room)
  return isPost(context) ? answerForm(context, undefined, room) : startOver(undefined, room)
}
