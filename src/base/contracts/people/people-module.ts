/**
 * The contract of `directory.people` of kind `module`: what your own file or package must export so that people
 * who live in a system of yours can log in. Published as `postern/people`. It holds types only: import it with
 * `import type`. Explained in config/people.md.
 */

/**
 * The default export of a module: makes the functions. Called once per process at start, in a thread of the module's own,
 * once more if that thread has to be replaced, and by `postern check`. So it should open its connections at the first
 * call, not here. If it throws, that is reported as a problem of the
 * configuration. A module without options may export the three functions themselves instead.
 * @param options `options` from the configuration, unchanged
 */
export type PeopleFactory<Options = unknown> = (options: Options) => PeopleModule | Promise<PeopleModule>

/**
 * Each call must answer within 2 seconds, with plain data. A call that throws, rejects, is late or answers something else is 503
 * to the client of that call, and a line in the log. A call may block: nothing waits but the other calls of this module.
 */
export interface PeopleModule {
  /**
   * The user whom a person means by this name, or undefined. The name is at most 128 characters without control
   * characters. If several spellings mean one user, answer `username` in one spelling: failed logins are counted by it.
   */
  findUserByName(username: string, call: PeopleCall): Found | Promise<Found>
  /** The user with this `subject`, or undefined. Asked when tokens are refreshed and sessions are used. */
  findUserBySubject(subject: string, call: PeopleCall): Found | Promise<Found>
  /**
   * Whether this is the user's password: true or false, nothing else. It is called with undefined where nobody has the
   * name: do the same work then, so that the time does not tell who exists. The answer does not matter in that case.
   * @param user a copy of what was found; read the hash again, because it may have changed meanwhile
   * @param password never empty for a user
   */
  verifyPassword(user: PeopleUser | undefined, password: string, call: PeopleCall): boolean | Promise<boolean>
  /** Called once, after the last call. It may take 3 seconds. */
  close?(): void | Promise<void>
}

export interface PeopleCall {
  /** Aborted after 2 seconds, when nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

/** Nobody: undefined, or null as many databases say. */
export type Found = PeopleUser | undefined | null

/**
 * A user, with the members of `directory.users` in the configuration but without `password`. Other members are refused:
 * keep hashes in your own code.
 */
export interface PeopleUser {
  /** Printable ASCII without spaces, at most 255 characters. Never change it, and never give it to another person. */
  readonly subject: string
  /** At most 128 characters. */
  readonly username: string
  /** Ids of the customer clients that the user may log in through, by the password grant. */
  readonly customers?: readonly string[] | undefined
  /** Name of the user's role at each business, by its code. The roles are those of the configuration. */
  readonly access?: Readonly<Record<string, string>> | undefined
  /** Refuses all logins and tokens of the user. */
  readonly disabled?: boolean | undefined
  /** As `disabled`. */
  readonly locked?: boolean | undefined
  readonly claims?: PeopleClaims | undefined
}

/** A claim that is null or empty is left out. */
type Claim = string | null | undefined

export interface PeopleClaims {
  readonly name?: Claim
  readonly given_name?: Claim
  readonly middle_name?: Claim
  readonly family_name?: Claim
  readonly gender?: Claim
  readonly email?: Claim
  readonly address?: PeopleAddress | null | undefined
  readonly phone_number?: Claim
}

export interface PeopleAddress {
  readonly street_address?: Claim
  readonly locality?: Claim
  readonly region?: Claim
  readonly postal_code?: Claim
  readonly country?: Claim
}
