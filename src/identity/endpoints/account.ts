import type { Answer, Exchange } from '../../base/contracts/calls/exchange.ts'
import { applications } from '../account/applications.ts'
import { browsers } from '../account/browsers.ts'
import type { AccountPart } from '../account/part.ts'
import { password } from '../account/password.ts'
import { person } from '../account/person.ts'
import { shownName, showLogin } from '../authorize/show.ts'
import { ACCOUNT_PATH, type AccountDone, accountPage } from '../pages/account.ts'
import { type FormProblem, pageAnswer } from '../pages/layout.ts'
import { TEXTS } from '../pages/texts.ts'
import {
  type BrowserContext,
  browserContextOf,
  isForeignForm,
  isOwnForm,
  type Login,
  seeOther,
} from '../steps/browser-context.ts'
import type { Arrived, Step, StepDependencies } from '../steps/endpoint.ts'
import { formParameters, readFields, readQueryFields } from '../steps/read-form.ts'

/** The account page, from top to bottom. */
const PARTS: readonly AccountPart[] = [person, password, browsers, applications]

const isDone = (text: string | undefined): text is AccountDone =>
  text !== undefined && Object.hasOwn(TEXTS.account.done, text)

function doneOf(exchange: Exchange): AccountDone | undefined {
  const done = readQueryFields(exchange).get('done')?.[0]
  return isDone(done) ? done : undefined
}

interface Outcome {
  readonly done?: AccountDone | undefined
  readonly of?: AccountPart
  readonly problems?: readonly FormProblem[]
}

async function showAccount(
  login: Login,
  browser: BrowserContext,
  { done, of, problems = [] }: Outcome,
  dependencies: StepDependencies,
): Promise<Answer> {
  const { theme } = dependencies
  const form = { action: theme.at(ACCOUNT_PATH), csrf: browser.csrf }
  const sections = []
  for (const part of PARTS)
    sections.push(await part.show({ login, form, problems: part === of ? problems : [] }, dependencies))
  return pageAnswer(theme, accountPage({ user: shownName(login), done, problems, sections }))
}

async function answerForm(
  context: Arrived,
  login: Login,
  browser: BrowserContext,
  dependencies: StepDependencies,
): Promise<Answer> {
  const { exchange } = context
  const fields = await readFields(exchange)
  const params = formParameters(fields)
  const over = (done: AccountDone, headers?: Answer['headers']): Answer =>
    seeOther(dependencies.theme.at(`${ACCOUNT_PATH}?done=${done}`), headers)
  if (!isOwnForm(exchange, params.get('csrf'), browser, dependencies)) return over('expired')
  // Also by fields that were left empty: their form has a problem then.
  const part = PARTS.find((each) => each.fields.some((field) => fields.has(field)))
  const acted = await part?.act?.({ context, login, browser, params }, dependencies)
  if (part === undefined || acted === undefined) return seeOther(dependencies.theme.at(ACCOUNT_PATH))
  if ('answer' in acted) return acted.answer
  if ('done' in acted) return over(acted.done, acted.headers)
  return showAccount(login, browser, { of: part, problems: acted.problems }, dependencies)
}

/** Earlier addresses of the page, and the one that password managers ask for. */
export const leadToAccount: Step<Arrived, Answer> = ({ exchange }, { theme }) =>
  // A form of a page that an earlier version has shown.
  seeOther(theme.at(exchange.head.method === 'POST' ? `${ACCOUNT_PATH}?done=expired` : ACCOUNT_PATH))

/** The person, their password, where they are signed in, and what they have allowed (C6.2.2, C6.3.7). */
export const account: Step<Arrived, Answer> = async (context, dependencies) => {
  const { exchange } = context
  const browser = await browserContextOf(exchange, dependencies)
  const posted = exchange.head.method === 'POST'
  if (posted && isForeignForm(exchange, dependencies)) return seeOther(dependencies.theme.at(ACCOUNT_PATH))
  if (browser.login === undefined)
    return showLogin(
      undefined,
      browser,
      dependencies,
      posted ? { notice: TEXTS.login.notices.unanswered } : {},
    )
  if (posted) return answerForm(context, browser.login, browser, dependencies)
  return showAccount(browser.login, browser, { done: doneOf(exchange) }, dependencies)
}
