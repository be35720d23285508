/** The clock of the database that nodes share jumps, while it serves and before they start. */
import { describe, expect, it } from 'vitest'
import { type Clock, systemClock } from '../../../src/base/kernel/clock.ts'
import type { Store } from '../../../src/base/contracts/records/store.ts'
import { recordsOf } from '../../support/audit-files.ts'
import { authorizeUrl } from '../../support/audited-people.ts'
import { runVerb } from '../../support/command-line.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { giveClock } from './support/database-clock.ts'
import { eventually } from '../../support/eventually.ts'
import { needing } from '../../support/machine.ts'
import { postForm } from '../../support/oauth.ts'
import { Person } from '../../support/person.ts'
import { drawSchema, query, sharedPostgres } from '../../support/postgres.ts'
import { bearer } from '../../support/requests.ts'
import { sharedStore } from '../../support/shared-store.ts'
import { postern, type StartedPostern } from '../../support/start-postern.ts'
import { issueToken } from '../../support/tokens.ts'

const DAY = 24 * 3_600_000
const SCOPE = 'openid offline_access business.fund.list target:b/ACME'

/** A store whose database has a clock of its own. */
async function clockedStore() {
  const cluster = await sharedPostgres()
  const name = drawSchema()
  const { jump } = giveClock(cluster, name)
  const store = await sharedStore({ url: cluster.url(name) })
  const sql = (text: string): string => query(cluster, text.replaceAll('SCHEMA.', `${store.schema}.`))
  return { store, sql, jump }
}

type Clocked = Awaited<ReturnType<typeof clockedStore>>

const node = ({ store }: Clocked, more: { clock?: Clock; data?: string } = {}) =>
  postern({ ...more, change: (configuration) => ({ ...configuration, store }) })

const refresh = (service: StartedPostern, refresh_token: string) =>
  postForm(service, '/connect/token', { params: { grant_type: 'refresh_token', refresh_token } })

const call = async ({ baseUrl }: StartedPostern, token: string): Promise<number> => {
  const url = `${baseUrl}/api/1.0/b/ACME/fund-data/fund-list`
  return (await fetch(url, { headers: bearer(token) })).status
}

const degraded = async ({ adminUrl }: StartedPostern): Promise<unknown> => {
  const response = await fetch(`${adminUrl}/health/ready`)
  expect(response.status).toBe(200)
  return ((await response.json()) as { degraded: unknown }).degraded
}

const jumped = (how: string) => [
  { name: 'store', reason: expect.stringContaining(`its clock has jumped ${how}`) },
]

const notices = (service: StartedPostern, how: string) =>
  eventually(async () => expect(await degraded(service)).toEqual(jumped(how)))

const isWell = (service: StartedPostern) =>
  eventually(async () => expect(await degraded(service)).toEqual([]))

/** Records that are good for an hour, as codes and families are. */
const keep = (store: Store, key: string): Promise<boolean> =>
  store.create('thing', key, { value: {}, expiresAt: Date.now() + DAY })

const issuedAt = (token: string): number =>
  (JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { iat: number }).iat * 1000

describe('T5.6 C11.7.1 the clock of a shared store that jumps', needing('postgresql'), () => {
  it('C11.7.1 40 days ahead: nothing is purged or used up, refresh tokens are 503, and all goes on when it is back', async () => {
    const clocked = await clockedStore()
    const service = await node(clocked)
    const { access_token, refresh_token = '' } = await issueToken(service, { scope: SCOPE })
    const { store } = service.world
    await keep(store, 'one')
    clocked.jump(40 * DAY)
    await notices(service, '40d ahead')
    expect(await store.purge(1000)).toBe(0)
    expect(clocked.sql(`SELECT count(*) FROM SCHEMA.record WHERE kind IN ('refresh_family', 'thing')`)).toBe(
      '2',
    )
    const refused = await refresh(service, refresh_token)
    expect([refused.status, refused.json.error]).toEqual([503, 'temporarily_unavailable'])
    await expect(store.find('thing', 'one')).rejects.toThrow(/jumped/)
    await expect(store.consume('thing', 'one')).rejects.toThrow(/jumped/)
    await expect(store.replace('thing', 'one', 1, {})).rejects.toThrow(/jumped/)
    expect(await call(service, access_token)).toBe(200)
    const meanwhile = await issueToken(service, { scope: 'openid' })
    expect(Math.abs(issuedAt(meanwhile.access_token) - Date.now())).toBeLessThan(60_000)
    clocked.jump(0)
    await isWell(service)
    expect((await refresh(service, refresh_token)).status).toBe(200)
    expect(await store.consume('thing', 'one')).toMatchObject({ first: true })
  })

  it('C11.7.1 C6.3.3 what may have expired can be ended while it is doubted: by its client, an operator and its user', async () => {
    const clocked = await clockedStore()
    const data = await dataFolder()
    const service = await node(clocked, { data })
    const [byClient = '', byOperator = ''] = [
      (await issueToken(service, { scope: SCOPE })).refresh_token,
      (await issueToken(service, { scope: SCOPE })).refresh_token,
    ]
    const person = new Person(service.authUrl)
    await person.logIn(await person.open(authorizeUrl()))
    const left = `SELECT count(*) FROM SCHEMA.record WHERE kind IN ('refresh_family', 'session')`
    expect(clocked.sql(left)).toBe('3')
    clocked.jump(40 * DAY)
    await notices(service, '40d ahead')
    expect((await postForm(service, '/connect/revocation', { params: { token: byClient } })).status).toBe(200)
    const [, , family = ''] = byOperator.split('.')
    const order = ['revoke', `--family=${family}`, '--reason', 'lost', '--admin-url', service.adminUrl]
    expect(await runVerb(order, { env: { POSTERN_DATA: data } })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('1 family'),
    })
    const page = await person.open(`${service.authUrl}/connect/endsession`)
    expect(await person.submit(page, { decision: 'logout' })).toMatchObject({ status: 200 })
    expect(clocked.sql(left)).toBe('0')
    clocked.jump(0)
    await isWell(service)
    for (const token of [byClient, byOperator])
      expect((await refresh(service, token)).json.error).toBe('invalid_grant')
  })

  it('C11.7.1 a lease that was taken while it was ahead does not last until then, nor does a node that ended', async () => {
    const clocked = await clockedStore()
    const service = await node(clocked)
    clocked.jump(40 * DAY)
    await notices(service, '40d ahead')
    await service.world.store.hold('work', 10_000)
    clocked.sql(`INSERT INTO SCHEMA.node SELECT 'gone', version, config, facts, seen_at FROM SCHEMA.node`)
    clocked.jump(0)
    await isWell(service)
    const other = await node(clocked)
    expect(await other.world.store.hold('work', 10_000)).toBe(true)
    await eventually(async () => expect(await other.world.store.shared!.live()).toMatchObject({ nodes: 1 }))
  })

  it('C11.7.7 a wrong password while it was ahead delays nobody until then', async () => {
    const clocked = await clockedStore()
    const service = await node(clocked)
    const login = (password: string) =>
      postForm(service, '/connect/token', {
        params: { grant_type: 'password', username: 'alice', password, scope: 'openid' },
      })
    clocked.jump(40 * DAY)
    await notices(service, '40d ahead')
    expect((await login('wrong')).status).toBe(400)
    clocked.sql(`UPDATE SCHEMA.lockout SET busy_until = last_at, busy_by = 'who has died'`)
    clocked.jump(0)
    await isWell(service)
    expect((await login('alice-password')).status).toBe(200)
  })

  it('C11.7.1 a node that starts meanwhile believes the nodes that have seen the jump', async () => {
    const clocked = await clockedStore()
    const service = await node(clocked)
    const { refresh_token = '' } = await issueToken(service, { scope: SCOPE })
    clocked.jump(40 * DAY)
    await notices(service, '40d ahead')
    await eventually(() =>
      expect(Number(clocked.sql(`SELECT max(seen_at) FROM SCHEMA.node`))).toBeGreaterThan(Date.now() + DAY),
    )
    const wrong = { now: () => systemClock.now() + 40 * DAY, monotonic: () => systemClock.monotonic() }
    const started = await node(clocked, { clock: wrong })
    expect(await degraded(started)).toEqual(jumped('40d ahead'))
    expect((await refresh(started, refresh_token)).status).toBe(503)
    clocked.jump(0)
    await isWell(started)
    expect((await refresh(started, refresh_token)).status).toBe(200)
  })

  it('C11.7.1 a node that starts alone believes the time that is nearer to the newest in the store', async () => {
    const clocked = await clockedStore()
    const data = await dataFolder()
    const before = await node(clocked, { data })
    const { refresh_token = '' } = await issueToken(before, { scope: SCOPE })
    await before.world.store.append('topic', {})
    await before.close()
    clocked.jump(40 * DAY)
    const started = await node(clocked, { data })
    expect(await degraded(started)).toEqual(jumped('40d ahead'))
    expect((await refresh(started, refresh_token)).status).toBe(503)
    clocked.jump(0)
    await isWell(started)
    expect((await refresh(started, refresh_token)).status).toBe(200)
  })

  it.each([40 * DAY, -40 * DAY])(
    'C11.7.1 a node whose own clock is wrong by %i ms doubts nothing',
    async (ms) => {
      const clocked = await clockedStore()
      const first = await node(clocked)
      const { refresh_token = '' } = await issueToken(first, { scope: SCOPE })
      const clock = { now: () => systemClock.now() + ms, monotonic: () => systemClock.monotonic() }
      const other = await node(clocked, { clock })
      expect(await degraded(other)).toEqual([])
      expect((await refresh(other, refresh_token)).status).toBe(200)
    },
  )

  it('C11.7.1 an operator accepts it for all nodes: what has expired by it has expired', async () => {
    const clocked = await clockedStore()
    const data = await dataFolder()
    const [service, other] = [await node(clocked, { data }), await node(clocked)]
    const { refresh_token = '' } = await issueToken(service, { scope: SCOPE })
    const accept = () =>
      runVerb(
        ['store', 'accept', '--clock', '--reason', 'it was wrong before', '--admin-url', service.adminUrl],
        {
          env: { POSTERN_DATA: data },
        },
      )
    expect(await accept()).toMatchObject({ code: 1 })
    clocked.jump(40 * DAY)
    for (const each of [service, other]) await notices(each, '40d ahead')
    expect(await accept()).toMatchObject({ code: 0, stdout: 'the clock of the store is accepted\n' })
    for (const each of [service, other]) await isWell(each)
    const refused = await refresh(service, refresh_token)
    expect([refused.status, refused.json.error]).toEqual([400, 'invalid_grant'])
    expect(Math.abs(service.world.clock.now() - Date.now() - 40 * DAY)).toBeLessThan(60_000)
    expect(recordsOf(service, 'store.accepted').at(-1)).toMatchObject({
      outcome: 'success',
      change: { what: 'clock' },
    })
  })
})
