const HOUR = 3_600_000
const DAY = 24 * HOUR

/** The longest life of an access token of ours, in milliseconds: revocation rules are kept this long. */
export const LONGEST_ACCESS_TOKEN = 24 * HOUR

/** The longest life of test tokens, in milliseconds (C11.5.7). */
export const LONGEST_TEST_TOKEN = HOUR / 4

/** The longest life that may be configured for tokens of a foreign issuer, in milliseconds. */
export const LONGEST_FOREIGN_TOKEN = 30 * DAY

/** The longest leeway on the expiry of foreign tokens, in milliseconds (C4.16). */
export const LONGEST_LEEWAY = 60_000
