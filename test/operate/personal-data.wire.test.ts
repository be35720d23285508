/** The export and the erasure of a person's data (C11.5.8). */
import { describe, expect, it, vi } from 'vitest'
import { Fault } from '../../src/base/kernel/faults.ts'
import { hashSecret } from '../../src/identity/directory/hashing/hasher.ts'
import { recordsOf } from '../support/audit-files.ts'
import { ALICE } from '../support/audited-people.ts'
import { dataFolder } from '../support/data-folder.ts'
import { eventually } from '../support/eventually.ts'
import { movableClock } from '../support/movable-clock.ts'
import {
  ADDRESS,
  asOperator,
  becomeKnown,
  byBrowser,
  byPassword,
  byRefresh,
  DORA,
  erase,
  exportOf,
  recordsAbout,
} from '../support/known-person.ts'
import { operated, operatedHere } from '../support/operated.ts'
import { bearer } from '../support/requests.ts'
import { BUSINESS_LIST, behindProxy } from '../support/behind-proxy.ts'
import { startPostern, type StartOptions } from '../support/start-postern.ts'
import { answersOf, puppetPeople, withPeople } from '../extensions/people/puppet-people.ts'

const open = (options: StartOptions = {}) => operatedHere({ change: behindProxy, ...options })
type Opened = Awaited<ReturnType<typeof open>>

const isLoggedIn = async ({ person }: Pick<Awaited<ReturnType<typeof byBrowser>>, 'person'>) =>
  !(await person.open('/connect/account')).text.includes('name="username"')

const callWith = async ({ baseUrl }: Opened, token: string): Promise<number> =>
  (await fetch(`${baseUrl}${BUSINESS_LIST}`, { headers: bearer(token) })).status

const INSTANT = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)

const MACHINE = {
  ...{ kind: 'machine', name: 'Robot', grants: ['client_credentials'] },
  ...{ businesses: ['ACME'], scopes: ['fund.read'] },
}

describe('C11.5.8 export', () => {
  it('C11.5.8 has every member for a user of the store, the address of a session, and no hash', async () => {
    const service = await open()
    await becomeKnown(service)
    const stored = recordsAbout(service)
    const { body, status, text } = await exportOf(service)
    expect(status).toBe(200)
    expect(body).toEqual({
      subject: DORA.subject,
      user: expect.objectContaining({ username: DORA.username, claims: DORA.claims, source: 'store' }),
      sessions: [
        {
          browser: expect.any(String),
          address: ADDRESS,
          begunAt: INSTANT,
          lastUsedAt: INSTANT,
          endsAt: INSTANT,
        },
      ],
      families: expect.arrayContaining([
        expect.objectContaining({
          client: 'acme-books',
          business: 'ACME',
          begunAt: INSTANT,
          endsAt: INSTANT,
        }),
        expect.objectContaining({ client: 'ledgerline', scopes: expect.arrayContaining(['fund.read']) }),
      ]),
      consents: [expect.objectContaining({ client: 'ledgerline', business: 'ACME', begunAt: INSTANT })],
      networks: [INSTANT],
      records: expect.any(Array),
    })
    const events = body.records.map(({ event }: { event: string }) => event)
    expect(events).toEqual(expect.arrayContaining(['user.added', 'login.succeeded', 'token.issued']))
    expect(JSON.stringify(body.records)).toContain(ADDRESS)
    // The trail has the id of a login, which is the SHA-256 of what was drawn by chance.
    const others: unknown = { ...body, records: undefined }
    expect(text).not.toMatch(/argon2|scrypt|passwordHash/)
    const [user] = stored.filter(({ kind }) => kind === 'directory_user')
    const { record } = JSON.parse(user?.value ?? '{}') as { record: { password: string } }
    expect(text).not.toContain(record.password)
    for (const { kind, key, value } of stored)
      for (const hash of [
        ...(key.length === 43 ? [key] : []),
        ...(value.match(/(?<=")[\w-]{43}(?=")/g) ?? []),
      ])
        expect([kind, JSON.stringify(others).includes(hash)]).toEqual([kind, false])
    expect(recordsOf(service, 'user.exported')).toMatchObject([
      { outcome: 'pending', on: { kind: 'user', subject: DORA.subject }, actor: { operator: 'admin' } },
      { outcome: 'success', on: { kind: 'user', subject: DORA.subject } },
    ])
    expect(service.service.logLines().join('')).not.toMatch(/dunkelfeld[^"]*\/export/)
  })

  it('C11.5.8 has a user of the configuration, and one who was removed', async () => {
    const service = await open()
    const alice = await exportOf(service, ALICE)
    expect(alice.body.user).toMatchObject({ username: 'alice', source: 'configuration' })
    expect(alice.text).not.toContain('argon2')
    await becomeKnown(service)
    expect((await asOperator(service, 'DELETE', `/users/${DORA.username}`)).status).toBe(200)
    const { body, status } = await exportOf(service)
    expect([status, body.user, body.sessions]).toEqual([200, undefined, []])
    expect(body.networks).toEqual([INSTANT])
    expect(body.records.length).toBeGreaterThan(3)
  })

  it('C11.5.8 has a person whom a module finds, once they have signed in; and says that no trail is kept', async () => {
    const eve = {
      subject: 's-eve',
      username: 'eve',
      customers: ['acme-books'],
      access: { ACME: 'Administrator' },
      claims: { email: 'e@x.example' },
    }
    const puppet = puppetPeople(answersOf({ eve }))
    const service = await open({
      change: (all) => behindProxy(withPeople(puppet.people)(all)),
      keeps: 'store',
    })
    expect((await exportOf(service, 's-eve')).status).toBe(404)
    expect((await byPassword(service, { username: 'eve', password: 'eve-password' })).status).toBe(200)
    const { body } = await exportOf(service, 's-eve')
    expect(body.user).toEqual({ username: 'eve', subject: 's-eve', claims: eve.claims, source: 'module' })
    expect(body.leftOut).toEqual(['records: no audit trail is kept'])
    expect(body.families).toHaveLength(1)
    puppet.stop()
  })

  it('C11.5.8 leaves out the records without the right `audit`, and needs `administer`', async () => {
    const tokens = (['administer', 'audit', 'operate', 'view'] as const).map((role) => ({
      ...{ name: `${role}er`, role, secret: `${role}-`.padEnd(43, 'x') },
    }))
    const service = await open({
      change: (all) => ({
        ...behindProxy(all),
        admin: {
          ...all.admin,
          tokens: tokens.map(({ name, role, secret }) => ({ name, role, hash: hashSecret(secret) })),
        },
      }),
    })
    const get = (role: string) =>
      service.admin(
        'GET',
        `/subjects/${ALICE}/export`,
        undefined,
        tokens.find((token) => token.role === role)?.secret,
      )
    const { body, status } = await get('administer')
    expect([status, body.leftOut, body.records]).toEqual([
      200,
      ['records: it needs the right `audit`'],
      undefined,
    ])
    const done = recordsOf(service, 'user.exported').length
    for (const role of ['audit', 'operate', 'view']) expect((await get(role)).status).toBe(403)
    expect(recordsOf(service, 'user.exported')).toHaveLength(done)
  })

  it('C11.5.8 is refused for who is not known, and for a machine', async () => {
    const service = await open({ keeps: 'store' })
    const added = await asOperator(service, 'POST', '/clients', { ...MACHINE, id: 'robot' })
    expect(added.status).toBe(201)
    for (const act of [exportOf, erase]) {
      expect((await act(service, 'nobody')).body.error).toBe(
        'nobody of this subject is, or was, known here: `postern audit redact` erases what a trail still has',
      )
      expect(await act(service, 'robot')).toMatchObject({
        status: 409,
        body: { error: expect.stringContaining('is a machine') },
      })
    }
  })

  it('C11.5.8 by command: by NAME or --subject; both or neither is refused', async () => {
    const service = await open()
    await becomeKnown(service)
    const byName = await service.postern('user', 'export', DORA.username)
    const bySubject = await service.postern('user', 'export', '--subject', DORA.subject)
    expect([byName.code, bySubject.code]).toEqual([0, 0])
    for (const { out } of [byName, bySubject])
      expect(JSON.parse(out)).toMatchObject({ subject: DORA.subject, user: { username: DORA.username } })
    for (const args of [[], [DORA.username, '--subject', DORA.subject]])
      expect(await service.postern('user', 'export', ...args)).toMatchObject({
        ...{ code: 2, out: '', err: expect.stringContaining('expected a USERNAME or --subject SUBJECT') },
      })
    expect((await service.postern('user', 'export', 'nobody')).code).toBe(1)
  })

  it('C11.5.8 has all of many records; a trail that breaks off is no whole export', async () => {
    const service = await open()
    await becomeKnown(service)
    const { audit } = service.service.world
    const actor = { kind: 'user', subject: DORA.subject } as const
    const most = 3000
    const noted = Array.from({ length: most }, () =>
      audit.keep({ event: 'token.issued', outcome: 'success', actor }),
    )
    await Promise.all(noted)
    const { body } = await exportOf(service)
    expect(body.records.length).toBeGreaterThan(most)
    const numbers = body.records.map(({ seq }: { seq: number }) => seq)
    expect(new Set(numbers).size).toBe(numbers.length)
    const trail = service.service.context.trail
    if (trail === undefined) throw new Error('no trail is kept')
    const query = vi.spyOn(trail, 'query').mockImplementationOnce(async function* () {
      yield await Promise.resolve({ kind: 'rows' as const, lines: ['{"seq":1}'] })
      throw new Error('the disk has ended')
    })
    const { code, err, out } = await service.postern('user', 'export', DORA.username)
    expect(query).toHaveBeenCalledOnce()
    expect([code, out]).toEqual([1, ''])
    expect(err).toContain('the answer of the service broke off')
    expect((await service.postern('user', 'export', DORA.username)).code).toBe(0)
  })
})

const KINDS_LEFT = ['audit_erasure', 'former_subject']

describe('C11.5.8 erasure', () => {
  it('C11.5.8 removes what there is, says how much, and is recorded without a name', async () => {
    const service = await open()
    const known = await becomeKnown(service)
    const { body, status } = await erase(service)
    expect(status).toBe(200)
    expect(body).toEqual({
      subject: DORA.subject,
      removed: expect.objectContaining({
        user: 1,
        sessions: 1,
        families: 2,
        consents: 1,
        networks: 1,
        marks: 0,
      }),
      values: expect.any(Number),
      notices: 0,
      pending: [],
    })
    expect(body.values).toBeGreaterThan(3)
    expect(recordsAbout(service).filter(({ kind }) => !KINDS_LEFT.includes(kind))).toEqual([])
    const [record] = recordsOf(service, 'user.erased')
    expect(record).toMatchObject({
      ...{ outcome: 'success', why: 'request 4711', on: { kind: 'user', subject: DORA.subject } },
      change: { removed: body.removed, values: body.values },
    })
    expect(JSON.stringify(recordsOf(service, 'user.erased'))).not.toContain(DORA.username)
    expect(await isLoggedIn(known)).toBe(false)
    expect((await byRefresh(service, known.refreshToken)).status).toBe(400)
    expect(await callWith(service, known.accessToken)).toBe(401)
    expect((await byPassword(service)).status).toBe(400)
    expect((await asOperator(service, 'GET', `/users/${DORA.username}`)).status).toBe(404)
    const again = await erase(service)
    expect([again.status, Object.values(again.body.removed).every((number) => number === 0)]).toEqual([
      200,
      true,
    ])
    const left = await exportOf(service)
    expect([left.status, left.body.user, left.body.sessions, left.body.networks]).toEqual([
      200,
      undefined,
      [],
      [],
    ])
  })

  it.each(['removeBy', 'remove'] as const)(
    'C11.5.8 access ends first: where the store fails at its first `%s`, nothing of the person works, and a second call ends it',
    async (verb) => {
      const service = await open()
      const known = await becomeKnown(service)
      const { store } = service.service.world
      const failing = vi.spyOn(store, verb).mockRejectedValue(new Fault('identity_unavailable'))
      const { status } = await erase(service)
      failing.mockRestore()
      expect(status).toBe(503)
      expect(recordsOf(service, 'user.erased')).toMatchObject([{ outcome: 'failed' }])
      expect(await isLoggedIn(known)).toBe(false)
      expect((await byRefresh(service, known.refreshToken)).status).toBe(400)
      expect(await callWith(service, known.accessToken)).toBe(401)
      expect((await byPassword(service)).status).toBe(400)
      const { person } = await byBrowser(service)
      expect(await isLoggedIn({ person })).toBe(false)
      expect((await erase(service)).status).toBe(200)
      expect(recordsAbout(service).filter(({ kind }) => !KINDS_LEFT.includes(kind))).toEqual([])
    },
  )

  it('C11.5.8 the subject is never given again; the name is free for another subject', async () => {
    const service = await open()
    await becomeKnown(service)
    expect((await erase(service)).status).toBe(200)
    const same = await asOperator(service, 'POST', '/users', DORA)
    expect([same.status, same.body.error]).toEqual([
      409,
      expect.stringContaining('was erased, and is never given again'),
    ])
    const other = await asOperator(service, 'POST', '/users', { ...DORA, username: 'somebody' })
    expect(other.status).toBe(409)
    const machine = await asOperator(service, 'POST', '/clients', { ...MACHINE, id: DORA.subject })
    expect(machine.body.problems).toEqual([expect.stringContaining('is, or was, the subject of a user')])
    const free = await asOperator(service, 'POST', '/users', { ...DORA, subject: 'another-subject' })
    expect(free.status).toBe(201)
    expect((await byPassword(service)).status).toBe(200)
    expect((await erase(service)).status).toBe(200)
    expect((await byPassword(service)).status).toBe(200)
  })

  it('C11.5.8 a configuration that gives the subject again is refused by reload and check', async () => {
    const service = await operated(1)
    await becomeKnown(service)
    expect((await erase(service)).status).toBe(200)
    const users = `directory: { users: { eve: { subject: ${DORA.subject}, password: '$argon2id$v=19$m=19456,t=2,p=1$ONkPwx0e0TE+rLENpK9ssg$OjB8Q/llxpQX5ZPdg/d3WkrQivUVr9DkS90gzdW84vs' } } }`
    service.write(users)
    const reload = await service.postern('reload')
    expect([reload.code === 0, `${reload.out}${reload.err}`]).toEqual([
      false,
      expect.stringContaining('was that of a person whose data was erased'),
    ])
    const check = await service.postern('check')
    expect([check.code === 0, `${check.out}${check.err}`]).toEqual([
      false,
      expect.stringContaining('was that of a person whose data was erased'),
    ])
  })

  it('C11.5.8 is refused for a user of the configuration, and without a reason', async () => {
    const service = await open({ keeps: 'store' })
    expect(await erase(service, ALICE)).toMatchObject({
      ...{ status: 409, body: { error: expect.stringContaining('is in the configuration') } },
    })
    expect((await asOperator(service, 'POST', `/subjects/${ALICE}/erase`, {})).status).toBe(400)
    expect(await service.postern('user', 'erase', 'alice')).toMatchObject({
      ...{ code: 2, err: expect.stringContaining('expected --reason') },
    })
    expect((await byPassword(service, { username: 'alice', password: 'alice-password' })).status).toBe(200)
  })

  it('C11.5.8 a person of a module is erased once the module finds them no more, with the mark; the subject is nobody’s then', async () => {
    const eve = {
      subject: 's-eve',
      username: 'eve',
      customers: ['acme-books'],
      access: { ACME: 'Administrator' },
    }
    const puppet = puppetPeople(answersOf({ eve }))
    const clock = movableClock(Date.now())
    const service = await open({ clock, change: (all) => behindProxy(withPeople(puppet.people)(all)) })
    const login = () => byPassword(service, { username: 'eve', password: 'eve-password' })
    expect((await login()).status).toBe(200)
    expect(await erase(service, 's-eve')).toMatchObject({
      ...{ status: 409, body: { error: expect.stringContaining('is found by `directory.people`') } },
    })
    expect((await asOperator(service, 'POST', '/users/eve/disable', {})).status).toBe(200)
    expect((await erase(service, 's-eve')).status).toBe(409)
    expect((await exportOf(service, 's-eve')).body.user).toMatchObject({ username: 'eve', source: 'module' })
    Object.assign(puppet.answers, answersOf({}))
    // An answer of the module is remembered for a while.
    clock.advance(120_000)
    const { body, status } = await erase(service, 's-eve')
    expect([status, body.removed]).toEqual([200, expect.objectContaining({ user: 0, marks: 1, networks: 1 })])
    // Nobody of the name is disabled any more, in any process: another person may have it.
    const other = { ...eve, subject: 's-eve-2' }
    Object.assign(puppet.answers, answersOf({ eve: other }))
    clock.advance(120_000)
    await eventually(async () => expect((await login()).status).toBe(200))
    Object.assign(puppet.answers, answersOf({ eve }))
    clock.advance(120_000)
    expect((await login()).json.error).toBe('invalid_grant')
    puppet.stop()
  })

  it('C11.5.8 whoever else a mark disables stays disabled, and can be enabled', async () => {
    const one = {
      subject: 's-one',
      username: 'eve',
      customers: ['acme-books'],
      access: { ACME: 'Administrator' },
    }
    const puppet = puppetPeople(answersOf({ eve: one }))
    const clock = movableClock(Date.now())
    const service = await open({ clock, change: (all) => behindProxy(withPeople(puppet.people)(all)) })
    const login = () => byPassword(service, { username: 'eve', password: 'eve-password' })
    expect((await login()).status).toBe(200)
    Object.assign(puppet.answers, answersOf({ eve: { ...one, subject: 's-two' } }))
    clock.advance(120_000)
    expect((await login()).status).toBe(200)
    expect((await asOperator(service, 'POST', '/users/eve/disable', {})).status).toBe(200)
    expect((await erase(service, 's-one')).body).toMatchObject({ removed: { marks: 1 } })
    expect((await login()).json.error).toBe('invalid_grant')
    expect((await asOperator(service, 'POST', '/users/eve/enable', {})).status).toBe(200)
    await eventually(async () => expect((await login()).status).toBe(200))
    puppet.stop()
  })

  it('C11.5.8 a person whom the configuration had is erased once they are taken out of it, with mark and networks', async () => {
    const service = await operated(1)
    expect((await byPassword(service, { username: 'alice', password: 'alice-password' })).status).toBe(200)
    expect((await asOperator(service, 'POST', '/users/alice/disable', {})).status).toBe(200)
    expect((await erase(service, ALICE)).status).toBe(409)
    service.write('directory: { users: { alice: } }')
    expect(await service.postern('reload')).toMatchObject({ code: 0 })
    const { body } = await exportOf(service, ALICE)
    expect([body.user, body.networks]).toEqual([undefined, [INSTANT]])
    const erased = await erase(service, ALICE)
    expect([erased.status, erased.body.removed]).toEqual([
      200,
      expect.objectContaining({ user: 0, marks: 1, networks: 1 }),
    ])
  })

  it('C11.5.8 a start refuses a configuration that gives the subject again', async () => {
    const data = await dataFolder()
    const service = await startPostern({ data, change: behindProxy, keeps: 'store' })
    await becomeKnown(service)
    expect((await erase(service)).status).toBe(200)
    await service.close()
    const change: StartOptions['change'] = (all) => {
      const { alice, ...users } = all.directory.users
      return {
        ...all,
        directory: { ...all.directory, users: { ...users, eve: { ...alice!, subject: DORA.subject } } },
      }
    }
    await expect(startPostern({ data, change, keeps: 'store' })).rejects.toMatchObject({
      problems: {
        list: [expect.objectContaining({ message: 'was that of a person whose data was erased' })],
      },
    })
  })

  it('C11.5.8 by command: by NAME or --subject, with the numbers; it says the subject first', async () => {
    const service = await open()
    await becomeKnown(service)
    const why = ['--reason', 'request 4711']
    for (const args of [[], [DORA.username, '--subject', DORA.subject]])
      expect((await service.postern('user', 'erase', ...args, ...why)).code).toBe(2)
    const { code, err, out } = await service.postern('user', 'erase', DORA.username, ...why)
    expect([code, err]).toEqual([0, `erasing the data of ${DORA.subject}\n`])
    expect(out).toMatch(
      /^sub-of-dunkelfeld-4711: erased \(user 1, sessions 1, families 2, .*values? of the audit trail\)\n$/,
    )
    expect((await service.postern('user', 'erase', DORA.username, ...why)).code).toBe(1)
    expect((await service.postern('user', 'erase', '--subject', DORA.subject, ...why)).code).toBe(0)
  })
})
