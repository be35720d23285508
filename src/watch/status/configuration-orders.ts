/** What operators may ask of the configuration: the file on disk beside the one in force. */

/** What a file would be told at a reload. Each line says where the problem is, what it is and what to do. No secret. */
export interface FileCheck {
  /** Whether a reload would put it in force. */
  readonly fits: boolean
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
  /** Key paths that differ and that only a restart changes: a reload refuses them. */
  readonly needsRestart: readonly string[]
}

/** One right of one party, such as `{kind: 'client', who: 'acme-books', what: 'GET …', where: 'ACME'}`. */
export interface AccessRow {
  readonly kind: string
  readonly who: string
  readonly what: string
  readonly where: string
}

/** What a reload of the file would change. */
export interface FileDifference {
  readonly same: boolean
  /** Key paths that differ: no values, which may be secret. At most MOST_PATHS; their number is `changedCount`. */
  readonly changed: readonly string[]
  readonly changedCount: number
  readonly needsRestart: readonly string[]
  readonly gained: readonly AccessRow[]
  readonly lost: readonly AccessRow[]
  /** False if the store has more than MOST_STORED clients or users: then only those of the configuration are compared. */
  readonly withStored: boolean
}

export const MOST_PATHS = 200
export const MOST_STORED = 10_000

/**
 * Why a configuration without a mistake is refused: the store or the audit trail cannot be reached, its files change while
 * they are read, or something else, which the log tells.
 */
export const PASSING_CAUSES = ['store', 'trail', 'files', 'unknown'] as const
export type PassingCause = (typeof PASSING_CAUSES)[number]

/** How the configuration in force came to be. Times in milliseconds since the epoch. */
export interface ConfigurationStanding {
  /** Undefined if it does not come from a file. */
  readonly file: string | undefined
  /** SHA-256 of it, without its secrets. */
  readonly digest: string
  readonly loadedAt: number
  /** The last reload, if it was refused: the configuration before stays in force. */
  readonly refused:
    | {
        readonly at: number
        readonly via: string
        readonly problems: readonly string[]
        /** Undefined for a mistake in its files; any other is tried again by itself. */
        readonly cause: PassingCause | undefined
      }
    | undefined
}

/** The configuration does not come from a file, or cannot be read: each line is a problem. */
export interface NoFile {
  readonly unreadable: readonly string[]
}

export interface ConfigurationOrders {
  standing(): ConfigurationStanding
  /** Reads the file and checks it, as a reload would. Nothing is put in force. */
  check(): Promise<FileCheck | NoFile>
  /** Rejects with Fault `identity_unavailable` if the store cannot be read. */
  compare(): Promise<FileDifference | NoFile>
}
