import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import { noteCall } from '../dependencies/dependencies.ts'
import { ACCOUNT_PATH, browsersSection, type SessionListed } from '../pages/account.ts'
import { pageAnswer } from '../pages/layout.ts'
import { loggedOutPage } from '../pages/notices.ts'
import type { Login } from '../steps/browser-context.ts'
import type { StepDependencies } from '../steps/endpoint.ts'
import { loginEnded, sessionRevoked, took } from '../steps/records.ts'
import type { AccountPart } from './part.ts'

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

function sayGoodbye({ cookie, theme }: StepDependencies, everywhere: boolean) {
  const page = loggedOutPage({ back: undefined, signIn: theme.at(ACCOUNT_PATH), everywhere })
  return pageAnswer(theme, page, { 'Set-Cookie': cookie.clear() })
}

/** Where the person is signed in (C6.2.2). */
export const browsers: AccountPart = {
  fields: ['end', 'everywhere'],
  async show({ form, login: { session, user } }, { sessions, theme }) {
    const all = await sessions.listOf(user.subject)
    const isHere = ({ key }: { readonly key: string }): boolean => key === session.key
    const listed = [...all.filter(isHere), ...all.filter((each) => !isHere(each))].map(
      ({ address, authTime, browser, key, lastUsedAt }): SessionListed => ({
        address,
        browser,
        key,
        lastUsedAt,
        current: key === session.key,
        at: authTime * 1000,
      }),
    )
    return browsersSection(listed, form, theme.timeZone)
  },
  async act({ context: { exchange }, login, params }, dependencies) {
    const session = params.get('end') ?? ''
    const everywhere = params.has('everywhere')
    if (everywhere) await endEverywhere(login, exchange, dependencies)
    else await endSession(session, login, exchange, dependencies)
    noteCall(exchange, dependencies, 'info', 'logout', { subject: login.user.subject })
    const isHere = everywhere || session === login.session.key
    return isHere ? { answer: sayGoodbye(dependencies, everywhere) } : { done: 'ended' }
  },
}
