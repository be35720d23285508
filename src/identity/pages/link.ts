import { newPasswordFields, SHOW_PASSWORD } from './fields.ts'
import { csrfField, type FormProblem, html, type OwnForm, type Page, problemSummary } from './layout.ts'
import { TEXTS } from './texts.ts'

const T = TEXTS.link

/** Where who was given a link chooses a password (C6.3.7). */
export function linkPage(facts: {
  readonly form: OwnForm
  readonly username: string
  readonly problems: readonly FormProblem[]
}): Page {
  const { form, problems, username } = facts
  const body = html`<h1>${T.title}</h1>
    <p class="lead">${T.for(username)}</p>
    ${problemSummary(TEXTS.fields.problem, problems)}
    <form method="post" action="${form.action}" novalidate>
      ${csrfField(form)} ${newPasswordFields(username, problems, true)}
      <button type="submit">${TEXTS.fields.submit}</button>
    </form>
    ${SHOW_PASSWORD.element}`
  const status = problems.length === 0 ? 200 : 422
  return { title: T.title, body, status, alone: true, script: SHOW_PASSWORD.source }
}

/** The password was set; nobody is signed in. */
export const linkDonePage = (signIn: string): Page => ({
  title: T.doneTitle,
  body: html`<h1>${T.doneTitle}</h1>
    <p class="lead">${T.doneText}</p>
    <p><a class="button" href="${signIn}">${T.signIn}</a></p>`,
  alone: true,
})
