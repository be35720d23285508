/** Every way by which rights shrink, and what ends then (C6.3.6): over real sockets, with what the upstream received. */
import { describe, expect, it } from 'vitest'
import { dataFolder } from '../support/data-folder.ts'
import { operated, operatedHere, type Operated } from '../support/operated.ts'
import {
  type AdminChange,
  DATA,
  expectDone,
  GRANTED,
  type Holder,
  type Left,
  LISTING,
  logIn,
  REFUSED,
  refreshed,
  SERVED,
  stateOf,
} from '../support/shrinking-rights.ts'
import { answerJson, startUpstream, type Upstream } from '../support/start-upstream.ts'

const PASSWORD = 'correct horse battery'

/** One change of the directory in the store. `~` stands for the row's own names. */
interface Row {
  readonly what: string
  readonly change: AdminChange
  readonly left: Left
  /** The token is for a fund, not for the business. */
  readonly fund?: true
}

const ROWS: readonly Row[] = [
  { what: 'a role gives less', change: ['PATCH', '/roles/~', { scopes: ['fund.read'] }], left: 'less' },
  { what: 'a role is disabled', change: ['POST', '/roles/~/disable'], left: 'nothing' },
  { what: 'a role is removed', change: ['DELETE', '/roles/~'], left: 'nothing' },
  {
    what: 'a user has a weaker role',
    change: ['PATCH', '/users/~', { access: { '~': 'Weak' } }],
    left: 'less',
  },
  { what: 'a user has no role', change: ['PATCH', '/users/~', { access: { '~': null } }], left: 'nothing' },
  {
    what: 'a user is no customer of the client',
    change: ['PATCH', '/users/~', { customers: [] }],
    left: 'nothing',
  },
  { what: 'a user is locked', change: ['PATCH', '/users/~', { locked: true }], left: 'nothing' },
  { what: 'a user is disabled', change: ['POST', '/users/~/disable'], left: 'nothing' },
  { what: 'a user is removed', change: ['DELETE', '/users/~'], left: 'nothing' },
  {
    what: 'a user has another password',
    change: ['PUT', '/users/~/password', { password: 'another horse battery' }],
    left: 'nothing',
  },
  {
    what: 'a client has fewer scope values',
    change: ['PATCH', '/clients/~', { scopes: ['openid', 'offline_access', 'fund.read'] }],
    left: 'less',
  },
  {
    what: 'a client is not for the business',
    change: ['PATCH', '/clients/~', { businesses: [] }],
    left: 'nothing',
  },
  { what: 'a client is disabled', change: ['POST', '/clients/~/disable'], left: 'nothing' },
  { what: 'a client is removed', change: ['DELETE', '/clients/~'], left: 'nothing' },
  { what: 'a business is disabled', change: ['POST', '/businesses/~/disable'], left: 'nothing' },
  { what: 'a business is removed', change: ['DELETE', '/businesses/~'], left: 'nothing' },
  {
    what: 'a fund is disabled',
    change: ['POST', '/businesses/~/funds/F1/disable'],
    left: 'nothing',
    fund: true,
  },
  { what: 'a fund is removed', change: ['DELETE', '/businesses/~/funds/F1'], left: 'nothing', fund: true },
  {
    what: 'a fund is removed that the token is not for',
    change: ['DELETE', '/businesses/~/funds/F1'],
    left: 'same',
  },
  {
    what: 'a role gives more',
    change: ['PATCH', '/roles/~', { scopes: [...DATA, 'business.fund.create'] }],
    left: 'same',
  },
  {
    what: 'a role gives the same by a value that implies it',
    change: ['PATCH', '/roles/~', { scopes: ['fund.maintain', LISTING] }],
    left: 'same',
  },
  {
    what: 'a user has a role that gives the same',
    change: ['PATCH', '/users/~', { access: { '~': 'Equal' } }],
    left: 'same',
  },
  {
    what: 'a user has another name for people',
    change: ['PATCH', '/users/~', { claims: { name: 'Anna' } }],
    left: 'same',
  },
  {
    what: 'a client has more scope values',
    change: ['PATCH', '/clients/~', { scopes: [...GRANTED, 'profile'] }],
    left: 'same',
  },
  {
    what: 'a business has another name',
    change: ['PATCH', '/businesses/~', { name: 'Other' }],
    left: 'same',
  },
]

/** One command on the directory in the store. */
interface CommandRow {
  readonly when: 'running' | 'not running'
  readonly args: readonly string[]
  readonly left: Left
}

const COMMANDS: readonly CommandRow[] = (['running', 'not running'] as const).flatMap(
  (when): CommandRow[] => [
    { when, args: ['role', 'edit', '~', '--scope', 'fund.read'], left: 'less' },
    { when, args: ['role', 'disable', '~'], left: 'nothing' },
    { when, args: ['user', 'edit', '~', '--access', '~=Weak'], left: 'less' },
    { when, args: ['business', 'disable', '~'], left: 'nothing' },
    { when, args: ['role', 'edit', '~', '--scope', `fund.maintain ${LISTING}`], left: 'same' },
  ],
)

/** `~` as the name of one row, in a path or a body. */
const named = <T>(of: T, name: string): T => JSON.parse(JSON.stringify(of).replaceAll('~', name)) as T

/** A business with two funds, a role, a client and a user, all of the same name, and what the user holds. */
async function begin(service: Operated, name: string, fund: boolean): Promise<Holder> {
  await expectDone(service, 'POST', '/businesses', { code: name, name })
  for (const code of ['F1', 'F2']) await expectDone(service, 'POST', `/businesses/${name}/funds`, { code })
  await expectDone(service, 'POST', '/roles', { name, scopes: DATA })
  const { body } = await expectDone(service, 'POST', '/clients', {
    ...{ id: name, name, kind: 'customer', grants: ['password', 'refresh_token'] },
    ...{ agreement: '2026-01-15', businesses: [name], scopes: GRANTED },
  })
  await expectDone(service, 'POST', '/users', {
    ...{ username: name, password: PASSWORD, customers: [name], access: { [name]: name } },
  })
  const client = { client: name, secret: String(body.secret) }
  const place = fund ? `target:f/${name}/F1` : `target:b/${name}`
  const tokens = await logIn(service, {
    ...{ ...client, username: name, password: PASSWORD },
    scope: [...GRANTED, place].join(' '),
  })
  const target = fund
    ? `/api/1.0/f/${name}/F1/member-data/member-list`
    : `/api/1.0/b/${name}/fund-data/fund-list`
  return { name, ...client, ...tokens, target }
}

async function started(
  changes = '',
): Promise<{ service: Awaited<ReturnType<typeof operated>>; upstream: Upstream }> {
  const upstream = await startUpstream(answerJson({ Data: [] }))
  return { upstream, service: await operated(2, changes, { UPSTREAM_URL: upstream.url }) }
}

// A row hashes and verifies passwords for real: on a machine that runs much else at once it takes minutes.
describe('C6.3.6 C11.5.1 a change of the directory in the store', { timeout: 300_000 }, () => {
  it('ends what it takes away, in both workers, and nothing else', async () => {
    const { service, upstream } = await started()
    await expectDone(service, 'POST', '/roles', { name: 'Weak', scopes: ['fund.read'] })
    await expectDone(service, 'POST', '/roles', { name: 'Equal', scopes: DATA })
    const holders: Holder[] = []
    for (const [index, { fund = false }] of ROWS.entries())
      holders.push(await begin(service, `row${index}`, fund))
    const check = async (holder: Holder, index: number): Promise<void> => {
      const { what, change, left } = ROWS[index]!
      expect([what, await stateOf(service, upstream, holder)]).toEqual([what, SERVED])
      await expectDone(service, ...named(change, `row${index}`))
      const expected = left === 'same' ? SERVED : REFUSED
      expect([what, await stateOf(service, upstream, holder)]).toEqual([what, expected])
      expect([what, await refreshed(service, holder)]).toEqual([what, left])
    }
    await Promise.all(holders.map(check))
  })

  it('ends the same by commands, with the service running and not running', async () => {
    const upstream = await startUpstream(answerJson({ Data: [] }))
    const data = await dataFolder()
    const start = (port: number) =>
      operatedHere({ data, environment: { UPSTREAM_URL: upstream.url, POSTERN_PORT: String(port) } })
    const first = await start(0)
    await expectDone(first, 'POST', '/roles', { name: 'Weak', scopes: ['fund.read'] })
    const holders: Holder[] = []
    for (const index of COMMANDS.keys()) holders.push(await begin(first, `row${index}`, false))
    const order = (service: Operated, when: CommandRow['when']): Promise<unknown> =>
      Promise.all(
        COMMANDS.map(async (each, index) => {
          if (each.when !== when) return
          const { code, err } = await service.postern(...named(each.args, `row${index}`))
          expect([each.args, code, err]).toEqual([each.args, 0, err])
        }),
      )
    await order(first, 'running')
    const check = async (service: Operated, isOver: (row: CommandRow) => boolean): Promise<void> => {
      for (const [index, holder] of holders.entries()) {
        const row = COMMANDS[index]!
        const expected = row.left !== 'same' && isOver(row) ? REFUSED : SERVED
        expect([row.args, await stateOf(service, upstream, holder)]).toEqual([row.args, expected])
      }
    }
    await check(first, ({ when }) => when === 'running')
    await first.service.close()
    await order(first, 'not running')
    const second = await start(first.service.port)
    await check(second, () => true)
    for (const [index, holder] of holders.entries())
      expect(await refreshed(second, holder)).toBe(COMMANDS[index]?.left)
  })
})
