import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { runCommandLine } from '../../../src/cli/command-line.ts'
import { CLIENT, USER } from '../../../src/identity/directory/records/stored-directory.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { planSqlite } from '../../../src/state/stores/schema.ts'
import { SqliteStore } from '../../../src/state/stores/sqlite/sqlite.ts'
import { configFiles } from '../../support/config-files.ts'
import { runVerb } from '../../support/command-line.ts'
import { dataFolder } from '../../support/data-folder.ts'

const DEMO = fileURLToPath(new URL('../../../config/demo.yaml', import.meta.url))

interface Compared {
  readonly changes: string
  /** Of the first configuration; the demo as it is, if not given. */
  readonly before?: string
  /** The data folder; an empty one if not given. */
  readonly data?: string
}

async function compare({ changes, before = '', data }: Compared, ...options: string[]) {
  const at = configFiles({
    'old.yaml': `extends: ${DEMO}\n${before}`,
    'next.yaml': `extends: ${DEMO}\n${before}${changes}`,
  })
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const args = ['access', '--against', at('old.yaml'), '--config', at('next.yaml'), ...options]
  const env = { POSTERN_DATA: data ?? at('nothing') }
  const code = await runCommandLine(args, { env, stdin: process.stdin, stdout, stderr })
  stdout.end()
  stderr.end()
  return { code, out: await text(stdout), err: await text(stderr) }
}

const diff = (changes: string, ...options: string[]) => compare({ changes }, ...options)

describe('postern access --against', () => {
  it('says so where nobody gains or loses anything', async () => {
    expect(await diff('vendor: other')).toEqual({
      code: 0,
      out: 'nobody gains or loses access\n',
      err: 'postern: there is no store to read. Only clients and users of the configurations are compared.\n',
    })
  })

  it('compares nothing where a directory cannot be read, or names what is not there, and tells that', async () => {
    const { code, out, err } = await diff(`
directory:
  files: { clients: /nowhere/clients.ndjson }
  roles: { Read-only: { scopes: [fund.raed] } }`)
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain('directory.files.clients  cannot be read')
    expect(err).toContain('next.yaml:5  directory.roles.Read-only.scopes[0]  names no scope of the catalogue')
  })

  it('tells what clients gain and lose, by action and business', async () => {
    const { out } = await diff(
      `directory: { clients: { globex-ledger: {
        businesses: [ACME], scopes: [fund.details.read], defaultScope: fund.details.read } } }`,
    )
    expect(out.split('\n')).toEqual(
      expect.arrayContaining([
        'clients',
        '  - globex-ledger  GET fund-data/fund-detail (fund)  at GLOBEX',
        '  + globex-ledger  GET fund-data/fund-detail (fund)  at ACME',
        '  - globex-ledger  POST fund-data/fund-create (business)  at GLOBEX',
      ]),
    )
    expect(out).not.toContain('acme-books')
  })

  it('tells of roles what their scopes imply, and of users where they have which role', async () => {
    const { out } = await diff(`
directory:
  roles: { Read-only: { scopes: [fund.member.maintain] } }
  users: { bob: { access: { ACME: Read-only } }, carol: { disabled: true } }`)
    expect(out.split('\n')).toEqual(
      expect.arrayContaining([
        'roles',
        '  + Read-only  POST member-data/member-detail/{memberId:uuid} (fund)',
        '  - Read-only  GET fund-data/fund-detail (fund)',
        'users',
        '  - carol  Administrator  at INITECH',
        '  + bob  Read-only  at ACME',
      ]),
    )
    expect(out).not.toContain('Read-only  GET member-data')
  })

  it('tells an action that asks for another scope', async () => {
    const { out } = await diff(`
actions:
  - level: business
    area: fund-data
    action: fund-list
    methods: { GET: { scopes: { all: [fund.read, business.fund.create] } } }`)
    expect(out).toContain('  - Read-only  GET fund-data/fund-list (business)\n')
    expect(out).not.toContain('- Administrator  GET fund-data/fund-list')
  })

  const AREAS = 'areas: { fund-data: { backend: sample, scopes: [fund.maintain] } }\n'

  it('C5.3 tells what an area’s scopes keep from whom, and what they kept once they are gone', async () => {
    const added = await diff(AREAS)
    expect(added.out).toContain('  - Read-only  GET fund-data/fund-list (business)\n')
    expect(added.out).not.toContain('Administrator')
    expect(added.out).not.toContain('member-data')
    const at = configFiles({ 'old.yaml': `extends: ${DEMO}\n${AREAS}`, 'next.yaml': `extends: ${DEMO}\n` })
    const [stdout, stderr] = [new PassThrough(), new PassThrough()]
    const env = { POSTERN_DATA: at('nothing') }
    await runCommandLine(['access', '--against', at('old.yaml'), '--config', at('next.yaml')], {
      env,
      stdin: process.stdin,
      stdout,
      stderr,
    })
    stdout.end()
    expect(await text(stdout)).toBe(added.out.replaceAll('  - ', '  + '))
  })

  it('C5.2 follows implication as the gateway does: what a scope implies opens what its own name would', async () => {
    const { out } = await diff('scopes: { fund.read: { description: Less, implies: [fund.details.read] } }')
    expect(out).toContain('  - Read-only  GET member-data/member-list (fund)\n')
    expect(out).not.toContain('fund-detail')
  })

  it('tells that an area which becomes report-only is open to anybody', async () => {
    const up = 'backends: { up: { kind: http, target: "http://127.0.0.1:9" } }\n'
    const changes = 'areas: { fund-data: { backend: up, mode: report-only } }'
    const { out, err } = await compare({ before: up, changes })
    expect(err).not.toContain('error')
    expect(out).toBe('anybody\n  + anybody  every call of fund-data, without a token too (report-only)\n')
  })

  it('C6.1.5 tells who may not log in any more: locked, no grant, no agreement, no customer', async () => {
    const { out } = await diff(`
directory:
  clients:
    acme-books: { grants: [refresh_token] }
    globex-ledger: { agreement: '2999-01-01' }
  users: { carol: { locked: true }, bob: { customers: [acme-books] } }`)
    expect(out.split('\n')).toEqual(
      expect.arrayContaining([
        '  - acme-books  the grant password',
        '  - globex-ledger  the grant password',
        '  - carol  Administrator  at INITECH',
        '  - bob  a login through globex-ledger',
      ]),
    )
  })

  it.each(['live', 'closed'])(
    'C14.5 tells of clients and users of the store, which it only reads (%s)',
    async (state) => {
      const data = await dataFolder()
      const path = join(data, 'postern.sqlite')
      const plan = planSqlite({ kind: 'sqlite' } as Parameters<typeof planSqlite>[0], data)
      const store = await SqliteStore.open(plan, systemClock)
      const client = {
        ...{ id: 'tally', kind: 'customer', name: 'Tally', secrets: [], grants: ['password'] },
        ...{ agreement: '2026-01-15', businesses: ['ACME', 'GONE'], scopes: ['fund.read', 'gone.read'] },
      }
      const user = {
        username: 'dora',
        subject: 's',
        password: 'x',
        access: { ACME: 'Read-only' },
        customers: ['tally'],
      }
      await store.create(CLIENT, 'tally', { value: { record: client, ends: {} } })
      await store.create(USER, 'dora', { value: { record: user } })
      if (state === 'closed') await store.close()
      const before = { files: readdirSync(data), bytes: readFileSync(path) }
      const { code, out, err } = await compare({
        data,
        before: 'directory: { roles: { Read-only: { scopes: [fund.read] } } }\n',
        changes: 'areas: { fund-data: { backend: sample, scopes: [fund.maintain] } }',
      })
      const { out: roles } = await compare({
        data,
        changes: 'directory: { businesses: { ACME: { funds: any } }, users: { alice: { disabled: true } } }',
      })
      if (state === 'closed') {
        expect(readdirSync(data)).toEqual(before.files)
        expect(readFileSync(path).equals(before.bytes)).toBe(true)
      } else await store.close()
      expect([code, err]).toEqual([0, `postern: including 1 client and 1 user of the store ${path}\n`])
      expect(out).toContain('  - tally  GET fund-data/fund-list (business)  at ACME\n')
      expect(out).not.toContain('GONE')
      expect(out).not.toContain('dora')
      expect(roles).toContain('  - alice  Administrator')
      expect(roles).not.toContain('tally')
    },
  )

  it('C14.5 tells that a stored user loses the role that the configuration drops', async () => {
    const data = await dataFolder()
    const plan = planSqlite({ kind: 'sqlite' } as Parameters<typeof planSqlite>[0], data)
    const store = await SqliteStore.open(plan, systemClock)
    const user = { username: 'dora', subject: 's', password: 'x', access: { ACME: 'Clerk' }, customers: [] }
    await store.create(USER, 'dora', { value: { record: user } })
    await store.close()
    const { out } = await compare({
      data,
      changes: 'directory: { roles: { Clerk: { scopes: [fund.read] } } }',
    })
    expect(out).toContain('  + dora  Clerk  at ACME\n')
  })

  it('refuses a store that it cannot read', async () => {
    const data = await dataFolder()
    writeFileSync(
      join(data, 'postern.sqlite'),
      'no database, but long enough to look like a file of something',
    )
    const { code, out, err } = await compare({ data, changes: 'vendor: other' })
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/^postern: The store \S+ cannot be read: .*\n$/)
  })

  it('C11.5.4 tells which versions of an operation are struck, whoever may call it', async () => {
    const demo = readFileSync(DEMO, 'utf8')
    const found = /versions: \[1, 2\]/
    expect(demo).toMatch(found)
    const next = demo
      .replace(found, 'versions: [2]')
      .replace('demo-data.json', join(dirname(DEMO), 'demo-data.json'))
    const files = configFiles({ 'next.yaml': next })
    const { code, stdout } = await runVerb(['access', '--against', DEMO, '--config', files('next.yaml')], {
      env: { POSTERN_DATA: await dataFolder() },
    })
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^versions\n {2}- \S+ \S+ \(\w+\) {2}version 1\n$/m),
    ])
  })

  it('writes JSON for programs', async () => {
    const { out } = await diff('directory: { clients: { acme-books: { disabled: true } } }', '--json')
    const { gained, lost } = JSON.parse(out)
    expect(gained).toEqual([])
    expect(lost).toContainEqual({
      kind: 'client',
      who: 'acme-books',
      what: 'GET fund-data/fund-list (business)',
      where: 'ACME',
    })
  })

  it('refuses a file that would not be served', async () => {
    const { code, err } = await diff('vendor: NO')
    expect(code).toBe(2)
    expect(err).toContain('vendor')
  })
})
