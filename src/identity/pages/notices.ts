import type { Fault } from '../../base/kernel/faults.ts'
import { csrfField, type OwnForm, html, noticeBox, type Page } from './layout.ts'
import { TEXTS } from './texts.ts'

const ERROR = TEXTS.error

/** The texts for people about a fault: its own, or those for any fault of its kind. */
function wordsFor(fault: Fault): { readonly title: string; readonly text: string; readonly next: string } {
  const { code, publicText, status } = fault
  if (status === 503) return { ...ERROR.unavailable, text: publicText }
  if (status >= 500) return ERROR.ours
  return { ...ERROR.request, ...ERROR.faults[code] }
}

/** A page that says what went wrong and what to do next, with the text of the fault for those who can mend it (C2.6). */
export function errorPage(
  fault: Fault,
  id: string,
  { account, forgotten }: { readonly account: string; readonly forgotten: string | undefined },
): Page {
  const { next, text, title } = wordsFor(fault)
  const ours = fault.status >= 500
  const body = html`<h1>${title}</h1>
    <p class="notice${fault.status !== 503 && ' alert'}" role="alert">${text}</p>
    <p>${next}</p>
    ${fault.code === 'password_link_over' && forgotten !== undefined && html`<p>${forgotten}</p>`}
    <p>
      ${
        ours
          ? // The address of this page: by GET, whatever led here.
            html`<a class="button second" href="">${ERROR.again}</a>`
          : html`<a href="${account}">${ERROR.account}</a>`
      }
    </p>
    <dl class="facts">
      ${
        !ours &&
        html`<dt>${ERROR.reason}</dt>
          <dd class="words">${fault.publicText}</dd>`
      }
      <dt>${ERROR.code}</dt>
      <dd>${fault.row.oauth}</dd>
      <dt>${ERROR.requestId}</dt>
      <dd>${id}</dd>
    </dl>`
  return { title, body, status: fault.status }
}

const NOT_FOUND = TEXTS.notFound

/** For people at an address that has no page (C2.3). */
export function notFoundPage({
  account,
  links,
  name,
  top,
}: {
  /** Whether it is `/`: nobody mistyped that. */
  readonly top: boolean
  readonly name: string
  readonly account: string
  /** Further ones. */
  readonly links: readonly { readonly href: string; readonly text: string }[]
}): Page {
  const title = top ? NOT_FOUND.topTitle(name) : NOT_FOUND.title
  const body = html`<h1>${title}</h1>
    <p class="lead">${top ? NOT_FOUND.topText : NOT_FOUND.text}</p>
    <ul class="ways">
      <li><a href="${account}">${NOT_FOUND.account}</a></li>
      ${links.map(({ href, text }) => html`<li><a href="${href}">${text}</a></li>`)}
    </ul>`
  return { title, body, status: 404, alone: true }
}

const FORM_POST = TEXTS.formPost

/** OAuth 2.0 Form Post Response Mode: sends itself, and has a button for where scripts are off (C6.2.3). */
export function formPostPage({
  client,
  redirectUri,
  params,
  nonce,
}: {
  readonly client: string
  readonly redirectUri: string
  readonly params: Readonly<Record<string, string>>
  readonly nonce: string
}): Page {
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
  return { title: FORM_POST.title, body, leadsTo: redirectUri, script: `'nonce-${nonce}'` }
}

const LOGOUT = TEXTS.logout

/** Asks before it ends a session, because nothing proves that the user meant it (RP-Initiated Logout §2, T6). */
export function confirmLogoutPage({
  form,
  client,
  leadsTo,
  notice,
  stay,
}: {
  readonly form: OwnForm
  readonly client: string | undefined
  readonly leadsTo: string | undefined
  /** Where the button to stay signed in leads. */
  readonly stay: string
  readonly notice: string | undefined
}): Page {
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

export function loggedOutPage({
  back,
  everywhere = false,
  signIn,
}: {
  /** A registered address of a client, for the link back to it. */
  readonly back: { readonly client: string; readonly uri: string } | undefined
  readonly signIn: string
  /** In every browser, and not in this one only. */
  readonly everywhere?: boolean
}): Page {
  const title = everywhere ? LOGOUT.doneEverywhereTitle : LOGOUT.doneTitle
  const body = html`<h1>${title}</h1>
    <p class="lead">${LOGOUT.doneText}</p>
    ${back !== undefined && html`<p><a class="button" href="${back.uri}">${LOGOUT.back(back.client)}</a></p>`}
    <p><a href="${signIn}">${LOGOUT.signIn}</a></p>`
  return { title, body, alone: back === undefined }
}
