/** A node whose view of a shared store is old (T3.13), and a shared store that is older than what a node has seen (T3.17). */
import { cpSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { runVerb } from '../../support/command-line.ts'
import { cutOff } from '../../support/cut-off.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { eventually } from '../../support/eventually.ts'
import { needing } from '../../support/machine.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { postForm } from '../../support/oauth.ts'
import { query, sharedPostgres } from '../../support/postgres.ts'
import { bearer } from '../../support/requests.ts'
import { onStore, openShared, sharedStore } from '../../support/shared-store.ts'
import { postern, type StartedPostern } from '../../support/start-postern.ts'
import { issueToken } from '../../support/tokens.ts'

const MINUTE = 60_000
const SCOPE = 'openid offline_access business.fund.list target:b/ACME'
const SOON = { timeout: 30_000, interval: 50 }

const refresh = (service: StartedPostern, refresh_token: string) =>
  postForm(service, '/connect/token', { params: { grant_type: 'refresh_token', refresh_token } })

/** A data call that alice's token allows. */
const ask = ({ baseUrl }: StartedPostern, token: string): Promise<Response> =>
  fetch(`${baseUrl}/api/1.0/b/ACME/fund-data/fund-list`, { headers: bearer(token) })

const call = async (service: StartedPostern, token: string): Promise<number> =>
  (await ask(service, token)).status

const order = (service: StartedPostern, data: string, ...args: readonly string[]) =>
  runVerb([...args, '--reason', 'backup restored', '--admin-url', service.adminUrl], {
    env: { POSTERN_DATA: data },
  })

const degraded = async ({ adminUrl }: StartedPostern): Promise<unknown> => {
  const response = await fetch(`${adminUrl}/health/ready`)
  expect(response.status).toBe(200)
  return ((await response.json()) as { degraded: unknown }).degraded
}

describe('T3.13 a node that is cut off from the store of several', needing('postgresql'), () => {
  it('C11.7.2 C4.15 answers data calls with 503 from store.maxAge on, and says that it is not ready', async () => {
    const store = await sharedStore({ maxAge: 60_000 })
    const clock = movableClock(Date.now())
    const service = await postern({ keeps: 'nothing', clock, change: onStore(store) })
    const { access_token: token } = await issueToken(service, { scope: SCOPE })
    const ready = async () => (await fetch(`${service.adminUrl}/health/ready`)).json()
    await cutOff(service)
    clock.advance(59_000)
    expect(await call(service, token)).toBe(200)
    expect(await ready()).toMatchObject({ status: 'ready', degraded: [{ name: 'store' }] })
    clock.advance(2000)
    await service.world.state.view.settle()
    const refused = await ask(service, token)
    expect(refused.status).toBe(503)
    expect(await refused.json()).toMatchObject({ Errors: [{ Code: 'API_UNAVAILABLE' }] })
    expect(await ready()).toMatchObject({ failing: ['store'] })
  })

  it('C11.7.1 issues tokens with the store’s time, though its own clock is an hour ahead', async () => {
    const HOUR = 3600
    const now = () => systemClock.now() + HOUR * 1000
    const service = await postern({
      keeps: 'nothing',
      clock: { now, monotonic: () => systemClock.monotonic() },
      change: onStore(await sharedStore()),
    })
    const { access_token } = await issueToken(service, { scope: SCOPE })
    const { iat } = JSON.parse(Buffer.from(access_token.split('.')[1]!, 'base64url').toString())
    // Half an hour tells whose time it is.
    expect(Math.round((now() / 1000 - iat) / HOUR)).toBe(1)
    const metrics = await (await fetch(`${service.adminUrl}/metrics`)).text()
    const offset = Number(/^postern_clock_offset_seconds (.*)$/mu.exec(metrics)?.[1])
    expect(Math.round(offset / HOUR)).toBe(-1)
  })
})

const OLDER = {
  name: 'store',
  reason: expect.stringMatching(/older than what this node has seen.*`postern store accept --contents`/),
}

/** Nodes of a store that can be put back by so many milliseconds, as by a backup. */
async function restorable() {
  const store = await sharedStore()
  const cluster = await sharedPostgres()
  const node = (data: string) =>
    postern({ data, keeps: 'store', change: (configuration) => ({ ...configuration, store }) })
  /** Another node has made a change before. */
  const changeBefore = async (expiresAt?: number): Promise<void> => {
    const elsewhere = await openShared(store, systemClock)
    await elsewhere.append('topic', {}, { expiresAt: expiresAt ?? Date.now() + 24 * 60 * MINUTE })
    await elsewhere.close()
    backdate(6 * MINUTE)
  }
  const restore = (ms: number): void => {
    query(cluster, `UPDATE ${store.schema}.feed SET last = last - ${ms}, mark = 'restored'`)
    query(
      cluster,
      `DELETE FROM ${store.schema}.change WHERE sequence > (SELECT last FROM ${store.schema}.feed)`,
    )
  }
  /** A backup without a change was restored, and another node has made one before anybody looked. */
  const restoreAndChange = (): void => {
    query(
      cluster,
      `DELETE FROM ${store.schema}.change; UPDATE ${store.schema}.feed SET last = last + 1000, mark = 'new'`,
    )
  }
  /** What there is ends within moments, so that others may have purged it. */
  const endAll = (): void =>
    void query(cluster, `UPDATE ${store.schema}.change SET expires_at = ${Date.now() + 30_000}`)
  /** All changes so far were made so many milliseconds earlier. */
  const backdate = (ms: number): void => {
    query(cluster, `UPDATE ${store.schema}.change SET sequence = sequence - ${ms}`)
    query(cluster, `UPDATE ${store.schema}.feed SET last = last - ${ms}`)
  }
  const nodesInDoubt = (): string =>
    query(cluster, `SELECT count(*) FROM ${store.schema}.node WHERE facts LIKE '%"contentsDoubted":true%'`)
  const newest = (): number => Number(query(cluster, `SELECT last FROM ${store.schema}.feed`))
  /** A node revokes a client's tokens, six minutes ago, and ends. */
  const revoke = async (): Promise<void> => {
    const service = await node(await dataFolder())
    await issueToken(service, { scope: SCOPE })
    await service.world.tokenRevoker.end({ client: 'acme-books' })
    await service.close()
    backdate(6 * MINUTE)
  }
  return { node, restore, restoreAndChange, changeBefore, revoke, endAll, newest, nodesInDoubt }
}

describe(
  'T3.17 C11.7.3 a shared store that is older than what a node has seen',
  needing('postgresql'),
  () => {
    it('C11.7.3 issues no token until it is accepted, and data calls go on', async () => {
      const { node, restore, changeBefore, newest } = await restorable()
      const data = await dataFolder()
      await changeBefore()
      const service = await node(data)
      const { access_token, refresh_token = '' } = await issueToken(service, { scope: SCOPE })
      await service.world.feed.append('topic', {})
      const before = newest()
      restore(7 * MINUTE)
      await eventually(async () => expect(await degraded(service)).toEqual([OLDER]))
      const refused = await refresh(service, refresh_token)
      expect([refused.status, refused.json.error]).toEqual([503, 'temporarily_unavailable'])
      expect(await call(service, access_token)).toBe(200)
      expect(await order(service, data, 'store', 'accept', '--contents')).toMatchObject({ code: 0 })
      await eventually(async () => expect(await degraded(service)).toEqual([]))
      await eventually(async () => expect((await refresh(service, refresh_token)).status).toBe(200))
      expect(newest()).toBeGreaterThan(before)
    })

    it('C11.7.3 is doubted also where what it lacks has ended meanwhile, but for the last moments', async () => {
      const { node, restore, changeBefore } = await restorable()
      // As what tells that a record of the directory has changed, which nobody needs for long.
      await changeBefore(Date.now() - 1)
      const service = await node(await dataFolder())
      await service.world.feed.append('topic', {})
      restore(7 * MINUTE)
      await eventually(async () => expect(await degraded(service)).toEqual([OLDER]))
    })

    it('C11.7.3 is doubted where old revocations are missing, though another node has changed something since', async () => {
      const { node, revoke, restoreAndChange } = await restorable()
      await revoke()
      const service = await node(await dataFolder())
      await service.world.feed.append('topic', {})
      restoreAndChange()
      await eventually(async () => expect(await degraded(service)).toEqual([OLDER]))
    })

    it('C11.7.3 is not doubted where what is missing had only ended', async () => {
      const { node, revoke, endAll, restoreAndChange } = await restorable()
      await revoke()
      endAll()
      const service = await node(await dataFolder())
      await service.world.feed.append('topic', {})
      restoreAndChange()
      await expect
        .poll(() => service.log().some(({ event }) => event === 'change_feed.restarted'), SOON)
        .toBe(true)
      expect(await degraded(service)).toEqual([])
    })

    it('C11.7.3 is not doubted by a running node that knows what is missing, where that is younger than five minutes', async () => {
      const { node, restore } = await restorable()
      const service = await node(await dataFolder())
      await service.world.feed.append('topic', {})
      restore(60 * MINUTE)
      await expect
        .poll(() => service.log().some(({ event }) => event === 'change_feed.restarted'), SOON)
        .toBe(true)
      expect(await degraded(service)).toEqual([])
      expect((await issueToken(service, { scope: SCOPE })).access_token).not.toBe('')
    })

    it('C11.7.3 is noticed by a node that starts on its data folder, and accepted by one that remembers nothing', async () => {
      const { node, restore } = await restorable()
      const data = await dataFolder()
      const first = await node(data)
      await first.world.feed.append('topic', {})
      await first.close()
      restore(6 * MINUTE)
      const fresh = await node(await dataFolder())
      const { refresh_token = '' } = await issueToken(fresh, { scope: SCOPE })
      const again = await node(data)
      expect(await degraded(again)).toEqual([OLDER])
      expect((await refresh(again, refresh_token)).status).toBe(503)
      expect((await refresh(fresh, refresh_token)).status).toBe(200)
      await again.close()
      const later = await node(data)
      expect(await degraded(later)).toEqual([OLDER])
      // As the page on nodes says: first all that was given is ended, then tokens are issued again.
      expect(await order(later, data, 'revoke', '--before', 'now')).toMatchObject({ code: 0 })
      expect(await order(later, data, 'store', 'accept', '--contents')).toMatchObject({ code: 0 })
      await eventually(async () => expect(await degraded(later)).toEqual([]))
      expect((await refresh(later, refresh_token)).json.error).toBe('invalid_grant')
      expect((await issueToken(later, { scope: SCOPE })).access_token).not.toBe('')
    })

    it('C11.7.3 is doubted by a node that starts later, though something was changed meanwhile at one that doubts it', async () => {
      const { node, restore, nodesInDoubt } = await restorable()
      const [data, other] = [await dataFolder(), await dataFolder()]
      const before = await node(data)
      await before.world.feed.append('topic', {})
      await before.close()
      // What a second node would remember that has seen the same.
      cpSync(data, other, { recursive: true })
      restore(6 * MINUTE)
      const first = await node(data)
      expect(await degraded(first)).toEqual([OLDER])
      await first.world.feed.append('topic', {})
      await expect.poll(nodesInDoubt, SOON).toBe('1')
      const second = await node(other)
      expect(await degraded(second)).toEqual([OLDER])
      expect(await order(first, data, 'store', 'accept', '--contents')).toMatchObject({ code: 0 })
      for (const each of [first, second])
        await eventually(async () => expect(await degraded(each)).toEqual([]))
    })

    it('C11.7.3 by up to five minutes is one that a failover has left: nothing has to be accepted', async () => {
      const { node, restore } = await restorable()
      const data = await dataFolder()
      const service = await node(data)
      const { refresh_token = '' } = await issueToken(service, { scope: SCOPE })
      await service.world.feed.append('topic', {})
      restore(4 * MINUTE)
      await service.world.feed.refresh()
      expect(await degraded(service)).toEqual([])
      await eventually(async () => expect((await refresh(service, refresh_token)).status).toBe(200))
      expect(await order(service, data, 'store', 'accept', '--contents')).toMatchObject({ code: 1 })
    })
  },
)
