/** C6.3.7 C11.5.1 as operators see it: a link is made by the admin API or by command, and shown once. */
import { describe, expect, it } from 'vitest'
import { hashSecret } from '../../src/identity/directory/hashing/hasher.ts'
import { newSecret } from '../../src/base/kernel/ids.ts'
import { ROLES } from '../../src/operate/settings/admin.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { administered } from '../support/administered.ts'
import { auditRecords, recordsOf } from '../support/audit-files.ts'
import { movableClock } from '../support/movable-clock.ts'
import { postForm } from '../support/oauth.ts'
import { addUser, CHOSEN, isPasswordOf, isSet, makeLink, openLink } from '../support/password-links.ts'
import { shared } from '../support/shared.ts'

const TOKENS = Object.fromEntries(ROLES.map((role) => [role, newSecret()]))

const withTokens = (configuration: Configuration): Configuration => {
  const tokens = ROLES.map((role) => ({ name: `${role}er`, role, hash: hashSecret(TOKENS[role] ?? '') }))
  const { directory } = configuration
  const off = { ...directory.users['bob']!, subject: 'S-off', disabled: true }
  return {
    ...configuration,
    admin: { ...configuration.admin, tokens },
    directory: { ...directory, users: { ...directory.users, off } },
  }
}

const clock = movableClock(Date.now())
const served = shared(() => administered({ clock, change: withTokens }))

/** One whose clock tests move. */
const own = movableClock(Date.now())
const movable = shared(() => administered({ keeps: 'nothing', clock: own }))

const HOUR = 3_600_000
const DAY = 24 * HOUR

let users = 0
/** A name that nobody has yet. */
const another = (): string => {
  users += 1
  return `erin${users}`
}

const added = async (more: object = {}) => {
  const world = await served()
  const username = another()
  return { ...world, username, subject: await addUser(world, username, more) }
}

describe('C6.3.7 C11.5.1 POST /users/{username}/link', () => {
  it('C6.3.7: 201 has the link at `{auth_url}/connect/link` with a code of 43 characters, and when it ends: in 24 hours', async () => {
    const { call, service, username } = await added()
    for (const body of [undefined, {}]) {
      const made = await call('POST', `/users/${username}/link`, body && { body })
      expect([made.status, Object.keys(made.body)]).toEqual([201, ['link', 'expiresAt']])
      const [address, code] = made.body.link.split('?code=')
      expect([address, code]).toEqual([
        `${service.authUrl}/connect/link`,
        expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      ])
      expect(Date.parse(made.body.expiresAt) - clock.now()).toBe(DAY)
    }
  })

  it.each([
    ['1h', HOUR],
    ['60m', HOUR],
    ['3600s', HOUR],
    ['90m', 1.5 * HOUR],
    ['7d', 7 * DAY],
    ['168h', 7 * DAY],
  ])('C6.3.7: a link for %s is good for as long, and not longer', async (duration, lifetime) => {
    const { call, service } = await movable()
    const username = another()
    await addUser({ call }, username)
    const { body, status } = await call('POST', `/users/${username}/link`, { body: { for: duration } })
    expect([status, Date.parse(body.expiresAt) - own.now()]).toEqual([201, lifetime])
    const code = new URL(body.link as string).searchParams.get('code') ?? ''
    own.advance(lifetime - 1)
    expect((await openLink(service, code)).page.status).toBe(200)
    own.advance(1)
    expect((await openLink(service, code)).page.status).toBe(404)
  })

  it.each(['59m', '3599s', '3599999ms', '8d', '169h', '604801s', '1ms', '0s', '1000000d'])(
    'C6.3.7: 400 for a lifetime of %s, which is not from 1h to 7d; the link before it stays good',
    async (duration) => {
      const world = await added()
      const { call, service, username } = world
      const { code } = await makeLink(world, username)
      const { body, status } = await call('POST', `/users/${username}/link`, { body: { for: duration } })
      expect([status, body]).toEqual([
        400,
        { error: 'the request does not fit', problems: ['body.for  expected a duration from 1h to 7d'] },
      ])
      expect((await openLink(service, code)).page.status).toBe(200)
    },
  )

  it.each([
    { for: '' },
    { for: 'soon' },
    { for: '-1h' },
    { for: '24' },
    { for: 24 },
    { for: null },
    { for: ['24h'] },
    { for: '1e9h' },
    { until: '24h' },
    { for: '24h', code: 'x'.repeat(43) },
    [['24h']],
    '24h',
  ])('C6.3.7: 400 for the body %j, and no link is made', async (body) => {
    const { call, service, username } = await added()
    expect((await call('POST', `/users/${username}/link`, { body })).status).toBe(400)
    expect(recordsOf(service, 'user.link_made')).toEqual([])
  })

  it('C6.3.7: 404 for a name that nobody has', async () => {
    const { call, service } = await served()
    const { body, status } = await call('POST', '/users/nobody/link')
    expect([status, body.error]).toEqual([404, expect.stringContaining('There is no user "nobody"')])
    expect(recordsOf(service, 'user.link_made')).toEqual([])
  })

  it('C6.3.7: 409 says why: a person of the configuration, somebody disabled or locked, and what comes first', async () => {
    const { call, service } = await served()
    const [off, marked, locked] = [another(), another(), another()]
    for (const name of [off, marked, locked]) await addUser({ call }, name)
    await call('POST', `/users/${off}/disable`)
    await call('PATCH', `/users/${marked}`, { body: { disabled: true } })
    await call('PATCH', `/users/${locked}`, { body: { locked: true } })
    for (const [name, why] of [
      ['alice', 'User "alice" is in the configuration, which no command changes: edit it there.'],
      ['off', 'User "off" is in the configuration, which no command changes: edit it there.'],
      [off, `User "${off}" is disabled: \`postern user enable\` comes first.`],
      [marked, `User "${marked}" is disabled: \`postern user enable\` comes first.`],
      [locked, `User "${locked}" is locked: \`postern user edit ${locked} --no-locked\` comes first.`],
    ] as const)
      expect([name, await call('POST', `/users/${name}/link`)]).toMatchObject([
        name,
        { status: 409, body: { error: why } },
      ])
    expect(recordsOf(service, 'user.link_made')).toEqual([])
    expect(await service.world.state.store.list('password_link')).not.toEqual(
      expect.arrayContaining([
        expect.objectContaining({ value: expect.objectContaining({ username: off }) }),
      ]),
    )
    // What is told to come first is enough.
    await call('POST', `/users/${off}/enable`)
    await call('PATCH', `/users/${locked}`, { body: { locked: false } })
    for (const name of [off, locked]) await makeLink({ call }, name)
  })

  it('C6.3.7 C12.2.4: it needs the right `administer`; whoever lacks it is told so for every name alike, and makes no link', async () => {
    const { call, service, username } = await added()
    for (const role of ROLES.filter((each) => each !== 'administer')) {
      const told = await Promise.all(
        [username, 'alice', 'nobody'].map(async (name) => {
          const { body, status } = await call('POST', `/users/${name}/link`, { token: TOKENS[role] ?? '' })
          return [status, body]
        }),
      )
      expect(told).toEqual(Array.from({ length: 3 }, () => told[0]))
      expect(told[0]).toMatchObject([403, { error: expect.stringContaining('`administer`') }])
    }
    expect((await call('POST', `/users/${username}/link`, { token: newSecret() })).status).toBe(401)
    expect(recordsOf(service, 'user.link_made')).toEqual([])
    const token = TOKENS['administer'] ?? ''
    expect((await call('POST', `/users/${username}/link`, { token })).status).toBe(201)
  })

  it('C6.3.7 C12.3: the trail tells who made it, for whom and for how long, before and after, and not the code', async () => {
    const world = await added()
    const { service, subject, username } = world
    const { code, link } = await makeLink(world, username, { for: '2h' })
    const records = recordsOf(service, 'user.link_made')
    expect(records.map(({ outcome }) => outcome)).toEqual(['pending', 'success'])
    for (const record of records)
      expect(record).toMatchObject({
        actor: { kind: 'operator', operator: 'admin', via: 'admin' },
        on: { kind: 'user', subject },
        change: { forMs: 2 * HOUR },
        values: { 'on.id': username },
      })
    for (const text of [JSON.stringify(auditRecords(service)), service.logLines().join('')])
      for (const secret of [code, link]) expect(text).not.toContain(secret)
  })

  it('C6.3.7: a link that is made ends nothing: password, tokens and sessions stay until it is used', async () => {
    const world = await added({ password: `${CHOSEN}.` })
    const { service, username } = world
    const params = {
      grant_type: 'password',
      username,
      password: `${CHOSEN}.`,
      scope: 'openid offline_access target:b/ACME fund.read',
    }
    const { json } = await postForm(service, '/connect/token', { params })
    await makeLink(world, username)
    const refresh = { grant_type: 'refresh_token', refresh_token: json.refresh_token }
    expect((await postForm(service, '/connect/token', { params: refresh })).status).toBe(200)
    expect(await isPasswordOf(service, username, `${CHOSEN}.`)).toBe(true)
  })
})

describe('C6.3.7 C11.5.1 POST /users without a password', () => {
  it('C6.3.7: the user is there, and no password is theirs until a link sets one', async () => {
    const world = await added()
    const { call, service, username } = world
    const shown = await call('GET', `/users/${username}`)
    expect([shown.status, 'password' in shown.body]).toEqual([200, false])
    for (const password of [CHOSEN, username, 'undefined', '\0'.repeat(32), '[object Object]'])
      expect([password, await isPasswordOf(service, username, password)]).toEqual([password, false])
    const { code } = await makeLink(world, username)
    expect(isSet(await (await openLink(service, code)).choose())).toBe(true)
    expect(await isPasswordOf(service, username, CHOSEN)).toBe(true)
  })

  it.each([null, '', 'short', 12, ['a long enough password'], {}])(
    'C6.3.7: %j is not left out: 400, and nobody is added',
    async (password) => {
      const { call } = await served()
      const username = another()
      expect((await call('POST', '/users', { body: { username, password, access: {} } })).status).toBe(400)
      expect((await call('GET', `/users/${username}`)).status).toBe(404)
    },
  )

  it('C6.3.7: `PUT /users/{username}/password` still needs one', async () => {
    const { call, username } = await added()
    expect((await call('PUT', `/users/${username}/password`, { body: {} })).status).toBe(400)
  })
})

const LINE = /^(http:\/\/127\.0\.0\.1:\d+\/connect\/link\?code=([\w-]{43}))\n$/

describe('C6.3.7 C11.5.1 postern user link', () => {
  it('C6.3.7: it prints the link alone, and beside it until when it is good; the link is good', async () => {
    const { command, service, username } = await added()
    const { code, stderr, stdout } = await command(['user', 'link', username, '--for', '7d'])
    expect(code).toBe(0)
    const [, link = '', secret = ''] = LINE.exec(stdout) ?? []
    expect(link).toBe(`${service.authUrl}/connect/link?code=${secret}`)
    const until = new Date(clock.now() + 7 * DAY).toISOString().replace('.000', '')
    expect(stderr).toContain(`Good once, until ${until}`)
    expect(stderr).toContain(`whoever has it can set the password of ${username}`)
    expect(stderr).not.toContain(secret)
    expect(isSet(await (await openLink(service, secret)).choose())).toBe(true)
    expect(recordsOf(service, 'user.link_made').at(-1)).toMatchObject({
      outcome: 'success',
      actor: { kind: 'operator', via: 'cli' },
      change: { forMs: 7 * DAY },
    })
  })

  it('C6.3.7: with --json it prints the name, the link and when it ends', async () => {
    const { command, username } = await added()
    const { code, stdout } = await command(['user', 'link', username, '--json'])
    const answer = JSON.parse(stdout) as Record<string, string>
    expect([code, Object.keys(answer).toSorted(), answer['username']]).toEqual([
      ...[0, ['expiresAt', 'link', 'username'], username],
    ])
    expect(`${answer['link']}\n`).toMatch(LINE)
  })

  it.each([
    [['user', 'link', 'nobody'], 1, 'There is no user "nobody"'],
    [['user', 'link', 'alice'], 1, 'User "alice" is in the configuration'],
    [['user', 'link'], 2, 'expected USERNAME'],
    [['user', 'link', 'nobody', '--for', '59m'], 2, '1h to 7d'],
    [['user', 'link', 'nobody', '--for', '8d'], 2, '1h to 7d'],
    [['user', 'link', 'nobody', '--for', 'soon'], 2, '--for'],
  ])('C6.3.7: `postern %j` ends with %i and says why', async (args, exit, why) => {
    const { command } = await served()
    const { code, stderr, stdout } = await command(args)
    expect([code, stdout, stderr]).toEqual([exit, '', expect.stringContaining(why)])
  })
})

describe('C6.3.7 C11.5.1 postern user add --link', () => {
  it('C6.3.7: it asks for no password, adds the user and prints a link by which they choose one', async () => {
    const { call, command, service } = await served()
    const username = another()
    const args = ['user', 'add', username, '--customer', 'acme-books', '--access', 'ACME=Read-only']
    const { code, stderr, stdout } = await command([...args, '--link', '--for', '3h'])
    expect([code, stdout]).toEqual([0, expect.stringMatching(LINE)])
    const { subject } = (await call('GET', `/users/${username}`)).body as { subject: string }
    expect(stderr).toContain(`${username}: added with the subject ${subject}\n`)
    expect(await isPasswordOf(service, username, CHOSEN)).toBe(false)
    const [, , secret = ''] = LINE.exec(stdout) ?? []
    expect(isSet(await (await openLink(service, secret)).choose())).toBe(true)
    expect(await isPasswordOf(service, username, CHOSEN)).toBe(true)
    const events = ['user.added', 'user.link_made'].map((event) => recordsOf(service, event).at(-1))
    expect(events).toMatchObject([
      { outcome: 'success', on: { subject } },
      { outcome: 'success', on: { subject }, change: { forMs: 3 * HOUR } },
    ])
  })

  it('C6.3.7: --for without --link is refused before anybody is added', async () => {
    const { call, command } = await served()
    const username = another()
    const { code, stderr, stdout } = await command(['user', 'add', username, '--for', '2h'], `${CHOSEN}\n`)
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining('it needs --link')])
    expect((await call('GET', `/users/${username}`)).status).toBe(404)
  })

  it.each(['59m', '8d'])('C6.3.7: a lifetime of %s is refused before anybody is added', async (duration) => {
    const { call, command } = await served()
    const username = another()
    const { code, stderr } = await command(['user', 'add', username, '--link', '--for', duration])
    expect([code, stderr]).toEqual([2, expect.stringContaining('1h to 7d')])
    expect((await call('GET', `/users/${username}`)).status).toBe(404)
  })

  it('C6.3.7: without --link the password is read as before', async () => {
    const { command, service } = await served()
    const username = another()
    const args = ['user', 'add', username, '--customer', 'acme-books', '--access', 'ACME=Read-only']
    expect((await command(args, `${CHOSEN}\n`)).code).toBe(0)
    expect(await isPasswordOf(service, username, CHOSEN)).toBe(true)
    expect((await command(['user', 'add', another()], '')).code).not.toBe(0)
  })
})
