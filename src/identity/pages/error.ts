import type { Fault } from '../../kernel/faults.ts'
import { html } from './html.ts'
import type { Page } from './layout.ts'
import { TEXTS } from './texts.ts'

const T = TEXTS.error

/** What went wrong, for a person: the fixed text of the table of faults (C2.6), and what to quote. */
export function errorPage(fault: Fault, id: string): Page {
  const ours = fault.status === 503
  const title = ours ? T.unavailableTitle : T.title
  const body = html`<h1>${title}</h1>
    <p class="notice alert" role="alert">${fault.publicText}</p>
    <p>${ours ? T.nextUnavailable : T.next}</p>
    <dl class="facts">
      <dt>${T.code}</dt>
      <dd>${fault.row.oauth}</dd>
      <dt>${T.request}</dt>
      <dd>${id}</dd>
    </dl>`
  return { title, body, status: fault.status }
}
