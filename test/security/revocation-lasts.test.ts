import { decodeJwt } from 'jose'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RevokedTokens } from '../../src/contracts/tokens.ts'
import type { Configuration } from '../../src/settings/configuration.ts'
import { allChanges } from '../support/all-changes.ts'
import { dataFolder } from '../support/data-folder.ts'
import { movableClock, type MovableClock } from '../support/movable-clock.ts'
import { postForm } from '../support/oauth.ts'
import { Person } from '../support/person.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'

// T3.12: "revoked" that lasts shorter than what it revokes. Every form is put to the test where a crash between the rule
// and the removals left everything in the store, after the longest life, after a restart, and by a clock that was wrong.

type Change = (all: Configuration) => Configuration

const DAY = 86_400_000
const SCOPE = 'openid offline_access fund.read target:b/ACME'

/** A service on a folder that is kept, so that it can be started again; the clock is the test's. */
async function opened() {
  const clock = movableClock()
  const data = await dataFolder()
  const state = { service: await startPostern({ clock, data }) }
  onTestFinished(async () => {
    await state.service.close()
  })
  const restart = async (change: Change = (all) => all): Promise<void> => {
    // On its port: the issuer's name and the cookie's hold it.
    const environment = { POSTERN_PORT: String(state.service.port) }
    await state.service.close()
    state.service = await startPostern({ clock, data, environment, change })
    // Connections that fetch kept to the service of before are found closed here, not by a call that counts.
    for (let n = 0; n < 3; n += 1)
      await fetch(`${state.service.authUrl}/.well-known/jwks.json`).catch(() => undefined)
  }
  return { clock, state, restart }
}

/** A token, its family and a session of alice's. */
async function begin(service: StartedPostern) {
  const { access_token: access, refresh_token: refresh = '' } = await issueToken(service, { scope: SCOPE })
  const person = new Person(service.authUrl)
  await person.logIn(await person.open('/connect/applications'))
  const { jti = '', family, sub = '' } = decodeJwt(access)
  return { access, refresh, person, jti, family: String(family), subject: sub }
}

type Begun = Awaited<ReturnType<typeof begin>>

/** Ends it as an operator would, but the removals are lost. */
async function endWithoutRemoval({ world }: StartedPostern, tokens: RevokedTokens): Promise<void> {
  const own = world.store.removeBy.bind(world.store)
  Object.assign(world.store, { removeBy: () => Promise.resolve(0) })
  await world.tokenRevoker.end(tokens)
  Object.assign(world.store, { removeBy: own })
}

/** Time passes: what is over is dropped from memory and store. */
async function pass({ world }: StartedPostern, clock: MovableClock, ms: number): Promise<void> {
  clock.advance(ms)
  await world.feed.refresh()
  while ((await world.store.purge(1000)) > 0);
  clock.advance(10_000)
  await world.feed.refresh()
}

const refreshed = async (service: StartedPostern, token: string): Promise<string> => {
  const params = { grant_type: 'refresh_token', refresh_token: token }
  const { status, json } = await postForm(service, '/connect/token', { params })
  return status === 200 ? 'let in' : String(json.error)
}
const isActive = async (service: StartedPostern, token: string): Promise<boolean> =>
  (await postForm(service, '/connect/introspect', { params: { token } })).json.active
const isLoggedIn = async ({ authUrl }: StartedPostern, { cookie }: Person): Promise<boolean> => {
  const person = new Person(authUrl)
  person.cookie = cookie
  return !(await person.open('/connect/applications')).text.includes('name="password"')
}
const called = async ({ baseUrl }: StartedPostern, token: string): Promise<number> => {
  const headers = { Authorization: `Bearer ${token}` }
  return (await fetch(`${baseUrl}/api/1.0/b/ACME/fund-data/fund-list`, { headers })).status
}

const FORMS: readonly (readonly [string, (begun: Begun) => RevokedTokens])[] = [
  ['family', ({ family }) => ({ family })],
  ['subject', ({ subject }) => ({ subject })],
  ['client', () => ({ client: 'acme-books' })],
  ['business', () => ({ business: 'ACME' })],
  ['client and subject', ({ subject }) => ({ client: 'acme-books', subject })],
  ['client, subject and business', ({ subject }) => ({ client: 'acme-books', subject, business: 'ACME' })],
]

describe('T3.12 C6.3.3 what was revoked stays so to the end of its life', () => {
  it.each(FORMS)('by %s: at once, after 29 days, and after a restart then', async (_, form) => {
    const { clock, state, restart } = await opened()
    const begun = await begin(state.service)
    await endWithoutRemoval(state.service, form(begun))
    const expectEnded = async (): Promise<void> => {
      expect(await refreshed(state.service, begun.refresh)).toBe('invalid_grant')
      expect(await isActive(state.service, begun.refresh)).toBe(false)
    }
    await expectEnded()
    expect(await called(state.service, begun.access)).toBe(401)
    expect(await isActive(state.service, begun.access)).toBe(false)
    await pass(state.service, clock, 2 * DAY)
    await expectEnded()
    await pass(state.service, clock, 27 * DAY)
    await expectEnded()
    await restart()
    await expectEnded()
  })

  it('by subject: sessions too, though they are still in the store', async () => {
    const { state, restart } = await opened()
    const { person, subject } = await begin(state.service)
    expect(await isLoggedIn(state.service, person)).toBe(true)
    await endWithoutRemoval(state.service, { subject })
    expect(await isLoggedIn(state.service, person)).toBe(false)
    const other = await begin(state.service)
    expect(await isLoggedIn(state.service, other.person)).toBe(true)
    await restart()
    expect(await isLoggedIn(state.service, person)).toBe(false)
  })

  it('by family: for as long as that family would have lived', async () => {
    const { clock, state } = await opened()
    const { family } = await begin(state.service)
    await endWithoutRemoval(state.service, { family })
    const [rule] = await allChanges(state.service.world.store)
    expect(rule?.expiresAt).toBeGreaterThanOrEqual(clock.now() + 30 * DAY)
  })

  it.each([false, true])(
    'a clock that is 25 hours ahead for a while revives nothing; restart meanwhile: %s',
    async (again) => {
      const { clock, state, restart } = await opened()
      const begun = await begin(state.service)
      await state.service.world.tokenRevoker.end({ jti: begun.jti })
      await endWithoutRemoval(state.service, { family: begun.family })
      clock.step(25 * 3_600_000)
      await pass(state.service, clock, 60_000)
      if (again) await restart()
      await pass(state.service, clock, 60_000)
      clock.step(-25 * 3_600_000)
      if (again) await restart()
      await state.service.world.feed.refresh()
      expect(await called(state.service, begun.access)).toBe(401)
      expect(await refreshed(state.service, begun.refresh)).toBe('invalid_grant')
    },
  )

  it('a token that was issued while the clock was ahead is ended by a rule that is made when it is back', async () => {
    const { clock, state } = await opened()
    clock.step(25 * 3_600_000)
    const begun = await begin(state.service)
    clock.step(-25 * 3_600_000)
    await state.service.world.tokenRevoker.end({ subject: begun.subject })
    expect(await called(state.service, begun.access)).toBe(401)
    expect(await refreshed(state.service, begun.refresh)).toBe('invalid_grant')
    clock.advance(25 * 3_600_000)
    expect(await called(state.service, begun.access)).toBe(401)
  })

  it.each([{ subject: true }, { client: true }])(
    'who was revoked (%j) while the clock was ahead is let in again at once when it is back',
    async (whom) => {
      const { clock, state } = await opened()
      const { subject } = await begin(state.service)
      clock.step(25 * 3_600_000)
      await state.service.world.tokenRevoker.end('subject' in whom ? { subject } : { client: 'acme-books' })
      clock.step(-25 * 3_600_000)
      const after = await begin(state.service)
      expect(await called(state.service, after.access)).toBe(200)
      expect(await refreshed(state.service, after.refresh)).toBe('let in')
    },
  )
})

describe('T3.12 what is changed while the service is down', () => {
  const alice =
    (more: object): Change =>
    (all) => {
      const { alice: before, ...users } = all.directory.users
      return { ...all, directory: { ...all.directory, users: { ...users, alice: { ...before!, ...more } } } }
    }
  const without: Change = (all) => {
    const users = Object.fromEntries(Object.entries(all.directory.users).filter(([name]) => name !== 'alice'))
    return { ...all, directory: { ...all.directory, users } }
  }

  it.each([
    ['a user who is locked', alice({ locked: true })],
    ['a user who is disabled', alice({ disabled: true })],
    ['a user who is removed', without],
  ])('C6.3.5 %s holds nothing from the start on, and nothing comes back with them', async (_, change) => {
    const { state, restart } = await opened()
    const begun = await begin(state.service)
    await restart(change)
    expect(await called(state.service, begun.access)).toBe(401)
    await restart()
    expect(await called(state.service, begun.access)).toBe(401)
    expect(await refreshed(state.service, begun.refresh)).toBe('invalid_grant')
    expect(await isLoggedIn(state.service, begun.person)).toBe(false)
  })

  it('C6.3.5 a user with another password logs in again; where nothing changed, all goes on', async () => {
    const { state, restart } = await opened()
    const begun = await begin(state.service)
    await restart()
    expect(await called(state.service, begun.access)).toBe(200)
    expect(await isLoggedIn(state.service, begun.person)).toBe(true)
    const bob = state.service.configuration.directory.users['bob']!.password
    await restart(alice({ password: bob }))
    expect(await called(state.service, begun.access)).toBe(401)
    expect(await refreshed(state.service, begun.refresh)).toBe('invalid_grant')
    expect(await isLoggedIn(state.service, begun.person)).toBe(false)
  })
})
