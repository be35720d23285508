import type { Answer } from '../../base/contracts/calls/exchange.ts'
import { withoutDirectionControls } from '../../base/kernel/clean-text.ts'
import { TEXTS } from './texts.ts'
import type { Theme } from './theme.ts'

/**
 * HTML as a template tag. Every value in a template is escaped, except the result of another template; so text that
 * came from outside cannot become markup (T6). Slots are allowed only in text and in quoted attributes.
 */
class Markup {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  toString(): string {
    return this.#text
  }
}

/** A piece of HTML. Only `html` makes one. */
export type Html = Markup

/** A value that may be put into a template; false and undefined give no text. */
export type Slot = Html | string | number | false | undefined | readonly Slot[]

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escape = (text: string): string => text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')

function render(slot: Slot): string {
  if (slot === undefined || slot === false) return ''
  if (slot instanceof Markup) return slot.toString()
  return Array.isArray(slot) ? slot.map(render).join('') : escape(String(slot))
}

export const html = (strings: TemplateStringsArray, ...slots: readonly Slot[]): Html =>
  new Markup(strings.map((text, at) => text + render(slots[at])).join(''))

/** A text that is HTML already: of files of ours only (T6). */
export const verbatim = (text: string): Html => new Markup(text)

/** A name by itself: its direction of writing does not affect the text around it. In sentences: `isolated` of texts.ts. */
export const nameAlone = (name: string): Html => html`<bdi>${withoutDirectionControls(name)}</bdi>`

export interface Page {
  readonly title: string
  /** Begins with the h1. */
  readonly body: Html
  readonly wide?: boolean
  /** 200 if left out. */
  readonly status?: number
  /** Where a form of the page may lead to besides ourselves, also by a redirect: the client's URI (C6.2.3). */
  readonly leadsTo?: string | undefined
  /** If true, it is isolated from the window that opened it. Not for a client's flow, which may run in a popup. */
  readonly alone?: boolean
  /** The source expression of the page's one script: a nonce or a hash (CSP 3 §2.3.1). */
  readonly script?: string
}

/** The parts that make us trust a form of ours (see identity/steps/browser-context.ts). */
export interface OwnForm {
  /** Path and query. */
  readonly action: string
  readonly csrf: string
}

/**
 * The source expression of CSP that covers a redirect URI. Browsers check `form-action` on the redirects after a form
 * too. CSP has no word for an IPv6 address or for the path of an app's own scheme: the scheme is used for those.
 */
function sourceOf(uri: string): string {
  const { hostname, origin, protocol } = new URL(uri)
  return /^https?:$/.test(protocol) && !hostname.startsWith('[') ? origin : protocol
}

function contentPolicy({ leadsTo, script }: Pick<Page, 'leadsTo' | 'script'>): string {
  const formAction = leadsTo === undefined ? "'self'" : `'self' ${sourceOf(leadsTo)}`
  return [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self'",
    ...(script === undefined ? [] : [`script-src ${script}`]),
    `form-action ${formAction}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ')
}

/** The headers of every page, except how long it may be kept: nothing may frame it (T6). */
export const pageHeaders = (
  page: Pick<Page, 'alone' | 'leadsTo' | 'script'>,
): Readonly<Record<string, string>> => ({
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': contentPolicy(page),
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  ...(page.alone && { 'Cross-Origin-Opener-Policy': 'same-origin' }),
})

/** A gate in a wall, for a deployment without a logo. */
const MARK = html`<svg viewBox="0 0 32 32" width="32" height="32" aria-hidden="true">
  <path d="M8 2h16a6 6 0 0 1 6 6v16a6 6 0 0 1-6 6H8a6 6 0 0 1-6-6V8a6 6 0 0 1 6-6z" />
  <path class="opening" d="M10 25V15a6 6 0 0 1 12 0v10z" />
</svg>`

const logoOf = ({ logo }: Theme): Html =>
  logo === undefined ? MARK : html`<img src="${logo.href}" alt="" width="32" height="32" />`

export const brandOf = (theme: Theme): Html => html`${logoOf(theme)}<span>${theme.name}</span>`

export function documentOf(
  theme: Theme,
  {
    title,
    head,
    body,
  }: {
    readonly title: string
    readonly head?: Html
    readonly body: Html
  },
): string {
  const text = html`<!doctype html>
    <html lang="${TEXTS.language}">
      <head>
        <meta charset="utf-8" />
        <title>${title} · ${theme.name}</title>
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <link rel="stylesheet" href="${theme.stylesheet.href}" />
        ${theme.logo && html`<link rel="icon" href="${theme.logo.href}" />`}${head}
      </head>
      <body>
        ${body}
      </body>
    </html>`
  return `${text.toString()}\n`
}

/** The links that a browser can open, by the form of the text; the first match wins. */
const ADDRESSES: readonly (readonly [RegExp, (contact: string) => string])[] = [
  [/^https?:\/\//, (contact) => contact],
  [/^[^\s@]+@[^\s@]+$/, (contact) => `mailto:${contact}`],
  [/^\+?[0-9][0-9 ().-]{4,}$/, (contact) => `tel:${contact.replace(/[^0-9+]/g, '')}`],
]

/** The address of a web page, an e-mail address or a telephone number, as configured; undefined for any other text. */
function contactAddress(contact: string): string | undefined {
  const [, addressOf] = ADDRESSES.find(([form]) => form.test(contact)) ?? []
  return addressOf?.(contact)
}

export function contactLink(contact: string): Html {
  const address = contactAddress(contact)
  return address === undefined ? html`${contact}` : html`<a href="${address}">${contact}</a>`
}

function footerOf({ contact, footer, help }: Theme): Html | undefined {
  const parts = [
    help !== undefined && html`<a href="${help}">${TEXTS.footer.help}</a>`,
    contact !== undefined && html`<span>${TEXTS.footer.contact} ${contactLink(contact)}</span>`,
    footer !== undefined && html`<span>${footer}</span>`,
  ].filter((part) => part !== false)
  return parts.length === 0 ? undefined : html`<footer>${parts}</footer>`
}

const UNLISTED = html`<meta name="robots" content="noindex" />`

/** A page for one person, now: nobody keeps it (T6). */
export function pageAnswer(theme: Theme, page: Page, headers: Answer['headers'] = {}): Answer {
  const { title, wide = false, status = 200 } = page
  const body = html`<header class="brand">${brandOf(theme)}</header>
    <main${wide && html` class="wide"`}>${page.body}</main>
    ${footerOf(theme)}`
  return {
    status,
    headers: { ...pageHeaders(page), 'Cache-Control': 'no-store', ...headers },
    body: documentOf(theme, { title, head: UNLISTED, body }),
  }
}

export const csrfField = ({ csrf }: OwnForm): Html =>
  html`<input type="hidden" name="csrf" value="${csrf}" />`

export const noticeBox = (text: string | undefined): Html | undefined =>
  text === undefined ? undefined : html`<p class="notice" role="status">${text}</p>`

export interface FormProblem {
  readonly text: string
  /** The id of the field it is about. */
  readonly field?: string
}

const linkTo = ({ field, text }: FormProblem): Slot =>
  field === undefined ? text : html`<a href="#${field}">${text}</a>`

export function problemSummary(title: string, problems: readonly FormProblem[]): Html | undefined {
  const [first, ...more] = problems
  if (first === undefined) return undefined
  const list =
    more.length === 0
      ? html`<p>${linkTo(first)}</p>`
      : html`<ul>
          ${problems.map((problem) => html`<li>${linkTo(problem)}</li>`)}
        </ul>`
  return html`<div class="notice alert" role="alert">
    <h2>${title}</h2>
    ${list}
  </div>`
}
