/** Rights that shrink by another configuration: by a reload, with two workers, and by a start (C6.3.6). */
import { describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { configFiles } from '../support/config-files.ts'
import { dataFolder } from '../support/data-folder.ts'
import { operated, operatedHere, type Operated } from '../support/operated.ts'
import {
  CALLS,
  DATA,
  expectDone,
  GRANTED,
  type Holder,
  type Left,
  logIn,
  refreshed,
  stateOf,
} from '../support/shrinking-rights.ts'
import { ROOT } from '../support/spawn-postern.ts'
import { answerJson, startUpstream, type Upstream } from '../support/start-upstream.ts'
import { SETTINGS } from '../support/settings.ts'
import { withAudit } from '../support/with-audit.ts'

/** Hashes of `acme-books-secret` and of `alice-password`; the latter takes no time, as that of test/support/demo.yaml. */
const SECRET = 'sha256:LrS2csIIenKerBXhR_QzSOAnV-FAjLrko9uDiwaZEYQ'
const PASSWORD =
  '$argon2id$v=19$m=8,t=1,p=1$4lOo54epeKwolrpl718pwg$s5LG6MuPSOjrA2Tpk52DLQBsU9+r9pg9yYkUGs/XCA4'
const OTHER_PASSWORD = PASSWORD.replace('4lOo54ep', 'OTHER4ep')

/** A role, a client and a user of the configuration, all of one name; undefined: there is none. */
interface Part {
  readonly role?: object | undefined
  readonly client?: object | undefined
  readonly user?: object | undefined
}

const partOf = (name: string): Required<Part> => ({
  role: { scopes: DATA },
  client: {
    ...{ name, kind: 'customer', secrets: [SECRET], grants: ['password', 'refresh_token'] },
    ...{ agreement: '2026-01-15', businesses: ['ACME'], scopes: GRANTED },
  },
  user: { subject: `sub-${name}`, password: PASSWORD, customers: [name], access: { ACME: name } },
})

interface Row {
  readonly what: string
  /** What the second configuration has instead. `~` is the name of the row. */
  readonly change: Part
  readonly left: Left
  /** These stand in the store before, and not in the configuration. */
  readonly stored?: readonly ('role' | 'user')[]
}

/** Another member of the user or client of the row. */
const user = (more: object) => ({ user: { ...partOf('~').user, ...more } })
const client = (more: object) => ({ client: { ...partOf('~').client, ...more } })

const ROWS: readonly Row[] = [
  { what: 'a role gives less', change: { role: { scopes: ['fund.read'] } }, left: 'less' },
  { what: 'a user has a weaker role', change: user({ access: { ACME: 'Weak' } }), left: 'less' },
  { what: 'a user has no role', change: user({ access: {} }), left: 'nothing' },
  { what: 'a user is no customer', change: user({ customers: [] }), left: 'nothing' },
  { what: 'a user is disabled', change: user({ disabled: true }), left: 'nothing' },
  { what: 'a user is locked', change: user({ locked: true }), left: 'nothing' },
  { what: 'a user has another password', change: user({ password: OTHER_PASSWORD }), left: 'nothing' },
  { what: 'a user is removed', change: { user: undefined }, left: 'nothing' },
  {
    what: 'a client has fewer scope values',
    change: client({ scopes: ['openid', 'offline_access', 'fund.read'] }),
    left: 'less',
  },
  { what: 'a client is not for the business', change: client({ businesses: [] }), left: 'nothing' },
  { what: 'a client is disabled', change: client({ disabled: true }), left: 'nothing' },
  { what: 'a client is removed', change: { client: undefined, ...user({ customers: [] }) }, left: 'nothing' },
  {
    what: 'a role of users of the store gives less',
    change: { role: { scopes: ['fund.read'] } },
    left: 'less',
    stored: ['user'],
  },
  {
    what: 'a role of users of the store is removed',
    change: { role: undefined },
    left: 'nothing',
    stored: ['user'],
  },
  {
    what: 'a role of the store is hidden by one that gives less',
    change: { role: { scopes: ['fund.read'] } },
    left: 'less',
    stored: ['role', 'user'],
  },
  {
    what: 'a user of the store is hidden by one with another password',
    change: user({}),
    left: 'nothing',
    stored: ['user'],
  },
  {
    what: 'a role of the store is hidden by one that gives the same',
    change: { role: { scopes: DATA } },
    left: 'same',
    stored: ['role', 'user'],
  },
  { what: 'a role gives more', change: { role: { scopes: [...DATA, 'fund.maintain'] } }, left: 'same' },
  {
    what: 'a user has a role that gives the same',
    change: user({ access: { ACME: 'Equal' } }),
    left: 'same',
  },
  {
    what: 'a client has more scope values',
    change: client({ scopes: [...GRANTED, 'profile'] }),
    left: 'same',
  },
  { what: 'nothing changes', change: {}, left: 'same' },
]

const nameOf = (row: number): string => `row${row}`

/** A configuration with the parts of all rows: before the change, and after it. */
function changesFor(when: 'before' | 'after'): string {
  const parts = ROWS.map(({ change, stored = [] }, index) => {
    const isStored = (kind: string): boolean => stored.some((each) => each === kind)
    const own: Part = Object.fromEntries(
      Object.entries(partOf(nameOf(index))).filter(([kind]) => !isStored(kind)),
    )
    const part = when === 'before' ? own : { ...own, ...change }
    return JSON.parse(JSON.stringify(part).replaceAll('~', nameOf(index))) as Part
  })
  const all = (kind: keyof Part): object =>
    Object.fromEntries(parts.flatMap((part, index) => (part[kind] ? [[nameOf(index), part[kind]]] : [])))
  const roles = { ...all('role'), Weak: { scopes: ['fund.read'] }, Equal: { scopes: DATA } }
  return `directory: ${JSON.stringify({ roles, clients: all('client'), users: all('user') })}`
}

async function store(service: Operated, row: Row, name: string): Promise<void> {
  const has = (kind: 'role' | 'user'): boolean => row.stored?.includes(kind) === true
  if (has('role')) await expectDone(service, 'POST', '/roles', { name, scopes: DATA })
  if (!has('user')) return
  const { customers, access, subject } = partOf(name).user as Record<string, unknown>
  const written = { username: name, password: 'alice-password', subject, customers, access }
  await expectDone(service, 'POST', '/users', written)
}

async function begin(service: Operated): Promise<readonly Holder[]> {
  const holders: Holder[] = []
  for (const [index, row] of ROWS.entries()) {
    const name = nameOf(index)
    await store(service, row, name)
    const who = { client: name, secret: 'acme-books-secret', username: name, password: 'alice-password' }
    const tokens = await logIn(service, { ...who, scope: [...GRANTED, 'target:b/ACME'].join(' ') })
    holders.push({ name, ...who, ...tokens, target: '/api/1.0/b/ACME/fund-data/fund-list' })
  }
  return holders
}

/** With one worker one call is enough. */
const served = (calls: number) => ({ calls: [200], received: calls })
const REFUSED = { calls: [401], received: 0 }

async function expectLeft(
  service: Operated,
  upstream: Upstream,
  holders: readonly Holder[],
  calls = CALLS,
): Promise<void> {
  const found: unknown[] = []
  for (const [index, holder] of holders.entries())
    found.push([
      ROWS[index]?.what,
      await stateOf(service, upstream, holder, calls),
      await refreshed(service, holder),
    ])
  expect(found).toEqual(ROWS.map(({ what, left }) => [what, left === 'same' ? served(calls) : REFUSED, left]))
}

async function expectServed(
  service: Operated,
  upstream: Upstream,
  holders: readonly Holder[],
  calls = CALLS,
): Promise<void> {
  for (const holder of holders) expect(await stateOf(service, upstream, holder, calls)).toEqual(served(calls))
}

describe('C6.3.6 another configuration', { timeout: 300_000 }, () => {
  it('ends what it takes away by a reload, in both workers, and nothing else', async () => {
    const upstream = await startUpstream(answerJson({ Data: [] }))
    const service = await operated(2, changesFor('before'), { UPSTREAM_URL: upstream.url }, 'store')
    const holders = await begin(service)
    await expectServed(service, upstream, holders)
    service.write(changesFor('after'))
    await expectDone(service, 'POST', '/reload')
    await expectLeft(service, upstream, holders)
  })

  it('ends what it takes away by a start, and nothing else', async () => {
    const upstream = await startUpstream(answerJson({ Data: [] }))
    const data = await dataFolder()
    const start = (when: 'before' | 'after', port: number) =>
      operatedHere({
        data,
        environment: { UPSTREAM_URL: upstream.url, POSTERN_PORT: String(port) },
        change: (served) =>
          withAudit({ ...served, directory: directoryOf(changesFor(when)) }, { enabled: false }),
      })
    const first = await start('before', 0)
    const holders = await begin(first)
    await expectServed(first, upstream, holders, 1)
    await first.service.close()
    const second = await start('after', first.service.port)
    await expectLeft(second, upstream, holders, 1)
  })

  it('ends a scope value that another one implies no more, for whoever has it', async () => {
    const upstream = await startUpstream(answerJson({ Data: [] }))
    const written = (implied: readonly string[]): string => {
      const scopes = { wide: { description: 'All', implies: implied } }
      const { role, client, user } = partOf('wide')
      const wide = {
        role: { ...role, scopes: ['wide'] },
        client: { ...client, scopes: [...GRANTED, 'wide'] },
      }
      const directory = { roles: { wide: wide.role }, clients: { wide: wide.client }, users: { wide: user } }
      return `scopes: ${JSON.stringify(scopes)}\ndirectory: ${JSON.stringify(directory)}`
    }
    const service = await operated(1, written(DATA), { UPSTREAM_URL: upstream.url }, 'nothing')
    const who = { client: 'wide', secret: 'acme-books-secret', username: 'wide', password: 'alice-password' }
    const begun = async (scope: string): Promise<Holder> => ({
      ...{ name: scope.replaceAll(' ', '-'), ...who, target: '/api/1.0/b/ACME/fund-data/fund-list' },
      ...(await logIn(service, { ...who, scope: `openid offline_access ${scope} target:b/ACME` })),
    })
    const [listing, reading] = [await begun(DATA.join(' ')), await begun('fund.read')]
    expect(await stateOf(service, upstream, listing, 1)).toEqual(served(1))
    service.write(written(['fund.read']))
    await expectDone(service, 'POST', '/reload')
    expect(await stateOf(service, upstream, listing, 1)).toEqual(REFUSED)
    expect(await refreshed(service, listing)).toBe('less')
    // It never had the value, so it is still valid: what it may not do is another answer.
    expect((await stateOf(service, upstream, reading, 1)).calls).not.toEqual([401])
  })
})

function directoryOf(changes: string): Configuration['directory'] {
  const file = configFiles({ 'a.yaml': `extends: ${ROOT}/config/upstream.yaml\n${changes}\n` })('a.yaml')
  const { configuration, problems } = SETTINGS.load(file, {})
  if (configuration === undefined) throw new Error(JSON.stringify(problems.list))
  return configuration.directory
}
