import { Fault } from '../../base/kernel/faults.ts'
import { isStoredUser } from '../directory/editors/user.ts'
import { mayHold } from '../directory/records/holdings.ts'
import { verifyUser } from '../grants/password.ts'
import { passwordElsewhere, passwordSection } from '../pages/account.ts'
import { TEXTS } from '../pages/texts.ts'
import { refused } from '../steps/records.ts'
import { problemsOfPassword, setPassword } from '../steps/set-password.ts'
import { signIn } from '../steps/sign-in.ts'
import { noteCall } from '../dependencies/dependencies.ts'
import type { AccountPart, Sent } from './part.ts'
import type { StepDependencies } from '../steps/endpoint.ts'
import type { User } from '../../base/contracts/people/people.ts'

const T = TEXTS.account

/** The present password, by the one way in (C6.3.5). Undefined if it is wrong, or too many attempts wait. */
async function verified(
  { context, login, params }: Sent,
  dependencies: StepDependencies,
): Promise<User | undefined> {
  const { subject, username } = login.user
  const key = { user: username, client: '', network: context.exchange.clientAddress }
  const password = params.get('current') ?? ''
  const mayLogIn = (user: User): boolean => user.subject === subject
  return verifyUser({ key, password, mayLogIn }, dependencies).catch((thrown: unknown) => {
    if (thrown instanceof Fault && thrown.row.oauth === 'invalid_grant') return undefined
    throw thrown
  })
}

/** The password, which its owner changes if Postern has it (C6.3.7). */
export const password: AccountPart = {
  fields: ['current', 'password', 'again'],
  async show({ form, login: { user }, problems }, dependencies) {
    const isOurs = await isStoredUser(dependencies.users, user)
    return isOurs
      ? passwordSection({ form, username: user.username, problems })
      : passwordElsewhere(dependencies.theme.forgotten)
  },
  async act(sent, dependencies) {
    const { browser, context, login, params } = sent
    const { exchange } = context
    const { subject, username } = login.user
    if (!(await isStoredUser(dependencies.users, login.user))) return { done: 'expired' }
    const problems = problemsOfPassword(params, username)
    if (!params.has('current'))
      return { problems: [{ field: 'current', text: T.missingCurrent }, ...problems] }
    if (problems.length > 0) return { problems }
    context.attempt.subject = subject
    const user = await verified(sent, dependencies)
    if (user === undefined) {
      const network = exchange.clientAddress
      noteCall(exchange, dependencies, 'info', 'login_refused', { subject, network })
      dependencies.recorder.count?.('logins', 'password', 'refused')
      refused('login.refused', context, new Fault('invalid_grant'), dependencies)
      return { problems: [{ field: 'current', text: T.wrongCurrent }] }
    }
    const set = await setPassword(
      {
        username,
        subject,
        password: params.get('password') ?? '',
        way: 'account',
        admits: (stored) =>
          stored.subject === subject && stored.password === user.passwordHash && mayHold(stored),
      },
      exchange,
      dependencies,
    )
    if (set === undefined) return { done: 'expired' }
    // All logins have ended, with the one of this browser: what begins now knows that. Unless somebody else has ended them since.
    const { asOf } = dependencies.rules
    const { record: now } = await dependencies.users.show(username)
    if (now.password !== set || !mayHold(now)) return { done: 'expired' }
    const fresh = { ...browser, login: undefined }
    const cookie = await signIn({ ...context, asOf, browser: fresh, user, way: 'password' }, dependencies)
    return { done: 'password', headers: { 'Set-Cookie': dependencies.cookie.write(cookie) } }
  },
}
