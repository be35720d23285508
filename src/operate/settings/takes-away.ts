import { isDeepStrictEqual } from 'node:util'
import type { Configuration } from './configuration.ts'

/** How a value of the new configuration may differ from the old one, without giving anything to anybody. */
type Lessens = (before: unknown, after: unknown) => boolean

type Tree = Readonly<Record<string, unknown>>

const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const same: Lessens = (before, after) => isDeepStrictEqual(before, after)

/** `disabled` and `locked` may become true. */
const mayClose: Lessens = (before, after) => after === true || same(before, after)

/** A setting whose `true` allows something may become `false`. */
const mayEnd: Lessens = (before, after) => after === false || same(before, after)

/** A number may become lower. Without one another value counts, which may be lower. */
const shorter: Lessens = (before, after) =>
  same(before, after) || (typeof before === 'number' && typeof after === 'number' && after < before)

/** Items of a list may go. */
const fewer: Lessens = (before, after) =>
  Array.isArray(before) &&
  Array.isArray(after) &&
  after.every((item) => before.some((other) => same(other, item)))

/** Items may be added to a list: switches of maintenance close more. */
const more: Lessens = (before, after) => fewer(after, before)

/** Entries of a map may go; those that stay may be less. */
const fewerEntries =
  (entry: Lessens): Lessens =>
  (before, after) =>
    isTree(before) &&
    isTree(after) &&
    Object.entries(after).every(([key, value]) => key in before && entry(before[key], value))

/** A section whose named members may be less; all others are the same. */
const section =
  (members: Readonly<Record<string, Lessens>>): Lessens =>
  (before, after) => {
    if (!isTree(before) || !isTree(after)) return same(before, after)
    const keys = new Set([...Object.keys(before), ...Object.keys(after)])
    return [...keys].every((key) => (members[key] ?? same)(before[key], after[key]))
  }

const client = section({
  disabled: mayClose,
  scopes: fewer,
  businesses: fewer,
  grants: fewer,
  redirectUris: fewer,
  postLogoutRedirectUris: fewer,
  accessTokenLifetime: shorter,
  requirePkce: mayClose,
  authentication: fewer,
  jwks: fewer,
  requirePar: mayClose,
  requireBinding: mayClose,
  resource: mayEnd,
})
const user = section({ disabled: mayClose, locked: mayClose, customers: fewer, access: fewerEntries(same) })

const business = section({
  disabled: mayClose,
  funds: (before, after) => same(before, after) || after === 'listed',
})
const fund = section({ disabled: mayClose })
const role = section({ disabled: mayClose, scopes: fewer })

/** Whether a record allows no more after a change than before: for clients and users the same rule as for a reload. */
export const LESSENED = { client, user, business, fund, role } as const

const configuration = section({
  directory: section({ clients: fewerEntries(client), users: fewerEntries(user) }),
  admin: section({ tokens: fewer }),
  maintenance: more,
})

/**
 * Whether the second configuration differs from the first, and only by what it takes away (C12.1.4): clients, users,
 * what they may use, tokens of operators; or by what it closes. False if the directory is in files too: they may have
 * changed as well.
 */
export const onlyTakesAway = (before: Configuration, after: Configuration): boolean =>
  Object.keys(after.directory.files).length === 0 && !same(before, after) && configuration(before, after)
