import { describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { type AuditTrail, NO_TRAIL } from '../../src/base/contracts/records/audit.ts'
import { LocalLockouts } from '../../src/identity/guessing/lockouts.ts'
import { ACCOUNT, AccountOwner } from '../support/account-owner.ts'
import { recordsOf } from '../support/audit-files.ts'
import { authorizeUrl, wholeTrail } from '../support/audited-people.ts'
import { patientGuessing } from '../support/guessing.ts'
import { movableClock } from '../support/movable-clock.ts'
import { operatedHere } from '../support/operated.ts'
import { Person } from '../support/person.ts'
import { send } from '../support/requests.ts'
import { shared } from '../support/shared.ts'
import { openFlow, UserAgent } from '../support/user-agent.ts'
import type { TestIdentity } from '../support/identity-under-test.ts'

// T6.5: who has somebody's session, or makes their browser send a form, wants their password to be another one.

const NEXT = 'tulip ferry anvil'

/** Every attack fails on purpose, from one address. */
const change = (configuration: Configuration): Configuration => patientGuessing(configuration)

const served = shared(() => operatedHere({ config: 'demo.yaml', keeps: 'trail', change }))

const textOf = (fields: Readonly<Record<string, string>>): string => new URLSearchParams(fields).toString()

/** The subjects of the present passwords that were tried and wrong: the trail counts refusals where there are many. */
const failed = ({ served: { service } }: AccountOwner): readonly unknown[] =>
  service.log().flatMap(({ event, subject }) => (event === 'login_refused' ? [subject] : []))

/** Nothing was tried, and nothing is otherwise than before. */
async function expectUntouched(owner: AccountOwner): Promise<void> {
  const { service } = owner.served
  for (const event of ['user.password_set', 'login.ended', 'session.revoked'])
    expect([event, recordsOf(service, event)]).toEqual([event, []])
  expect(failed(owner)).toEqual([])
  expect(await owner.isSignedIn()).toBe(true)
  expect([await owner.mayLogIn(owner.password), await owner.mayLogIn(NEXT)]).toEqual([true, false])
}

describe('T6.5 a form that the person did not send', () => {
  const attacked = shared(async () => AccountOwner.add(await served(), 'ann-attacked'))

  const FOREIGN: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
    ['another site’s, as the browser says', { 'Sec-Fetch-Site': 'cross-site' }],
    ['a neighbouring site’s', { 'Sec-Fetch-Site': 'same-site' }],
    ['another origin’s', { Origin: 'https://evil.example' }],
    ['another port’s', { Origin: 'http://127.0.0.1:1' }],
    ['another site’s, with our origin', { 'Sec-Fetch-Site': 'cross-site', Origin: 'null' }],
  ]

  it.each(FOREIGN)('T6.5 C6.3.7 %s changes nothing, also with the right token', async (_, headers) => {
    const owner = await attacked()
    const fields = { csrf: await owner.csrf(), current: owner.password, password: NEXT, again: NEXT }
    const answer = await owner.post(textOf(fields), headers)
    expect([answer.status, answer.headers['location']]).toEqual([303, ACCOUNT])
    expect(answer.headers).not.toHaveProperty('set-cookie')
    await expectUntouched(owner)
  })

  it('T6.5 C6.3.7 one without the token of this very session changes nothing', async () => {
    const owner = await attacked()
    const thief = await AccountOwner.add(owner.served, 'ann-attacking')
    const second = await owner.signIn(new Person(owner.served.authUrl))
    const pages = [
      await thief.page(),
      await second.open(ACCOUNT),
      await new Person(owner.served.authUrl).open(ACCOUNT),
    ]
    const tokens = pages.map(({ text }) => /name="csrf" value="([^"]*)"/.exec(text)?.[1] ?? '')
    expect(new Set(tokens).size).toBe(3)
    for (const csrf of [...tokens, '', 'x'.repeat(43)]) {
      const fields = { csrf, current: owner.password, password: NEXT, again: NEXT }
      const answer = await owner.post(textOf(fields))
      expect([answer.status, answer.headers['location']]).toEqual([303, `${ACCOUNT}?done=expired`])
    }
    await expectUntouched(owner)
  })

  it('T6.5 C6.3.7 an address with the fields in it changes nothing', async () => {
    const owner = await attacked()
    const fields = { csrf: await owner.csrf(), current: owner.password, password: NEXT, again: NEXT }
    const headers = { Cookie: owner.browser.cookie }
    const target = `${ACCOUNT}?${textOf(fields)}`
    const answer = await send(owner.served.service, { target, headers })
    expect(answer.status).toBe(200)
    expect(answer.body).not.toContain('ferry')
    expect(owner.served.service.logLines().join('')).not.toContain(NEXT.replaceAll(' ', '+'))
    await expectUntouched(owner)
  })

  const BODIES: readonly (readonly [string, number, (fields: Readonly<Record<string, string>>) => string])[] =
    [
      ['two new passwords', 400, (fields) => `${textOf(fields)}&password=other+ferry+anvil`],
      ['two present passwords', 400, (fields) => `${textOf(fields)}&current=guess`],
      ['two tokens', 400, (fields) => `${textOf(fields)}&csrf=x`],
      ['a body of more than 64 KiB', 400, (fields) => `${textOf(fields)}&x=${'y'.repeat(70_000)}`],
      [
        'a new password of 60,000 characters',
        422,
        (fields) => textOf({ ...fields, ...twice('x'.repeat(29_000)) }),
      ],
      ['a bad escape', 400, (fields) => `${textOf(fields)}&x=%zz`],
      ['other names for the fields', 303, ({ csrf = '', ...fields }) => textOf({ csrf, ...renamed(fields) })],
    ]
  const twice = (password: string) => ({ password, again: password })
  const renamed = (fields: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
    Object.fromEntries(Object.entries(fields).map(([name, value]) => [`${name}[]`, value]))

  it.each(BODIES)(
    'T6.5 C6.3.7 with %s changes nothing, and the answer has none of it',
    async (_, status, bodyOf) => {
      const owner = await attacked()
      const csrf = await owner.csrf()
      const answer = await owner.post(bodyOf({ csrf, current: owner.password, password: NEXT, again: NEXT }))
      expect(answer.status).toBe(status)
      for (const secret of [NEXT, owner.password, 'ferry', 'guess', 'xxxxx'])
        expect(answer.body).not.toContain(secret)
      expect(answer.headers).not.toHaveProperty('set-cookie')
      await expectUntouched(owner)
    },
  )

  it('T6.5 C6.3.7 a present password of 60,000 characters is a wrong one', async () => {
    const owner = await AccountOwner.add(await served(), 'ann-long')
    const fields = { csrf: await owner.csrf(), current: 'x'.repeat(60_000), password: NEXT, again: NEXT }
    expect((await owner.post(textOf(fields))).status).toBe(422)
    expect(failed(owner)).toEqual([owner.subject])
    expect(await owner.mayLogIn(owner.password)).toBe(true)
  })

  it('T6.5 C6.3.7 a name in the form is not believed: whose session it is gets the password', async () => {
    const victim = await attacked()
    const thief = await AccountOwner.add(victim.served, 'ann-renaming')
    const others = { username: victim.username, subject: victim.subject }
    const tried = await thief.change(NEXT, { ...others, current: victim.password })
    expect(tried.status).toBe(422)
    expect(failed(thief)).toEqual([thief.subject])
    expect((await thief.change(NEXT, others)).text).toContain('Your password was changed.')
    expect(await victim.isSignedIn()).toBe(true)
    expect([await victim.mayLogIn(NEXT), await thief.mayLogIn(NEXT)]).toEqual([false, true])
  })

  it('T6.5 the page is framed, kept, and told to others by no browser, with problems neither', async () => {
    const owner = await attacked()
    const csrf = await owner.csrf()
    for (const { headers } of [
      await send(owner.served.service, { target: ACCOUNT, headers: { Cookie: owner.browser.cookie } }),
      await owner.post(textOf({ csrf, current: '', password: '', again: '' })),
    ]) {
      expect(headers).toMatchObject({
        'cache-control': 'no-store',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
      })
      const policy = headers['content-security-policy'] ?? ''
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).toMatch(/script-src 'sha256-[\w+/]+=*'; form-action 'self';/)
    }
  })
})

describe('T6.5 a password is a secret', () => {
  it('T6.5 C6.3.7 none that was sent stands in an answer, the log, the trail or the store, whatever became of it', async () => {
    const owner = await AccountOwner.add(await served(), 'ann-secret')
    const { service } = owner.served
    const sent = [
      { password: 'too-short-1', again: 'too-short-1' },
      { password: 'one-of-two-unequal', again: 'two-of-two-unequal' },
      { current: 'a-guess-of-somebody', password: 'for-the-guess-only' },
      { password: 'the-one-that-is-set' },
    ]
    const answers: string[] = []
    for (const { password, ...others } of sent)
      answers.push((await owner.change(password, { again: password, ...others })).text)
    expect(answers.at(-1)).toContain('Your password was changed.')
    const kept = JSON.stringify(
      await service.world.store.list('directory_user', { after: undefined, limit: 100 }),
    )
    const places = {
      answers: answers.join(''),
      log: service.logLines().join(''),
      trail: wholeTrail(service),
      kept,
    }
    for (const [place, text] of Object.entries(places))
      for (const secret of [owner.password, ...sent.flatMap((fields) => Object.values(fields))])
        expect([place, secret, text.includes(secret)]).toEqual([place, secret, false])
  })
})

describe('T6.5 who has a session and not the password', () => {
  it('T6.5 C6.3.7 a cookie that was stolen before is good for nothing behind the change', async () => {
    const owner = await AccountOwner.add(await served(), 'ann-stolen')
    const thief = new Person(owner.served.authUrl)
    thief.cookie = owner.browser.cookie
    const page = await thief.open(ACCOUNT)
    expect(page.text).toContain('Your account')
    await owner.change(NEXT)
    expect(owner.browser.cookie).not.toBe(thief.cookie)
    for (const fields of [
      { everywhere: '1' },
      { current: NEXT, password: 'thief ferry anvil', again: 'thief ferry anvil' },
    ])
      expect((await thief.submit(page, fields)).text).toContain('<h1>Sign in</h1>')
    const { location } = await thief.open(authorizeUrl({ prompt: 'none' }))
    expect(location?.searchParams.get('error')).toBe('login_required')
    expect([await owner.isSignedIn(), await owner.mayLogIn(NEXT)]).toEqual([true, true])
  })

  it('T6.5 C6.3.7 of twenty changes at once with the same present password one wins', async () => {
    const owner = await AccountOwner.add(await served(), 'ann-twenty')
    const csrf = await owner.csrf()
    const words = Array.from({ length: 20 }, (_, at) => `number ${at} ferry anvil`)
    const answers = await Promise.all(
      words.map((password) =>
        owner.post(textOf({ csrf, current: owner.password, password, again: password })),
      ),
    )
    const won = answers.flatMap(({ headers }, at) =>
      headers['location'] === `${ACCOUNT}?done=password` ? [at] : [],
    )
    expect(won).toHaveLength(1)
    for (const { headers, status } of answers)
      expect([status, headers['location']]).toEqual(
        status === 303 ? [303, expect.stringMatching(/\?done=(?:password|expired)$/)] : [422, undefined],
      )
    expect(answers.filter(({ headers }) => headers['set-cookie'] !== undefined)).toHaveLength(1)
    const good = await Promise.all(words.map((password) => owner.mayLogIn(password)))
    expect(good.flatMap((isGood, at) => (isGood ? [at] : []))).toEqual(won)
    expect(await owner.mayLogIn(owner.password)).toBe(false)
    expect(await owner.isSignedIn()).toBe(false)
    expect(await owner.sessions()).toBe(1)
    const [cookie = ''] = answers[won[0] ?? 0]?.headers['set-cookie']?.split(';') ?? []
    expect(await owner.isSignedIn(cookie)).toBe(true)
    const done = recordsOf(owner.served.service, 'user.password_set').filter(
      ({ outcome }) => outcome === 'success',
    )
    expect(done.length).toBeGreaterThanOrEqual(1)
  })
})

const RULES = {
  attempts: { free: 3, delay: 1000, longest: 60_000 },
  networks: { free: 1000, delay: 1000, longest: 1000 },
  accounts: { free: 100, delay: 1000, longest: 30_000, waiting: 4 },
  forget: 3_600_000,
  waiting: 2,
}

const RECORD = {
  ...{ username: 'alice', subject: 'sub-alice', password: 'alice-password' },
  ...{ customers: ['acme-books'], disabled: false, locked: false, access: {}, claims: {} },
}

interface Guarded {
  readonly service: TestIdentity
  readonly agent: UserAgent
  readonly waits: number[]
}

/** Alice, whom the store has, signed in at a service whose lockouts tell what they made wait, and let it pass. */
async function guarded(
  verified: () => Promise<void> = () => Promise.resolve(),
  recorded: (event: string) => Promise<void> = () => Promise.resolve(),
): Promise<Guarded> {
  const waits: number[] = []
  const clock = movableClock()
  const attempts = new LocalLockouts(RULES, clock, (ms) => {
    waits.push(ms)
    clock.advance(ms)
    return Promise.resolve()
  })
  const verify = async (secret: string, encoded: string | undefined): Promise<boolean> => {
    await verified()
    return encoded === secret
  }
  const audit: AuditTrail = {
    ...NO_TRAIL,
    require: async (entry) => {
      await recorded(entry.event)
      return NO_TRAIL.require(entry)
    },
  }
  const service = openFlow({ deps: { attempts, audit, hasher: { verify } } })
  await service.store.create('directory_user', 'alice', { value: { record: RECORD } })
  const agent = new UserAgent(service)
  await agent.logIn(await agent.get(ACCOUNT))
  return { service, agent, waits }
}

const guess = async ({ agent }: Pick<Guarded, 'agent'>, current = 'a guess') =>
  agent.submit(await agent.get(ACCOUNT), { current, password: NEXT, again: NEXT })

const passwordIn = async ({ store }: TestIdentity): Promise<unknown> =>
  (await store.find('directory_user', 'alice'))?.value['record']

describe('T6.5 T3.8 guessing the present password from a stolen session', () => {
  it('T3.8 C6.3.5 is slowed down more and more, and the right password is never refused', async () => {
    const { agent, service, waits } = await guarded()
    for (let at = 0; at < 6; at++) {
      const { status, text } = await guess({ agent })
      expect([status, text.includes('This is not your present password.')]).toEqual([422, true])
    }
    expect(waits).toEqual([1000, 2000, 4000])
    expect((await guess({ agent }, 'alice-password')).text).toContain('Your password was changed.')
    expect(waits).toEqual([1000, 2000, 4000, 8000])
    expect(await passwordIn(service)).toEqual({ ...RECORD, password: NEXT })
  })

  it('T3.8 C6.3.5 is counted with the attempts at the sign-in page: neither gives further ones', async () => {
    const { agent, service, waits } = await guarded()
    for (let at = 0; at < 3; at++) await guess({ agent })
    const other = new UserAgent(service)
    const login = await other.get(ACCOUNT)
    await other.logIn(login, 'alice', 'a guess')
    expect(waits).toEqual([1000])
    await guess({ agent })
    expect(waits).toEqual([1000, 2000])
  })

  it('T3.8 C6.3.5 wins nothing by attempts at once: those beyond the line are refused as a wrong one is', async () => {
    const { agent, service, waits } = await guarded()
    for (let at = 0; at < 3; at++) await guess({ agent })
    const page = await agent.get(ACCOUNT)
    const sent = Array.from({ length: 8 }, () =>
      agent.submit(page, { current: 'a guess', password: NEXT, again: NEXT }),
    )
    const answers = await Promise.all(sent)
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 422))
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(waits).toEqual([1000, 2000])
    expect(await passwordIn(service)).toEqual(RECORD)
  })

  it('T3.8 C6.3.7 forms with another problem try no password, and so cost the guesser nothing and tell nothing', async () => {
    let tried = 0
    const { agent, waits } = await guarded(() => {
      tried += 1
      return Promise.resolve()
    })
    const before = tried
    const page = await agent.get(ACCOUNT)
    const texts: string[] = []
    for (const current of ['a guess', 'alice-password'])
      texts.push((await agent.submit(page, { current, password: 'short', again: 'short' })).text)
    expect(texts[0]).toBe(texts[1])
    expect([tried, waits]).toEqual([before, []])
  })
})

describe('T6.5 C6.3.7 an operator who acts between the check and the change', () => {
  const ACTS: readonly (readonly [string, object | undefined])[] = [
    ['disables the user', { ...RECORD, disabled: true }],
    ['locks the user', { ...RECORD, locked: true }],
    ['sets another password', { ...RECORD, password: 'set by an operator' }],
    ['gives the name to somebody else', { ...RECORD, subject: 'sub-other' }],
    ['removes the user', undefined],
  ]

  it.each(ACTS)('T6.5 C6.3.7 %s: what the operator has done stands', async (_, record) => {
    let act = (): Promise<void> => Promise.resolve()
    const { agent, service } = await guarded(() => act())
    const { cookie } = agent
    const { store } = service
    const page = await agent.get(ACCOUNT)
    act = async () => {
      await store.remove('directory_user', 'alice')
      if (record !== undefined) await store.create('directory_user', 'alice', { value: { record } })
    }
    const seen = await agent.submit(page, { current: 'alice-password', password: NEXT, again: NEXT })
    expect(seen.text).toContain('nothing was changed')
    expect(await passwordIn(service)).toEqual(record)
    expect(agent.cookie).toBe(cookie)
    expect(service.notes.filter(({ event }) => event === 'password_set')).toEqual([])
  })

  it('T6.5 C6.3.7 sets another password while the record is written: the one who comes too late ends nothing', async () => {
    let act = (): Promise<void> => Promise.resolve()
    const { agent, service } = await guarded(undefined, (event) =>
      event === 'user.password_set' ? act() : Promise.resolve(),
    )
    const elsewhere = new UserAgent(service)
    await elsewhere.logIn(await elsewhere.get(ACCOUNT))
    const page = await agent.get(ACCOUNT)
    const record = { ...RECORD, password: 'set by an operator' }
    act = async () => {
      const { store } = service
      const { version = 0 } = (await store.find('directory_user', 'alice')) ?? {}
      await store.replace('directory_user', 'alice', version, { record })
    }
    const seen = await agent.submit(page, { current: 'alice-password', password: NEXT, again: NEXT })
    expect(seen.text).toContain('nothing was changed')
    expect(await passwordIn(service)).toEqual(record)
    for (const each of [agent, elsewhere]) expect((await each.get(ACCOUNT)).text).toContain('Your account')
  })

  it('T6.5 C6.3.6 sets a password, and before the answer an operator sets another one: nobody is signed in by the first', async () => {
    let act = (): Promise<void> => Promise.resolve()
    const service = openFlow({ pause: () => act() })
    await service.store.create('directory_user', 'alice', { value: { record: RECORD } })
    const agent = new UserAgent(service)
    await agent.logIn(await agent.get(ACCOUNT))
    const page = await agent.get(ACCOUNT)
    act = async () => {
      const { store, tokenRevoker } = service.identity.dependencies
      const { version = 0 } = (await store.find('directory_user', 'alice')) ?? {}
      const record = { ...RECORD, password: 'set by an operator' }
      await store.replace('directory_user', 'alice', version, { record })
      await tokenRevoker.end({ subject: RECORD.subject })
    }
    const seen = await agent.submit(page, { current: 'alice-password', password: NEXT, again: NEXT })
    expect(seen.text).not.toContain('Your account')
    expect(await service.store.list('session')).toEqual([])
  })
})
