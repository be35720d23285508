import type { RevokedTokens } from '../contracts/tokens.ts'
import type { Directory } from './compile.ts'

interface ClientHoldings {
  readonly businesses: readonly string[]
}

interface UserHoldings {
  readonly businesses: readonly string[]
  readonly customers: readonly string[]
}

/** Who may get what where, as one directory says it: what a later one is compared with. Whoever is disabled holds nothing. */
export interface Holdings {
  readonly businesses: ReadonlySet<string>
  readonly clients: ReadonlyMap<string, ClientHoldings>
  /** By subject. */
  readonly users: ReadonlyMap<string, UserHoldings>
}

export function holdingsOf({ businesses, clients, users }: Directory): Holdings {
  const enabled = [...users.values()].filter(({ disabled }) => !disabled)
  return {
    businesses: new Set(businesses.keys()),
    clients: new Map([...clients].filter(([, { disabled }]) => !disabled)),
    users: new Map(
      enabled.map(({ subject, access, customers }) => [
        subject,
        { businesses: Object.keys(access), customers },
      ]),
    ),
  }
}

const lost = (before: Iterable<string>, after: { includes(value: string): boolean }): string[] =>
  [...before].filter((value) => !after.includes(value))

function lostBusinesses(before: Holdings, after: Holdings): RevokedTokens[] {
  return [...before.businesses]
    .filter((business) => !after.businesses.has(business))
    .map((business) => ({ business }))
}

function lostByClients(before: Holdings, after: Holdings): RevokedTokens[] {
  return [...before.clients].flatMap(([client, { businesses }]): RevokedTokens[] => {
    const now = after.clients.get(client)
    if (now === undefined) return [{ client }]
    return lost(businesses, now.businesses).map((business) => ({ client, business }))
  })
}

function lostByUsers(before: Holdings, after: Holdings): RevokedTokens[] {
  return [...before.users].flatMap(([subject, { businesses, customers }]): RevokedTokens[] => {
    const now = after.users.get(subject)
    if (now === undefined) return [{ subject }]
    return [
      ...lost(businesses, now.businesses).map((business) => ({ subject, business })),
      ...lost(customers, now.customers).map((client) => ({ client, subject })),
    ]
  })
}

/**
 * The rules by which whoever was removed or disabled loses what they hold: businesses, clients, users, a business of
 * a client or of a user, a user of a customer. Nothing for what is new, or was disabled before.
 */
export const revocationsForDirectoryChange = (
  before: Holdings,
  after: Holdings,
): readonly RevokedTokens[] => [
  ...lostBusinesses(before, after),
  ...lostByClients(before, after),
  ...lostByUsers(before, after),
]
