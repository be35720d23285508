import { inputOf, SHOW_PASSWORD } from './fields.ts'
import {
  csrfField,
  type OwnForm,
  html,
  type Html,
  noticeBox,
  type Page,
  type FormProblem,
  problemSummary,
} from './layout.ts'
import { TEXTS } from './texts.ts'

const T = TEXTS.login

export interface LoginForm {
  readonly form: OwnForm
  /** Who sent the user here, and where a form may lead; undefined before our own pages. */
  readonly client: { readonly name: string; readonly leadsTo: string } | undefined
  readonly username: string
  readonly problems: readonly FormProblem[]
  readonly notice?: string | undefined
  /** The browser sent no cookie with the form before. If it sends none again, it keeps none. */
  readonly cookieless?: boolean
  /** For who has forgotten the password. */
  readonly forgotten: string | undefined
}

const COOKIELESS = html`<input type="hidden" name="cookieless" value="1" />`

/** The password is never sent back; the user name is. */
function passwordForm({ client, cookieless, form, problems, username }: LoginForm): Html {
  const isNamed = username !== ''
  const name = {
    name: 'username',
    label: T.username,
    autocomplete: 'username',
    value: username,
    focus: !isNamed,
  } as const
  const password = {
    name: 'password',
    label: TEXTS.fields.current,
    autocomplete: 'current-password',
    focus: isNamed,
  } as const
  return html`<form method="post" action="${form.action}" novalidate>
      ${csrfField(form)} ${cookieless && COOKIELESS} ${inputOf(name, problems)} ${inputOf(password, problems)}
      <button type="submit" name="decision" value="login">${T.submit}</button>
      ${
        client &&
        html`<p class="aside">
          <button class="link" type="submit" name="decision" value="cancel">${T.cancel(client.name)}</button>
        </p>`
      }
    </form>
    ${SHOW_PASSWORD.element}`
}

const forgottenLine = ({ forgotten }: LoginForm): Html | undefined =>
  forgotten === undefined ? undefined : html`<p class="aside quiet">${forgotten}</p>`

/** The ways to sign in, and what belongs to them, from top to bottom. */
const PARTS: readonly ((facts: LoginForm) => Html | undefined)[] = [passwordForm, forgottenLine]

/** The login page (C6.2.2). */
export function loginPage(facts: LoginForm): Page {
  const { client, problems } = facts
  const body = html`<h1>${T.title}</h1>
    <p class="lead">${client === undefined ? T.toAccount : T.to(client.name)}</p>
    ${noticeBox(facts.notice)} ${problemSummary(T.problem, problems)} ${PARTS.map((part) => part(facts))}`
  const status = problems.length === 0 ? 200 : 422
  return { title: T.title, body, leadsTo: client?.leadsTo, status, script: SHOW_PASSWORD.source }
}
