import type { Answer } from '../../base/contracts/calls/exchange.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { orUnavailable } from '../dependencies/dependencies.ts'
import { mayHold } from '../directory/records/holdings.ts'
import { ACCOUNT_PATH } from '../pages/account.ts'
import { pageAnswer, type FormProblem } from '../pages/layout.ts'
import { linkDonePage, linkPage } from '../pages/link.ts'
import { isOwnForm, linkedBrowser, seeOther } from '../steps/browser-context.ts'
import type { Arrived, Step, StepDependencies } from '../steps/endpoint.ts'
import { formParameters, readFields, readQueryFields } from '../steps/read-form.ts'
import { recordRefusals } from '../steps/records.ts'
import { problemsOfPassword, setPassword } from '../steps/set-password.ts'
import { findPasswordLink, isLinkCode, isLinkFor, type PasswordLink } from '../stored/password-links.ts'

const PATH = '/connect/link'
/** The query of the page that says that the password is set: a page by GET, which can be loaded again. */
const DONE = 'password'

/** One answer for every link that is no good, so that it tells nothing about anybody (C6.3.7). */
const over = ({ linkCookie }: StepDependencies): Fault =>
  new Fault('password_link_over', { headers: { 'Set-Cookie': linkCookie.clear() } })

interface Opened {
  readonly code: string
  readonly link: PasswordLink
}

/** @throws Fault `password_link_over`, or `identity_unavailable` */
async function openedLink({ exchange }: Arrived, dependencies: StepDependencies): Promise<Opened> {
  const code = dependencies.linkCookie.read(exchange.head)
  const link = code === undefined ? undefined : await findPasswordLink(code, dependencies.store)
  if (code === undefined || link === undefined) throw over(dependencies)
  const { subject, username } = link
  const user = await orUnavailable(dependencies.people.findUserBySubject(subject))
  const password = user?.username === username ? user.passwordHash : undefined
  if (password === undefined || !isLinkFor(link, { subject, password })) throw over(dependencies)
  return { code, link }
}

/** Programs open links before people do: so nothing is looked up. The pages that follow have no code in their address. */
function hideCode(code: string, { linkCookie, theme }: StepDependencies): Answer {
  return seeOther(theme.at(PATH), { 'Set-Cookie': linkCookie.write(code) })
}

function showForm(
  { code, link }: Opened,
  problems: readonly FormProblem[],
  { linkCookie, theme }: StepDependencies,
): Answer {
  const form = { action: theme.at(PATH), csrf: linkedBrowser(code).csrf }
  const page = linkPage({ form, username: link.username, problems })
  // Who has made a mistake gets the full ten minutes of the cookie again.
  return pageAnswer(theme, page, problems.length === 0 ? {} : { 'Set-Cookie': linkCookie.write(code) })
}

const answerForm: Step<Arrived, Answer> = async (context, dependencies) => {
  const { attempt, exchange } = context
  const params = formParameters(await readFields(exchange))
  const opened = await openedLink(context, dependencies)
  const { code, link } = opened
  const { subject, username } = link
  attempt.subject = subject
  // A form of another site, or of a link that was opened before: the page of this one comes again.
  if (!isOwnForm(exchange, params.get('csrf'), linkedBrowser(code), dependencies))
    return seeOther(dependencies.theme.at(PATH))
  const problems = problemsOfPassword(params, username)
  if (problems.length > 0) return showForm(opened, problems, dependencies)
  const set = await setPassword(
    {
      username,
      subject,
      password: params.get('password') ?? '',
      way: 'link',
      admits: (user) => isLinkFor(link, user) && mayHold(user),
      // Another one may have been made, or this one revoked, while the password was hashed.
      isProven: async () => (await findPasswordLink(code, dependencies.store)) !== undefined,
    },
    exchange,
    dependencies,
  )
  if (set === undefined) throw over(dependencies)
  const headers = { 'Set-Cookie': dependencies.linkCookie.clear() }
  return seeOther(dependencies.theme.at(`${PATH}?done=${DONE}`), headers)
}

const answerPost = recordRefusals('login.refused', answerForm)

/** Where a link leads by which somebody sets a password (C6.3.7). */
export const link: Step<Arrived, Answer> = async (context, dependencies) => {
  const { exchange } = context
  if (exchange.head.method === 'POST') return answerPost(context, dependencies)
  const query = readQueryFields(exchange)
  const codes = query.get('code')
  if (codes !== undefined) {
    const [code, ...more] = codes
    if (!isLinkCode(code) || more.length > 0) throw over(dependencies)
    return hideCode(code, dependencies)
  }
  const { theme } = dependencies
  if (query.get('done')?.[0] === DONE) return pageAnswer(theme, linkDonePage(theme.at(ACCOUNT_PATH)))
  return showForm(await openedLink(context, dependencies), [], dependencies)
}
