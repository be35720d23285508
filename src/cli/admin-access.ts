/** What a command needs to call the admin API, and how it ends without it. */

/** An admin API, and the token for it. */
export interface AdminAccess {
  readonly address: string
  readonly token: string
}

/** The message goes to stderr, and the exit code is 1. */
export class AdminTrouble extends Error {}
