import type { User } from '../../base/contracts/people/people.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { TEXTS } from '../pages/texts.ts'
import { type BrowserContext, browserName } from './browser-context.ts'
import type { Arrived, StepDependencies } from './endpoint.ts'
import { give, loginEnded, loginSucceeded, took } from './records.ts'

/** How somebody has proven who they are, as records and metrics name it (C12.3). */
export type LoginWay = 'password'

interface SignIn extends Pick<Arrived, 'attempt' | 'exchange'> {
  readonly user: Pick<User, 'subject'>
  readonly way: LoginWay
  readonly browser: BrowserContext
  /** `RevocationRules.asOf` of before it was known that the person may sign in. */
  readonly asOf: number
}

/** Begins a session for who was verified, and ends the one that this browser had. Resolves with the value of its cookie. */
export async function signIn(
  { asOf, attempt, browser, exchange, user: { subject }, way }: SignIn,
  dependencies: StepDependencies,
): Promise<string> {
  const { login: before } = browser
  const { recorder, security, sessions } = dependencies
  const name = browserName(exchange.head.headers['user-agent'] ?? '', TEXTS.account.unknownBrowser)
  // The same person keeps the `sid`, so that clients still know this login.
  const kept = before?.user.subject === subject ? before.session.sid : undefined
  const next = { subject, browser: name, address: exchange.clientAddress, asOf, sid: kept ?? newSecret(16) }
  const { begin, cookie, key } = sessions.draw(next)
  const replace = async (): Promise<void> => {
    await security.carryOver(browser.cookie, cookie)
    // The login that this browser had before ends.
    if (before !== undefined && (await sessions.end(before.session.key, before.user.subject, next)))
      await took(loginEnded(exchange, before.session), dependencies)
    await begin()
  }
  await give(loginSucceeded(exchange, { subject, key, client: attempt.client }, way), replace, dependencies)
  recorder.count?.('logins', way, 'succeeded')
  return cookie
}
