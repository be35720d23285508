import type { Configuration } from '../../src/settings/configuration.ts'

/** No shedding of load: a clock that a test moves by days looks as if the event loop had been held up for days. */
export const unhurried = (configuration: Configuration): Configuration => ({
  ...configuration,
  load: { ...configuration.load, shedding: { ...configuration.load.shedding, delay: 0 } },
})
