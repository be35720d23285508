import { decodeJwt } from 'jose'
import { describe, expect, it } from 'vitest'
import type { RevokedTokens } from '../../src/base/contracts/records/tokens.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { allChanges } from '../support/all-changes.ts'
import { dataFolder } from '../support/data-folder.ts'
import { movableClock, type MovableClock } from '../support/movable-clock.ts'
import { postForm } from '../support/oauth.ts'
import { Person } from '../support/person.ts'
import { atEnd, shared } from '../support/shared.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'

// T3.12: "revoked" that lasts shorter than what it revokes. Every form is put to the test where a crash between the rule
// and the removals left everything in the store, after the longest life, after a restart, and by a clock that was wrong.
// A start is dear and the clock is one for all, so the cases of a group go the same way together, each with a client and
// a user of its own: nothing that is revoked for one of them reaches another.

type Change = (all: Configuration) => Configuration

const DAY = 86_400_000
const AHEAD = 25 * 3_600_000

const clientOf = (name: string): string => `books-of-${name}`
const userOf = (name: string): string => `alice-of-${name}`

/** The demo, where each of these cases has a client like acme-books and a user like alice, who is known only to it. */
const withCases =
  (names: readonly string[]): Change =>
  (all) => {
    const { clients, users, ...directory } = all.directory
    const [books, alice] = [clients['acme-books']!, users['alice']!]
    const ownClients = names.map((name) => [clientOf(name), books])
    const ownUsers = names.map((name) => [
      userOf(name),
      { ...alice, subject: `subject-of-${name}`, customers: [clientOf(name)] },
    ])
    return {
      ...all,
      directory: {
        ...directory,
        clients: { ...clients, ...Object.fromEntries(ownClients) },
        users: { ...users, ...Object.fromEntries(ownUsers) },
      },
    }
  }

/** A service on a folder that is kept, so that it can be started again; the clock is the test's. */
async function opened(names: readonly string[]) {
  const clock = movableClock()
  const data = await dataFolder()
  const cases = withCases(names)
  const state = { service: await startPostern({ clock, data, keeps: 'store', change: cases }) }
  atEnd(async () => {
    await state.service.close()
  })
  const restart = async (change: Change = (all) => all): Promise<void> => {
    // On its port: the issuer's name and the cookie's hold it.
    const environment = { POSTERN_PORT: String(state.service.port) }
    await state.service.close()
    const changed: Change = (all) => change(cases(all))
    state.service = await startPostern({ clock, data, keeps: 'store', environment, change: changed })
    // Connections that fetch kept to the service of before are found closed here, not by a call that counts.
    for (let n = 0; n < 3; n += 1)
      await fetch(`${state.service.authUrl}/.well-known/jwks.json`).catch(() => undefined)
  }
  return { clock, state, restart }
}

/** A token, its family and a session of the user of a case. */
async function begin(service: StartedPostern, name: string, business = 'ACME') {
  const [client, username] = [clientOf(name), userOf(name)]
  const scope = `openid offline_access fund.read target:b/${business}`
  const issued = await issueToken(service, {
    ...{ client, secret: 'acme-books-secret', username, password: 'alice-password', scope },
  })
  const { access_token: access, refresh_token: refresh = '' } = issued
  const person = new Person(service.authUrl)
  await logIn(person, username)
  const { jti = '', family, sub: subject = '' } = decodeJwt(access)
  return { access, refresh, person, jti, family: String(family), subject, client, business }
}

const logIn = async (person: Person, username: string) =>
  person.submit(await person.open('/connect/account'), { username, password: 'alice-password' })

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

const secret = 'acme-books-secret'
const refreshed = async (service: StartedPostern, { client, refresh }: Begun): Promise<string> => {
  const params = { grant_type: 'refresh_token', refresh_token: refresh }
  const { status, json } = await postForm(service, '/connect/token', { params, client, secret })
  return status === 200 ? 'let in' : String(json.error)
}
const isActive = async (service: StartedPostern, { client }: Begun, token: string): Promise<boolean> =>
  (await postForm(service, '/connect/introspect', { params: { token }, client, secret })).json.active
const isLoggedIn = async ({ authUrl }: StartedPostern, { person: { cookie } }: Begun): Promise<boolean> => {
  const person = new Person(authUrl)
  person.cookie = cookie
  return !(await person.open('/connect/account')).text.includes('<h1>Sign in</h1>')
}
const called = async ({ baseUrl }: StartedPostern, { access, business }: Begun): Promise<number> => {
  const headers = { Authorization: `Bearer ${access}` }
  return (await fetch(`${baseUrl}/api/1.0/b/${business}/fund-data/fund-list`, { headers })).status
}

/** What a begun one is still good for. */
const seen = async (service: StartedPostern, begun: Begun) => ({
  isActive: await isActive(service, begun, begun.refresh),
  refreshed: await refreshed(service, begun),
})

const FORMS: readonly (readonly [string, (begun: Begun) => RevokedTokens])[] = [
  ['family', ({ family }) => ({ family })],
  ['subject', ({ subject }) => ({ subject })],
  ['client', ({ client }) => ({ client })],
  ['business', ({ business }) => ({ business })],
  ['client and subject', ({ client, subject }) => ({ client, subject })],
  ['client, subject and business', ({ client, subject, business }) => ({ client, subject, business })],
]

const named = (form: string): string => form.replaceAll(/\W+/g, '-')

/** Each form revokes; then days pass, and the service starts again. */
const afterDays = shared(async () => {
  const { clock, state, restart } = await opened(['nobody', ...FORMS.map(([form]) => named(form))])
  const untouched = await begin(state.service, 'nobody')
  const begun = new Map<string, Begun>()
  // The only ones at GLOBEX are those whose business is revoked.
  for (const [form] of FORMS)
    begun.set(form, await begin(state.service, named(form), form === 'business' ? 'GLOBEX' : 'ACME'))
  const lives = new Map<string, number>()
  for (const [form, tokens] of FORMS) {
    await endWithoutRemoval(state.service, tokens(begun.get(form)!))
    const rule = (await allChanges(state.service.world.store)).at(-1)
    lives.set(form, (rule?.expiresAt ?? 0) - clock.now())
  }
  const look = async () => {
    const all = new Map<string, Awaited<ReturnType<typeof seen>>>()
    for (const [form, each] of begun) all.set(form, await seen(state.service, each))
    return all
  }
  const atOnce = await look()
  const access = new Map<string, readonly [number, boolean]>()
  for (const [form, each] of begun)
    access.set(form, [await called(state.service, each), await isActive(state.service, each, each.access)])
  const others = [await called(state.service, untouched), await refreshed(state.service, untouched)]
  await pass(state.service, clock, 2 * DAY)
  const afterTwo = await look()
  await pass(state.service, clock, 27 * DAY)
  const after29 = await look()
  await restart()
  return { lives, access, others, looks: [atOnce, afterTwo, after29, await look()] }
})

/** The clock is 25 hours ahead for a while, and the service perhaps starts again then, and when the clock is back. */
const aheadForAWhile = shared(async (again: boolean) => {
  const { clock, state, restart } = await opened(['before', 'ahead', 'subject', 'client'])
  const before = await begin(state.service, 'before')
  await state.service.world.tokenRevoker.end({ jti: before.jti })
  await endWithoutRemoval(state.service, { family: before.family })
  const { subject } = await begin(state.service, 'subject')
  const { client } = await begin(state.service, 'client')
  clock.step(AHEAD)
  await pass(state.service, clock, 60_000)
  if (again) await restart()
  await pass(state.service, clock, 60_000)
  const ahead = await begin(state.service, 'ahead')
  await state.service.world.tokenRevoker.end({ subject })
  await state.service.world.tokenRevoker.end({ client })
  clock.step(-AHEAD)
  if (again) await restart()
  await state.service.world.feed.refresh()
  const look = async (begun: Begun) => [
    await called(state.service, begun),
    await refreshed(state.service, begun),
  ]
  const letInAgain = {
    subject: await look(await begin(state.service, 'subject')),
    client: await look(await begin(state.service, 'client')),
  }
  const revokedBefore = await look(before)
  await state.service.world.tokenRevoker.end({ subject: ahead.subject })
  const issuedAhead = await look(ahead)
  clock.advance(AHEAD)
  return { letInAgain, revokedBefore, issuedAhead, later: await called(state.service, ahead) }
})

const DOWN: Readonly<Record<string, Change>> = {
  locked: (all) => withUser(all, 'locked', (user) => ({ ...user, locked: true })),
  disabled: (all) => withUser(all, 'disabled', (user) => ({ ...user, disabled: true })),
  removed: (all) => withUser(all, 'removed', () => undefined),
  password: (all) =>
    withUser(all, 'password', (user) => ({ ...user, password: all.directory.users['bob']!.password })),
}

type User = Configuration['directory']['users'][string]

function withUser(all: Configuration, name: string, change: (user: User) => User | undefined): Configuration {
  const { [userOf(name)]: before, ...others } = all.directory.users
  const user = change(before!)
  const users = user === undefined ? others : { ...others, [userOf(name)]: user }
  return { ...all, directory: { ...all.directory, users } }
}

/** A service that starts again with nothing changed, then with users changed, then with the users of before. */
const startedAgain = shared(async () => {
  const { state, restart } = await opened(['session', ...Object.keys(DOWN)])
  const session = await begin(state.service, 'session')
  const loggedIn = [await isLoggedIn(state.service, session)]
  await endWithoutRemoval(state.service, { subject: session.subject })
  loggedIn.push(await isLoggedIn(state.service, session))
  const loggedInLater = await isLoggedIn(state.service, await begin(state.service, 'session'))
  const begun = new Map<string, Begun>()
  for (const name of Object.keys(DOWN)) begun.set(name, await begin(state.service, name))
  const look = async () => {
    const all: Record<string, { called: number; isLoggedIn: boolean }> = {}
    for (const [name, each] of begun)
      all[name] = {
        called: await called(state.service, each),
        isLoggedIn: await isLoggedIn(state.service, each),
      }
    return all
  }
  await restart()
  loggedIn.push(await isLoggedIn(state.service, session))
  const unchanged = await look()
  await restart((all) => Object.values(DOWN).reduce((changed, change) => change(changed), all))
  const changed = await look()
  const refreshedThen = await refreshed(state.service, begun.get('password')!)
  await restart()
  const back = await look()
  const refreshedBack: Record<string, string> = {}
  for (const [name, each] of begun) refreshedBack[name] = await refreshed(state.service, each)
  return { loggedIn, loggedInLater, unchanged, changed, refreshedThen, back, refreshedBack }
})

describe('T3.12 C6.3.3 what was revoked stays so to the end of its life', () => {
  it.each(FORMS)('by %s: at once, after 29 days, and after a restart then', async (form) => {
    const { access, others, looks } = await afterDays()
    expect(access.get(form)).toEqual([401, false])
    for (const look of looks) expect(look.get(form)).toEqual({ isActive: false, refreshed: 'invalid_grant' })
    expect(others).toEqual([200, 'let in'])
  })

  it('by subject: sessions too, though they are still in the store', async () => {
    const { loggedIn, loggedInLater } = await startedAgain()
    // At first, when they are revoked, and after a restart.
    expect(loggedIn).toEqual([true, false, false])
    expect(loggedInLater).toBe(true)
  })

  it('by family: for as long as that family would have lived', async () => {
    const { lives } = await afterDays()
    expect(lives.get('family')).toBeGreaterThanOrEqual(30 * DAY)
  })

  it.each([false, true])(
    'a clock that is 25 hours ahead for a while revives nothing; restart meanwhile: %s',
    async (again) => {
      const { revokedBefore } = await aheadForAWhile(again)
      expect(revokedBefore).toEqual([401, 'invalid_grant'])
    },
  )

  it.each([false, true])(
    'a token that was issued while the clock was ahead is ended by a rule that is made when it is back; restart meanwhile: %s',
    async (again) => {
      const { issuedAhead, later } = await aheadForAWhile(again)
      expect(issuedAhead).toEqual([401, 'invalid_grant'])
      expect(later).toBe(401)
    },
  )

  it.each(['subject', 'client'] as const)(
    'who was revoked (by %s) while the clock was ahead is let in again at once when it is back',
    async (whom) => {
      for (const again of [false, true])
        expect((await aheadForAWhile(again)).letInAgain[whom]).toEqual([200, 'let in'])
    },
  )
})

describe('T3.12 what is changed while the service is down', () => {
  it.each([
    ['a user who is locked', 'locked'],
    ['a user who is disabled', 'disabled'],
    ['a user who is removed', 'removed'],
  ])('C6.3.5 %s holds nothing from the start on, and nothing comes back with them', async (_, name) => {
    const { changed, back, refreshedBack } = await startedAgain()
    expect(changed[name]).toEqual({ called: 401, isLoggedIn: false })
    expect(back[name]).toEqual({ called: 401, isLoggedIn: false })
    expect(refreshedBack[name]).toBe('invalid_grant')
  })

  it('C6.3.5 a user with another password logs in again; where nothing changed, all goes on', async () => {
    const { unchanged, changed, refreshedThen } = await startedAgain()
    expect(unchanged['password']).toEqual({ called: 200, isLoggedIn: true })
    expect(changed['password']).toEqual({ called: 401, isLoggedIn: false })
    expect(refreshedThen).toBe('invalid_grant')
  })
})
