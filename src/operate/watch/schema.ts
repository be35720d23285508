import { choice, flag, section, type Static, wholeNumber } from '../../base/config/schema.ts'

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

export const metricsSchema = section(
  {
    clients: wholeNumber({
      minimum: 0,
      maximum: 10_000,
      default: 200,
      description:
        'Number of clients that are counted by name: the first ones of the configuration, then those that call first. All others are counted together as `other`.',
    }),
  },
  { default: {}, description: 'What `/metrics` tells.' },
)
