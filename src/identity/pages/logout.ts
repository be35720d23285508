import { html } from './html.ts'
import { csrfField, type FormFacts, type Page } from './layout.ts'
import { TEXTS } from './texts.ts'

const T = TEXTS.logout

export interface LogoutFacts {
  readonly form: FormFacts
  /** Who asks, where that is known. */
  readonly client: string | undefined
  /** Where the form may lead. */
  readonly leadsTo: string | undefined
  /** Where one gets by staying signed in. */
  readonly stay: string
}

/** Asks before it ends a session, since nothing proves that the user meant it (RP-Initiated Logout §2, T6). */
export function confirmLogoutPage({ form, client, leadsTo, stay }: LogoutFacts): Page {
  const body = html`<h1>${T.title}</h1>
    <p class="lead">${T.text(client)}</p>
    <form method="post" action="${form.action}">
      ${csrfField(form)}
      <div class="actions">
        <a class="button second" href="${stay}">${T.stay}</a>
        <button type="submit" name="decision" value="logout">${T.submit}</button>
      </div>
    </form>`
  return { title: T.title, body, leadsTo }
}

export interface LoggedOutFacts {
  /** A registered address of a client, to go on at. */
  readonly back: { readonly client: string; readonly uri: string } | undefined
  readonly signIn: string
}

export function loggedOutPage({ back, signIn }: LoggedOutFacts): Page {
  const body = html`<h1>${T.doneTitle}</h1>
    <p class="lead">${T.doneText}</p>
    ${
      back === undefined
        ? html`<p><a href="${signIn}">${T.signIn}</a></p>`
        : html`<p><a class="button" href="${back.uri}">${T.back(back.client)}</a></p>`
    }`
  return { title: T.doneTitle, body }
}
