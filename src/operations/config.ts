import { choice, flag, listenAddress, optional, section, secret, type Static } from '../config/pieces.ts'
import type { Report } from '../config/report.ts'
import { isLoopback, splitListenAddress } from '../kernel/listen-address.ts'

export const adminSchema = section(
  {
    listen: listenAddress({
      default: '127.0.0.1:9090',
      description: 'The address of the admin listener: metrics, health, administration.',
    }),
    token: optional(
      secret({
        description:
          'Bearer token that the admin listener asks for. Off loopback it must be set; health stays open.',
      }),
    ),
    probes: optional(
      listenAddress({
        description:
          'A further, read-only listener for `/metrics` and `/health/*` alone, on any address, without a token.',
      }),
    ),
  },
  { default: {}, description: 'The admin listener.' },
)

export type AdminConfig = Static<typeof adminSchema>

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const

export const logSchema = section(
  {
    level: choice(LOG_LEVELS, { default: 'info', description: 'What is less important is not logged.' }),
    calls: choice(['all', 'refused', 'none'], {
      default: 'all',
      description: 'Which calls get a line of their own. Metrics count all of them.',
    }),
    clientAddress: flag({
      default: true,
      description: 'Whether lines name the client’s address, which may be personal data.',
    }),
  },
  { default: {}, description: 'The log: JSON lines on standard output.' },
)

export type LogConfig = Static<typeof logSchema>

/** Shorter ones can be guessed over a network. */
const TOKEN_LENGTH = 16

/** Refuses an admin listener that strangers could use (C11.1, T7). */
export function compileAdmin({ listen, token }: AdminConfig, report: Report): void {
  if (token === undefined && !isLoopback(splitListenAddress(listen).host)) {
    report.error(
      ['admin', 'listen'],
      'is off loopback without authentication',
      'set `admin.token`, or give probes and scrapers the read-only `admin.probes`',
    )
  }
  if (token !== undefined && token.length < TOKEN_LENGTH) {
    report.error(['admin', 'token'], `is too short; expected at least ${TOKEN_LENGTH} characters`)
  }
}
