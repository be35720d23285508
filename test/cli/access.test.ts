import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'
import { dataFolder } from '../support/data-folder.ts'
import { postForm } from '../support/oauth.ts'
import { postern } from '../support/start-postern.ts'

const DEMO = fileURLToPath(new URL('../../config/demo.yaml', import.meta.url))

/** Runs a command on the demo with `changes`, in an empty data folder unless one is given. */
async function run(args: readonly string[], changes = '', data?: string) {
  const at = configFiles({ 'my.yaml': `extends: ${DEMO}\n${changes}` })
  const env = { POSTERN_DATA: data ?? at('nothing') }
  return runVerb([...args, '--config', at('my.yaml')], { env })
}

interface Row {
  readonly client?: string
  readonly user?: string
  readonly role?: string
  readonly business: string
  readonly level: string
  readonly area: string
  readonly action: string
  readonly method: string
  readonly versions: readonly number[]
  readonly access: 'yes' | 'no' | 'report-only'
  readonly missing: readonly { readonly what: string; readonly text: string }[]
}

const rows = async (options: string, changes = '', data?: string): Promise<Row[]> =>
  JSON.parse(
    (await run(['access', '--json', ...options.split(' ').filter(Boolean)], changes, data)).stdout,
  ) as Row[]

const missing = (found: readonly Row[], action: string, method = 'GET'): readonly string[] | undefined =>
  found
    .find((row) => row.action === action && row.method === method)
    ?.missing.map((each) => `${each.what}: ${each.text}`)

/** Exchanges everything that may be had for a token; undefined where none is given. */
async function tokenFor(service: Parameters<typeof postForm>[0], client: string, user: string, code: string) {
  const { json, status } = await postForm(service, '/connect/token', {
    ...{ client, secret: `${client}-secret` },
    params: {
      grant_type: 'password',
      username: user,
      password: `${user}-password`,
      scope: `${DATA_SCOPES} target:b/${code}`,
    },
  })
  return status === 200 ? (json.access_token as string) : undefined
}

async function callWith(token: string, method: string, url: string): Promise<number> {
  const response = await fetch(url, { method, headers: { Authorization: `Bearer ${token}` } })
  await response.arrayBuffer()
  return response.status
}

const DATA_SCOPES =
  'business.fund.list business.fund.create fund.details.read fund.details.maintain fund.member.read fund.member.maintain fund.read fund.maintain'

const MEMBER = '7d9f2c1e-4b3a-4f0e-9c55-0a1b2c3d4e5f'

describe('postern access', () => {
  it('C14.5 shows yes, or what is missing, by area, action, method and version', async () => {
    const { code, stdout } = await run(['access', '--client', 'globex-ledger', '--user', 'bob'])
    expect(code).toBe(0)
    const lines = stdout.split('\n').map((line) => line.split(/ {2,}/).join(' | ').trim())
    expect(lines).toEqual(
      expect.arrayContaining([
        'client globex-ledger, user bob (Read-only) at GLOBEX',
        '| business | fund-data/fund-list | GET | 1 | yes',
        '| fund | member-data/member-detail/{memberId:uuid} | GET | 1 2 | yes',
        '| fund | fund-data/fund-detail | POST | 1 | no: the role Read-only lacks the scope fund.details.maintain',
      ]),
    )
  })

  it('C14.5 says yes exactly where the token that may be had opens the call', async () => {
    const service = await postern({ keeps: 'nothing' })
    const pairs = ['acme-books', 'globex-ledger'].flatMap((client) =>
      ['alice', 'bob', 'carol'].map((user) => [client, user] as const),
    )
    const funds: Readonly<Record<string, string>> = { ACME: 'SUPER1', GLOBEX: 'GROWTH', INITECH: 'LEGACY' }
    const wrong: string[] = []
    for (const [client, user] of pairs)
      for (const [business, fund] of Object.entries(funds)) {
        const token = await tokenFor(service, client, user, business)
        for (const row of await rows(`--client ${client} --user ${user} --business ${business}`)) {
          const place = row.level === 'fund' ? `f/${business}/${fund}` : `b/${business}`
          const path = `${row.area}/${row.action.replace('{memberId:uuid}', MEMBER)}`
          const status =
            token && (await callWith(token, row.method, `${service.baseUrl}/api/1.0/${place}/${path}`))
          const opened = typeof status === 'number' && status !== 401
          if (opened !== (row.access === 'yes'))
            wrong.push(`${client} ${user} ${business} ${row.method} ${path}: ${row.access}`)
        }
      }
    expect(wrong).toEqual([])
  })

  it('C14.5 shows every client and every user at their businesses, unless they are named', async () => {
    const all = await rows('')
    const who = new Set(all.map(({ client, user, business }) => `${client ?? ''}/${user ?? ''} ${business}`))
    expect([...who]).toEqual([
      ...['acme-books/ ACME', 'acme-books/ GLOBEX', 'globex-ledger/ GLOBEX'],
      ...['ledgerline/ ACME', 'ledgerline/ GLOBEX', 'pocketbooks/ ACME', 'pocketbooks/ GLOBEX'],
      ...['/alice ACME', '/alice GLOBEX', '/bob GLOBEX', '/carol INITECH'],
    ])
    const some = await rows('--business ACME --client ledgerline')
    expect(new Set(some.map(({ client, business }) => `${client} ${business}`))).toEqual(
      new Set(['ledgerline ACME']),
    )
  })

  it('C14.5 tells whose part is missing: client, role, both, or what they have in common', async () => {
    const found = await rows(
      '--client acme-books --user alice --business ACME',
      `directory:
  roles: { Administrator: { scopes: [fund.member.read, business.fund.list] } }
  clients: { acme-books: { scopes: [fund.details.read, fund.read], defaultScope: fund.read } }`,
    )
    expect(missing(found, 'fund-detail')).toEqual([
      'scope: the role Administrator lacks the scope fund.details.read',
    ])
    expect(missing(found, 'fund-create', 'POST')).toEqual([
      'scope: the client and the role Administrator lack the scope business.fund.create',
    ])
    expect(missing(found, 'fund-list')).toEqual([
      'scope: the client and the role Administrator have no scope in common of fund.read or business.fund.list',
    ])
    expect(missing(found, 'member-list')).toEqual([])
  })

  it('C14.5 tells who gets no token: disabled, locked, no agreement, no customer, no such business, no role', async () => {
    const disabled = await rows(
      '--client acme-books --user alice --business INITECH',
      'directory: { clients: { acme-books: { disabled: true, agreement: "2999-01-01" } }, users: { alice: { locked: true } } }',
    )
    expect(missing(disabled, 'fund-list')).toEqual([
      'enabled: the client is disabled',
      'enabled: the user is locked',
      'grant: the client has no grant that it may use now',
      'business: the client is not for INITECH',
      'business: the user has no role at INITECH',
    ])
    const stranger = await rows('--client globex-ledger --user alice --business GLOBEX')
    expect(missing(stranger, 'fund-list')).toEqual([
      'grant: the user is no customer of globex-ledger, which has the password grant only',
    ])
    expect(missing(await rows('--client ledgerline --user alice'), 'fund-list')).toEqual([])
  })

  it('C14.5 tells that a business has no fund, and that an area refuses nothing', async () => {
    const found = await rows(
      '--user carol',
      `backends: { up: { kind: http, target: "http://127.0.0.1:9" } }
areas: { member-data: { backend: up, mode: report-only } }
directory: { businesses: { INITECH: { funds: [] } } }`,
    )
    expect(missing(found, 'fund-detail')).toEqual(['fund: INITECH has no fund'])
    expect(missing(found, 'fund-list')).toEqual([])
    expect(found.find(({ area }) => area === 'member-data')?.access).toBe('report-only')
  })

  it('C14.5 writes CSV, in which no role or name is carried out as a formula', async () => {
    const { stdout } = await run(
      ['access', '--user', 'dora', '--csv'],
      `directory:
  roles: { '=cmd|"/C calc"!A1': { scopes: [fund.read] } }
  users:
    dora:
      subject: d
      password: $argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc
      access: { ACME: '=cmd|"/C calc"!A1' }`,
    )
    const [head, ...lines] = stdout.split('\r\n')
    expect(head).toBe('client,user,role,business,level,area,action,method,versions,access,missing')
    expect(lines[0]).toBe(`,dora,"'=cmd|""/C calc""!A1",ACME,business,fund-data,fund-list,GET,1,yes,`)
    expect(lines.at(-1)).toBe('')
  })

  it('C14.5 knows clients and users of a store that a service has open, and only reads it', async () => {
    const data = await dataFolder()
    const service = await postern({ data })
    const env = { POSTERN_DATA: data }
    const client = 'client add tally --kind customer --name Tally --agreement 2026-01-15 --business ACME'
    await runVerb([...client.split(' '), '--scope', 'fund.read'], { env })
    await runVerb('user add dora --customer tally --access ACME=Administrator'.split(' '), {
      ...{ env, input: 'doras-long-password\n' },
    })
    const found = await rows('--client tally --user dora', '', data)
    expect(missing(found, 'fund-list')).toEqual([])
    expect(missing(found, 'fund-detail', 'POST')).toEqual([
      'scope: the client lacks the scope fund.details.maintain',
    ])
    const { json } = await postForm(service, '/connect/token', {
      client: 'tally',
      secret: 'wrong',
      params: { grant_type: 'password' },
    })
    expect(json.error).toBe('invalid_client')
  })

  it.each([
    ['--client', 'acme-boks', 'there is no client "acme-boks" — did you mean "acme-books"?'],
    ['--user', 'alcie', 'there is no user "alcie" — did you mean "alice"?'],
    ['--business', 'ACMEE', 'there is no business "ACMEE" — did you mean "ACME"?'],
  ])('C14.5 refuses an unknown name with a suggestion: %s %s', async (option, name, told) => {
    const { code, stdout, stderr } = await run(['access', option, name])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(`postern: ${told}\n`)
  })

  it('C14.5 says of a sidecar that it knows no clients and users', async () => {
    const { code, stderr } = await runVerb(
      ['access', '--config', DEMO.replace('demo.yaml', 'sidecar.yaml')],
      {
        env: { UPSTREAM_URL: 'http://127.0.0.1:9' },
      },
    )
    expect(code).toBe(2)
    expect(stderr).toContain('a sidecar has no clients and users of its own')
  })
})

describe('postern access METHOD PATH', () => {
  const scopes = (...args: string[]) => run(['access', ...args])

  it('C14.5 shows which scopes would do, what implies them, and which clients and roles have them', async () => {
    const { code, stdout } = await scopes('GET', '/api/1.0/b/ACME/fund-data/fund-list?page=2')
    expect(code).toBe(0)
    expect(stdout).toBe(`GET fund-data/fund-list (business), version 1
  a token needs one of
    fund.read   (implied by fund.maintain)
    business.fund.list
  clients that may have it
    acme-books at ACME, GLOBEX, by business.fund.list fund.read fund.maintain
    globex-ledger at GLOBEX, by business.fund.list fund.read fund.maintain
    ledgerline at ACME, GLOBEX, by business.fund.list fund.read fund.maintain
    pocketbooks at ACME, GLOBEX, by business.fund.list fund.read fund.maintain
  roles that have it: Administrator, Read-only
`)
  })

  it('C14.5 shows what the area needs besides, and who has both', async () => {
    const { stdout } = await run(
      ['access', 'GET', 'fund-data/fund-list', '--json'],
      `areas: { fund-data: { backend: sample, scopes: [api1] } }
directory: { clients: { acme-books: { scopes: [fund.read], defaultScope: fund.read, disabled: true }, ledgerline: { disabled: true } } }`,
    )
    const [needs] = JSON.parse(stdout)
    expect(needs.groups.map((group: { value: string }[]) => group.map(({ value }) => value))).toEqual([
      ['fund.read', 'business.fund.list'],
      ['api1'],
    ])
    expect(needs.clients.map(({ id }: { id: string }) => id)).toEqual([
      'globex-ledger',
      'ledgerline',
      'pocketbooks',
    ])
    expect(needs.clients[1].missing).toEqual([{ what: 'enabled', text: 'the client is disabled' }])
  })

  it('C14.5 knows userinfo, which needs openid', async () => {
    expect((await scopes('POST', '/api/1.0/u/connect/userinfo')).stdout).toContain('the scope\n    openid\n')
  })

  it.each([
    ['PUT', '/api/1.0/b/ACME/fund-data/fund-list', 'it offers GET, HEAD'],
    ['PUT', 'fund-data/fund-list', 'it offers GET'],
    ['GET', '/api/1.0/b/ACME/fund-data/fund-liszt', 'no action is at this path'],
    ['GET', 'fund-data/fund-liszt', 'did you mean "fund-data/fund-list"?'],
    ['GET', '/api/2.0/b/ACME/fund-data/fund-list', 'This API version is not implemented'],
    ['GET', '/api/1.0/b/ACME/../fund-list', 'The path holds a segment of one or two dots.'],
    ['GET', 'https://elsewhere.example/api', 'names another authority'],
  ])('C14.5 refuses %s %s and says why', async (method, path, told) => {
    const { code, stdout, stderr } = await scopes(method, path)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(told)
  })

  it.each([
    [['GET'], 'expected METHOD and PATH, got 1 argument'],
    [['GET', 'fund-data/fund-list', '--csv'], 'expected METHOD and PATH or --csv, not both'],
    [['GET', 'fund-data/fund-list', '--against', DEMO], 'expected METHOD and PATH or --against, not both'],
    [['--against', DEMO, '--client', 'acme-books'], 'expected --against or --client, not both'],
  ])('C14.5 C11.6 refuses what means nothing together: %j', async (args, told) => {
    const { code, stdout, stderr } = await run(['access', ...args])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(`postern: ${told}\n`)
  })

  it.each([
    ['scopes', 'postern access METHOD PATH'],
    ['diff', 'postern access --against OLD --config NEW'],
  ])('C14.5 %s, its name before, is refused, and the message says what to write', async (name, instead) => {
    const { code, stdout, stderr } = await runVerb([name, 'GET', 'fund-data/fund-list'])
    expect([code, stdout, stderr]).toEqual([2, '', `postern: "${name}" is retired: write \`${instead}\`\n`])
  })
})
