import { newPasswordFields, inputOf, SHOW_PASSWORD } from './fields.ts'
import {
  csrfField,
  type FormProblem,
  html,
  type Html,
  nameAlone,
  type OwnForm,
  type Page,
  problemSummary,
} from './layout.ts'
import type { OwnScript } from './own-script.ts'
import { TEXTS } from './texts.ts'

const T = TEXTS.account

export const ACCOUNT_PATH = '/connect/account'

/** A part of the page, below its heading. */
export interface AccountSection {
  readonly body: Html
  /** The page has no script that nothing on it needs. */
  readonly script?: OwnScript
}

export interface ConsentListed {
  readonly key: string
  readonly client: string
  readonly business: string | undefined
  readonly scopes: readonly string[]
  readonly lasting: boolean
  /** When the user consented last, in milliseconds since the epoch. */
  readonly at: number
}

export interface SessionListed {
  readonly key: string
  readonly browser: string
  readonly current: boolean
  /** When the user logged in, in milliseconds since the epoch. */
  readonly at: number
  /** When it was used last, in milliseconds since the epoch. */
  readonly lastUsedAt: number | undefined
  /** Network address of the last use. */
  readonly address: string | undefined
}

export type AccountDone = keyof typeof T.done

interface Formats {
  readonly day: Intl.DateTimeFormat
  readonly moment: Intl.DateTimeFormat
}

const known = new Map<string, Formats>()

/** Made at the first page: the names of months are read then, which would take some 15 ms of each start. */
function formatsIn(timeZone: string): Formats {
  const formats = known.get(timeZone) ?? makeFormats(timeZone)
  known.set(timeZone, formats)
  return formats
}

const makeFormats = (timeZone: string): Formats => ({
  day: new Intl.DateTimeFormat(TEXTS.locale, { dateStyle: 'long', timeZone }),
  // Nobody here knows where the user is: a time of day needs its zone next to it.
  moment: new Intl.DateTimeFormat(TEXTS.locale, {
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    hour: 'numeric',
    minute: '2-digit',
    timeZone,
    timeZoneName: 'short',
  }),
})

const timeOf = (at: number, format: Intl.DateTimeFormat): Html => {
  const date = new Date(at)
  return html`<time datetime="${date.toISOString()}">${format.format(date)}</time>`
}

/** A form of one button. `about` is for screen readers. */
const buttonFor = (form: OwnForm, name: string, value: string, label: string, about: string): Html =>
  html`<form method="post" action="${form.action}">
    ${csrfField(form)}
    <button class="second small" type="submit" name="${name}" value="${value}">
      ${label}<span class="unseen"> ${about}</span>
    </button>
  </form>`

const consentItem = (consent: ConsentListed, form: OwnForm, { day }: Formats): Html => {
  const { at, business, client, key, lasting, scopes } = consent
  return html`<li>
    <div>
      <h3>${nameAlone(client)}</h3>
      ${business !== undefined && html`<p>${T.atBusiness(business)}</p>`}
      <ul>
        ${scopes.map((scope) => html`<li>${scope}</li>`)}
      </ul>
      <p class="quiet">${T.granted} ${timeOf(at, day)}${lasting && html` · ${T.lasting}`}</p>
    </div>
    ${buttonFor(form, 'withdraw', key, T.withdraw, T.withdrawFrom(client, business))}
  </li>`
}

const sessionItem = (session: SessionListed, form: OwnForm, { moment }: Formats): Html => {
  const { address, at, browser, current, key, lastUsedAt } = session
  return html`<li>
    <div>
      <h3>${browser}${current && html` · ${T.here}`}</h3>
      <p class="quiet">${T.since} ${timeOf(at, moment)}</p>
      ${lastUsedAt !== undefined && html`<p class="quiet">${T.lastUsed} ${timeOf(lastUsedAt, moment)}</p>`}
      ${address !== undefined && html`<p class="quiet">${T.address} ${address}</p>`}
    </div>
    ${buttonFor(form, 'end', key, T.endSession, T.endSessionOf(browser))}
  </li>`
}

/** Where there is but one login, its own button does the same. */
const everywhere = (sessions: readonly SessionListed[], form: OwnForm): Html | undefined =>
  sessions.length < 2
    ? undefined
    : html`<form method="post" action="${form.action}" class="everywhere">
        ${csrfField(form)}
        <button class="second" type="submit" name="everywhere" value="1">${T.endEverywhere}</button>
        <p class="quiet">${T.endEverywhereText}</p>
      </form>`

const section = (
  id: string,
  title: string,
  content: readonly (Html | false | undefined)[],
): AccountSection => ({
  body: html`<section aria-labelledby="${id}">
    <h2 id="${id}">${title}</h2>
    ${content}
  </section>`,
})

type PersonFacts = Readonly<Partial<Record<keyof typeof T.facts, string | undefined>>>

export const personSection = (facts: PersonFacts): AccountSection => {
  const rows = Object.entries(T.facts).flatMap(([name, label]) => {
    const text = facts[name as keyof typeof T.facts]
    return text === undefined
      ? []
      : [
          html`<dt>${label}</dt>
            <dd class="words">${nameAlone(text)}</dd>`,
        ]
  })
  return section('person', T.person, [html`<dl class="facts">${rows}</dl>`])
}

export const passwordSection = ({
  form,
  problems,
  username,
}: {
  readonly form: OwnForm
  readonly username: string
  readonly problems: readonly FormProblem[]
}): AccountSection => {
  const current = { name: 'current', label: T.currentPassword, autocomplete: 'current-password' } as const
  const shown = section('password-change', T.password, [
    html`<form method="post" action="${form.action}" class="narrow" novalidate>
      ${csrfField(form)} ${inputOf(current, problems)} ${newPasswordFields(username, problems, false)}
      <p class="quiet">${T.passwordEnds}</p>
      <button class="second" type="submit">${TEXTS.fields.submit}</button>
    </form>`,
  ])
  return { ...shown, script: SHOW_PASSWORD }
}

/** Where Postern does not have the password. @param forgotten whom to ask */
export const passwordElsewhere = (forgotten: string | undefined): AccountSection =>
  section('password-change', T.password, [html`<p>${T.passwordElsewhere} ${forgotten ?? T.askElsewhere}</p>`])

export const browsersSection = (
  sessions: readonly SessionListed[],
  form: OwnForm,
  timeZone: string,
): AccountSection =>
  section('sessions', T.sessions, [
    html`<ul class="cards">
      ${sessions.map((session) => sessionItem(session, form, formatsIn(timeZone)))}
    </ul>`,
    everywhere(sessions, form),
  ])

export const applicationsSection = (
  consents: readonly ConsentListed[],
  form: OwnForm,
  timeZone: string,
): AccountSection =>
  section('consents', T.consents, [
    consents.length === 0
      ? html`<p class="quiet">${T.noConsents}</p>`
      : html`<ul class="cards">
          ${consents.map((consent) => consentItem(consent, form, formatsIn(timeZone)))}
        </ul>`,
  ])

const doneBox = (done: AccountDone): Html => {
  const isAlert = done === 'expired'
  return html`<p class="notice ${isAlert ? 'alert' : 'done'}" role="${isAlert ? 'alert' : 'status'}">
    ${T.done[done]}
  </p>`
}

export function accountPage({
  done,
  problems,
  sections,
  user,
}: {
  readonly user: string
  /** The act that has led to this page. */
  readonly done: AccountDone | undefined
  readonly problems: readonly FormProblem[]
  readonly sections: readonly AccountSection[]
}): Page {
  const script = sections.find((each) => each.script)?.script
  const body = html`<h1>${T.title}</h1>
    <p class="lead">${T.signedIn(user)}</p>
    ${done && doneBox(done)} ${problemSummary(TEXTS.fields.problem, problems)}
    ${sections.map((each) => each.body)} ${script?.element}`
  const status = problems.length === 0 ? 200 : 422
  return { title: T.title, body, status, wide: true, alone: true, ...(script && { script: script.source }) }
}
