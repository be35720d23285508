/** People who hold tokens, for the rows of operation-rows.ts that end some. */
import { expect } from 'vitest'
import { PASSWORD, type Row } from './operation-rows.ts'
import {
  CALLS,
  DATA,
  expectDone,
  GRANTED,
  type Holder,
  logIn,
  REFUSED,
  refreshed,
  type RightsService,
  SERVED,
  stateOf,
} from './shrinking-rights.ts'
import type { Upstream } from './start-upstream.ts'

/** `~` as a name, in whatever a row has. What matches texts of any name is left as it is. */
export function named<T>(of: T, name: string): T {
  const replaced = (value: unknown): unknown => {
    if (typeof value === 'string') return value.replaceAll('~', name)
    if (value instanceof RegExp) return new RegExp(value.source.replaceAll('~', name), value.flags)
    if (Array.isArray(value)) return value.map(replaced)
    if (value === null || typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype)
      return value
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => [key.replaceAll('~', name), replaced(member)]),
    )
  }
  return replaced(of) as T
}

/** Who holds all that rows of other nouns than users are about. */
const EVERYBODY = 'everybody'

/** Whether a row changes a role or a user: only these need one of their own. Hashing a password takes time. */
const isOf = ({ line }: Row, ...nouns: readonly string[]): boolean =>
  nouns.some((noun) => line.startsWith(`${noun} `))

/**
 * For each row that ends something, a business, a client and whatever it changes, all of one name; and what somebody was
 * issued for them. The roles `Weak` and `Equal` are there for all.
 */
export async function holdersOf(
  service: RightsService,
  rows: readonly Row[],
): Promise<ReadonlyMap<Row, Holder>> {
  const add = (path: string, body: object) => expectDone(service, 'POST', path, body)
  const ending = rows.filter(({ ends }) => ends !== undefined).map((row, at) => ({ row, name: `row${at}` }))
  await add('/roles', { name: 'Weak', scopes: ['fund.read'] })
  await add('/roles', { name: 'Equal', scopes: DATA })
  const secrets = new Map<Row, string>()
  const access: Record<string, string> = {}
  for (const { row, name } of ending) {
    await add('/businesses', { code: name, name })
    if (row.line.startsWith('fund ')) await add(`/businesses/${name}/funds`, { code: 'F1' })
    if (isOf(row, 'role', 'user')) await add('/roles', { name, scopes: DATA })
    const { body } = await add('/clients', {
      ...{ id: name, name, kind: 'customer', grants: ['password', 'refresh_token'] },
      ...{ agreement: '2026-01-15', businesses: [name], scopes: GRANTED },
    })
    secrets.set(row, String(body.secret))
    if (isOf(row, 'user'))
      await add('/users', {
        ...{ username: name, subject: `S-${name}`, password: PASSWORD },
        ...{ customers: [name], access: { [name]: name } },
      })
    else access[name] = isOf(row, 'role') ? name : 'Equal'
  }
  await add('/users', { username: EVERYBODY, password: PASSWORD, customers: Object.keys(access), access })
  const holders = new Map<Row, Holder>()
  for (const { row, name } of ending) {
    const client = { client: name, secret: secrets.get(row) ?? '' }
    const place = row.fund ? `target:f/${name}/F1` : `target:b/${name}`
    const tokens = await logIn(service, {
      ...{ ...client, username: isOf(row, 'user') ? name : EVERYBODY, password: PASSWORD },
      scope: [...GRANTED, place].join(' '),
    })
    const target = row.fund
      ? `/api/1.0/f/${name}/F1/member-data/member-list`
      : `/api/1.0/b/${name}/fund-data/fund-list`
    holders.set(row, { name, ...client, ...tokens, target })
  }
  return holders
}

/** Who holds what a row is about: of one that is `again`, whoever the row before it is about. */
export function holderOf(
  row: Row,
  rows: readonly Row[],
  holders: ReadonlyMap<Row, Holder>,
): Holder | undefined {
  const at = rows.indexOf(row)
  return holders.get(row.again === undefined ? row : (rows[at - 1] ?? row))
}

/** How many calls tell of a token: so many that each worker answers one. */
const callsOf = (workers: 1 | 2): number => (workers === 1 ? 1 : CALLS)

/** Expects that all of it can be used. */
export async function expectServed(
  [service, upstream, workers]: readonly [RightsService, Upstream, 1 | 2],
  { line }: Row,
  holder: Holder,
): Promise<void> {
  const calls = callsOf(workers)
  const state = await stateOf(service, upstream, holder, calls)
  expect([line, state]).toEqual([line, { ...SERVED, received: calls }])
}

/** Expects that what the row ends has ended, and nothing else; behind a row that is `again`, that it stays so. */
export async function expectEnded(
  [service, upstream, workers]: readonly [RightsService, Upstream, 1 | 2],
  row: Row,
  holder: Holder,
): Promise<void> {
  const { line, ends, again = ends } = row
  if (ends === 'same') await expectServed([service, upstream, workers], row, holder)
  else expect([line, await stateOf(service, upstream, holder, callsOf(workers))]).toEqual([line, REFUSED])
  expect([line, await refreshed(service, holder)]).toEqual([line, again])
}
