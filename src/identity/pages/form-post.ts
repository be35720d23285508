import { html } from './html.ts'
import type { Page } from './layout.ts'
import { TEXTS } from './texts.ts'

const T = TEXTS.formPost

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
  const body = html`<h1>${T.title}</h1>
    <p class="lead">${T.text(client)}</p>
    <form method="post" action="${redirectUri}">
      ${fields}
      <button type="submit">${T.submit}</button>
    </form>
    <script nonce="${nonce}">
      document.forms[0].submit()
    </script>`
  return { title: T.title, body, leadsTo: redirectUri, nonce }
}
