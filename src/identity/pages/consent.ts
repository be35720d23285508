import { searchForm } from './find.ts'
import {
  csrfField,
  type OwnForm,
  html,
  type Html,
  nameAlone,
  noticeBox,
  type Page,
  type FormProblem,
  problemSummary,
} from './layout.ts'
import { isShortened, TEXTS } from './texts.ts'

const T = TEXTS.consent

const PICKER = TEXTS.picker

export interface BusinessChoice {
  readonly code: string
  readonly name: string
  readonly role: string
  readonly before: boolean
}

/** The part of the consent page where a person chooses a business (C6.2.2). */
export interface Picker {
  readonly choices: readonly BusinessChoice[]
  /** Whether there is one business only. It is chosen in advance. */
  readonly isOnly: boolean
  readonly found: number
  /** How many are on the pages before this one. */
  readonly from: number
  /** Absent where there are few. */
  readonly search:
    | {
        readonly action: string
        /** The search text; empty if there is none. */
        readonly find: string
        /** The client's request, as a query. */
        readonly request: string
      }
    | undefined
  readonly previous: string | undefined
  readonly next: string | undefined
}

/** Data of a business that a scope value opens. */
export interface DataWord {
  readonly text: string
  /** Whether it lets the client change data. */
  readonly changes: boolean
}

export interface AskingClient {
  readonly name: string
  /** Host of the redirect URI; undefined for an app on the person's device. */
  readonly host: string | undefined
  readonly policyUri: string | undefined
  readonly tosUri: string | undefined
}

export interface ConsentDetails {
  readonly form: OwnForm
  readonly client: AskingClient
  readonly leadsTo: string
  readonly user: string
  /** The same request, with another user. */
  readonly switchUser: string
  readonly account: string
  /** In people's words, about the person. */
  readonly about: readonly string[]
  readonly data: readonly DataWord[]
  readonly place: { readonly business: string; readonly fund: string | undefined } | undefined
  /** To choose from (C6.2.2); undefined where there is nothing to choose. */
  readonly picker: Picker | undefined
  /** How long an access token of the client works, in milliseconds. */
  readonly accessLifetime: number
  /** How long lasting access may last; undefined where none is asked. */
  readonly lastingDays: number | undefined
  readonly problems: readonly FormProblem[]
  readonly notice: string | undefined
}

/** @param names those in the title, which may be shortened there */
const listOf = (title: string, items: readonly Html[], names: readonly string[] = []): Html | undefined =>
  items.length === 0
    ? undefined
    : html`<h2>${title}</h2>
        ${names.map(wholeName)}
        <ul class="scopes">
          ${items}
        </ul>`

/** An item that lets the client change data looks different, and says so in words too. */
const dataItem = ({ changes, text }: DataWord): Html =>
  changes ? html`<li class="changes">${text} <small>${T.changes}</small></li>` : html`<li>${text}</li>`

function dataTitle({ place }: ConsentDetails): string {
  if (place?.fund !== undefined) return T.fundOf(place.fund, place.business)
  return place === undefined ? T.data : T.dataOf(place.business)
}

const whoIs = ({ user, switchUser }: ConsentDetails): Html =>
  html`<p class="quiet who"><span>${T.signedIn(user)}</span> <a href="${switchUser}">${T.switchUser}</a></p>`

const placeNames = ({ place }: ConsentDetails): readonly string[] =>
  place === undefined ? [] : [place.business, ...(place.fund === undefined ? [] : [place.fund])]

/** A link to a page of the client's. It opens in a window of its own, so that this page stays open. */
const ownPage = (uri: string | undefined, text: string): Html | undefined =>
  uri === undefined
    ? undefined
    : html`<a href="${uri}" target="_blank" rel="noopener noreferrer"
        >${text}<span class="unseen"> ${T.newWindow}</span></a
      >`

/** Where the data goes, and for how long. */
function terms({ client, lastingDays, accessLifetime }: ConsentDetails): Html {
  const { host, name, policyUri, tosUri } = client
  const links = [ownPage(policyUri, T.policy), ownPage(tosUri, T.tos)].filter((link) => link !== undefined)
  return html`<div class="lasting">
    ${lastingDays !== undefined && html`<h2 class="unseen">${T.lasting}</h2>`}
    <p>${lastingDays === undefined ? T.onceText(name, accessLifetime) : T.lastingText(name, lastingDays)}</p>
    <p>${host === undefined ? T.goesToDevice(name) : html`${T.goesTo} ${host}.`}</p>
    ${links.length > 0 && html`<p class="links">${links}</p>`}
  </div>`
}

const hintOf = ({ client, data, picker }: ConsentDetails): string =>
  data.length > 0 && picker?.isOnly === false
    ? `${T.businessHint(client.name)} ${T.roleLimits}`
    : T.businessHint(client.name)

/** The consent page (C6.2.2). The first button of the form allows: Enter presses it. */
export function consentPage(facts: ConsentDetails): Page {
  const { client, data, form, leadsTo, picker, problems } = facts
  if (picker !== undefined && picker.found === 0 && picker.search === undefined) return noBusinessPage(facts)
  const title = T.title(client.name)
  const about = facts.about.map((text) => html`<li>${text}</li>`)
  const body = html`<h1>${title}</h1>
    ${wholeName(client.name)} ${whoIs(facts)} ${noticeBox(facts.notice)}
    ${problemSummary(T.problem, problems)} ${picker && findForm(picker)}
    <form method="post" action="${form.action}">
      ${csrfField(form)} ${picker && choices(picker, hintOf(facts))}
      ${listOf(dataTitle(facts), data.map(dataItem), placeNames(facts))} ${listOf(T.about, about)}
      ${terms(facts)}
      <div class="actions stays">
        ${picker?.found !== 0 && html`<button type="submit" name="decision" value="allow">${T.allow}</button>`}
        <button class="second" type="submit" name="decision" value="deny" formnovalidate>${T.deny}</button>
      </div>
    </form>
    <p class="aside quiet">${T.withdraw} <a href="${facts.account}">${T.account}</a>.</p>`
  return { title, body, leadsTo, status: problems.length === 0 ? 200 : 422 }
}

function noBusinessPage(facts: ConsentDetails): Page {
  const { client, form, leadsTo } = facts
  const body = html`<h1>${T.noBusiness}</h1>
    ${whoIs(facts)} ${noticeBox(facts.notice)}
    <p>${T.noBusinessText(client.name)}</p>
    <form method="post" action="${form.action}" class="actions">
      ${csrfField(form)}
      <button type="submit" name="decision" value="deny">${T.back(client.name)}</button>
    </form>`
  return { title: T.noBusiness, body, leadsTo }
}

/** The whole of a name that is shown shortened nearby; undefined if it is not shortened. */
const wholeName = (name: string): Html | undefined =>
  isShortened(name)
    ? html`<details>
        <summary>${PICKER.wholeName}</summary>
        <p>${nameAlone(name)}</p>
      </details>`
    : undefined

/** A form of its own, because Enter in the field would otherwise press the button that allows. It works without scripts. */
function findForm({ search }: Picker): Html | undefined {
  if (search === undefined) return undefined
  const hidden = [...new URLSearchParams(search.request)].map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`,
  )
  return searchForm({ ...search, label: PICKER.find, button: PICKER.search }, hidden)
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
        <small
          ><span class="code">${code}</span> · ${PICKER.role(role)}${before && ` · ${PICKER.before}`}</small
        >
      </span>
    </label>
    ${wholeName(name)}
  </div>`

function countOf({ choices, found, from, search }: Picker): Html | undefined {
  if (search === undefined) return undefined
  const text =
    found === 0 ? PICKER.none(search.find) : PICKER.count(from + 1, from + choices.length, found, search.find)
  return html`<p class="quiet" role="status">${text}</p>`
}

function pages({ next, previous }: Picker): Html | undefined {
  if (next === undefined && previous === undefined) return undefined
  return html`<p class="pages">
    ${previous !== undefined && html`<a href="${previous}">${PICKER.previous}</a>`}
    ${next !== undefined && html`<a href="${next}">${PICKER.next}</a>`}
  </p>`
}

/** The choices. Of several none is chosen in advance, so that nobody allows the wrong one. */
const choices = (picker: Picker, hint: string): Html =>
  html`<fieldset>
    <legend>${PICKER.business}</legend>
    <p class="quiet">${hint}</p>
    ${countOf(picker)}
    <div class="choices">${picker.choices.map((choice, at) => choiceOf(choice, at, picker.isOnly))}</div>
    ${pages(picker)}
  </fieldset>`
