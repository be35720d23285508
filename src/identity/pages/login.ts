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
import { readScript } from './own-script.ts'
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
}

interface Field {
  readonly name: 'username' | 'password'
  readonly type: string
  readonly label: string
  readonly value: string
  readonly autocomplete: string
  readonly focus: boolean
  /** For the script that shows the password. */
  readonly data?: Html
}

function inputOf(field: Field, problems: readonly FormProblem[]): Html {
  const { name } = field
  const problem = problems.find((each) => each.field === name)
  return html`<div class="field">
    <label for="${name}">${field.label}</label>
    <div${field.data && html` class="secret"`}><input
      id="${name}"
      name="${name}"
      type="${field.type}"
      value="${field.value}"
      autocomplete="${field.autocomplete}"
      autocapitalize="none"
      autocorrect="off"
      spellcheck="false"
      maxlength="1024"
      required${field.data}${field.focus && html` autofocus`}${
        problem && html` aria-invalid="true" aria-describedby="${name}-wrong"`
      }
    /></div>
    ${problem && html`<p class="wrong" id="${name}-wrong">${problem.text}</p>`}
  </div>`
}

const COOKIELESS = html`<input type="hidden" name="cookieless" value="1" />`

const SHOW_PASSWORD = readScript(new URL('show-password.js', import.meta.url))

/** The login page (C6.2.2). The password is never sent back; the user name is. */
export function loginPage(facts: LoginForm): Page {
  const { form, client, username, problems } = facts
  const name: Field = {
    name: 'username',
    type: 'text',
    label: T.username,
    value: username,
    autocomplete: 'username',
    focus: username === '',
  }
  const password: Field = {
    name: 'password',
    type: 'password',
    label: T.password,
    value: '',
    autocomplete: 'current-password',
    focus: username !== '',
    data: html` data-show="${T.show}" data-hide="${T.hide}" data-what="${T.showWhat}"`,
  }
  const body = html`<h1>${T.title}</h1>
    <p class="lead">${client === undefined ? T.toApplications : T.to(client.name)}</p>
    ${noticeBox(facts.notice)} ${problemSummary(T.problem, problems)}
    <form method="post" action="${form.action}" novalidate>
      ${csrfField(form)} ${facts.cookieless && COOKIELESS} ${inputOf(name, problems)}
      ${inputOf(password, problems)}
      <button type="submit" name="decision" value="login">${T.submit}</button>
      ${
        client &&
        html`<p class="aside">
          <button class="link" type="submit" name="decision" value="cancel">${T.cancel(client.name)}</button>
        </p>`
      }
    </form>
    ${SHOW_PASSWORD.element}`
  const status = problems.length === 0 ? 200 : 422
  return { title: T.title, body, leadsTo: client?.leadsTo, status, script: SHOW_PASSWORD.source }
}
