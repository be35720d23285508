/** The operators of the admin API: their tokens, their roles, and what each role may do (C12.2.4). */
import { hashSecret, verifySecret } from '../../identity/directory/hashing/hasher.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { ADMIN, type AdminConfig, type ROLES } from '../settings/admin.ts'
import { AdminError } from './errors.ts'

/**
 * What a route needs. `view`: status and metrics. `inspect`: what decides, such as the configuration, and why.
 * `operate`: orders to the running service. `administer`: the directory, sessions, keys, erasing. `audit`: the audit trail.
 */
export type Right = 'view' | 'inspect' | 'operate' | 'administer' | 'audit'

/** The role of a named token, or of the one token of the service. */
type Role = (typeof ROLES)[number] | typeof ADMIN

const RIGHTS: Readonly<Record<Role, readonly Right[]>> = {
  view: ['view'],
  operate: ['view', 'inspect', 'operate'],
  administer: ['view', 'inspect', 'operate', 'administer'],
  audit: ['view', 'inspect', 'audit'],
  admin: ['view', 'inspect', 'operate', 'administer', 'audit'],
}

export const hasRight = (role: Role, right: Right): boolean => RIGHTS[role].includes(right)

/** The roles with a right. */
export const rolesWith = (right: Right): readonly string[] =>
  Object.entries(RIGHTS).flatMap(([role, rights]) => (rights.includes(right) ? [role] : []))

/** Who has shown a token. */
export interface AuthenticatedOperator {
  readonly name: string
  readonly role: Role
  /** When the token ends, or has ended; milliseconds since the epoch. */
  readonly expires: number
}

interface TokenRow extends AuthenticatedOperator {
  readonly hash: string
}

const BEARER = /^Bearer +(\S+)$/i

/** The tokens in force. A reload replaces the named ones; the one token of the service stays. */
export class Operators {
  readonly #clock: Clock
  readonly #own: TokenRow
  #rows: readonly TokenRow[]

  constructor(ownToken: string, named: AdminConfig['tokens'], clock: Clock) {
    this.#clock = clock
    this.#own = { name: ADMIN, role: ADMIN, expires: Number.POSITIVE_INFINITY, hash: hashSecret(ownToken) }
    this.#rows = [this.#own]
    this.configure(named)
  }

  /** Puts other named tokens in force, at once. */
  configure(named: AdminConfig['tokens']): void {
    const rows = named.map(({ name, role, hash, expires }) => ({
      name,
      role,
      hash,
      expires: expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires),
    }))
    this.#rows = [this.#own, ...rows]
  }

  /**
   * The operator whose token an `Authorization` header shows; undefined if nobody's. Compares with every token, each in
   * constant time, so that the time tells nothing.
   */
  find(authorization: string | undefined): AuthenticatedOperator | undefined {
    const [, token = ''] = BEARER.exec(authorization ?? '') ?? []
    const [found] = this.#rows.filter(({ hash }) => verifySecret(token, hash))
    return found
  }

  hasExpired({ expires }: AuthenticatedOperator): boolean {
    return expires <= this.#clock.now()
  }
}

/** 401: no token, or nobody's. */
export const unknownOperator = (authorization: string | undefined): AdminError =>
  new AdminError(
    401,
    BEARER.test(authorization ?? '')
      ? 'this token is not that of the service, nor one of `admin.tokens`: it is mistyped, or was replaced'
      : 'send the admin token as "Authorization: Bearer"',
  )

/** 401: a token that was good. Only its holder learns that. */
export const expiredOperator = ({ name, expires }: AuthenticatedOperator): AdminError =>
  new AdminError(
    401,
    `the token of ${name} has expired (${new Date(expires).toISOString()}): ask for another`,
  )

/** 403: the role does not allow it. */
export const refusedOperator = ({ name, role }: AuthenticatedOperator, needs: Right): AdminError =>
  new AdminError(
    403,
    `${name} may not do this: the role ${role} lacks the right \`${needs}\`, which ${rolesWith(needs).join(', ')} have`,
  )
