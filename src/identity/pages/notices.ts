import type { Fault } from '../../kernel/faults.ts'
import { csrfField, type FormFacts, html, noticeBox, type Page } from './layout.ts'
import { TEXTS } from './texts.ts'

const ERROR = TEXTS.error

/** What went wrong, for a person: the fixed text of the table of faults (C2.6), and what to quote. */
export function errorPage(fault: Fault, id: string): Page {
  const ours = fault.status === 503
  const title = ours ? ERROR.unavailableTitle : ERROR.title
  const body = html`<h1>${title}</h1>
    <p class="notice alert" role="alert">${fault.publicText}</p>
    <p>${ours ? ERROR.nextUnavailable : ERROR.next}</p>
    <dl class="facts">
      <dt>${ERROR.code}</dt>
      <dd>${fault.row.oauth}</dd>
      <dt>${ERROR.request}</dt>
      <dd>${id}</dd>
    </dl>`
  return { title, body, status: fault.status }
}

const FORM_POST = TEXTS.formPost

export interface FormPostFacts {
  readonly client: string
  readonly redirectUri: string
  readonly params: Readonly<Record<string, string>>
  readonly nonce: string
}

/** OAuth 2.0 Form Post Response Mode: sends itself, and has a button for where scripts are off (C6.2.3). */
export function formPostPage({ client, redirectUri, params, nonce }: FormPostFacts): Page {
  const fields = Object.entries(params).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`,
  )
  const body = html`<h1>${FORM_POST.title}</h1>
    <p class="lead">${FORM_POST.text(client)}</p>
    <form method="post" action="${redirectUri}">
      ${fields}
      <button type="submit">${FORM_POST.submit}</button>
    </form>
    <script nonce="${nonce}">
      document.forms[0].submit()
    </script>`
  return { title: FORM_POST.title, body, leadsTo: redirectUri, nonce }
}

const LOGOUT = TEXTS.logout

export interface LogoutFacts {
  readonly form: FormFacts
  /** Who asks, where that is known. */
  readonly client: string | undefined
  /** Where the form may lead. */
  readonly leadsTo: string | undefined
  /** Where one gets by staying signed in. */
  readonly stay: string
  /** What happened meanwhile, if anything did. */
  readonly notice: string | undefined
}

/** Asks before it ends a session, since nothing proves that the user meant it (RP-Initiated Logout §2, T6). */
export function confirmLogoutPage({ form, client, leadsTo, notice, stay }: LogoutFacts): Page {
  const body = html`<h1>${LOGOUT.title}</h1>
    <p class="lead">${LOGOUT.text(client)}</p>
    ${noticeBox(notice)}
    <form method="post" action="${form.action}">
      ${csrfField(form)}
      <div class="actions">
        <a class="button second" href="${stay}">${LOGOUT.stay}</a>
        <button type="submit" name="decision" value="logout">${LOGOUT.submit}</button>
      </div>
    </form>`
  return { title: LOGOUT.title, body, leadsTo }
}

export interface LoggedOutFacts {
  /** A registered address of a client, to go on at. */
  readonly back: { readonly client: string; readonly uri: string } | undefined
  readonly signIn: string
}

export function loggedOutPage({ back, signIn }: LoggedOutFacts): Page {
  const body = html`<h1>${LOGOUT.doneTitle}</h1>
    <p class="lead">${LOGOUT.doneText}</p>
    ${
      back === undefined
        ? html`<p><a href="${signIn}">${LOGOUT.signIn}</a></p>`
        : html`<p><a class="button" href="${back.uri}">${LOGOUT.back(back.client)}</a></p>`
    }`
  return { title: LOGOUT.doneTitle, body, alone: back === undefined }
}
