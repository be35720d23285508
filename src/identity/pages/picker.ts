/** The part of the consent page where a person chooses a business (C6.2.2). */
import { html, type Html, nameAlone } from './layout.ts'
import { isShortened } from './names-in-texts.ts'
import { TEXTS } from './texts.ts'

const T = TEXTS.picker

export interface BusinessChoice {
  readonly code: string
  readonly name: string
  readonly role: string
  /** Whether the user has allowed this client there before. */
  readonly before: boolean
}

export interface Picker {
  /** Those that this page shows. */
  readonly choices: readonly BusinessChoice[]
  /** Whether there is one business only. It is chosen in advance. */
  readonly isOnly: boolean
  /** How many there are, on all pages of what was searched for. */
  readonly found: number
  /** How many stand on the pages before. */
  readonly from: number
  /** Absent where there are few. */
  readonly search:
    | {
        readonly action: string
        /** What was searched for; empty if nothing was. */
        readonly find: string
        /** The client's request, as a query. */
        readonly request: string
      }
    | undefined
  /** Addresses of the pages beside this one. */
  readonly previous: string | undefined
  readonly next: string | undefined
}

/** The whole of a name that stands shortened nearby; undefined if it is not shortened. */
export const wholeName = (name: string): Html | undefined =>
  isShortened(name)
    ? html`<details>
        <summary>${T.wholeName}</summary>
        <p>${nameAlone(name)}</p>
      </details>`
    : undefined

/**
 * The search field, a form of its own: in the form of the choice, Enter in the field would press the button that allows.
 * The server answers it, so that it works without scripts.
 */
export function searchForm({ search }: Picker): Html | undefined {
  if (search === undefined) return undefined
  const hidden = [...new URLSearchParams(search.request)].map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`,
  )
  return html`<form class="search" method="get" action="${search.action}" role="search">
    ${hidden}
    <label for="find">${T.find}</label>
    <div>
      <input id="find" name="find" type="search" value="${search.find}" maxlength="100" autocomplete="off" />
      <button class="second" type="submit">${T.search}</button>
    </div>
  </form>`
}

const choiceOf = ({ before, code, name, role }: BusinessChoice, at: number, isOnly: boolean): Html =>
  html`<div class="choice">
    <label>
      <input
        type="radio"
        name="business"
        id="business-${at}"
        value="${code}"
        required${isOnly && html` checked`}
      />
      <span>
        <b class="clamped">${nameAlone(name)}</b>
        <small><span class="code">${code}</span> · ${T.role(role)}${before && ` · ${T.before}`}</small>
      </span>
    </label>
    ${wholeName(name)}
  </div>`

function countOf({ choices, found, from, search }: Picker): Html | undefined {
  if (search === undefined) return undefined
  const text =
    found === 0 ? T.none(search.find) : T.count(from + 1, from + choices.length, found, search.find)
  return html`<p class="quiet" role="status">${text}</p>`
}

function pages({ next, previous }: Picker): Html | undefined {
  if (next === undefined && previous === undefined) return undefined
  return html`<p class="pages">
    ${previous !== undefined && html`<a href="${previous}">${T.previous}</a>`}
    ${next !== undefined && html`<a href="${next}">${T.next}</a>`}
  </p>`
}

/** The choices. Of several none is chosen in advance, so that nobody allows the wrong one. */
export const choices = (picker: Picker, hint: string): Html =>
  html`<fieldset>
    <legend>${T.business}</legend>
    <p class="quiet">${hint}</p>
    ${countOf(picker)}
    <div class="choices">${picker.choices.map((choice, at) => choiceOf(choice, at, picker.isOnly))}</div>
    ${pages(picker)}
  </fieldset>`
