import {
  csrfField,
  type FormFacts,
  html,
  type Html,
  noticeBox,
  type Page,
  type Problem,
  problemSummary,
} from './layout.ts'
import { TEXTS } from './texts.ts'

const T = TEXTS.consent

export interface BusinessChoice {
  readonly code: string
  readonly name: string
  readonly role: string
  /** Whether the user has allowed this client there before. */
  readonly before: boolean
}

export interface ConsentFacts {
  readonly form: FormFacts
  readonly client: string
  readonly leadsTo: string
  readonly user: string
  /** The same request, with another user. */
  readonly switchUser: string
  readonly applications: string
  /** In people's words, about the person. */
  readonly about: readonly string[]
  /** In people's words, about the business's data. */
  readonly data: readonly string[]
  /** The business (and fund) that the request names. */
  readonly place: { readonly business: string; readonly fund: string | undefined } | undefined
  /** To choose from (C6.2.2); undefined where there is nothing to choose. */
  readonly choices: readonly BusinessChoice[] | undefined
  /** How long lasting access may last; undefined where none is asked. */
  readonly lastingDays: number | undefined
  readonly problems: readonly Problem[]
  /** What happened meanwhile, if anything did. */
  readonly notice: string | undefined
}

const listOf = (title: string, words: readonly string[]): Html | undefined =>
  words.length === 0
    ? undefined
    : html`<h2>${title}</h2>
        <ul class="scopes">
          ${words.map((word) => html`<li>${word}</li>`)}
        </ul>`

function dataTitle({ place }: ConsentFacts): string {
  if (place?.fund !== undefined) return T.fundOf(place.fund, place.business)
  return place === undefined ? T.data : T.dataOf(place.business)
}

const choiceOf = ({ before, code, name, role }: BusinessChoice, at: number, isOnly: boolean): Html =>
  html`<label class="choice">
    <input
      type="radio"
      name="business"
      id="business-${at}"
      value="${code}"
      required${isOnly && html` checked`}
    />
    <span><b>${name}</b><small>${T.role(role)}${before && ` · ${T.before}`}</small></span>
  </label>`

/** The business picker (C6.2.2). Of several none is chosen in advance, so that nobody allows the wrong one. */
const picker = (choices: readonly BusinessChoice[], facts: ConsentFacts): Html =>
  html`<fieldset>
    <legend>${T.business}</legend>
    <p class="quiet">
      ${T.businessHint(facts.client)}${facts.data.length > 0 && choices.length > 1 && html` ${T.roleLimits}`}
    </p>
    ${choices.map((choice, at) => choiceOf(choice, at, choices.length === 1))}
  </fieldset>`

const whoIs = ({ user, switchUser }: ConsentFacts): Html =>
  html`<p class="quiet who"><span>${T.signedIn(user)}</span> <a href="${switchUser}">${T.switchUser}</a></p>`

/** C6.2.2: who asks, for what, in people's words, and for which business. Enter presses the first button. */
export function consentPage(facts: ConsentFacts): Page {
  const { choices, client, form, lastingDays, leadsTo, problems } = facts
  if (choices?.length === 0) return noBusinessPage(facts)
  const title = T.title(client)
  const body = html`<h1>${title}</h1>
    ${whoIs(facts)} ${noticeBox(facts.notice)} ${problemSummary(T.problem, problems)}
    <form method="post" action="${form.action}">
      ${csrfField(form)} ${listOf(T.about, facts.about)} ${listOf(dataTitle(facts), facts.data)}
      ${choices && picker(choices, facts)}
      <div class="lasting">
        ${lastingDays !== undefined && html`<h2 class="unseen">${T.lasting}</h2>`}
        <p>${lastingDays === undefined ? T.onceText(client) : T.lastingText(client, lastingDays)}</p>
      </div>
      <div class="actions">
        <button type="submit" name="decision" value="allow">${T.allow}</button>
        <button class="second" type="submit" name="decision" value="deny" formnovalidate>${T.deny}</button>
      </div>
    </form>
    <p class="aside quiet">${T.withdraw} <a href="${facts.applications}">${T.applications}</a>.</p>`
  return { title, body, leadsTo, status: problems.length === 0 ? 200 : 422 }
}

function noBusinessPage(facts: ConsentFacts): Page {
  const { client, form, leadsTo } = facts
  const body = html`<h1>${T.noBusiness}</h1>
    ${whoIs(facts)} ${noticeBox(facts.notice)}
    <p>${T.noBusinessText(client)}</p>
    <form method="post" action="${form.action}" class="actions">
      ${csrfField(form)}
      <button type="submit" name="decision" value="deny">${T.back(client)}</button>
    </form>`
  return { title: T.noBusiness, body, leadsTo }
}
