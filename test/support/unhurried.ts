import type { Configuration } from '../../src/settings/configuration.ts'

/**
 * No shedding of load, for tests that are not about it: a machine that is busy with other tests holds the event loop up,
 * and a clock that a test moves by days looks as if it had been held up for days.
 */
export const unhurried = (configuration: Configuration): Configuration => ({
  ...configuration,
  load: { ...configuration.load, shedding: { ...configuration.load.shedding, delay: 0 } },
})
