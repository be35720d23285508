import { DIRECTION_CONTROLS, withoutDirectionControls } from '../../base/kernel/clean-text.ts'
import type { FaultCode } from '../../base/kernel/fault-table.ts'

/** Letters that are written from right to left, and the characters that steer directions. */
const STEERS = new RegExp(
  `[\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefc\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}${DIRECTION_CONTROLS}]`,
  'u',
)
const FIRST_STRONG_ISOLATE = '\u2068'
const POP_ISOLATE = '\u2069'

/**
 * A name from outside in a sentence of ours, whose direction of writing must not turn the rest around (Unicode, UAX #9):
 * between isolates, without controls of its own; as it is, if it is written from left to right.
 */
export const isolated = (name: string): string =>
  STEERS.test(name) ? `${FIRST_STRONG_ISOLATE}${withoutDirectionControls(name)}${POP_ISOLATE}` : name

/** The longest name that is not shortened, in characters: about two lines of a heading on a narrow screen. */
const LONGEST = 48

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** Its beginning, if it is so long that it would push the rest off the page. */
function shortened(name: string): string {
  if (name.length <= LONGEST) return name
  const characters = [...graphemes.segment(name)].map(({ segment }) => segment)
  return characters.length <= LONGEST
    ? name
    : `${characters
        .slice(0, LONGEST - 1)
        .join('')
        .trimEnd()}…`
}

/** Whether a text shows its beginning only, so that the page has to offer the whole. */
export const isShortened = (name: string): boolean => shortened(name) !== name

type Texts = Readonly<Record<string, unknown>>

const isTexts = (value: unknown): value is Texts => typeof value === 'object' && value !== null

function preparing(value: unknown): unknown {
  if (typeof value === 'function') {
    const text = value as (...names: readonly unknown[]) => unknown
    return (...names: readonly unknown[]) =>
      text(...names.map((name) => (typeof name === 'string' ? isolated(shortened(name)) : name)))
  }
  if (!isTexts(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, preparing(inner)]))
}

/** The same texts. Those that take names isolate and shorten them. */
export const preparedTexts = <T extends Texts>(texts: T): T => preparing(texts) as T

/** A time in the largest unit in which it is a whole number: `15 minutes`. */
export function timeText(milliseconds: number): string {
  const units = [
    [86_400_000, 'day'],
    [3_600_000, 'hour'],
    [60_000, 'minute'],
  ] as const
  const [unit, name] = units.find(([each]) => milliseconds % each === 0) ?? [1000, 'second']
  const count = Math.round(milliseconds / unit)
  return count === 1 ? `one ${name}` : `${count} ${name}s`
}

/** A time without the seconds beyond a whole minute. */
const inMinutes = (milliseconds: number): number => Math.round(milliseconds / 60_000) * 60_000

interface FaultText {
  readonly title: string
  readonly text: string
  /** How to go on. If absent, as after any mistake of an application. */
  readonly next?: string
}

const FAULT_TEXTS: Readonly<Partial<Record<FaultCode, FaultText>>> = {
  password_link_over: {
    title: 'This link is no longer good',
    text: 'It was used already, it is too old, or a part of it is missing.',
    next: 'If you have chosen a password with it, sign in. If you opened it more than ten minutes ago, open it once more. Otherwise ask whoever gave it to you for another one.',
  },
  authorize_bad_client: {
    title: 'This application is not known here',
    text: 'The application that sent you here may have been removed, or its link is out of date.',
  },
  invalid_request_uri: {
    title: 'This request is over',
    text: 'It was answered already, or too much time has passed since the application sent you here. Go back to the application and start again.',
  },
  authorize_bad_redirect: {
    title: 'The way back is not safe',
    text: 'The application wants to send you on to an address that it has not registered with us. So that nobody can read your data there, you are not sent on.',
  },
}

/** Every text of the pages (C6.2.3), so that a deployment's language is changed in one place. */
export const TEXTS = preparedTexts({
  language: 'en',
  locale: 'en-AU',

  login: {
    title: 'Sign in',
    to: (client: string) => `to continue to ${client}`,
    toAccount: 'to see and manage your account',
    username: 'User name',
    submit: 'Sign in',
    cancel: (client: string) => `Cancel and return to ${client}`,
    problem: 'You are not signed in',
    missingUsername: 'Enter your user name.',
    missingPassword: 'Enter your password.',
    wrong: 'The user name and password do not match an active account. Check both and try again.',
    outdated:
      'This page was out of date, perhaps because you opened it in another tab too. Please sign in again.',
    noCookie:
      'Your browser does not keep the cookie that signing in needs. Allow cookies for this site. Then please sign in again.',
    notices: {
      unanswered: 'You were signed out before your answer arrived, so nothing was changed. Sign in to go on.',
      signedIn: 'You signed in in another tab meanwhile. The application asks you to sign in once more.',
    },
  },

  consent: {
    title: (client: string) => `Allow ${client} to connect?`,
    signedIn: (user: string) => `Signed in as ${user}.`,
    switchUser: 'Not you?',
    about: 'About you',
    data: 'In the business you choose',
    dataOf: (business: string) => `At ${business}`,
    fundOf: (fund: string, business: string) => `In the fund ${fund} of ${business}`,
    lasting: 'Lasting access',
    lastingText: (client: string, days: number) =>
      `${client} keeps this access when you are not there, for up to ${days === 1 ? 'a day' : `${days} days`} or until you withdraw it.`,
    onceText: (client: string, lifetime: number) =>
      `${client} has this access for ${timeText(lifetime < 120_000 ? lifetime : inMinutes(lifetime))} after you allow it.`,
    roleLimits: 'What your role at a business does not include is left out.',
    changes: 'changes data',
    /** Before the host, which is never shortened: its end says whose it is. */
    goesTo: 'The data goes to',
    goesToDevice: (client: string) => `${client} is an app on your device. The data goes there.`,
    policy: 'Privacy policy',
    tos: 'Terms of service',
    newWindow: '(opens in a new window)',
    businessHint: (client: string) => `${client} gets access to this one only.`,
    noBusiness: 'You have no business to connect',
    noBusinessText: (client: string) =>
      `None of the businesses that ${client} may open is one of yours, or your role there allows nothing of what it asks for. Ask the administrator of your business, or use another account.`,
    problem: 'Nothing was allowed yet',
    missingBusiness: 'Choose a business.',
    notices: {
      unanswered:
        'You signed in again, or as somebody else, before your answer arrived. Nothing was allowed yet: please check and answer again.',
      signedIn: 'You signed in in another tab meanwhile, so you can go on here.',
    },
    allow: 'Allow',
    deny: 'Do not allow',
    back: (client: string) => `Return to ${client}`,
    withdraw: 'You can withdraw it at any time in',
    account: 'your account',
  },

  picker: {
    business: 'Which business is it for?',
    find: 'Find a business by name or code',
    search: 'Search',
    role: (role: string) => `Your role: ${role}`,
    before: 'allowed before',
    wholeName: 'Show the whole name',
    count: (first: number, last: number, all: number, find: string) => {
      const shown = first === 1 && last === all ? `${all}` : `${first} to ${last} of ${all}`
      return find === '' ? `${shown} businesses` : `${shown} found for “${find}”`
    },
    none: (find: string) => `No business of yours has “${find}” in its name or code.`,
    previous: 'Previous businesses',
    next: 'More businesses',
  },

  fields: {
    current: 'Password',
    password: 'New password',
    again: 'New password again',
    length: 'At least 12 characters. Three words that have nothing to do with each other are easy to keep.',
    show: 'Show',
    hide: 'Hide',
    problem: 'The password was not changed',
    missing: 'Enter a new password.',
    tooShort: 'The new password is too short: it needs at least 12 characters.',
    tooLong: 'The new password is too long: it may have at most 1,024 characters.',
    isName: 'The new password must not be your user name.',
    missingAgain: 'Enter the new password a second time.',
    unequal: 'The two new passwords are not the same. Type both again.',
    submit: 'Set the password',
  },

  link: {
    title: 'Choose a password',
    for: (username: string) => `for the account ${username}`,
    doneTitle: 'Your password is set',
    doneText: 'You are signed out everywhere. Sign in with the new password to go on.',
    signIn: 'Sign in',
  },

  account: {
    title: 'Your account',
    signedIn: (user: string) => `Signed in as ${user}.`,
    person: 'You',
    facts: { name: 'Name', username: 'User name', email: 'E-mail', phone_number: 'Telephone' },
    password: 'Password',
    currentPassword: 'Present password',
    missingCurrent: 'Enter your present password.',
    wrongCurrent: 'This is not your present password. Check it and try again.',
    passwordEnds:
      'You are then signed out in every other browser, and applications have to sign you in again.',
    passwordElsewhere: 'It cannot be changed here.',
    askElsewhere: 'Ask whoever gave you this account.',
    consents: 'Applications with access',
    noConsents: 'You have not connected any application.',
    atBusiness: (business: string) => `Business: ${business}`,
    granted: 'Allowed on',
    lasting: 'Has lasting access',
    withdraw: 'Withdraw access',
    withdrawFrom: (client: string, business: string | undefined) =>
      business === undefined ? `of ${client}` : `of ${client} to ${business}`,
    sessions: 'Where you are signed in',
    here: 'This browser',
    since: 'Signed in on',
    lastUsed: 'Last used on',
    address: 'From the network address',
    endEverywhere: 'Sign out everywhere',
    endEverywhereText:
      'Signs you out in every browser, also in this one. Applications with access keep it until you withdraw it.',
    endSession: 'Sign out',
    endSessionOf: (browser: string) => `of ${browser}`,
    done: {
      withdrawn: 'The access was withdrawn. The application has been signed out of your data.',
      ended: 'That browser has been signed out.',
      expired: 'This page was out of date, so nothing was changed. Please try again.',
      password: 'Your password was changed. You are signed out everywhere else.',
    },
    unknownBrowser: 'Unknown browser',
  },

  logout: {
    title: 'Sign out?',
    text: (client: string | undefined) =>
      client === undefined
        ? 'Do you want to sign out in this browser?'
        : `${client} asks to sign you out in this browser.`,
    outdated: 'This page was out of date, so you are still signed in. Please answer once more.',
    submit: 'Sign out',
    stay: 'Stay signed in',
    doneTitle: 'You are signed out',
    doneEverywhereTitle: 'You are signed out everywhere',
    doneText: 'Nobody can use your account in this browser without your password. You can close this window.',
    back: (client: string) => `Return to ${client}`,
    signIn: 'Sign in again',
  },

  formPost: {
    title: 'One moment',
    text: (client: string) => `You are being sent back to ${client}.`,
    submit: 'Continue',
  },

  error: {
    request: {
      title: 'You cannot go on from here',
      text: 'The application that sent you here made a mistake in its request. You did nothing wrong.',
      next: 'Go back to the application and start again. If it happens again, tell its support what this page says.',
    },
    ours: {
      title: 'Something went wrong here',
      text: 'This is a fault of this service, not yours.',
      next: 'Try again in a few minutes. If it happens again, tell our support what this page says.',
    },
    unavailable: {
      title: 'Please try again shortly',
      next: 'Nothing is lost. Wait a moment, then try again.',
    },
    /** For single faults, where there is more to say. */
    faults: FAULT_TEXTS,
    again: 'Try again',
    account: 'Your account',
    reason: 'Reason',
    code: 'Error',
    requestId: 'X-Request-Id',
  },

  notFound: {
    title: 'There is no page at this address',
    text: 'The address may be mistyped or out of date. You can go on here:',
    topTitle: (name: string) => name,
    topText:
      'Applications use this address to sign you in and to read data that you allow. You can go on here:',
    account: 'See and manage your account',
  },

  footer: {
    help: 'Help',
    contact: 'Contact:',
  },
} as const)
