/** For `change`: less that a service opens. The threads of a store and of a trail are most of the cost of a start. */
import type { Configuration } from '../../src/settings/configuration.ts'

/** Without an audit trail: where no test looks at a record, and none needs one to be refused. */
export const withoutTrail = (configuration: Configuration): Configuration => ({
  ...configuration,
  audit: { ...configuration.audit, enabled: false },
})

/** Without a trail, and with a store in memory: where nothing has to last, and no other process opens the store. */
export const inMemory = (configuration: Configuration): Configuration => ({
  ...withoutTrail(configuration),
  store: { kind: 'memory' },
})
