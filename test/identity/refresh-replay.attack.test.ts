import { describe, expect, it } from 'vitest'
import type { Store } from '../../src/base/contracts/records/store.ts'
import { Fault } from '../../src/base/kernel/faults.ts'
import type { MemoryStore } from '../../src/state/stores/sqlite/memory.ts'
import { movableClock } from '../support/movable-clock.ts'
import { postForm, type OAuthAnswer } from '../support/oauth.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'
import { requestToken, openTestIdentity, type TestIdentity } from '../support/identity-under-test.ts'

// T3.6: a refresh token that is used twice, by two who hold it or by one who lost the answer.

const SCOPE = 'openid offline_access fund.read target:b/ACME'
const FUNDS = '/api/1.0/b/ACME/fund-data/fund-list'

const refresh = (service: StartedPostern, token: string, client = 'acme-books'): Promise<OAuthAnswer> =>
  postForm(service, '/connect/token', {
    client,
    params: { grant_type: 'refresh_token', refresh_token: token },
  })

const call = async ({ baseUrl }: StartedPostern, token: string): Promise<number> =>
  (await fetch(baseUrl + FUNDS, { headers: { Authorization: `Bearer ${token}` } })).status

const begin = async (service: StartedPostern) => {
  const { access_token, refresh_token = '' } = await issueToken(service, { scope: SCOPE })
  return { access_token, refresh_token }
}

describe('T3.6 a refresh token that is used twice', () => {
  it('C6.1.7 50 parallel uses over sockets: all the same successor, and every access token works', async () => {
    const service = await postern({ keeps: 'store' })
    const { refresh_token } = await begin(service)
    const answers = await Promise.all(Array.from({ length: 50 }, () => refresh(service, refresh_token)))
    expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(200))
    expect(new Set(answers.map(({ json }) => json.refresh_token)).size).toBe(1)
    expect(new Set(answers.map(({ json }) => json.access_token)).size).toBe(50)
    for (const { json } of answers.slice(0, 5)) expect(await call(service, json.access_token)).toBe(200)
    expect((await refresh(service, answers[0]?.json.refresh_token)).status).toBe(200)
  })

  it('C6.1.7 50 parallel replays after the grace: none succeeds, and nothing of the family works any more', async () => {
    const clock = movableClock(Date.now())
    const service = await postern({ clock, keeps: 'store' })
    const first = await begin(service)
    const second = (await refresh(service, first.refresh_token)).json
    expect(await call(service, second.access_token)).toBe(200)
    clock.advance(30_000)
    const answers = await Promise.all(Array.from({ length: 50 }, () => refresh(service, first.refresh_token)))
    expect(new Set(answers.map(({ status, json }) => `${status} ${json.error}`))).toEqual(
      new Set(['400 invalid_grant']),
    )
    expect((await refresh(service, second.refresh_token)).json.error).toBe('invalid_grant')
    for (const { access_token } of [first, second]) expect(await call(service, access_token)).toBe(401)
  })

  it('C6.1.7 the thief who is first loses it as the owner comes back', async () => {
    const service = await postern({ keeps: 'store' })
    const { refresh_token } = await begin(service)
    const stolen = (await refresh(service, refresh_token)).json
    const further = (await refresh(service, stolen.refresh_token)).json
    expect((await refresh(service, refresh_token)).json.error).toBe('invalid_grant')
    expect((await refresh(service, further.refresh_token)).json.error).toBe('invalid_grant')
    expect(await call(service, further.access_token)).toBe(401)
  })

  it('C6.1.7 another client can neither use nor end it', async () => {
    const service = await postern({ keeps: 'store' })
    const { access_token, refresh_token } = await begin(service)
    expect((await refresh(service, refresh_token, 'globex-ledger')).json.error).toBe('invalid_grant')
    expect(await call(service, access_token)).toBe(200)
    expect((await refresh(service, refresh_token)).status).toBe(200)
  })

  it('C6.1.7 neither tokens nor what derives them stand in the store', async () => {
    const service = await postern({ keeps: 'store' })
    const { refresh_token } = await begin(service)
    const { json } = await refresh(service, refresh_token)
    const kinds = ['refresh_family', 'refresh_token', 'signing_keys']
    const kept = JSON.stringify(await Promise.all(kinds.map((kind) => service.world.store.list(kind))))
    expect(kept).toContain('acme-books')
    const macs = [refresh_token, json.refresh_token].map((token) => token.split('.')[4])
    for (const secret of [...macs, json.access_token]) expect(kept).not.toContain(secret)
  })
})

/** A store whose process dies as the nth verb is called, before or after it has done its work. */
function dying(store: MemoryStore, after: number, done: boolean): { readonly store: Store; calls: number } {
  const state = { store, calls: 0 }
  const dead = (): Promise<never> => Promise.reject(new Fault('identity_unavailable', { detail: 'died' }))
  const proxy = new Proxy(store, {
    get(target, name) {
      const verb: unknown = Reflect.get(target, name)
      if (typeof verb !== 'function') return verb
      return async (...args: readonly unknown[]) => {
        state.calls += 1
        if (state.calls > after + (done ? 1 : 0)) return dead()
        const result: unknown = await Reflect.apply(verb, target, args)
        return state.calls > after ? dead() : result
      }
    },
  })
  return Object.assign(state, { store: proxy })
}

const refreshIn = (service: TestIdentity, token: string) =>
  requestToken(service, {
    grant_type: 'refresh_token',
    refresh_token: token,
    scope: undefined,
    username: undefined,
    password: undefined,
  })

describe('C6.1.7 a process that dies between any two steps of a refresh', () => {
  const deaths = [0, 1, 2, 3, 4, 5].flatMap((after) => [[after, false] as const, [after, true] as const])

  it.each(deaths)(
    'loses nothing that was answered: after %i verbs, the next one done: %s',
    async (after, done) => {
      const service = openTestIdentity()
      const first = (await requestToken(service, { scope: 'openid offline_access fund.read target:b/ACME' }))
        .json
      const grave = dying(service.store, after, done)
      const doomed = openTestIdentity({ deps: { store: grave.store } })
      doomed.clock.at = service.clock.at
      const answer = await refreshIn(doomed, first.refresh_token)
      const lives = grave.calls <= after
      expect(answer.status).toBe(lives ? 200 : 503)
      // The client tries again at the process that takes its place: its token, and what it may have been told, are good.
      const again = await refreshIn(service, first.refresh_token)
      expect(again.status).toBe(200)
      if (lives) expect(again.json.refresh_token).toBe(answer.json.refresh_token)
      expect((await refreshIn(service, again.json.refresh_token)).status).toBe(200)
    },
  )

  it.each(deaths)(
    'keeps a replayed family ended or its end repeatable: after %i verbs, %s',
    async (after, done) => {
      const service = openTestIdentity()
      const first = (await requestToken(service, { scope: 'openid offline_access fund.read target:b/ACME' }))
        .json
      const second = (await refreshIn(service, first.refresh_token)).json
      service.clock.at += 30_000
      const grave = dying(service.store, after, done)
      const doomed = openTestIdentity({ deps: { store: grave.store } })
      doomed.clock.at = service.clock.at
      const answer = await refreshIn(doomed, first.refresh_token)
      expect(answer.status).toBe(grave.calls <= after ? 400 : 503)
      if (answer.status === 503)
        expect((await refreshIn(service, first.refresh_token)).json.error).toBe('invalid_grant')
      expect((await refreshIn(service, second.refresh_token)).json.error).toBe('invalid_grant')
    },
  )
})
