import { noteCall } from '../dependencies.ts'
import type { Answer } from '../../contracts/exchange.ts'
import { answerClient } from '../authorize/answer-client.ts'
import { tellingClient } from '../authorize/tell-client.ts'
import { decide } from '../authorize/decide.ts'
import {
  type AuthorizationRead,
  carry,
  nameClient,
  readAuthorization,
  readRequest,
} from '../authorize/request.ts'
import { showConsent, showLogin } from '../authorize/show.ts'
import { type Login, seeOther, browserContextOf } from '../browser/browser-context.ts'
import { flow, type Step, type StepDependencies } from '../endpoint.ts'
import type { Arrived } from '../context.ts'
import type { GrantedScope } from '../scopes.ts'

/** Makes a code and sends the browser back with it (C6.2.4). */
export async function answerCode(
  { asOf, exchange, request }: AuthorizationRead,
  login: Login,
  scope: GrantedScope,
  room: StepDependencies,
): Promise<Answer> {
  const { asking, back, challenge, nonce } = request
  const { session, user } = login
  const record = {
    client: asking.id,
    redirectUri: back.redirectUri,
    challenge: challenge ?? null,
    nonce: nonce ?? null,
    subject: user.subject,
    scope: scope.text,
    authTime: session.authTime,
    asOf,
  }
  const code = await room.codes.issue(record, scope.target?.business)
  const facts = { client: asking.id, subject: user.subject, scope: scope.text }
  noteCall(exchange, room, 'info', 'code_issued', facts)
  return answerClient(back, { code }, room)
}

/** The next page, or the answer to the client. */
const goOn: Step<AuthorizationRead, Answer> = async (context, room) => {
  const { exchange, posted, request } = context
  const visit = await browserContextOf(exchange, room)
  // A form of another site comes without our SameSite cookie: only the browser's own next step tells who is logged in.
  if (posted && visit.fresh) return seeOther(room.look.at(`/connect/authorize?${carry(request)}`))
  const decision = await decide(request, visit, room)
  if (decision.kind === 'login') return showLogin(request, visit, room)
  const { login } = decision
  if (decision.kind === 'code') return answerCode(context, login, decision.scope, room)
  return showConsent(request, decision, { ...visit, login }, room)
}

/** C6.2.1, C6.2.2. */
export const authorize: Step<Arrived, Answer> = flow(
  readAuthorization,
  nameClient,
  tellingClient(flow(readRequest, goOn), true),
)
