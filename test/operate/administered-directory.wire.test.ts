/** Clients, users, businesses, funds and roles: what is refused, who was faster, a store that fails (C11.5.1). */
import { rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../src/base/kernel/clock.ts'
import { RECORD_KINDS } from '../../src/identity/directory/editors/editors.ts'
import { recordOperations } from '../../src/operate/records/records.ts'
import { planSqlite, sqliteFile } from '../../src/state/stores/schema.ts'
import { SqliteStore } from '../../src/state/stores/sqlite/sqlite.ts'
import { administered } from '../support/administered.ts'
import { auditRecords } from '../support/audit-files.ts'
import { PATIENT_STORE } from '../support/patient-store.ts'
import { shared } from '../support/shared.ts'
import { DEMO } from '../support/spawn-postern.ts'
import { hurried } from '../support/start-postern.ts'
import { startStoreProcess } from '../support/store-process.ts'

const PASSWORD = 'a-long-enough-password'

/** The business of the funds. */
const HOOLI = { code: 'HOOLI', name: 'Hooli' }

/** What is added of each noun. */
const ADDED = {
  client: {
    ...{ id: 'tally', kind: 'customer', name: 'Tally', agreement: '2026-01-15' },
    ...{ businesses: ['ACME'], scopes: ['openid', 'fund.read'] },
  },
  user: { username: 'dora', password: PASSWORD, access: { ACME: 'Read-only' } },
  business: { code: 'UMBRELLA', name: 'Umbrella' },
  fund: { code: 'F1', name: 'First' },
  role: { name: 'Clerk', scopes: ['fund.read', 'business.fund.list'] },
}

/** For tests that leave other names behind. */
const served = shared(() => administered())
/** The store is given up soon. */
const hasty = shared(() => administered({ change: hurried }))

describe('C11.5.1 the directory', () => {
  it('takes one of two edits of the same version; without If-Match both are made', async () => {
    const { call } = await served()
    const { etag } = await call('POST', '/roles', { body: { name: 'Raced', scopes: [] } })
    const edit = (scopes: readonly string[], ifMatch?: string) =>
      call('PATCH', '/roles/Raced', { body: { scopes }, ...(ifMatch !== undefined && { ifMatch }) })
    const both = await Promise.all([edit(['fund.read'], etag ?? ''), edit(['openid'], etag ?? '')])
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 412])
    const winner = both.find(({ status }) => status === 200)
    const loser = both.find(({ status }) => status === 412)
    expect([loser?.etag, (await call('GET', '/roles/Raced')).body]).toEqual([
      winner?.etag,
      winner?.body.record,
    ])
    const free = await Promise.all([
      edit(['fund.read']),
      call('PATCH', '/roles/Raced', { body: {}, ifMatch: '*' }),
    ])
    expect(free.map(({ status }) => status)).toEqual([200, 200])
    expect((await edit([], 'no tag')).status).toBe(400)
  })

  it('refuses with every problem by its member, and says what was probably meant', async () => {
    const { call, service } = await served()
    const client = { id: 'x', kind: 'custome', name: { file: '/etc/hostname' }, scope: ['fund.raed'] }
    const bad = await call('POST', '/clients', { body: client })
    expect([bad.status, bad.body.error]).toEqual([400, 'the request does not fit'])
    const problems = (bad.body.problems as string[]).join('\n')
    expect(problems).toMatch(/^kind {2}expected one of .* — did you mean "customer"\?$/m)
    expect(problems).toMatch(/^scope {2}is not a known key here.* — did you mean "scopes"\?$/m)
    // A body refers to no file and no variable of the service.
    expect(problems).toMatch(
      /^name {2}expected a text of at most 256 characters on one line, without characters that steer the direction of writing, got a map$/m,
    )
    expect(
      (await call('POST', '/clients', { body: { ...client, secrets: ['sha256:x'] } })).body.problems,
    ).toEqual(['secrets  cannot be written: a secret is generated, and replaced by another one'])
    const user = { username: 'x', password: 'short', access: { ACNE: 'Read-only' } }
    expect((await call('POST', '/users', { body: user })).body.problems).toEqual([
      'password  is too short or too long: expected a text of 12 to 1024 characters',
      expect.stringMatching(/^access\.ACNE {2}names no business .* did you mean "ACME"\?$/),
    ])
    const configured = await call('PATCH', '/clients/acme-books', { body: { name: 'x' } })
    expect([configured.status, configured.body.error]).toEqual([
      409,
      expect.stringContaining('edit it there'),
    ])
    expect((await call('DELETE', '/users/alice')).status).toBe(409)
    expect((await call('GET', '/clients/acme-books')).body).toMatchObject({ source: 'configuration' })
    expect((await call('GET', '/businesses/NOPE/funds')).status).toBe(404)
    expect((await call('PATCH', '/roles/nobody', { body: {} })).status).toBe(404)
    await call('POST', '/roles', { body: { name: 'Teller', scopes: [] } })
    expect((await call('PATCH', '/roles/Teller', { body: { name: 'Other' } })).status).toBeGreaterThanOrEqual(
      400,
    )
    expect((await call('POST', '/roles', { body: { name: 'Teller', scopes: [] } })).status).toBe(409)
    expect(service.logLines().join('')).not.toContain('short')
  })

  it.each([
    ['/clients', 'id', ['acme-books']],
    ['/users', 'username', ['alice']],
    ['/businesses', 'code', { toString: 1 }],
    ['/roles', 'name', undefined],
  ])('C11.5.1 refuses a name that is no text by its member: %s %s', async (path, member, name) => {
    const { call } = await served()
    const { status, body } = await call('POST', path, { body: { [member]: name, kind: { toString: 1 } } })
    expect([status, body.error]).toEqual([400, 'the request does not fit'])
    expect((body.problems as string[]).some((problem) => problem.startsWith(`${member}  `))).toBe(true)
  })

  it('C11.5.1 keeps what was written under a mistyped name out of the audit trail and the log', async () => {
    const { call, command, service } = await served()
    const planted = 'planted-4711-secret'
    const bodies: readonly (readonly [string, object])[] = [
      [
        '/users',
        { username: 'x', pasword: planted, password: planted, claims: { address: { pin: planted } } },
      ],
      ['/clients', { id: 'x', kind: 'customer', name: 'X', secret: planted, secrets: planted }],
      ['/businesses', { code: 'X', name: 'X', token: planted, address: { pin: planted } }],
      ['/roles', { name: 'X', scopes: [], ['constructor']: planted }],
    ]
    for (const [path, body] of bodies) {
      const { status, text } = await call('POST', path, { body })
      expect([path, status, text.includes(planted)]).toEqual([path, 400, false])
    }
    const added = await command(['business', 'add', 'Y', '--name', 'Y', '--address', `pin=${planted}`])
    expect(added.code).not.toBe(0)
    expect(JSON.stringify(auditRecords({ data: service.data }))).not.toContain(planted)
    expect(service.logLines().join('')).not.toContain(planted)
  })

  it('C12.1.7 records no act that was refused before it was begun, by the admin API and by command', async () => {
    const { call, command, acts } = await served()
    const user = { username: 'dora', password: PASSWORD, access: {} }
    expect((await call('POST', '/users', { body: user })).status).toBe(201)
    const before = acts()
    const password = { password: 'short' }
    const refused = [
      await call('POST', '/users', { body: user }),
      await call('POST', '/users', { body: { ...user, username: 'x', password: 'short' } }),
      await call('POST', '/clients', { body: { id: 'x', kind: 'custome', name: 'X', scopes: [] } }),
      await call('POST', '/businesses/NOPE/funds', { body: { code: 'F' } }),
      await call('PUT', '/users/dora/password', { body: password }),
      await call('PUT', '/users/nobody/password', { body: { password: PASSWORD } }),
      await call('POST', '/clients/nobody/secrets'),
      await call('POST', '/businesses/ACME/enable'),
      await call('POST', '/roles/Read-only/disable'),
      await call('DELETE', '/roles/nobody'),
      await call('POST', '/users/dora/enable', { ifMatch: '"1-other"' }),
    ]
    expect(refused.map(({ status }) => status)).toEqual([
      409, 400, 400, 404, 400, 404, 404, 409, 409, 404, 412,
    ])
    expect((await command(['role', 'add', 'X', '--scope', 'fund.raed'])).code).toBe(2)
    expect((await command(['role', 'disable', 'nobody'])).code).toBe(1)
    expect(acts()).toEqual(before)
  })

  it('C11.5.1 refuses names that a path cannot have, by the admin API, by command and in the configuration', async () => {
    const { call, command, env } = await served()
    for (const name of ['.', '..']) {
      const added = [
        await call('POST', '/users', { body: { username: name, password: PASSWORD, access: {} } }),
        await call('POST', '/clients', { body: { ...ADDED.client, id: name } }),
        await call('POST', '/roles', { body: { name, scopes: [] } }),
        await call('POST', '/businesses', { body: { code: name, name } }),
      ]
      for (const { status, body } of added)
        expect([status, (body.problems as string[]).length, body.problems[0]]).toEqual([
          ...[400, 1],
          expect.stringMatching(
            /^(username|id|name|code) {2}expected .*(not "\." or "\.\."|stand in a path)/,
          ),
        ])
      const refused = await command(['user', 'add', name], `${PASSWORD}\n`)
      expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('and not "." or ".."')])
    }
    const file = join(dirname(env.POSTERN_DATA), `${basename(env.POSTERN_DATA)}-dots.yaml`)
    writeFileSync(file, `extends: '${DEMO}'\ndirectory: { roles: { '..': { scopes: [] } } }\n`)
    onTestFinished(() => rmSync(file))
    const checked = await command(['check', file])
    expect([checked.code, checked.stdout + checked.stderr]).toEqual([
      2,
      expect.stringMatching(/on one line, .*and not "\." or "\.\."/),
    ])
  })

  it('C11.5.1 answers 503 on every route while the store fails, and records no act that was not begun', async () => {
    const { call, acts, service } = await served.own()
    // A deleted file is seen before the next write: this one was begun.
    rmSync(sqliteFile(service.data))
    expect((await call('POST', '/businesses', { body: HOOLI })).status).toBe(503)
    const before = acts()
    const bodies: Readonly<Record<string, object>> = {
      ...Object.fromEntries(
        Object.entries(ADDED).map(([noun, added]) => [
          `add${noun.charAt(0).toUpperCase()}${noun.slice(1)}`,
          added,
        ]),
      ),
      setPassword: { password: PASSWORD },
      eraseSubject: { reason: 'asked' },
    }
    for (const { method, path, operationId } of recordOperations(Object.values(RECORD_KINDS))) {
      const body = bodies[operationId] ?? (method === 'PATCH' ? {} : undefined)
      const answer = await call(method, path.replaceAll(/:\w+/g, 'stored'), { ...(body && { body }) })
      expect([operationId, answer.status, answer.body.error]).toEqual([
        ...[operationId, 503],
        expect.stringContaining('the store is out of reach'),
      ])
      expect(answer.text).not.toContain(service.data)
    }
    expect(acts()).toEqual(before)
  })

  it('C11.5.1 answers 503 where the store fails in between, and the record says that it failed', async () => {
    const { call, acts, service } = await hasty()
    const holder = startStoreProcess('hold', sqliteFile(service.data))
    await holder.line('held')
    expect((await call('POST', '/businesses', { body: HOOLI })).status).toBe(503)
    expect(acts()).toEqual(['business.added pending admin admin', 'business.added failed admin admin'])
    holder.process.stdin?.write('release\n')
    await holder.line('released')
    expect((await call('GET', '/businesses/HOOLI')).status).toBe(404)
    expect((await call('POST', '/businesses', { body: HOOLI })).status).toBe(201)
  })

  it('C12.1.7 waits by command for a store that another process has locked for longer than callers wait', async () => {
    const { call, command, service } = await hasty()
    const holder = startStoreProcess('hold', sqliteFile(service.data))
    await holder.line('held')
    const added = command(['business', 'add', 'LATE', '--name', 'Hooli'])
    // Each of them waits as long as callers of the service do.
    for (let times = 0; times < 3; times += 1)
      expect((await call('POST', '/businesses', { body: { code: 'OTHER', name: 'x' } })).status).toBe(503)
    holder.process.stdin?.write('release\n')
    expect(await added).toMatchObject({ code: 0, stderr: '' })
  })

  it('C11.5.1 removes what the configuration hides, by the admin API and by command', async () => {
    const { call, command, service } = await served.own()
    const hidden = { id: 'acme-books', kind: 'customer', name: 'Old', secrets: [], grants: [], scopes: [] }
    const records: readonly (readonly [string, string, object])[] = [
      ['directory_client', 'acme-books', { ...hidden, disabled: true }],
      ['directory_business', 'ACME', { code: 'ACME', name: 'Old' }],
      ['directory_role', 'Read-only', { name: 'Read-only', scopes: [] }],
    ]
    const hide = async (): Promise<void> => {
      const store = await SqliteStore.open(planSqlite(PATIENT_STORE, service.data), systemClock)
      for (const [kind, key, record] of records)
        await store.create(kind, key, { value: { record, ends: {} } })
      await store.close()
    }
    await hide()
    for (const path of ['/clients/acme-books', '/businesses/ACME', '/roles/Read-only']) {
      // A client of the configuration would get a mark.
      if (!path.startsWith('/clients')) expect((await call('POST', `${path}/disable`)).status).toBe(409)
      expect([path, (await call('DELETE', path)).status]).toEqual([path, 200])
      expect([path, (await call('DELETE', path)).status]).toEqual([path, 409])
      expect((await call('GET', path)).body.source).toBe('configuration')
    }
    await hide()
    for (const [noun, name] of [
      ['client', 'acme-books'],
      ['business', 'ACME'],
      ['role', 'Read-only'],
    ] as const) {
      expect(await command([noun, 'remove', name])).toMatchObject({ code: 0, stderr: '' })
      expect((await command([noun, 'remove', name])).stderr).toContain('in the configuration')
    }
  })

  it('lists pages by prefix, whatever the characters; a record that stays comes exactly once', async () => {
    const { call } = await served()
    const names = ['Clerk', 'Clerk %', 'Clerk "q"', 'Clerk_', 'Clerk é', 'Clerk \u{1F600}', 'a/b?c#d&e']
    for (const name of names)
      expect((await call('POST', '/roles', { body: { name, scopes: [] } })).status).toBe(201)
    for (const name of names)
      expect((await call('GET', `/roles/${encodeURIComponent(name)}`)).body.name).toBe(name)
    const walk = async (prefix: string, between: () => Promise<unknown>) => {
      const found: string[] = []
      let next: string | undefined
      do {
        const query = new URLSearchParams({ prefix, limit: '2', ...(next !== undefined && { after: next }) })
        const { body } = await call('GET', `/roles?${query.toString()}`)
        found.push(...(body.roles as { name: string }[]).map(({ name }) => name))
        next = body.next as string | undefined
        await between()
      } while (next !== undefined)
      return found
    }
    let added = 0
    const come = () => call('POST', '/roles', { body: { name: `Clerk ${'!'.repeat(++added)}`, scopes: [] } })
    const found = await walk('Clerk', come)
    for (const name of names.filter((each) => each.startsWith('Clerk')))
      expect(found.filter((each) => each === name)).toEqual([name])
    expect(await walk('Clerk %', () => Promise.resolve())).toEqual(['Clerk %'])
    expect(await walk('Clerk_', () => Promise.resolve())).toEqual(['Clerk_'])
  })
})
