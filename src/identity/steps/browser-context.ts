import { createHash } from 'node:crypto'
import type { Answer, Exchange } from '../../base/contracts/calls/exchange.ts'
import type { User } from '../../base/contracts/people/people.ts'
import type { Purpose } from '../../base/contracts/records/store.ts'
import { equalSecrets, newSecret } from '../../base/kernel/ids.ts'
import { isLoopback } from '../../base/kernel/listen-address.ts'
import { orUnavailable } from '../dependencies/dependencies.ts'
import type { Attempt, StepDependencies } from './endpoint.ts'
import { sessionRevoked, took } from './records.ts'
import type { Session } from '../stored/sessions.ts'

export interface BrowserContext {
  /** The value of the browser's cookie: the one that it sent, or a new one that the answer must set. */
  readonly cookie: string
  readonly fresh: boolean
  readonly login: Login | undefined
  readonly csrf: string
}

export interface Login {
  readonly session: Session
  readonly user: User
}

/**
 * A CSRF token: it proves that a form comes from a page that this browser received. It is used before a login too, where
 * the cookie identifies the browser (against login CSRF). Nobody can make it without the cookie, and the cookie cannot
 * be derived from it.
 */
const csrfOf = (cookie: string): string =>
  createHash('sha256').update(`postern csrf\0${cookie}`).digest('base64url')

const browserWith = (cookie: string, fresh: boolean, login: Login | undefined): BrowserContext => ({
  cookie,
  fresh,
  login,
  csrf: csrfOf(cookie),
})

/** The login of a session. If the user is gone or may hold no tokens now, the session is ended. */
async function loginOf(
  cookie: string,
  exchange: Exchange,
  dependencies: StepDependencies,
  purpose?: Purpose,
): Promise<Login | undefined> {
  const { people, sessions } = dependencies
  const session = await sessions.find(cookie, purpose)
  if (session === undefined) return undefined
  const user = await orUnavailable(people.findUserBySubject(session.subject))
  if (user === undefined) {
    if (await sessions.end(session.key, session.subject))
      await took(sessionRevoked(exchange, session, 'service'), dependencies)
    return undefined
  }
  await sessions.noteUse(session, exchange.clientAddress)
  return { session, user }
}

/** @throws Fault `identity_unavailable` if the store or the directory cannot be reached */
export async function browserContextOf(
  exchange: Exchange,
  dependencies: StepDependencies,
  purpose?: Purpose,
): Promise<BrowserContext> {
  const cookie = dependencies.cookie.read(exchange.head)
  if (cookie === undefined) return browserWith(newSecret(), true, undefined)
  return browserWith(cookie, false, await loginOf(cookie, exchange, dependencies, purpose))
}

/** The browser without asking who is logged in there: nothing is looked up, and no use is noted. */
export const strangerOf = (exchange: Exchange, { cookie }: StepDependencies): BrowserContext => {
  const sent = cookie.read(exchange.head)
  return browserWith(sent ?? newSecret(), sent === undefined, undefined)
}

/** The browser that has opened a link: its forms are known by the code in their cookie. */
export const linkedBrowser = (code: string): BrowserContext => browserWith(code, false, undefined)

/** For log and trail: the user who is logged in there has proven who they are. */
export function noteUser(attempt: Attempt, { login }: BrowserContext): void {
  if (login !== undefined) Object.assign(attempt, { subject: login.user.subject, proven: 'user' })
}

const bare = (hostname: string): string => hostname.replace(/^\[|\]$/g, '')

/** Where people open our pages: behind a proxy the address that it has. One on this machine has several names. */
function isOurs(origin: string, issuer: string): boolean {
  const own = new URL(issuer)
  if (origin === own.origin) return true
  const other = URL.parse(origin)
  if (other === null || other.protocol !== own.protocol || other.port !== own.port) return false
  return isLoopback(bare(other.hostname)) && isLoopback(bare(own.hostname))
}

/**
 * Whether the browser says that another site sent the form. `Sec-Fetch-Site` says it best; older browsers don't send it,
 * and none does to an http address off loopback. Then `Origin` says it. From our own pages that is `null`, because they
 * have the policy `no-referrer` (Fetch §3.2): it calls nobody foreign, and the CSRF token decides.
 */
export function isForeignForm({ head }: Exchange, { urls }: Pick<StepDependencies, 'urls'>): boolean {
  const { origin = 'null', 'sec-fetch-site': site = 'none' } = head.headers
  if (site === 'same-origin') return false
  return site !== 'none' || (origin !== 'null' && !isOurs(origin, urls.issuer))
}

/**
 * Whether a form comes from one of our pages, as this browser has it now. Otherwise it is foreign, or of a page that was
 * opened before the cookie changed: in another tab somebody opened a page first, logged in or logged out.
 */
export const isOwnForm = (
  exchange: Exchange,
  csrf: string | undefined,
  browser: BrowserContext,
  dependencies: Pick<StepDependencies, 'urls'>,
): boolean =>
  !browser.fresh &&
  !isForeignForm(exchange, dependencies) &&
  csrf !== undefined &&
  equalSecrets(csrf, browser.csrf)

export const cookieHeaders = (
  { cookie, fresh }: BrowserContext,
  dependencies: StepDependencies,
): Answer['headers'] => (fresh ? { 'Set-Cookie': dependencies.cookie.write(cookie) } : {})

/** Redirects the browser with 303, so that it uses GET for the next page. */
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

/** In this order, because most browsers name others too: the first match wins. */
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

/** A short name such as "Firefox on Windows", from a User-Agent header. Nothing else of the header is stored. */
export function browserName(userAgent: string, unknown: string): string {
  const browser = named(userAgent, BROWSERS)
  const system = named(userAgent, SYSTEMS)
  if (browser === undefined) return system ?? unknown
  return system === undefined ? browser : `${browser} on ${system}`
}
