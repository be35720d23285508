/** Fields of forms, and the script that shows what is typed into those of a password. */
import { html, type Html, type FormProblem } from './layout.ts'
import { readScript } from './own-script.ts'
import { TEXTS } from './texts.ts'

const T = TEXTS.fields

interface Field {
  readonly name: string
  readonly label: string
  readonly autocomplete: 'username' | 'current-password' | 'new-password'
  readonly value?: string
  readonly focus?: boolean
  /** A line under it: what is expected. */
  readonly hint?: string
}

/** A password can be shown where scripts run. It is never sent back. @param label for screen readers, behind the word on the button */
const revealed = (label: string): Html =>
  html` data-show="${T.show}" data-hide="${T.hide}"
  data-what="${label.charAt(0).toLowerCase()}${label.slice(1)}"`

/** The ids of the lines under the field, for screen readers. */
function describedBy({ hint, name }: Field, problem: FormProblem | undefined): Html | undefined {
  const ids = [...(problem ? [`${name}-wrong`] : []), ...(hint === undefined ? [] : [`${name}-hint`])]
  return ids.length === 0 ? undefined : html` aria-describedby="${ids.join(' ')}"`
}

export function inputOf(field: Field, problems: readonly FormProblem[]): Html {
  const { autocomplete, focus = false, hint, label, name, value = '' } = field
  const secret = autocomplete !== 'username'
  const problem = problems.find((each) => each.field === name)
  return html`<div class="field">
    <label for="${name}">${label}</label>
    <div${secret && html` class="secret"`}><input
      id="${name}"
      name="${name}"
      type="${secret ? 'password' : 'text'}"
      value="${secret ? '' : value}"
      autocomplete="${autocomplete}"
      autocapitalize="none"
      autocorrect="off"
      spellcheck="false"
      maxlength="1024"
      required${secret && revealed(label)}${focus && html` autofocus`}${
        problem && html` aria-invalid="true"`
      }${describedBy(field, problem)}
    /></div>
    ${problem && html`<p class="wrong" id="${name}-wrong">${problem.text}</p>`}
    ${hint !== undefined && html`<p class="quiet" id="${name}-hint">${hint}</p>`}
  </div>`
}

/** The two fields of another password. @param username for password managers, which keep it with the name */
export const newPasswordFields = (username: string, problems: readonly FormProblem[], focus: boolean): Html =>
  html`<input type="text" name="username" value="${username}" autocomplete="username" hidden />
    ${inputOf({ name: 'password', label: T.password, autocomplete: 'new-password', hint: T.length, focus }, problems)}
    ${inputOf({ name: 'again', label: T.again, autocomplete: 'new-password' }, problems)}`

/** Goes behind the form. */
export const SHOW_PASSWORD = readScript(new URL('show-password.js', import.meta.url))
