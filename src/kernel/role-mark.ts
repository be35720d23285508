import { createHash } from 'node:crypto'

/** Characters of base64url: 96 bits, so that no two roles have the same one. */
const LENGTH = 16

/**
 * What an access token holds of the role that it was issued by (C6.1.8). Not the name: only the scope `service_profile`
 * tells a client that (C5.6).
 */
export const roleMark = (name: string): string =>
  createHash('sha256').update(`role\0${name}`).digest('base64url').slice(0, LENGTH)
