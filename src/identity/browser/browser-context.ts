import { createHash } from 'node:crypto'
import type { Answer, Exchange } from '../../contracts/exchange.ts'
import type { User } from '../../contracts/people.ts'
import { equalSecrets, newSecret } from '../../kernel/ids.ts'
import { orUnavailable } from '../dependencies.ts'
import type { StepDependencies } from '../endpoint.ts'
import type { Session } from './sessions.ts'

/** Who stands before the page: a browser, and the user logged in there, if any. */
export interface BrowserContext {
  /** The value of the browser's cookie: the one it sent, or a new one that the answer must give it. */
  readonly cookie: string
  /** Whether the cookie is new. */
  readonly fresh: boolean
  readonly login: Login | undefined
  /** For the forms of this browser's pages. */
  readonly csrf: string
}

export interface Login {
  readonly session: Session
  readonly user: User
}

/**
 * Proves that a form came from a page that this browser was given. Before a login, too (login CSRF): the cookie then
 * stands for the browser. Whoever can't read the cookie can't make it; the cookie can't be had from it.
 */
const csrfOf = (cookie: string): string =>
  createHash('sha256').update(`postern csrf\0${cookie}`).digest('base64url')

const browserWith = (cookie: string, fresh: boolean, login: Login | undefined): BrowserContext => ({
  cookie,
  fresh,
  login,
  csrf: csrfOf(cookie),
})

/** A session is worth what its user is now: one who is gone or may hold nothing is not logged in. */
async function loginOf(cookie: string, { people, sessions }: StepDependencies): Promise<Login | undefined> {
  const session = await sessions.find(cookie)
  if (session === undefined) return undefined
  const user = await orUnavailable(people.findUserBySubject(session.subject))
  if (user === undefined) {
    await sessions.end(session.key, session.subject)
    return undefined
  }
  return { session, user }
}

export async function browserContextOf(
  { head }: Exchange,
  dependencies: StepDependencies,
): Promise<BrowserContext> {
  const cookie = dependencies.cookie.read(head)
  if (cookie === undefined) return browserWith(newSecret(), true, undefined)
  return browserWith(cookie, false, await loginOf(cookie, dependencies))
}

/** Whether a form of ours was sent by this browser from a page of ours. Second belt: what the browser itself says of it. */
export function isOwnForm({ head }: Exchange, csrf: string | undefined, browser: BrowserContext): boolean {
  const site = head.headers['sec-fetch-site']
  const foreign = site === 'cross-site' || site === 'same-site'
  return !browser.fresh && !foreign && csrf !== undefined && equalSecrets(csrf, browser.csrf)
}

/** The headers that a page needs for its forms to be believed: the cookie, where the browser has none yet. */
export const cookieHeaders = (
  { cookie, fresh }: BrowserContext,
  dependencies: StepDependencies,
): Answer['headers'] => (fresh ? { 'Set-Cookie': dependencies.cookie.write(cookie) } : {})

/** The browser's next page, whatever the method of this call was. */
export const seeOther = (location: string, headers: Answer['headers'] = {}): Answer => ({
  status: 303,
  headers: {
    Location: location,
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
    ...headers,
  },
  body: '',
})

/** First match wins: most browsers name others too. */
const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Headless)?(?:Chrome|Chromium|CriOS)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
]

const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
]

const named = (text: string, table: typeof BROWSERS): string | undefined =>
  table.find(([pattern]) => pattern.test(text))?.[1]

/** "Firefox on Windows", from a User-Agent header; of what it says nothing else is kept. */
export function browserName(userAgent: string, unknown: string): string {
  const browser = named(userAgent, BROWSERS)
  const system = named(userAgent, SYSTEMS)
  if (browser === undefined) return system ?? unknown
  return system === undefined ? browser : `${browser} on ${system}`
}
