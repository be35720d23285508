import { existsSync } from 'node:fs'
import { extname } from 'node:path'
import type { Problems } from '../../base/config/problems.ts'
import {
  type Static,
  choice,
  duration,
  flag,
  optional,
  path,
  section,
  text,
  url,
  wholeNumber,
} from '../../base/config/schema.ts'
import { LONGEST_ACCESS_TOKEN } from '../../base/kernel/lifetimes.ts'
import { SIGNING_ALGORITHMS } from '../keys/signing/schema.ts'

export const LOGO_TYPES: ReadonlyMap<string, string> = new Map([
  ['.svg', 'image/svg+xml'],
  ['.png', 'image/png'],
  ['.webp', 'image/webp'],
  ['.jpg', 'image/jpeg'],
  ['.jpeg', 'image/jpeg'],
])

/** The options of delays after failures: the first failures are free, then the delay doubles. */
const delays = (free: number, delay: string, longest: string) => ({
  free: wholeNumber({ minimum: 1, default: free, description: 'Failures without a delay.' }),
  delay: duration({
    orZero: true,
    default: delay,
    description: 'Delay after the next failure. It doubles with each further one.',
  }),
  longest: duration({ orZero: true, default: longest, description: 'Longest delay.' }),
})

const guessing = section(
  {
    attempts: section(delays(5, '500ms', '30s'), {
      default: {},
      description: 'By user, client and network: the next attempt waits.',
    }),
    networks: section(delays(100, '250ms', '5s'), {
      default: {},
      description: 'By network: answers to failed attempts are delayed. Right passwords never are.',
    }),
    accounts: section(
      {
        ...delays(100, '1s', '30s'),
        waiting: wholeNumber({
          minimum: 1,
          default: 4,
          description:
            'Attempts at one account that may wait at a time. Further ones fail like a wrong password.',
        }),
      },
      {
        default: {},
        description: 'By user, over all networks: attempts from networks that are new to the user wait.',
      },
    ),
    forget: duration({
      default: '15m',
      description: 'Time after the last failure until failures are forgotten.',
    }),
    waiting: wholeNumber({
      minimum: 1,
      default: 32,
      description: 'Attempts of one user, client and network that may wait at a time.',
    }),
  },
  { default: {}, description: 'Slows down guessing of passwords.' },
)

const pages = section(
  {
    name: text({ default: 'Postern', description: 'Name of the service in titles and texts.' }),
    logo: optional(
      path({
        description: 'Image beside the name (.svg, .png, .webp, .jpg). A square one fits best.',
      }),
    ),
    accent: text({
      default: '#3a5bd0',
      pattern: '^#[0-9A-Fa-f]{6}$',
      expected: 'a colour such as "#3a5bd0"',
      description: 'Colour of buttons, links and marks. It is adjusted as far as text must stay legible.',
    }),
    help: optional(url({ description: 'Page for people who cannot sign in. Every page links to it.' })),
    contact: optional(
      text({ description: 'E-mail address, telephone number or web address for questions, on every page.' }),
    ),
    forgotten: optional(
      text({
        pattern: '^[^\\p{Cc}\\u2028\\u2029]{1,300}$',
        expected: 'a text of at most 300 characters on one line',
        description:
          'Whom to ask who has forgotten the password: a line under the sign-in form, and where a link is no longer good.',
      }),
    ),
    footer: optional(
      text({ description: 'Line at the foot of every page, such as the name and address of the company.' }),
    ),
    timeZone: text({
      default: 'UTC',
      description: 'Time zone of the times on the pages, such as `Australia/Sydney`.',
    }),
  },
  {
    default: {},
    description: 'Name and theme of the login and consent pages, and what stands at their foot.',
  },
)

export const identitySchema = section(
  {
    accessToken: section(
      {
        lifetime: duration({
          default: '900s',
          description: 'Lifetime of an access token, at most `24h`. A client may have another one.',
        }),
        algorithm: choice(SIGNING_ALGORITHMS, {
          default: 'ES256',
          description: 'Signature algorithm of access tokens.',
        }),
      },
      { default: {}, description: 'Access tokens.' },
    ),
    idToken: section(
      {
        lifetime: duration({ default: '15m', description: 'Lifetime of an id_token.' }),
        algorithm: choice(SIGNING_ALGORITHMS, {
          default: 'RS256',
          description: 'Signature algorithm of id_tokens. A client may have another one.',
        }),
      },
      { default: {}, description: 'id_tokens.' },
    ),
    refreshToken: section(
      {
        lifetime: duration({
          default: '30d',
          description: 'How long a user stays logged in by refresh tokens, counted from the first one.',
        }),
        grace: duration({
          orZero: true,
          default: '30s',
          description: 'How long a used refresh token returns the same successor once more.',
        }),
      },
      { default: {}, description: 'Refresh tokens.' },
    ),
    code: section(
      { lifetime: duration({ default: '60s', description: 'Lifetime of an authorization code.' }) },
      { default: {}, description: 'Authorization codes.' },
    ),
    session: section(
      {
        lifetime: duration({
          default: '12h',
          description: 'How long a login in a browser lasts. Its cookie ends with the browser.',
        }),
      },
      { default: {}, description: 'Logins in a browser.' },
    ),
    pages,
    strictRfc6749: flag({
      default: false,
      description:
        'Do as RFC 6749 says: the token endpoint answers with `no-store`, with `token_type` `Bearer`, and with 401 for `invalid_client`; the schemes `Bearer` and `Basic` count in any case.',
    }),
    guessing,
  },
  { default: {}, description: 'The identity endpoints.' },
)

export type IdentityConfig = Static<typeof identitySchema>
export type GuessingConfig = IdentityConfig['guessing']

function checkLogo(logo: string | undefined, problems: Problems): void {
  if (logo === undefined) return
  if (!LOGO_TYPES.has(extname(logo).toLowerCase()))
    problems.error(['identity', 'pages', 'logo'], 'expected an .svg, .png, .webp, .jpg or .jpeg file')
  else if (!existsSync(logo))
    problems.error(['identity', 'pages', 'logo'], 'names a file that does not exist')
}

function checkTimeZone(timeZone: string, problems: Problems): void {
  // For UTC, the default, no data of time zones is loaded at the start.
  if (timeZone === 'UTC' || isTimeZone(timeZone)) return
  const expected = 'expected the name of a time zone, such as "Australia/Sydney" or "UTC"'
  problems.error(['identity', 'pages', 'timeZone'], expected)
}

function isTimeZone(timeZone: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

/** Reports what the schema cannot check. */
export function compileIdentity(slice: IdentityConfig, problems: Problems): IdentityConfig {
  const { accessToken, idToken, refreshToken, code, session } = slice
  const lifetimes = { accessToken, idToken, refreshToken, code, session }
  for (const [name, { lifetime }] of Object.entries(lifetimes))
    if (lifetime < 1000) problems.error(['identity', name, 'lifetime'], 'must be at least one second')
  if (refreshToken.grace >= refreshToken.lifetime)
    problems.error(['identity', 'refreshToken', 'grace'], 'must be shorter than the lifetime')
  checkLogo(slice.pages.logo, problems)
  checkTimeZone(slice.pages.timeZone, problems)
  if (accessToken.lifetime > LONGEST_ACCESS_TOKEN)
    problems.error(
      ['identity', 'accessToken', 'lifetime'],
      'must be at most 24h',
      'a stolen token is good for so long; prefer minutes, and refresh tokens',
    )
  return slice
}
