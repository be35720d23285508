/** Who may hold what according to one directory. losses.ts compares two of them. */
import { createHash } from 'node:crypto'
import type { Client, User } from '../contracts/people.ts'
import type { Catalogue } from '../config/scopes/catalogue.ts'
import type { Directory } from './compile.ts'

/**
 * Whether a person or client may hold tokens now (C6.3.5): not if locked or disabled. Nothing else decides this.
 * Identity asks it at every endpoint (identity/dependencies.ts), and a reload asks it when it compares two directories.
 */
export const mayHold = ({
  disabled,
  locked = false,
}: Pick<Client, 'disabled'> & Partial<Pick<User, 'locked'>>): boolean => !disabled && !locked

export interface BusinessHoldings {
  /** If false, nobody may hold anything for it. */
  readonly mayHold: boolean
  readonly funds: 'any' | ReadonlySet<string>
}

export interface ClientHoldings {
  /** If false, it holds nothing. */
  readonly mayHold: boolean
  readonly businesses: readonly string[]
  /** Before implication. */
  readonly scopes: readonly string[]
}

export interface UserHoldings {
  readonly username: string
  /** If false, the user holds nothing. */
  readonly mayHold: boolean
  /** A digest of the password's hash. If it changes, the user must log in again. */
  readonly password: string
  /** The name of the role, by business code. */
  readonly access: Readonly<Record<string, string>>
  readonly customers: readonly string[]
}

/** Who may hold what according to one directory. A later directory is compared with it. */
export interface Holdings {
  /** Every scope value, with itself and all values that it implies. */
  readonly scopes: ReadonlyMap<string, ReadonlySet<string>>
  readonly businesses: ReadonlyMap<string, BusinessHoldings>
  /** The scope values of each role that is not disabled, before implication. */
  readonly roles: ReadonlyMap<string, readonly string[]>
  readonly clients: ReadonlyMap<string, ClientHoldings>
  /** By subject. */
  readonly users: ReadonlyMap<string, UserHoldings>
}

export const NO_HOLDINGS: Holdings = {
  scopes: new Map(),
  businesses: new Map(),
  roles: new Map(),
  clients: new Map(),
  users: new Map(),
}

/** Characters of base64url. The hash itself is not kept. */
const DIGEST = 22

const digestOf = (text: string): string =>
  createHash('sha256').update(text).digest('base64url').slice(0, DIGEST)

const mapped = <A, B>(map: ReadonlyMap<string, A>, to: (value: A) => B): ReadonlyMap<string, B> =>
  new Map([...map].map(([key, value]) => [key, to(value)]))

/** Of a whole directory, or of a part of it. A store can switch a business off, a configuration cannot. */
export type HoldingParts = {
  readonly [K in 'clients' | 'users' | 'roles']?: Directory[K]
} & {
  readonly businesses?: ReadonlyMap<
    string,
    { readonly funds: BusinessHoldings['funds']; readonly disabled?: boolean }
  >
}

export const holdingsOf = (
  { businesses = new Map(), roles = new Map(), clients = new Map(), users = new Map() }: HoldingParts,
  catalogue: Pick<Catalogue, 'values' | 'close'>,
): Holdings => ({
  scopes: new Map(catalogue.values.map((value) => [value, catalogue.close([value])])),
  businesses: mapped(businesses, ({ funds, disabled = false }) => ({ mayHold: !disabled, funds })),
  roles: mapped(roles, ({ scopes }) => scopes),
  clients: mapped(clients, (client) => ({
    mayHold: mayHold(client),
    businesses: client.businesses,
    scopes: client.scopes,
  })),
  users: new Map(
    [...users.values()].map((user) => [
      user.subject,
      {
        username: user.username,
        mayHold: mayHold(user),
        password: digestOf(user.password),
        access: user.access,
        customers: user.customers,
      },
    ]),
  ),
})
