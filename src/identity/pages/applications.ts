import { csrfField, type OwnForm, html, type Html, nameAlone, type Page } from './layout.ts'
import { TEXTS } from './texts.ts'

const T = TEXTS.applications

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

export type Done = keyof typeof T.done

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

export function applicationsPage(facts: {
  readonly form: OwnForm
  readonly user: string
  readonly consents: readonly ConsentListed[]
  readonly sessions: readonly SessionListed[]
  /** The act that has led to this page. */
  readonly done: Done | undefined
  /** The zone of the times on the page: an IANA name. */
  readonly timeZone: string
}): Page {
  const { consents, done, form, sessions, timeZone, user } = facts
  const formats = formatsIn(timeZone)
  const body = html`<h1>${T.title}</h1>
    <p class="lead">${T.signedIn(user)}</p>
    ${
      done &&
      html`<p
        class="notice ${done === 'expired' ? 'alert' : 'done'}"
        role="${done === 'expired' ? 'alert' : 'status'}"
      >
        ${T.done[done]}
      </p>`
    }
    <section aria-labelledby="consents">
      <h2 id="consents">${T.consents}</h2>
      ${
        consents.length === 0
          ? html`<p class="quiet">${T.noConsents}</p>`
          : html`<ul class="cards">
              ${consents.map((consent) => consentItem(consent, form, formats))}
            </ul>`
      }
    </section>
    <section aria-labelledby="sessions">
      <h2 id="sessions">${T.sessions}</h2>
      <ul class="cards">
        ${sessions.map((session) => sessionItem(session, form, formats))}
      </ul>
      ${everywhere(sessions, form)}
    </section>`
  return { title: T.title, body, wide: true, alone: true }
}
