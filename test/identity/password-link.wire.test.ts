/** C6.3.7 as a person sees it: a link is opened, a password chosen, and nobody is signed in by it. */
import { describe, expect, it, vi } from 'vitest'
import { Fault } from '../../src/base/kernel/faults.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { administered } from '../support/administered.ts'
import { recordsOf } from '../support/audit-files.ts'
import { authorizeUrl, CALLBACK, SCOPE, VERIFIER } from '../support/audited-people.ts'
import { movableClock } from '../support/movable-clock.ts'
import { postForm } from '../support/oauth.ts'
import {
  addUser,
  ask,
  CHOSEN,
  isPasswordOf,
  isSet,
  makeLink,
  openLink,
  type OpenedLink,
  withoutId,
} from '../support/password-links.ts'
import { Person } from '../support/person.ts'
import type { RawResponse } from '../support/raw-http.ts'
import { bearer } from '../support/requests.ts'
import { shared } from '../support/shared.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'

const FORGOTTEN = 'Ask <Ann> & "Bob" on +61 2 5550 1000'
const ESCAPED = 'Ask &lt;Ann&gt; &amp; &quot;Bob&quot; on +61 2 5550 1000'

const withPages = (configuration: Configuration, pages: object): Configuration => {
  const { identity } = configuration
  return { ...configuration, identity: { ...identity, pages: { ...identity.pages, ...pages } } }
}

const clock = movableClock(Date.now())
const served = shared(() =>
  administered({ keeps: 'trail', clock, change: (loaded) => withPages(loaded, { forgotten: FORGOTTEN }) }),
)

let users = 0
/** Somebody whom no other test knows, with a link. */
async function invited(more: object = {}) {
  const world = await served()
  users += 1
  const username = `dora${users}`
  const subject = await addUser(world, username, more)
  return { ...world, username, subject, ...(await makeLink(world, username)) }
}

const setsCookie = ({ rawHeaders }: RawResponse): readonly string[] =>
  rawHeaders.filter(([name]) => name.toLowerCase() === 'set-cookie').map(([, value]) => value)

/** The cookie goes. */
const CLEARED = /^postern-link-\d+=; Path=\/; HttpOnly; SameSite=Lax; Max-Age=0$/

describe('C6.3.7 a link that is opened', () => {
  it('C6.3.7: the code moves from the address into a cookie of this host for ten minutes, and 303 leads to the page without it', async () => {
    const { code, service } = await invited()
    const { moved, page } = await openLink(service, code)
    expect([moved.status, moved.headers['location'], moved.body]).toEqual([303, '/connect/link', ''])
    expect(setsCookie(moved)).toEqual([
      `postern-link-${service.port}=${code}; Path=/; HttpOnly; SameSite=Lax; Max-Age=600`,
    ])
    expect(moved.headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
    expect([page.status, setsCookie(page)]).toEqual([200, []])
    expect(page.body).not.toContain(code)
  })

  it('C6.3.7: behind https the cookie is `__Host-postern-link`, Secure, and so the only one that is read', async () => {
    const world = await administered({
      keeps: 'nothing',
      // What is served to others must not have the demo's secrets.
      change: ({ directory, server, ...rest }) => ({
        ...{ ...rest, demo: false, directory: { ...directory, clients: {}, users: {} } },
        server: { ...server, authUrl: 'https://id.example/in', baseUrl: 'https://id.example' },
      }),
    })
    const { service } = world
    await addUser(world, 'dora', { customers: [] })
    const { link, code } = await makeLink(world, 'dora')
    expect(link).toBe(`https://id.example/in/connect/link?code=${code}`)
    const headers = { Host: 'id.example' }
    const moved = await ask(service, { target: `/in/connect/link?code=${code}`, headers })
    expect([moved.status, moved.headers['location'], setsCookie(moved)]).toEqual([
      303,
      '/in/connect/link',
      [`__Host-postern-link=${code}; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=600`],
    ])
    const open = async (name: string) =>
      (await ask(service, { target: '/in/connect/link', headers: { ...headers, Cookie: `${name}=${code}` } }))
        .status
    expect(await open('__Host-postern-link')).toBe(200)
    for (const other of [
      'postern-link',
      `postern-link-${service.port}`,
      'postern-link-443',
      '__host-postern-link',
    ])
      expect([other, await open(other)]).toEqual([other, 404])
  })

  it('C6.3.7: nothing is looked up where the code is in the address: a store that is down is not noticed before the page', async () => {
    const { code, service } = await invited()
    const find = vi
      .spyOn(service.world.state.store, 'find')
      .mockRejectedValue(new Fault('identity_unavailable'))
    try {
      const { moved, page, reload } = await openLink(service, code)
      expect([moved.status, moved.headers['location']]).toEqual([303, '/connect/link'])
      expect([page.status, setsCookie(page)]).toEqual([503, []])
      find.mockRestore()
      expect((await reload()).status).toBe(200)
    } finally {
      find.mockRestore()
    }
  })

  it('C6.3.7: the page names the account, for password managers too, and asks for a new password twice', async () => {
    const { code, service, username } = await invited()
    const { page } = await openLink(service, code)
    expect(page.body).toContain(`for the account ${username}`)
    expect(page.body).toMatch(
      new RegExp(`<input type="text" name="username" value="${username}" autocomplete="username" hidden`),
    )
    for (const name of ['password', 'again'])
      expect(page.body).toMatch(
        new RegExp(`name="${name}"\\s+type="password"\\s+value=""\\s+autocomplete="new-password"`),
      )
    expect(page.body).toContain('<form method="post" action="/connect/link"')
  })
})

describe('C6.3.7 a password that is no good', () => {
  const refused: readonly (readonly [string, (name: string) => Readonly<Record<string, string>>, string])[] =
    [
      ['of 11 characters', () => both('a'.repeat(11)), 'too short'],
      ['of 11 characters that are written as 12', () => both(`${'a'.repeat(10)}e\u0301`), 'too short'],
      ['of 1,025 characters', () => both('a'.repeat(1025)), 'too long'],
      ['that is not the same twice', () => ({ password: CHOSEN, again: `${CHOSEN}.` }), 'not the same'],
      [
        'that differs in case the second time',
        () => ({ password: CHOSEN, again: CHOSEN.toUpperCase() }),
        'not the same',
      ],
      ['that is the user’s name', (name) => both(name), 'must not be your user name'],
      [
        'that is the user’s name in other case',
        (name) => both(name.toUpperCase()),
        'must not be your user name',
      ],
      ['that is the user’s name in wide letters', (name) => both(wide(name)), 'must not be your user name'],
      ['that is missing', () => ({ again: CHOSEN }), 'Enter a new password'],
      ['that is empty', () => both(''), 'Enter a new password'],
      ['that is there once', () => ({ password: CHOSEN }), 'a second time'],
    ]
  const both = (password: string) => ({ password, again: password })
  const wide = (text: string): string =>
    text.replaceAll(/[!-~]/g, (character) => String.fromCharCode(character.charCodeAt(0) + 0xfee0))

  it('C6.3.7: 422 tells what is wrong, shows no password, and uses nothing up', async () => {
    const world = await served()
    const username = 'eleonora-dusefield'
    const subject = await addUser(world, username)
    const { code } = await makeLink(world, username)
    const { service } = world
    const opened = await openLink(service, code)
    for (const [what, fields, told] of refused) {
      const sent = fields(username)
      const seen = await opened.send(sent)
      const renewed = `postern-link-${service.port}=${code}; Path=/; HttpOnly; SameSite=Lax; Max-Age=600`
      expect([what, seen.status, setsCookie(seen)]).toEqual([what, 422, [renewed]])
      expect([what, seen.body.includes(told)]).toEqual([what, true])
      for (const value of [sent['password'], sent['again']])
        if (value !== undefined && value !== '' && value !== username)
          expect([what, seen.body.includes(value)]).toEqual([what, false])
      // The page is the form once more.
      expect(seen.body).toContain(`name="csrf" value="${opened.csrf}"`)
    }
    const events = ['user.password_set', 'login.refused'].flatMap((event) => recordsOf(service, event))
    expect(events.filter(({ on }) => (on as { subject?: string }).subject === subject)).toEqual([])
    expect(await isPasswordOf(service, username, CHOSEN)).toBe(false)
    expect(isSet(await opened.choose())).toBe(true)
    expect(await isPasswordOf(service, username, CHOSEN)).toBe(true)
  })

  it('C6.3.7: 12 characters are enough, and 1,024 are not too many, as they are when composed', async () => {
    for (const password of ['a'.repeat(12), 'é'.repeat(12), 'e\u0301'.repeat(1024)]) {
      const { code, service, username } = await invited()
      expect(isSet(await (await openLink(service, code)).choose(password))).toBe(true)
      expect(await isPasswordOf(service, username, password)).toBe(true)
      expect(await isPasswordOf(service, username, password.normalize('NFC'))).toBe(true)
    }
  })
})

/** Dora, signed in, with everything that a person may hold. */
async function holding(service: StartedPostern, username: string) {
  const person = new Person(service.authUrl)
  const consent = await person.logIn(await person.open(authorizeUrl()), username)
  const codeOf = ({ location }: { location: URL | undefined }): string =>
    location?.searchParams.get('code') ?? ''
  const redeem = (code: string) =>
    postForm(service, '/connect/token', {
      client: 'ledgerline',
      params: { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: VERIFIER },
    })
  const first = await redeem(codeOf(await person.submit(consent, { decision: 'allow' })))
  expect(first.status).toBe(200)
  const byPassword = await postForm(service, '/connect/token', {
    params: { grant_type: 'password', username, password: `${username}-password`, scope: SCOPE },
  })
  expect(byPassword.status).toBe(200)
  const code = codeOf(await person.open(authorizeUrl()))
  expect(code).not.toBe('')
  const refresh = async (token: string, client: string) =>
    (
      await postForm(service, '/connect/token', {
        client,
        params: { grant_type: 'refresh_token', refresh_token: token },
      })
    ).json.error
  return async () => ({
    session: (await person.open('/connect/account')).text.includes('name="current"'),
    family: await refresh(first.json.refresh_token, 'ledgerline'),
    ownFamily: await refresh(byPassword.json.refresh_token, 'acme-books'),
    code: (await redeem(code)).json.error,
    tokens: await Promise.all(
      [first, byPassword].map(async ({ json }) => {
        const url = `${service.baseUrl}/api/1.0/b/ACME/fund-data/fund-list`
        return (await fetch(url, { headers: bearer(json.access_token) })).status
      }),
    ),
  })
}

describe('C6.3.7 a password that is set by a link', () => {
  it('C6.3.7 C6.3.6: the new password is good and the old one is not; sessions, families, codes and access tokens have ended', async () => {
    const world = await served()
    const { service } = world
    const username = 'frederica'
    await addUser(world, username, { password: `${username}-password` })
    const held = await holding(service, username)
    const { code } = await makeLink(world, username)
    const done = await (await openLink(service, code)).choose()
    expect(isSet(done)).toBe(true)
    expect((await donePage(service)).body).toContain('Your password is set')
    expect(await isPasswordOf(service, username, CHOSEN)).toBe(true)
    expect(await isPasswordOf(service, username, `${username}-password`)).toBe(false)
    expect(await held()).toEqual({
      ...{ session: false, family: 'invalid_grant', ownFamily: 'invalid_grant', code: 'invalid_grant' },
      tokens: [401, 401],
    })
  })

  it('C6.3.7: nobody is signed in by it: no session begins, the link’s cookie goes, and the page leads to the sign-in form', async () => {
    const { code, service, username } = await invited()
    const { cookie, choose } = await openLink(service, code)
    const done = await choose()
    expect(setsCookie(done)).toEqual([expect.stringMatching(CLEARED)])
    const page = await donePage(service)
    expect(page.body).toContain('<a class="button" href="/connect/account">Sign in</a>')
    expect(setsCookie(page)).toEqual([])
    expect(done.body + page.body).not.toContain(CHOSEN)
    expect(await service.world.state.store.list('session')).toEqual([])
    const login = await ask(service, { target: '/connect/account', headers: { Cookie: cookie } })
    expect(login.body).toContain('<h1>Sign in</h1>')
    // And the new password is good on the pages too.
    const person = new Person(service.authUrl)
    const form = await person.open('/connect/account')
    const account = await person.submit(form, { username, password: CHOSEN })
    expect(account.text).toContain(`Signed in as`)
  })

  it('C6.3.7 C12.3: one record tells that the owner of the link has set it, by whom it is, and no password', async () => {
    const { code, service, subject, username } = await invited()
    await (await openLink(service, code)).choose()
    const records = recordsOf(service, 'user.password_set')
    expect(records).toMatchObject([
      {
        outcome: 'success',
        actor: { kind: 'anonymous' },
        on: { kind: 'user', subject },
        change: { way: 'link' },
        values: { 'on.id': username, 'actor.address': '127.0.0.1' },
      },
    ])
    expect(JSON.stringify(records)).not.toContain(CHOSEN)
  })

  it('C6.3.7: a person who never had a password has none until a link sets one', async () => {
    const { code, service, username } = await invited()
    for (const password of [CHOSEN, username, 'undefined', 'null'])
      expect([password, await isPasswordOf(service, username, password)]).toEqual([password, false])
    await (await openLink(service, code)).choose()
    expect(await isPasswordOf(service, username, CHOSEN)).toBe(true)
  })
})

/** The page to which 303 leads whoever has set a password: it is the same for everybody, and can be loaded again. */
const donePage = (service: StartedPostern) => ask(service, { target: '/connect/link?done=password' })

type World = Awaited<ReturnType<typeof administered>>
type Ending = (world: World, username: string, opened: OpenedLink) => Promise<unknown>

const order =
  (...orders: readonly (readonly [method: string, path: string, body?: object])[]): Ending =>
  async ({ call }, username) => {
    for (const [method, path, body] of orders) {
      const sent = body === undefined ? {} : { body }
      const { status } = await call(method, `/users/${username}${path}`, sent)
      expect([path, status]).toEqual([path, 200])
    }
  }

const again: Ending = async (world, username, opened) => {
  await order(['DELETE', ''])(world, username, opened)
  await addUser(world, username)
}

/** What ends a link, for everybody to see in the same way. */
const ENDINGS: readonly (readonly [string, Ending])[] = [
  ['was used', (_, __, { choose }) => choose()],
  [
    'is as old as its lifetime',
    () => {
      clock.advance(86_400_000)
      return Promise.resolve()
    },
  ],
  ['is older than another one of the person', (world, username) => makeLink(world, username)],
  [
    'has another password behind it, set by an operator',
    order(['PUT', '/password', { password: `${CHOSEN}.` }]),
  ],
  ['is of somebody who is disabled', order(['POST', '/disable'])],
  ['is of somebody who was disabled and enabled', order(['POST', '/disable'], ['POST', '/enable'])],
  ['is of somebody who is locked', order(['PATCH', '', { locked: true }])],
  [
    'is of somebody who was locked and unlocked',
    order(['PATCH', '', { locked: true }], ['PATCH', '', { locked: false }]),
  ],
  ['is of somebody who was removed', order(['DELETE', ''])],
  ['is of somebody who was removed, where another one has the name now', again],
  [
    'was ended by `postern revoke --subject`',
    async ({ call }, username) => {
      const { body } = await call('GET', `/users/${username}`)
      expect((await call('POST', '/revoke', { body: { subject: body.subject } })).status).toBe(200)
    },
  ],
]

describe('C6.3.7 a link that is no good', () => {
  /** The page that each of them gets: that of a code which nobody has ever made. */
  const expected = async (service: StartedPostern): Promise<RawResponse> =>
    (await openLink(service, 'x'.repeat(43))).page

  it.each(ENDINGS)('C6.3.7: a link that %s is 404 with the same page as an unknown one', async (_, end) => {
    const person = await invited()
    const { code, service, username } = person
    const opened = await openLink(service, code)
    expect(opened.page.status).toBe(200)
    await end(person, username, opened)
    const unknown = await expected(service)
    expect(unknown.status).toBe(404)
    const later = await openLink(service, code)
    expect(later.moved.status).toBe(303)
    for (const seen of [await opened.choose('another plain word'), later.page, await opened.reload()]) {
      expect([seen.status, setsCookie(seen)]).toEqual([404, [expect.stringMatching(CLEARED)]])
      expect(withoutId(seen)).toBe(withoutId(unknown))
      expect({ ...seen.headers, 'x-request-id': '', date: '' }).toEqual({
        ...unknown.headers,
        'x-request-id': '',
        date: '',
      })
    }
    expect(await isPasswordOf(service, username, 'another plain word')).toBe(false)
  })

  it('C6.3.7: an address that is not whole is the same page at once, and so is one without any code', async () => {
    const { code, service } = await invited()
    const unknown = await expected(service)
    const targets = [
      '',
      '?code=',
      `?code=${code.slice(1)}`,
      `?code=${code}a`,
      `?code=%20${code}`,
      `?code=${code}.`,
      `?code=${code}&code=${code}`,
    ]
    for (const target of targets) {
      const seen = await ask(service, { target: `/connect/link${target}` })
      expect([target, seen.status, setsCookie(seen)]).toEqual([target, 404, [expect.stringMatching(CLEARED)]])
      expect(withoutId(seen)).toBe(withoutId(unknown))
    }
    expect((await openLink(service, code)).page.status).toBe(200)
  })

  it('C6.3.7: the page says what to do, and whom to ask, as text', async () => {
    const { body } = await expected((await served()).service)
    expect(body).toContain('This link is no longer good')
    expect(body).toContain(`<p>${ESCAPED}</p>`)
    expect(body).not.toContain('<Ann>')
  })
})

describe('C6.3.7 whom to ask who has forgotten the password', () => {
  it('C6.3.7: the line stands under the sign-in form, as text, and on no other refusal', async () => {
    const { service } = await served()
    const login = await ask(service, { target: '/connect/account' })
    expect(login.body).toContain('<h1>Sign in</h1>')
    expect(login.body).toContain(ESCAPED)
    expect(login.body).not.toContain('<Ann>')
    const refused = await ask(service, { target: '/connect/authorize?client_id=nobody' })
    expect([refused.status, refused.body.includes('Ann')]).toEqual([400, false])
  })

  it('C6.3.7: without the setting neither page has a line of it', async () => {
    const service = await postern({ keeps: 'nothing' })
    expect((await ask(service, { target: '/connect/account' })).body).not.toContain('class="forgotten"')
    expect((await ask(service, { target: '/connect/link' })).body).not.toContain('undefined')
  })
})
