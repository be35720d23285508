import { choice, flag, listenAddress, optional, section, secret, type Static } from '../config/schema.ts'
import type { Report } from '../config/report.ts'
import { isLoopback, splitListenAddress } from '../kernel/listen-address.ts'

export const adminSchema = section(
  {
    listen: listenAddress({
      default: '127.0.0.1:9090',
      description: 'Address and port to listen on.',
    }),
    token: optional(
      secret({
        description:
          'Bearer token of the admin listener. Required if it does not listen on loopback. Health needs no token.',
      }),
    ),
    probes: optional(
      listenAddress({
        description:
          'Address of a second, read-only listener for `/metrics` and `/health/*`. It needs no token.',
      }),
    ),
  },
  { default: {}, description: 'The listener for metrics, health and the admin API.' },
)

export type AdminConfig = Static<typeof adminSchema>

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const

export const logSchema = section(
  {
    level: choice(LOG_LEVELS, { default: 'info', description: 'Least important level that is logged.' }),
    calls: choice(['all', 'refused', 'none'], {
      default: 'all',
      description: 'Which calls get a line. Metrics count all calls.',
    }),
    clientAddress: flag({
      default: true,
      description: 'Log the client’s address. It may be personal data.',
    }),
  },
  { default: {}, description: 'The log: JSON Lines on standard output.' },
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
