import { describe, expect, it, onTestFinished } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { ACCOUNT, AccountOwner } from '../support/account-owner.ts'
import { recordsOf } from '../support/audit-files.ts'
import { withoutAudit } from '../support/held-audit.ts'
import { valueOf } from '../support/metrics.ts'
import { operatedHere } from '../support/operated.ts'
import { Person } from '../support/person.ts'
import { form, send } from '../support/requests.ts'
import { shared } from '../support/shared.ts'

/** C6.3.7, C6.2.2: the account page, where people of the store change their password. */

const FORGOTTEN = 'Ring the desk at extension 12.'
const NEXT = 'tulip ferry anvil'

const withForgotten = ({ identity, ...rest }: Configuration): Configuration => ({
  ...rest,
  identity: { ...identity, pages: { ...identity.pages, forgotten: FORGOTTEN } },
})

const served = shared(() => operatedHere({ config: 'demo.yaml', keeps: 'trail', change: withForgotten }))

const parts = (text: string): readonly string[] =>
  [...text.matchAll(/<h2[^>]*>([^<]*)<\/h2>/g)].map((match) => match[1] ?? '')

const fieldsOf = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...text.matchAll(/<input\s[^>]*>/g)].flatMap(([input]) => {
      const name = /name="([^"]*)"/.exec(input)?.[1]
      const autocomplete = /autocomplete="([^"]*)"/.exec(input)?.[1]
      return name === undefined || autocomplete === undefined ? [] : [[name, autocomplete]]
    }),
  )

/** The words of the lines under the fields. */
const wrongs = (text: string): readonly string[] =>
  [...text.matchAll(/<p class="wrong"[^>]*>([^<]*)<\/p>/g)].map((match) => match[1] ?? '')

const logins = (result: string, of: { readonly adminUrl: string }): Promise<number | undefined> =>
  valueOf(of, `logins_total{way="password",result="${result}"}`)

describe('C6.2.2 the account page', () => {
  it('C6.2.2 C6.3.7 has the person, the password, the browsers and the applications, in this order', async () => {
    const claims = { name: 'Ann Ashe', email: 'ann@example.com', phone_number: '+61 2 5550 1009' }
    const owner = await AccountOwner.add(await served(), 'ann-of-parts', { claims })
    const { status, text } = await owner.page()
    expect(status).toBe(200)
    expect(parts(text)).toEqual(['You', 'Password', 'Where you are signed in', 'Applications with access'])
    for (const fact of [...Object.values(claims), 'ann-of-parts'])
      expect(text).toContain(`<bdi>${fact}</bdi>`)
    expect(fieldsOf(text)).toEqual({
      current: 'current-password',
      username: 'username',
      password: 'new-password',
      again: 'new-password',
    })
    expect(text).not.toContain(FORGOTTEN)
  })

  it.each([
    ['GET', '/connect/applications', ACCOUNT],
    // A form of an earlier version has done nothing, and the page says so.
    ['POST', '/connect/applications', `${ACCOUNT}?done=expired`],
    ['GET', '/.well-known/change-password', ACCOUNT],
  ])('C6.2.2 %s %s leads there', async (method, target, leads) => {
    const { service } = await served()
    const sent = method === 'POST' ? form({ everywhere: '1', password: NEXT }) : {}
    const { headers, status } = await send(service, { method, target, ...sent })
    expect([status, headers['location']]).toEqual([303, leads])
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
    expect(headers).not.toHaveProperty('set-cookie')
  })

  it('C6.2.2 a form that is sent after the session has ended changes nothing, and asks for a sign-in', async () => {
    const owner = await AccountOwner.add(await served(), 'ann-gone')
    const csrf = await owner.csrf()
    await owner.browser.submit(await owner.page(), { everywhere: '1' })
    const body = new URLSearchParams({ csrf, current: owner.password, password: NEXT, again: NEXT })
    const answer = await owner.post(body.toString())
    expect(answer.status).toBe(200)
    expect(answer.body).toContain('<h1>Sign in</h1>')
    expect(await owner.mayLogIn(owner.password)).toBe(true)
  })
})

const MISSING = 'Enter your present password.'
const REFUSED: readonly (readonly [string, Readonly<Record<string, string>>, readonly string[]])[] = [
  ['nothing', { current: '', password: '', again: '' }, [MISSING, 'Enter a new password.']],
  ['no present one', { current: '' }, [MISSING]],
  ['no new one', { password: '' }, ['Enter a new password.']],
  [
    'a new one of 11 characters',
    { password: 'eleven char', again: 'eleven char' },
    ['The new password is too short: it needs at least 12 characters.'],
  ],
  [
    // "é" in two characters is one.
    'a new one that is 11 characters once it is composed',
    { password: 'eleven chae\u0301', again: 'eleven chae\u0301' },
    ['The new password is too short: it needs at least 12 characters.'],
  ],
  [
    'a new one of 1,025 characters',
    { password: 'x'.repeat(1025), again: 'x'.repeat(1025) },
    ['The new password is too long: it may have at most 1,024 characters.'],
  ],
  [
    'the user’s name in other letters',
    { password: 'ANN-of-ＲＵＬＥＳ', again: 'ANN-of-ＲＵＬＥＳ' },
    ['The new password must not be your user name.'],
  ],
  ['the new one once', { again: '' }, ['Enter the new password a second time.']],
  ['two new ones', { again: `${NEXT}s` }, ['The two new passwords are not the same. Type both again.']],
]

describe('C6.3.7 the password form of the account page', () => {
  const rules = shared(async () => AccountOwner.add(await served(), 'ann-of-rules'))

  it.each(REFUSED)(
    'C6.3.7 with %s: 422 says what is wrong before the present password is tried',
    async (_, fields, words) => {
      const owner = await rules()
      const { cookie } = owner.browser
      for (const current of [owner.password, 'not the present one']) {
        const { status, text } = await owner.change(NEXT, { current, ...fields })
        expect(status).toBe(422)
        expect(wrongs(text)).toEqual(words)
        expect(text).toContain('The password was not changed')
      }
      expect(owner.browser.cookie).toBe(cookie)
      expect(recordsOf(owner.served.service, 'login.refused')).toEqual([])
      expect(recordsOf(owner.served.service, 'user.password_set')).toEqual([])
      expect(await owner.mayLogIn(owner.password)).toBe(true)
    },
  )

  it('C6.3.7 C6.3.5 a wrong present password: 422 says so, and counts as a login that failed', async () => {
    const owner = await AccountOwner.add(await served(), 'ann-wrong')
    const { service } = owner.served
    const before = (await logins('refused', owner.served)) ?? 0
    const { status, text } = await owner.change(NEXT, { current: 'not the present one' })
    expect([status, wrongs(text)]).toEqual([
      422,
      ['This is not your present password. Check it and try again.'],
    ])
    expect(recordsOf(service, 'login.refused')).toMatchObject([
      {
        ...{ outcome: 'refused', reason: 'invalid_grant' },
        on: { subject: owner.subject },
        values: { 'actor.address': '127.0.0.1' },
      },
    ])
    expect(await logins('refused', owner.served)).toBe(before + 1)
    const lines = service.log().filter(({ event }) => event === 'login_refused')
    expect(lines).toMatchObject([{ subject: owner.subject, network: '127.0.0.1' }])
    expect(recordsOf(service, 'user.password_set')).toEqual([])
    expect(await owner.isSignedIn()).toBe(true)
    expect(await owner.mayLogIn(owner.password)).toBe(true)
  })

  it('C6.3.7 sets the password, gives this browser a new session, and says so at the next page', async () => {
    const owner = await AccountOwner.add(await served(), 'ann-setting')
    const csrf = await owner.csrf()
    const body = new URLSearchParams({ csrf, current: owner.password, password: NEXT, again: NEXT })
    const { headers, status } = await owner.post(body.toString())
    expect([status, headers['location']]).toEqual([303, `${ACCOUNT}?done=password`])
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
    const set = headers['set-cookie'] ?? ''
    expect(set).toMatch(/^postern-session-\d+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/)
    const [cookie = ''] = set.split(';')
    expect(cookie).not.toBe(owner.browser.cookie)
    expect(await owner.isSignedIn()).toBe(false)
    owner.browser.cookie = cookie
    const { text } = await owner.browser.open(`${ACCOUNT}?done=password`)
    expect(text).toContain('Your password was changed. You are signed out everywhere else.')
    expect(await owner.sessions()).toBe(1)
  })

  it('C6.3.7 C6.3.6 ends every other session, family, code and access token of the person, and nobody else’s', async () => {
    const owner = await AccountOwner.add(await served(), 'ann-ending')
    const other = await AccountOwner.add(owner.served, 'ben-ending')
    const [held, kept] = [await owner.allow(), await other.allow()]
    const elsewhere = await owner.signIn(new Person(owner.served.authUrl))
    expect([await owner.call(held.access), await owner.sessions()]).toEqual([200, 2])
    expect((await owner.change(NEXT)).text).toContain('Your password was changed.')
    expect(await owner.isSignedIn(elsewhere.cookie)).toBe(false)
    expect(await owner.call(held.access)).toBe(401)
    expect((await owner.refresh(held.refresh)).json).toMatchObject({ error: 'invalid_grant' })
    expect((await owner.redeem(held.code)).json).toMatchObject({ error: 'invalid_grant' })
    expect([await owner.isSignedIn(), await owner.sessions()]).toEqual([true, 1])
    // What the person has allowed stands; without a sign-in it gives nothing.
    expect((await owner.page()).text).toContain('<bdi>Ledgerline</bdi>')
    expect(await other.isSignedIn()).toBe(true)
    expect(await other.call(kept.access)).toBe(200)
    expect((await other.redeem(kept.code)).status).toBe(200)
    expect((await other.refresh(kept.refresh)).status).toBe(200)
  })

  it('C6.3.7 C12.3 the trail and the log have the change and the new login, and neither password', async () => {
    const owner = await AccountOwner.add(await served(), 'ann-trailed')
    const { service } = owner.served
    const before = (await logins('succeeded', owner.served)) ?? 0
    await owner.change(NEXT)
    const herself = { kind: 'user', subject: owner.subject }
    expect(recordsOf(service, 'user.password_set')).toMatchObject([
      {
        ...{ outcome: 'success', actor: herself, change: { way: 'account' } },
        on: { kind: 'user', subject: owner.subject },
        values: { 'on.id': 'ann-trailed', 'actor.address': '127.0.0.1' },
      },
    ])
    const [, again] = recordsOf(service, 'login.succeeded')
    expect(again).toMatchObject({ actor: herself, change: { way: 'password' }, on: { kind: 'session' } })
    expect(await logins('succeeded', owner.served)).toBe(before + 1)
    const lines = service.log().filter(({ event }) => event === 'password_set')
    expect(lines).toMatchObject([{ subject: owner.subject, way: 'account' }])
  })

  it('C6.3.7 from then on the new password is good, at the password grant and to sign in, and the old one is not', async () => {
    const owner = await AccountOwner.add(await served(), 'ann-after')
    await owner.change(NEXT)
    expect([await owner.mayLogIn(owner.password), await owner.mayLogIn(NEXT)]).toEqual([false, true])
    const anywhere = new Person(owner.served.authUrl)
    const login = await anywhere.open(ACCOUNT)
    const fields = { username: owner.username, decision: 'login' }
    const old = await anywhere.submit(login, { ...fields, password: owner.password })
    expect(old.text).toContain('do not match an active account')
    expect((await anywhere.submit(old, { ...fields, password: NEXT })).text).toContain('Your account')
    // And it is the present one of the next change.
    expect((await owner.change('another ferry anvil', { current: NEXT })).text).toContain('was changed')
  })

  it('C6.3.7 C12.1.4 changes nothing while nothing can be recorded', async () => {
    const owner = await AccountOwner.add(await served(), 'ann-unrecorded')
    const { status } = await withoutAudit(owner.served.service, () => owner.change(NEXT))
    expect(status).toBe(503)
    expect([await owner.isSignedIn(), await owner.mayLogIn(owner.password)]).toEqual([true, true])
  })
})

describe('C6.3.7 who has no password of Postern’s', () => {
  it('C6.3.7 a person of the configuration is told whom to ask, and a form of theirs changes nothing', async () => {
    const { authUrl, service } = await served()
    const person = new Person(authUrl)
    const page = await person.logIn(await person.open(ACCOUNT))
    expect(parts(page.text)).toHaveLength(4)
    expect(page.text).toContain(`<p>It cannot be changed here. ${FORGOTTEN}</p>`)
    expect(page.text).not.toMatch(/name="(?:current|password|again)"|<script/)
    const fields = { current: 'alice-password', password: NEXT, again: NEXT }
    expect((await person.submit(page, fields)).text).toContain('nothing was changed')
    expect(
      await service.world.store.list('directory_user', { after: undefined, limit: 100 }),
    ).not.toContainEqual(expect.objectContaining({ key: 'alice' }))
    expect(recordsOf(service, 'user.password_set')).toEqual([])
    expect((await person.open(ACCOUNT)).text).toContain('Your account')
  })

  it('C6.3.7 of two people of one name, the one of the configuration changes nothing of the one of the store', async () => {
    const { authUrl, service } = await served()
    const { store } = service.world
    const record = {
      ...{ username: 'bob', subject: 'bob-of-the-store', password: '$argon2id$none' },
      ...{ customers: [], disabled: false, locked: false, access: {}, claims: {} },
    }
    await store.create('directory_user', 'bob', { value: { record } })
    onTestFinished(async () => {
      await store.remove('directory_user', 'bob')
    })
    const person = new Person(authUrl)
    const page = await person.logIn(await person.open(ACCOUNT), 'bob')
    expect(page.text).toContain(FORGOTTEN)
    await person.submit(page, { current: 'bob-password', password: NEXT, again: NEXT })
    expect((await store.find('directory_user', 'bob'))?.value).toEqual({ record })
  })

  it('C6.3.7 where no line for who has forgotten it is configured, the page says that it is not changed here', async () => {
    const { authUrl } = await operatedHere({ config: 'demo.yaml', keeps: 'nothing' })
    const person = new Person(authUrl)
    const { text } = await person.logIn(await person.open(ACCOUNT))
    expect(text).toContain('It cannot be changed here. Ask whoever gave you this account.')
  })
})
