/** What operators order while the audit trail cannot be written (C12.1.4). */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { runVerb } from '../support/command-line.ts'
import { eventually } from '../support/eventually.ts'
import { DEMO, ROOT, spawnPostern } from '../support/spawn-postern.ts'

const PASSWORD = 'a-long-enough-password'

/** A service with a record of each noun in its store, whose trail has a disk that can be made read-only. */
async function withRecords() {
  const node = ['--require', join(ROOT, 'test/extensions/audit/support/troubled-audit.ts')]
  const service = await spawnPostern({ node, config: DEMO })
  onTestFinished(async () => {
    await service.stop()
  })
  const trouble = join(service.data, 'audit.trouble')
  const token = readFileSync(join(service.data, 'admin-token'), 'utf8').trim()
  const call = async (
    method: string,
    path: string,
    body?: object,
  ): Promise<[status: number, text: string]> => {
    const response = await fetch(`${service.adminUrl}${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, ...(body && { 'Content-Type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    return [response.status, await response.text()]
  }
  const command = (...args: readonly string[]) =>
    runVerb(args, {
      env: {
        POSTERN_CONFIG: DEMO,
        POSTERN_DATA: service.data,
        POSTERN_ADMIN_PORT: new URL(service.adminUrl).port,
      },
      input: `${PASSWORD}\n`,
    })
  const client = { kind: 'partner', name: 'Tally', redirectUris: ['https://tally.example/back'] }
  const added = [
    ['/businesses', { code: 'HOOLI', name: 'Hooli' }],
    ['/businesses', { code: 'CLOSED', name: 'Closed', disabled: true }],
    ['/businesses/HOOLI/funds', { code: 'ONE' }],
    ['/roles', { name: 'Clerk', scopes: ['fund.read'] }],
    ['/clients', { id: 'tally', ...client, grants: ['authorization_code'], scopes: ['openid'] }],
    ['/users', { username: 'dora', password: PASSWORD, access: { HOOLI: 'Clerk' } }],
  ] as const
  for (const [path, body] of added) expect(await call('POST', path, body)).toEqual([201, expect.anything()])
  return { call, command, end: () => rmSync(trouble), begin: () => writeFileSync(trouble, 'read-only') }
}

/** What gives somebody something, or may: not done unless its record is kept. */
const GIVING: readonly [method: string, path: string, body?: object][] = [
  ['POST', '/businesses', { code: 'NEW', name: 'New' }],
  ['PATCH', '/businesses/HOOLI', { name: 'Other' }],
  ['POST', '/businesses/CLOSED/enable'],
  ['POST', '/businesses/HOOLI/funds', { code: 'TWO' }],
  ['POST', '/roles', { name: 'Boss', scopes: ['fund.details.maintain'] }],
  ['PATCH', '/roles/Clerk', { scopes: ['fund.read', 'fund.details.maintain'] }],
  [
    'POST',
    '/clients',
    {
      id: 'other',
      kind: 'partner',
      name: 'O',
      grants: ['authorization_code'],
      scopes: ['openid'],
      redirectUris: ['https://other.example/'],
    },
  ],
  ['PATCH', '/clients/tally', { redirectUris: ['https://thief.example/back'] }],
  ['POST', '/clients/tally/secrets', {}],
  ['POST', '/users', { username: 'eve', password: PASSWORD, access: { HOOLI: 'Clerk' } }],
  ['PATCH', '/users/dora', { access: { HOOLI: 'Clerk', ACME: 'Administrator' } }],
  ['PUT', '/users/dora/password', { password: 'another-long-password' }],
  ['DELETE', '/lockouts?user=dora'],
]

/** Everything that the orders could change, as the admin API shows it. */
const SHOWN = [
  '/businesses',
  '/businesses/HOOLI/funds',
  '/roles',
  '/clients',
  '/users',
  '/keys',
  '/maintenance',
]

const COMMANDS: readonly (readonly string[])[] = [
  ['business', 'add', 'NEW', '--name', 'New'],
  ['role', 'edit', 'Clerk', '--scope', 'fund.read fund.details.maintain'],
  ['user', 'edit', 'dora', '--access', 'ACME=Administrator'],
  ['client', 'rotate-secret', 'tally'],
  [
    'client',
    'add',
    'other',
    '--kind',
    'public',
    '--name',
    'O',
    '--scope',
    'openid',
    '--redirect-uri',
    'https://o.example/',
  ],
]

describe('C11.5.1 C12.1.4 an order whose record cannot be kept', () => {
  it('C12.1.4 is refused, changes nothing and shows no secret, by the admin API and by command; reads answer', async () => {
    const { call, command, begin, end } = await withRecords()
    const shown = () => Promise.all(SHOWN.map((path) => call('GET', path)))
    const before = await shown()
    begin()
    for (const order of GIVING)
      expect([order, await call(...order)]).toEqual([order, [503, expect.stringContaining('audit trail')]])
    const ended = await Promise.all(COMMANDS.map((args) => command(...args)))
    for (const [index, { code, stdout, stderr }] of ended.entries())
      expect([COMMANDS[index], code, stdout, stderr]).toEqual([
        ...[COMMANDS[index], 1, ''],
        expect.stringContaining('nothing was changed'),
      ])
    expect(await shown()).toEqual(before)
    // What takes away is done, and not delayed by a full disk.
    expect((await call('POST', '/businesses/HOOLI/disable'))[0]).toBe(200)
    end()
    await eventually(async () => expect((await call('POST', '/businesses/HOOLI/enable'))[0]).toBe(200))
  })
})
