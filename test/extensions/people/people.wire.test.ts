import { readFileSync, writeFileSync } from 'node:fs'
import { revoke } from '../../../src/operate/revoke/revoke.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { walkToCode } from '../../support/code-walk.ts'
import { configFiles } from '../../support/config-files.ts'
import { movableClock, type MovableClock } from '../../support/movable-clock.ts'
import { postForm, type OAuthAnswer } from '../../support/oauth.ts'
import { Person } from '../../support/person.ts'
import { answersOf, inThread, puppetPeople, withPeople } from './puppet-people.ts'
import { bearer, send } from '../../support/requests.ts'
import { DEMO } from '../../support/spawn-postern.ts'
import { postern, startPostern, type StartedPostern } from '../../support/start-postern.ts'
import { issueToken } from '../../support/tokens.ts'
import { SETTINGS } from '../../support/settings.ts'

/** C5.7: people whom code of the operator's finds, at the doors where they log in. */

const DORA = {
  subject: 'subject-of-dora',
  username: 'dora',
  customers: ['acme-books'],
  access: { ACME: 'Administrator' },
  claims: { name: 'Dora Dale', email: 'dora@example.com', gender: null, address: { locality: 'Perth' } },
}
/** What the module finds; a test changes its own copy. */
const users = (): Record<string, Record<string, unknown>> => ({
  dora: structuredClone(DORA),
  locked: { ...DORA, subject: 'subject-of-locked', username: 'locked', locked: true },
  disabled: { ...DORA, subject: 'subject-of-disabled', username: 'disabled', disabled: true },
  stranger: { ...DORA, subject: 'subject-of-stranger', username: 'stranger', customers: ['globex-ledger'] },
})

const puppet = puppetPeople(answersOf(users()))
let gateway: StartedPostern
let clock: MovableClock
let found: ReturnType<typeof users>
/** Lines of the log before this test. */
let before: number

beforeAll(async () => {
  clock = movableClock(Date.now())
  gateway = await startPostern({ clock, keeps: 'nothing', change: withPeople(puppet.people) })
})
afterAll(async () => {
  await gateway.close()
  puppet.stop()
})
beforeEach(() => {
  found = users()
  Object.assign(puppet.answers, answersOf(found))
  puppet.calls.length = 0
  before = gateway.logLines().length
  // Nothing of the tests before is remembered: no answer, no failure.
  clock.advance(3_600_000)
})

const log = (): Record<string, unknown>[] =>
  gateway
    .logLines()
    .slice(before)
    .flatMap((text) => text.trim().split('\n'))
    .map((line) => JSON.parse(line))
const logged = (): string => gateway.logLines().slice(before).join('')

const SCOPE = 'openid profile email offline_access fund.read target:b/ACME'

const login = (gateway: StartedPostern, username: string, password = `${username}-password`) =>
  postForm(gateway, '/connect/token', {
    params: { grant_type: 'password', username, password, scope: SCOPE },
  })

const refresh = (gateway: StartedPostern, { json }: OAuthAnswer) =>
  postForm(gateway, '/connect/token', {
    params: { grant_type: 'refresh_token', refresh_token: json.refresh_token },
  })

const userinfo = (gateway: StartedPostern, { json }: OAuthAnswer) =>
  send(gateway, { target: '/api/1.0/u/connect/userinfo', headers: bearer(json.access_token) })

const list = (gateway: StartedPostern, { json }: OAuthAnswer) =>
  send(gateway, { target: '/api/1.0/b/ACME/fund-data/fund-list', headers: bearer(json.access_token) })

const plainly = ({ status, json, headers }: OAuthAnswer) => ({
  status,
  json,
  headers: [...headers].filter(([name]) => !['x-request-id', 'date'].includes(name)),
})

const UNAVAILABLE = { status: 503, json: { error: 'temporarily_unavailable' } }
const INVALID = { status: 400, json: { error: 'invalid_grant' } }

describe('C5.7 a user of another system', () => {
  it('C5.7 logs in by the password grant, with the roles of the configuration', async () => {
    const answer = await login(gateway, 'dora')
    expect(answer).toMatchObject({ status: 200, json: { scope: SCOPE } })
    const { access_token } = await issueToken(gateway, {
      username: 'dora',
      scope: 'business.fund.list target:b/ACME',
    })
    expect((await list(gateway, { ...answer, json: { access_token } })).status).toBe(200)
    const [verified] = puppet.called('verifyPassword')
    expect(verified?.args[0]).toEqual({
      ...DORA,
      disabled: false,
      locked: false,
      claims: { name: 'Dora Dale', email: 'dora@example.com', address: { locality: 'Perth' } },
    })
    expect(verified?.args[1]).toBe('dora-password')
  })

  it('C5.7 has claims, at userinfo and in introspection', async () => {
    const answer = await login(gateway, 'dora')
    expect(JSON.parse((await userinfo(gateway, answer)).body)).toEqual({
      ...{ sub: 'subject-of-dora', name: 'Dora Dale', email: 'dora@example.com' },
    })
    const params = { token: answer.json.access_token }
    expect((await postForm(gateway, '/connect/introspect', { params })).json).toMatchObject({
      ...{ active: true, username: 'dora', sub: 'subject-of-dora' },
    })
  })

  it('C5.7 logs in at the page, consents and is logged in for the next code', async () => {
    const redirect = 'http://127.0.0.1:8090/callback'
    const params = {
      ...{ client_id: 'ledgerline', redirect_uri: redirect, state: 's' },
      scope: 'openid fund.read target:b/ACME',
    }
    const { code, verifier, cookie } = await walkToCode({
      authUrl: gateway.authUrl,
      params,
      username: 'dora',
    })
    const redeemed = await postForm(gateway, '/connect/token', {
      client: 'ledgerline',
      params: { grant_type: 'authorization_code', code, redirect_uri: redirect, code_verifier: verifier },
    })
    expect(redeemed).toMatchObject({ status: 200, json: { scope: params.scope } })
    const person = new Person(gateway.authUrl)
    person.cookie = cookie
    const challenge = { code_challenge: 'a'.repeat(43), code_challenge_method: 'S256' }
    const query = new URLSearchParams({ response_type: 'code', ...params, ...challenge })
    const again = await person.open(`/connect/authorize?${query.toString()}`)
    expect(again.location?.searchParams.get('code')).toBeTruthy()
  })

  it('C5.7 can be found where people of the configuration and of the store log in as before', async () => {
    expect((await login(gateway, 'alice')).status).toBe(200)
    expect(puppet.calls).toEqual([])
  })

  it('C5.7 T3.14 may be spelled in several ways, and is one user to those who count failures', async () => {
    const { findUserByName } = puppet.answers
    puppet.answers.findUserByName = (name, call) => findUserByName(name.toLowerCase(), call)
    expect((await login(gateway, 'DORA', 'dora-password')).status).toBe(200)
    for (const name of ['Dora', 'DoRa', 'dOra', 'doRa', 'dorA']) {
      expect(await login(gateway, name, 'wrong')).toMatchObject(INVALID)
      clock.advance(60_000)
    }
    const lockouts = gateway.context.lockouts.list()
    expect(lockouts).toMatchObject([{ user: 'dora', failures: 5 }])
  })
})

describe('C5.7 whoever may not log in', () => {
  const WRONG: readonly (readonly [string, string, string | undefined])[] = [
    ['a wrong password', 'dora', 'wrong'],
    ['a blank password', 'dora', ' '],
    ['an unknown name', 'nobody', undefined],
    ['a user of another customer', 'stranger', undefined],
    ['a locked user with the right password', 'locked', undefined],
    ['a disabled user with the right password', 'disabled', undefined],
    ['a user of the configuration with a wrong password', 'alice', 'wrong'],
  ]

  it.each(WRONG)('C6.1.5 T3.9 %s is the same invalid_grant, byte for byte', async (_, name, password) => {
    const reference = plainly(await login(gateway, 'dora', 'wrong'))
    expect(reference).toMatchObject(INVALID)
    expect(plainly(await login(gateway, name, password))).toEqual(reference)
  })

  it('C6.1.5 T3.9 each of them costs one verification there and one hash here, and one lookup by name', async () => {
    const hashes = vi.spyOn(gateway.world.hasher, 'verify')
    onTestFinished(() => hashes.mockRestore())
    for (const [what, name, password] of WRONG) {
      const isOwn = name === 'alice'
      puppet.calls.length = 0
      hashes.mockClear()
      await login(gateway, name, password)
      const slow = hashes.mock.calls.filter(([, encoded]) => encoded?.startsWith('sha256:') !== true)
      expect(slow, what).toHaveLength(1)
      expect(puppet.called('verifyPassword'), what).toHaveLength(1)
      expect(puppet.called('findUserByName'), what).toHaveLength(isOwn ? 0 : 1)
      clock.advance(60_000)
    }
  })

  it('T3.9 C5.7 of nobody the module is asked with undefined, and no answer of it lets anybody in', async () => {
    puppet.answers.verifyPassword = () => true
    expect(await login(gateway, 'nobody', 'x')).toMatchObject(INVALID)
    expect(await login(gateway, 'locked')).toMatchObject(INVALID)
    expect(puppet.called('verifyPassword').map(({ args }) => args[0])).toEqual([undefined, undefined])
    puppet.answers.verifyPassword = () => {
      throw new TypeError('cannot read username of undefined')
    }
    expect(await login(gateway, 'nobody', 'x')).toMatchObject(INVALID)
    expect(log().filter(({ event }) => event === 'people_decoy_failed')).toHaveLength(1)
  })

  it('C6.3.5 attempts at one name run one after another, as everywhere', async () => {
    let running = 0
    let most = 0
    puppet.answers.verifyPassword = async () => {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setImmediate(resolve))
      running -= 1
      return false
    }
    const answers = await Promise.all([1, 2, 3, 4].map((each) => login(gateway, 'dora', `wrong ${each}`)))
    for (const answer of answers) expect(answer).toMatchObject(INVALID)
    expect([most, puppet.called('verifyPassword').length]).toEqual([1, 4])
  })
})

const NEVER = (): Promise<never> => new Promise(() => undefined)
const boom = (thrown: unknown) => (): never => {
  throw typeof thrown === 'string' ? new Error(thrown) : thrown
}

describe('C5.7 a module that fails', () => {
  it.each([
    ['throws', boom('the database is gone')],
    ['rejects', () => Promise.reject(new Error('the database is gone'))],
    ['throws no error', boom(undefined)],
    ['answers a text', () => 'dora'],
    ['answers a list', () => [DORA]],
    ['answers another type of member', () => ({ ...DORA, disabled: 0 })],
    ['answers no subject', () => ({ ...DORA, subject: undefined })],
    [
      'answers a member that nobody knows',
      () => ({ ...DORA, password_hash: '$2b$10$abcdefghijklmnopqrstuv' }),
    ],
    ['answers a reference to a file', () => ({ ...DORA, claims: { name: { file: '/etc/passwd' } } })],
    [
      'answers what cannot be read',
      () => inThread("Object.defineProperty({}, 'subject', { enumerable: true, get() { throw 'no' } })"),
    ],
    [
      'answers a circle',
      () => inThread("({ subject: 's', username: 'dora', claims: { address: globalThis } })"),
    ],
  ])('C5.7 that %s is people_unavailable, 503 temporarily_unavailable', async (_, answer) => {
    puppet.answers.findUserByName = answer
    const refused = await login(gateway, 'dora')
    expect(refused).toMatchObject(UNAVAILABLE)
    expect(refused.headers.get('retry-after')).toBe('1')
    const line = log().find(({ reason }) => reason === 'people_unavailable')
    expect(line).toMatchObject({ level: 'error', detail: expect.stringContaining('findUserByName') })
    expect(logged()).not.toMatch(/\$2b\$|dora-password|root:x/)
    expect((await login(gateway, 'alice')).status).toBe(200)
  })

  it.each([
    ['a function', '{ name: () => 1 }', 'claims.name is of type function'],
    ['a symbol', '{ address: { locality: Symbol() } }', 'claims.address.locality is of type symbol'],
    ['a map', 'new Map()', 'claims is an object with a class'],
    ['an object of a class', 'new (class Claims { name = 1 })()', 'claims is an object with a class'],
    ['a date', '{ name: new Date() }', 'claims.name is an object with a class'],
    ['a promise', '{ email: Promise.resolve() }', 'claims.email is an object with a class'],
  ])(
    'C5.7 that answers %s, which is no plain data, is 503, and the log names the member',
    async (_, claims, told) => {
      puppet.answers.findUserByName = () => inThread(`{ subject: 's', username: 'dora', claims: ${claims} }`)
      expect(await login(gateway, 'dora')).toMatchObject(UNAVAILABLE)
      const line = log().find(({ reason }) => reason === 'people_unavailable')
      expect(line?.['detail']).toContain(`findUserByName answered nonsense: ${told}`)
    },
  )

  it.each([
    ['a text', () => 'yes'],
    ['1', () => 1],
    ['an object of the class Boolean', () => inThread('new Boolean(true)')],
    ['nothing', () => undefined],
    ['an exception', boom('wrong: dora-password for $2b$10$abcdefghijklmnopqrstuv')],
  ])('C5.7 lets nobody in who verifies a password with %s: 503', async (_, answer) => {
    puppet.answers.verifyPassword = answer
    expect(await login(gateway, 'dora')).toMatchObject(UNAVAILABLE)
    expect(logged()).toContain('verifyPassword')
    expect(logged()).not.toMatch(/\$2b\$|dora-password/)
  })

  it('C5.7 is 503 after its deadline, and what it answers later changes nothing', async () => {
    const late = Promise.withResolvers<unknown>()
    let aborted = false
    puppet.answers.findUserByName = (_name, { signal }) => {
      signal.addEventListener('abort', () => (aborted = true))
      return late.promise
    }
    const refused = await login(gateway, 'dora')
    expect(refused.status).toBe(503)
    await expect.poll(() => aborted).toBe(true)
    late.reject(new Error('too late'))
    puppet.answers.findUserByName = answersOf(users()).findUserByName
    expect((await login(gateway, 'dora')).status).toBe(200)
  })

  it('C5.7 fails refreshing, userinfo and introspection for the time being, and takes nothing away', async () => {
    const answer = await login(gateway, 'dora')
    const { findUserBySubject } = puppet.answers
    puppet.answers.findUserBySubject = boom('the database is gone')
    clock.advance(30_001)
    expect(await refresh(gateway, answer)).toMatchObject(UNAVAILABLE)
    expect((await userinfo(gateway, answer)).status).toBe(503)
    const params = { token: answer.json.access_token }
    expect(await postForm(gateway, '/connect/introspect', { params })).toMatchObject(UNAVAILABLE)
    puppet.answers.findUserBySubject = findUserBySubject
    expect((await refresh(gateway, answer)).status).toBe(200)
  })

  it('C5.7 C6.1.6 uses up no code: it can be redeemed when the module works again', async () => {
    const params = {
      ...{ client_id: 'ledgerline', redirect_uri: 'http://127.0.0.1:8090/callback' },
      scope: 'openid fund.read target:b/ACME',
    }
    const { code, verifier } = await walkToCode({ authUrl: gateway.authUrl, params, username: 'dora' })
    const { redirect_uri } = params
    const redeem = () =>
      postForm(gateway, '/connect/token', {
        client: 'ledgerline',
        params: { grant_type: 'authorization_code', code, redirect_uri, code_verifier: verifier },
      })
    const { findUserBySubject } = puppet.answers
    puppet.answers.findUserBySubject = boom('the database is gone')
    clock.advance(30_001)
    expect(await redeem()).toMatchObject(UNAVAILABLE)
    puppet.answers.findUserBySubject = findUserBySubject
    expect((await redeem()).status).toBe(200)
  })

  it('C5.7 answers another subject than was asked for: 503, and nobody’s claims are told', async () => {
    const answer = await login(gateway, 'dora')
    clock.advance(30_001)
    puppet.answers.findUserBySubject = () => found['stranger']
    const told = await userinfo(gateway, answer)
    expect([told.status, told.body.includes('stranger')]).toEqual([503, false])
  })
})

describe('C5.7 what is remembered', () => {
  it('C5.7 a user is looked up by subject once in 30 seconds, whatever it is for', async () => {
    let answer = await login(gateway, 'dora')
    answer = await refresh(gateway, answer)
    await userinfo(gateway, answer)
    expect(puppet.called('findUserBySubject')).toHaveLength(0)
    clock.advance(30_001)
    await Promise.all([userinfo(gateway, answer), userinfo(gateway, answer)])
    await refresh(gateway, answer)
    expect(puppet.called('findUserBySubject')).toHaveLength(1)
  })

  it('C5.7 whoever has just signed up can log in after a second', async () => {
    expect(await login(gateway, 'erin')).toMatchObject(INVALID)
    found['erin'] = { ...DORA, subject: 'subject-of-erin', username: 'erin' }
    clock.advance(1001)
    expect((await login(gateway, 'erin')).status).toBe(200)
  })

  it('C5.7 no password is remembered: one that was changed is refused at once', async () => {
    expect((await login(gateway, 'dora')).status).toBe(200)
    puppet.answers.verifyPassword = (_user, password) => password === 'another'
    expect(await login(gateway, 'dora')).toMatchObject(INVALID)
    expect((await login(gateway, 'dora', 'another')).status).toBe(200)
  })
})

describe('C5.7 C6.3.7 the account page of a user of another system', () => {
  it('C6.3.7 offers no password form, and a form that comes all the same tries and changes nothing', async () => {
    const person = new Person(gateway.authUrl)
    const page = await person.logIn(await person.open('/connect/account'), 'dora')
    expect(page.text).toContain('It cannot be changed here. Ask whoever gave you this account.')
    expect(page.text).not.toContain('type="password"')
    puppet.calls.length = 0
    const next = 'tulip ferry anvil'
    const seen = await person.submit(page, { current: 'dora-password', password: next, again: next })
    expect(seen.text).toContain('nothing was changed')
    expect(puppet.called('verifyPassword')).toEqual([])
    expect(await gateway.world.store.list('directory_user', { after: undefined, limit: 10 })).toEqual([])
    expect((await login(gateway, 'dora', next)).status).toBe(400)
    expect((await login(gateway, 'dora')).status).toBe(200)
  })
})

describe('C5.7 whoever is gone, disabled or locked there', () => {
  it.each([
    ['is gone', (found: ReturnType<typeof users>) => delete found['dora']],
    ['is disabled', (found: ReturnType<typeof users>) => (found['dora']!['disabled'] = true)],
    ['is locked', (found: ReturnType<typeof users>) => (found['dora']!['locked'] = true)],
  ])('C5.7 C6.3.5 %s: at the next refresh all tokens and sessions end', async (_, change) => {
    const [one, other] = [await login(gateway, 'dora'), await login(gateway, 'dora')]
    change(found)
    expect((await userinfo(gateway, one)).status).toBe(200)
    clock.advance(30_001)
    expect(await refresh(gateway, one)).toMatchObject(INVALID)
    expect((await userinfo(gateway, other)).status).toBe(401)
    expect(await refresh(gateway, other)).toMatchObject(INVALID)
    expect(log().filter(({ event }) => event === 'people_tokens_ended')).toHaveLength(1)
  })

  it('C5.7 loses the session at its next use', async () => {
    const person = new Person(gateway.authUrl)
    await person.logIn(
      await person.open('/connect/account').then(() => person.open('/connect/login')),
      'dora',
    )
    expect((await person.open('/connect/account')).text).toContain('Dora')
    delete found['dora']
    clock.advance(30_001)
    expect((await person.open('/connect/account')).text).toContain('<h1>Sign in</h1>')
  })

  it('C5.7 C6.3.3 keeps nothing that an operator has ended by subject', async () => {
    const answer = await login(gateway, 'dora')
    const rule = { subject: 'subject-of-dora' }
    const revoked = await revoke(
      gateway.context,
      rule,
      { preview: false, consents: false, force: false },
      {} as never,
    )
    expect(revoked.outcome).toBe('revoked')
    expect(await refresh(gateway, answer)).toMatchObject(INVALID)
    expect((await list(gateway, answer)).status).toBe(401)
  })
})

describe('C5.7 names and subjects of several layers', () => {
  it('C5.7 a name of the configuration is the configuration’s, and the module is not asked for it', async () => {
    found['alice'] = { ...DORA, username: 'alice', subject: 'another-alice' }
    expect(await login(gateway, 'alice', 'wrong')).toMatchObject(INVALID)
    expect(puppet.called('findUserByName')).toEqual([])
    expect(puppet.called('verifyPassword').map(({ args }) => args[0])).toEqual([undefined])
  })

  it('C5.7 T3.14 who has the subject of somebody else does not log in, and the log tells it', async () => {
    const { subject } = gateway.configuration.directory.users['alice']!
    found['mallory'] = { ...DORA, username: 'mallory', subject }
    expect(await login(gateway, 'mallory')).toMatchObject(INVALID)
    expect(log()).toContainEqual(
      expect.objectContaining({ event: 'people_subject_taken', subject, username: 'mallory', of: 'alice' }),
    )
  })

  it('C5.7 a spelling of a name that the configuration has is no other user', async () => {
    found['ALICE'] = { ...DORA, username: 'alice', subject: 'another-alice' }
    const { findUserByName } = answersOf({ ALICE: { ...found['ALICE'], username: 'ALICE' } })
    expect(findUserByName('ALICE', { signal: AbortSignal.abort() })).toBeDefined()
    expect(await login(gateway, 'ALICE', 'alice-password')).toMatchObject(INVALID)
  })

  it('C5.7 a configuration that takes the subject of one who has logged in is refused', async () => {
    await login(gateway, 'dora')
    const { alice } = gateway.configuration.directory.users
    const directory = {
      ...gateway.configuration.directory,
      users: { zoe: { ...alice!, subject: 'subject-of-dora' } },
    }
    const refused = gateway.worker?.prepare({ ...gateway.configuration, directory })
    await expect(refused).rejects.toMatchObject({
      problems: {
        list: [
          expect.objectContaining({
            path: ['directory', 'users', 'zoe', 'subject'],
            message: expect.stringContaining('belongs to "dora", who was found by `directory.people`'),
          }),
        ],
      },
    })
  })
})

describe('C5.7 what an operator can do', () => {
  it('C5.7 a user is shut out by the same name and subject in the configuration, disabled', async () => {
    const own = await postern({ keeps: 'nothing', change: withPeople(puppet.people) })
    const held = await login(own, 'dora')
    expect(held.status).toBe(200)
    const { configuration, worker } = own
    const shut = { ...configuration.directory.users['alice']!, subject: DORA.subject, disabled: true }
    const directory = { ...configuration.directory, users: { dora: shut } }
    await worker?.prepare({ ...configuration, directory })
    await worker?.commit()
    expect(await login(own, 'dora')).toMatchObject(INVALID)
    expect(await refresh(own, held)).toMatchObject(INVALID)
  })
})

const MODULE = (word: string): string => `
export const findUserByName = (username) => ({ username, subject: 'subject-of-' + username, customers: ['acme-books'],
  access: { ACME: 'Read-only' } })
export const findUserBySubject = (subject) => findUserByName(subject.slice(11))
export const verifyPassword = (user, password) => password === '${word}'
`

describe('C5.7 C8.1 the file of a module', () => {
  const config = (files: (name: string) => string): string => {
    writeFileSync(
      files('postern.yaml'),
      `extends: ${DEMO}\ndirectory:\n  people: { kind: module, file: people.mjs }\n`,
    )
    return files('postern.yaml')
  }

  it('C5.7 may export the three functions, and is taken up anew when it has changed', async () => {
    const files = configFiles({ 'people.mjs': MODULE('one') })
    const people = { kind: 'module' as const, file: files('people.mjs'), options: {} }
    const own = await postern({ keeps: 'nothing', change: withPeople(people) })
    expect((await login(own, 'dora', 'one')).status).toBe(200)
    writeFileSync(files('people.mjs'), MODULE('two'))
    await own.worker?.prepare(own.configuration)
    await own.worker?.commit()
    expect(await login(own, 'dora', 'one')).toMatchObject(INVALID)
    expect((await login(own, 'dora', 'two')).status).toBe(200)
  })

  it.each([
    ['is not there', undefined, /people\.mjs/],
    ['throws', `throw new Error('no licence')`, /no licence/],
    ['lacks a function', MODULE('x').replace('verifyPassword', 'verify'), /no function `verifyPassword`/],
    [
      'does what no thread can',
      `process.chdir('/')\n${MODULE('x')}`,
      /process\.chdir\(\) is not supported .*It runs in a thread of its own, which cannot change/,
    ],
    ['makes nothing', 'export default () => undefined', /no function `findUserByName`/],
  ])('C5.7 that %s is a problem of the configuration, by its key', async (_, text, told) => {
    const files = configFiles(text === undefined ? {} : { 'people.mjs': text })
    const { list: problems } = await SETTINGS.check(config(files), {})
    expect(problems.map(({ path, message }) => `${path.join('.')} ${message}`)).toEqual([
      expect.stringMatching(told),
    ])
    expect(problems[0]?.path).toEqual(['directory', 'people', 'file'])
  })

  it('C5.7 C11.2 has no use in a sidecar, and check says so', async () => {
    const files = configFiles({ 'people.mjs': MODULE('one') })
    const sidecar = readFileSync(new URL('../../../config/sidecar.yaml', import.meta.url), 'utf8')
    writeFileSync(
      files('postern.yaml'),
      `${sidecar}\ndirectory:\n  people: { kind: module, file: people.mjs }\n`,
    )
    const { list: problems } = await SETTINGS.check(files('postern.yaml'), {
      UPSTREAM_URL: 'http://127.0.0.1:1',
    })
    expect(problems.map(({ path }) => path.join('.'))).toContain('directory.people')
  })
})

describe('C5.7 what the code does in its own time', () => {
  it('C5.7 a call that is never answered keeps others only as long as its deadline', async () => {
    puppet.answers.findUserByName = (name) =>
      name === 'slow' ? NEVER() : answersOf(users()).findUserByName(name, {} as never)
    const [slow, quick] = await Promise.all([login(gateway, 'slow'), login(gateway, 'dora')])
    expect([slow.status, quick.status]).toEqual([503, 200])
  })
})
