/** Clients, users, businesses, funds and roles, by the admin API and by commands alike (C11.5.1). */
import { rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { AuditEvent } from '../../src/kernel/audit-events.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { RECORD_OPERATIONS } from '../../src/operator/records.ts'
import { planSqlite, sqliteFile } from '../../src/stores/schema.ts'
import { SqliteStore } from '../../src/stores/sqlite.ts'
import { administered, type Answered } from '../support/administered.ts'
import { auditRecords } from '../support/audit-files.ts'
import { PATIENT_STORE } from '../support/patient-store.ts'
import { DEMO } from '../support/spawn-postern.ts'
import { hurried } from '../support/start-postern.ts'
import { startStoreProcess } from '../support/store-process.ts'

const PASSWORD = 'a-long-enough-password'

/** The business of the funds. */
const HOOLI = { code: 'HOOLI', name: 'Hooli' }

interface Case {
  readonly noun: string
  readonly path: string
  readonly names: readonly string[]
  readonly added: object
  readonly edit: object
  readonly edited: object
  /** The same by command. */
  readonly options: readonly string[]
  readonly editOptions: readonly string[]
  /** What the trail says of its five changes. */
  readonly events: readonly AuditEvent[]
}

const CASES: readonly Case[] = [
  {
    ...{ noun: 'client', path: '/clients', names: ['tally'] },
    added: {
      ...{ id: 'tally', kind: 'customer', name: 'Tally', agreement: '2026-01-15' },
      ...{ businesses: ['ACME'], scopes: ['openid', 'fund.read'] },
    },
    edit: { name: 'Other', accessTokenLifetime: '10m', businesses: [] },
    edited: { name: 'Other', accessTokenLifetime: '10m', businesses: [], scopes: ['openid', 'fund.read'] },
    options: [
      ...['--kind', 'customer', '--name', 'Tally', '--agreement', '2026-01-15'],
      ...['--business', 'ACME', '--scope', 'openid fund.read'],
    ],
    editOptions: ['--name', 'Other', '--access-token-lifetime', '10m', '--business', ''],
    events: ['client.added', 'client.changed', 'client.disabled', 'client.enabled', 'client.removed'],
  },
  {
    ...{ noun: 'user', path: '/users', names: ['dora'] },
    added: {
      ...{ username: 'dora', password: PASSWORD, access: { ACME: 'Read-only' } },
      claims: { name: 'Dora', email: 'dora@example.com', address: { locality: 'Sydney' } },
    },
    edit: { claims: { email: null, address: null }, access: { ACME: null }, customers: ['acme-books'] },
    edited: { claims: { name: 'Dora' }, access: {}, customers: ['acme-books'] },
    options: [
      ...['--access', 'ACME=Read-only', '--claim', 'name=Dora'],
      ...['--claim', 'email=dora@example.com', '--claim', 'address.locality=Sydney'],
    ],
    editOptions: [
      ...['--claim', 'email=', '--claim', 'address.locality=', '--access', ''],
      ...['--customer', 'acme-books'],
    ],
    events: ['user.added', 'user.changed', 'user.disabled', 'user.enabled', 'user.removed'],
  },
  {
    ...{ noun: 'business', path: '/businesses', names: ['UMBRELLA'] },
    added: { code: 'UMBRELLA', name: 'Umbrella', address: { locality: 'Austin', country: 'US' } },
    edit: { phoneNumber: '+1 512 555', address: { country: null } },
    edited: { name: 'Umbrella', phoneNumber: '+1 512 555', address: { locality: 'Austin' }, funds: 'listed' },
    options: ['--name', 'Umbrella', '--address', 'locality=Austin', '--address', 'country=US'],
    editOptions: ['--phone-number', '+1 512 555', '--address', 'country='],
    events: [
      'business.added',
      'business.changed',
      'business.disabled',
      'business.enabled',
      'business.removed',
    ],
  },
  {
    ...{ noun: 'fund', path: '/businesses/HOOLI/funds', names: ['HOOLI', 'F1'] },
    added: { code: 'F1', name: 'First' },
    edit: { name: null },
    edited: { business: 'HOOLI', code: 'F1' },
    options: ['--name', 'First'],
    editOptions: ['--name', ''],
    events: ['fund.added', 'fund.changed', 'fund.disabled', 'fund.enabled', 'fund.removed'],
  },
  {
    ...{ noun: 'role', path: '/roles', names: ['Clerk'] },
    added: { name: 'Clerk', scopes: ['fund.read', 'business.fund.list'] },
    edit: { scopes: ['fund.read'] },
    edited: { scopes: ['fund.read'] },
    options: ['--scope', 'fund.read business.fund.list'],
    editOptions: ['--scope', 'fund.read'],
    events: ['role.added', 'role.changed', 'role.disabled', 'role.enabled', 'role.removed'],
  },
]

const NOTHING_SECRET = /sha256:|argon2|-long-enough-/

const at = ({ path, names }: Case): string => `${path}/${encodeURIComponent(names.at(-1) ?? '')}`

type Here = Awaited<ReturnType<typeof administered>>

/** The verbs of one noun by the admin API. Gives the record after its edit, and every text that was answered. */
async function byApi(each: Case, { call }: Here) {
  const texts: string[] = []
  const ask = async (...args: Parameters<typeof call>): Promise<Answered> => {
    const answer = await call(...args)
    texts.push(answer.text)
    return answer
  }
  const name = each.names.at(-1) ?? ''
  const added = await ask('POST', `${each.path}?reason=new`, { body: each.added })
  expect([added.status, added.location, added.body.problems]).toEqual([201, at(each), undefined])
  const shown = await ask('GET', at(each))
  expect([shown.body, shown.etag]).toEqual([added.body.record, added.etag])
  const listed = await ask('GET', `${each.path}?limit=1&prefix=${encodeURIComponent(name)}`)
  expect(Object.values(listed.body)[0]).toEqual([shown.body])

  const edit = { body: each.edit, ifMatch: shown.etag ?? '' }
  const edited = await ask('PATCH', at(each), edit)
  expect([edited.status, edited.body.record]).toEqual([200, expect.objectContaining(each.edited)])
  expect((await ask('GET', at(each))).etag).toBe(edited.etag)
  expect((await ask('PATCH', at(each), edit)).status).toBe(412)

  const disabled = await ask('POST', `${at(each)}/disable`)
  expect([disabled.status, disabled.body.record.disabled]).toEqual([200, true])
  const enabled = await ask('POST', `${at(each)}/enable`)
  expect([enabled.status, enabled.body.record.disabled]).toEqual([200, false])
  expect((await ask('DELETE', at(each), { ifMatch: shown.etag ?? '' })).status).toBe(412)
  expect((await ask('DELETE', at(each), { ifMatch: enabled.etag ?? '' })).status).toBe(200)
  const gone = await ask('GET', at(each))
  expect([gone.status, gone.body.error]).toEqual([404, expect.stringContaining(`There is no ${each.noun} "`)])
  return { record: edited.body.record as object, texts }
}

/** The same by command, on another record. */
async function byCommand({ noun, names, options, editOptions }: Case, { command }: Here) {
  const texts: string[] = []
  const others = [...names.slice(0, -1), `${names.at(-1) ?? ''}2`]
  const run = async (verb: string, ...more: readonly string[]) => {
    const { code, stdout, stderr } = await command([noun, verb, ...others, ...more], `${PASSWORD}\n`)
    texts.push(stdout, stderr)
    const warned = verb === 'add' && noun === 'client' && !more.includes('--json')
    expect([noun, verb, code, warned ? '' : stderr]).toEqual([noun, verb, 0, ''])
    return stdout
  }
  await run('add', ...options, '--json')
  expect(await run('show')).toMatch(/^source +store$/m)
  const { record } = JSON.parse(await run('edit', ...editOptions, '--json')) as { record: object }
  const listed = await command([noun, 'list', ...others.slice(0, -1), '--json', '--limit', '1000'])
  expect(Object.values(JSON.parse(listed.stdout) as object)[0]).toContainEqual(record)
  expect(await run('disable')).toMatch(/: disabled\n/)
  expect(JSON.parse(await run('show', '--json'))).toMatchObject({ disabled: true, source: 'store' })
  await run('enable')
  await run('remove')
  expect((await command([noun, 'show', ...others])).code).toBe(1)
  return { record, texts }
}

/** Without what names a record. */
const nameless = ({ names }: Case, record: object) => {
  const own = [
    'subject',
    ...['id', 'username', 'code', 'name'].filter((member) => names.length > 0 && member !== 'name'),
  ]
  return Object.fromEntries(Object.entries(record).filter(([member]) => !own.includes(member)))
}

describe('C11.5.1 the directory', () => {
  it('is managed by the admin API and by commands alike: every verb of every noun, recorded, without a hash', async () => {
    const here = await administered()
    expect((await here.call('POST', '/businesses', { body: HOOLI })).status).toBe(201)
    const compare = async (each: Case): Promise<void> => {
      const [api, command] = await Promise.all([byApi(each, here), byCommand(each, here)])
      if (each.noun !== 'role') expect(nameless(each, command.record)).toEqual(nameless(each, api.record))
      for (const text of [...api.texts, ...command.texts]) expect(text).not.toMatch(NOTHING_SECRET)
      for (const event of each.events)
        for (const way of ['admin', 'cli']) expect(here.acts()).toContain(`${event} success admin ${way}`)
    }
    // Two at once: each command opens the store anew, and the machine may be busy.
    const waiting = [...CASES]
    const inTurn = async (): Promise<void> => {
      for (let each = waiting.shift(); each !== undefined; each = waiting.shift()) await compare(each)
    }
    await Promise.all([inTurn(), inTurn()])
  })

  it('takes one of two edits of the same version; without If-Match both are made', async () => {
    const { call } = await administered()
    const { etag } = await call('POST', '/roles', { body: { name: 'Clerk', scopes: [] } })
    const edit = (scopes: readonly string[], ifMatch?: string) =>
      call('PATCH', '/roles/Clerk', { body: { scopes }, ...(ifMatch !== undefined && { ifMatch }) })
    const both = await Promise.all([edit(['fund.read'], etag ?? ''), edit(['openid'], etag ?? '')])
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 412])
    const winner = both.find(({ status }) => status === 200)
    const loser = both.find(({ status }) => status === 412)
    expect([loser?.etag, (await call('GET', '/roles/Clerk')).body]).toEqual([
      winner?.etag,
      winner?.body.record,
    ])
    const free = await Promise.all([
      edit(['fund.read']),
      call('PATCH', '/roles/Clerk', { body: {}, ifMatch: '*' }),
    ])
    expect(free.map(({ status }) => status)).toEqual([200, 200])
    expect((await edit([], 'no tag')).status).toBe(400)
  })

  it('refuses with every problem by its member, and says what was probably meant', async () => {
    const { call, service } = await administered()
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
    await call('POST', '/roles', { body: { name: 'Clerk', scopes: [] } })
    expect((await call('PATCH', '/roles/Clerk', { body: { name: 'Other' } })).status).toBeGreaterThanOrEqual(
      400,
    )
    expect((await call('POST', '/roles', { body: { name: 'Clerk', scopes: [] } })).status).toBe(409)
    expect(service.logLines().join('')).not.toContain('short')
  })

  it('C11.5.1 keeps what was written under a mistyped name out of the audit trail and the log', async () => {
    const { call, command, service } = await administered()
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
    const { call, command, acts } = await administered()
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
    const { call, command, env } = await administered()
    for (const name of ['.', '..']) {
      const added = [
        await call('POST', '/users', { body: { username: name, password: PASSWORD, access: {} } }),
        await call('POST', '/clients', { body: { ...CASES[0]?.added, id: name } }),
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
    const { call, acts, service } = await administered()
    // A deleted file is seen before the next write: this one was begun.
    rmSync(sqliteFile(service.data))
    expect((await call('POST', '/businesses', { body: HOOLI })).status).toBe(503)
    const before = acts()
    const bodies: Readonly<Record<string, object>> = {
      ...Object.fromEntries(
        CASES.map(({ noun, added }) => [`add${noun.charAt(0).toUpperCase()}${noun.slice(1)}`, added]),
      ),
      setPassword: { password: PASSWORD },
    }
    for (const { method, path, operationId } of RECORD_OPERATIONS) {
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
    const { call, acts, service } = await administered({ change: hurried })
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
    const { call, command, service } = await administered({ change: hurried })
    const holder = startStoreProcess('hold', sqliteFile(service.data))
    await holder.line('held')
    const added = command(['business', 'add', 'HOOLI', '--name', 'Hooli'])
    // Each of them waits as long as callers of the service do.
    for (let times = 0; times < 3; times += 1)
      expect((await call('POST', '/businesses', { body: { code: 'OTHER', name: 'x' } })).status).toBe(503)
    holder.process.stdin?.write('release\n')
    expect(await added).toMatchObject({ code: 0, stderr: '' })
  })

  it('C11.5.1 removes what the configuration hides, by the admin API and by command', async () => {
    const { call, command, service } = await administered()
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

  it('C11.5 holds switches, secrets and passwords to the version that is meant; else nothing has changed', async () => {
    const { call, acts } = await administered()
    const client = { ...CASES[0]?.added, id: 'held' }
    const added = [
      await call('POST', '/clients', { body: client }),
      await call('POST', '/users', { body: { username: 'held', password: PASSWORD, access: {} } }),
    ]
    const before = acts()
    const acted: readonly (readonly [number, string, string, object?])[] = [
      [0, 'POST', '/clients/held/disable'],
      [0, 'POST', '/clients/held/enable'],
      [0, 'POST', '/clients/held/secrets'],
      [1, 'POST', '/users/held/disable'],
      [1, 'PUT', '/users/held/password', { password: PASSWORD }],
    ]
    const latest = added.map(({ etag }) => etag ?? '')
    for (const [of, method, path, body] of acted) {
      const sent = body === undefined ? {} : { body }
      const other = await call(method, path, { ...sent, ifMatch: '"9-other"' })
      expect([path, other.status, other.etag]).toEqual([path, 412, latest[of]])
    }
    expect(acts()).toEqual(before)
    for (const [of, method, path, body] of acted) {
      const sent = body === undefined ? {} : { body }
      const done = await call(method, path, { ...sent, ifMatch: latest[of] ?? '' })
      expect([path, done.status]).toEqual([path, 200])
      const again = await call(method, path, { ...sent, ifMatch: latest[of] ?? '' })
      // A third secret is refused in whatever version.
      expect([path, again.status]).toEqual([path, path.endsWith('/secrets') ? 409 : 412])
      latest[of] = done.etag ?? ''
    }
    const shown = await call('GET', '/clients/held', { ifMatch: '"9-other"' })
    expect([shown.status, shown.etag, shown.body.validSecrets]).toEqual([200, latest[0], 2])
    expect((await call('POST', '/clients', { body: client, ifMatch: '*' })).status).toBe(400)
    expect((await call('POST', '/businesses/NOPE/funds', { body: { code: 'F' } })).status).toBe(404)
  })

  it('lists pages by prefix, whatever the characters; a record that stays comes exactly once', async () => {
    const { call } = await administered()
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
