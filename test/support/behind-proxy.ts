/** A service behind a proxy of this machine, which names who calls. */
import type { Configuration } from '../../src/operate/settings/configuration.ts'

export const behindProxy = (loaded: Configuration): Configuration => ({
  ...loaded,
  server: { ...loaded.server, trustedProxies: ['127.0.0.1'] },
})

/** An operation of a business, whose answer is 401 for a token that is over. */
export const BUSINESS_LIST = '/api/1.0/b/ACME/fund-data/fund-list'
