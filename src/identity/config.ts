import { existsSync } from 'node:fs'
import { extname } from 'node:path'
import {
  type Static,
  choice,
  duration,
  flag,
  optional,
  path,
  section,
  text,
  wholeNumber,
} from '../config/pieces.ts'
import type { Report } from '../config/report.ts'
import { LONGEST_ACCESS_TOKEN } from '../kernel/lifetimes.ts'
import { PICTURES } from './pages/pictures.ts'

const ALGORITHMS = ['ES256', 'RS256'] as const

/** Delays after failures: free ones first, then doubling. */
const delays = (free: number, delay: string, longest: string) => ({
  free: wholeNumber({ minimum: 1, default: free, description: 'Failures that cost nothing yet.' }),
  delay: duration({
    orZero: true,
    default: delay,
    description: 'What the next one costs; it doubles with each further one.',
  }),
  longest: duration({ orZero: true, default: longest, description: 'What one costs at most.' }),
})

const guessing = section(
  {
    attempts: section(delays(5, '500ms', '30s'), {
      default: {},
      description: 'By user, client and network: waited for before the next attempt.',
    }),
    networks: section(delays(100, '250ms', '5s'), {
      default: {},
      description: 'By network: failed answers are held back, right ones never.',
    }),
    accounts: section(
      {
        ...delays(100, '1s', '30s'),
        waiting: wholeNumber({
          minimum: 1,
          default: 4,
          description:
            'Attempts at one account that may wait for another one; more are refused as if they were wrong.',
        }),
      },
      {
        default: {},
        description:
          'By user, over all networks: from then on attempts from networks where that user has not logged in within ' +
          '90 days are made one at a time, and wait before. Forgotten a day after the last failure.',
      },
    ),
    forget: duration({ default: '15m', description: 'Failures are forgotten so long after the last one.' }),
    waiting: wholeNumber({
      minimum: 1,
      default: 32,
      description: 'Attempts of one user, client and network that may wait for each other.',
    }),
  },
  { default: {}, description: 'Slows down whoever guesses passwords, and nobody else.' },
)

const pages = section(
  {
    name: text({ default: 'Postern', description: 'What the service is called, in titles and texts.' }),
    logo: optional(
      path({
        description:
          'A picture (.svg, .png, .webp, .jpg) that stands beside the name; a square one fits best.',
      }),
    ),
    accent: text({
      default: '#3a5bd0',
      pattern: '^#[0-9A-Fa-f]{6}$',
      expected: 'a colour such as "#3a5bd0"',
      description:
        'The colour of buttons, links and marks. Lightened or darkened as far as legible text needs it.',
    }),
  },
  { default: {}, description: 'What the pages look like.' },
)

export const identitySchema = section(
  {
    accessToken: section(
      {
        lifetime: duration({
          default: '900s',
          description: 'How long an access token is good, at most `24h`; a client may have its own.',
        }),
        algorithm: choice(ALGORITHMS, { default: 'ES256', description: 'How access tokens are signed.' }),
      },
      { default: {}, description: 'Access tokens.' },
    ),
    idToken: section(
      {
        lifetime: duration({ default: '15m', description: 'How long an id_token is good.' }),
        algorithm: choice(ALGORITHMS, {
          default: 'RS256',
          description: 'How id_tokens are signed; a client may have its own.',
        }),
      },
      { default: {}, description: 'id_tokens.' },
    ),
    refreshToken: section(
      {
        lifetime: duration({
          default: '30d',
          description: 'How long a family of refresh tokens lives, however often it is used.',
        }),
        grace: duration({
          orZero: true,
          default: '30s',
          description: 'How long a used refresh token gives the same successor again.',
        }),
      },
      { default: {}, description: 'Refresh tokens.' },
    ),
    code: section(
      { lifetime: duration({ default: '60s', description: 'How long an authorization code is good.' }) },
      { default: {}, description: 'Authorization codes.' },
    ),
    session: section(
      {
        lifetime: duration({
          default: '12h',
          description: 'How long a login in a browser is good; its cookie ends with the browser.',
        }),
      },
      { default: {}, description: 'Logins in a browser.' },
    ),
    pages,
    strictRfc6749: flag({
      default: false,
      description:
        'Answers of the token endpoint as RFC 6749 has them: `no-store`, and 401 with a challenge for `invalid_client`.',
    }),
    guessing,
  },
  { default: {}, description: 'The identity endpoints.' },
)

export type IdentityConfig = Static<typeof identitySchema>
export type GuessingConfig = IdentityConfig['guessing']

function checkLogo(logo: string | undefined, report: Report): void {
  if (logo === undefined) return
  if (!PICTURES.has(extname(logo).toLowerCase()))
    report.error(['identity', 'pages', 'logo'], 'expected an .svg, .png, .webp, .jpg or .jpeg file')
  else if (!existsSync(logo)) report.error(['identity', 'pages', 'logo'], 'names a file that does not exist')
}

/** Reports what the schema can't say: lifetimes that contradict each other or that no deployment can mean. */
export function compileIdentity(slice: IdentityConfig, report: Report): IdentityConfig {
  const { accessToken, idToken, refreshToken, code, session } = slice
  const lifetimes = { accessToken, idToken, refreshToken, code, session }
  for (const [name, { lifetime }] of Object.entries(lifetimes))
    if (lifetime < 1000) report.error(['identity', name, 'lifetime'], 'must be at least one second')
  if (refreshToken.grace >= refreshToken.lifetime)
    report.error(['identity', 'refreshToken', 'grace'], 'must be shorter than the lifetime')
  checkLogo(slice.pages.logo, report)
  if (accessToken.lifetime > LONGEST_ACCESS_TOKEN)
    report.error(
      ['identity', 'accessToken', 'lifetime'],
      'must be at most 24h',
      'a stolen token is good for so long; prefer minutes, and refresh tokens',
    )
  return slice
}
