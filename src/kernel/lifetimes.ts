const HOUR = 3_600_000
const DAY = 24 * HOUR

/**
 * The longest life of an access token of our own, in milliseconds. Configurations and records that give a longer one are
 * refused, none is issued, none is accepted: revocation rules are kept as long.
 */
export const LONGEST_ACCESS_TOKEN = 24 * HOUR

/** The longest life that may be configured for tokens of a foreign issuer, in milliseconds. */
export const LONGEST_FOREIGN_TOKEN = 30 * DAY

/** The longest tolerance on the expiry of such tokens, in milliseconds (C4.16). */
export const LONGEST_LEEWAY = 60_000
