/** Clients and users of the configuration, and of other systems, who are disabled by a command (C11.5.1). */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { sqliteFile } from '../../src/state/stores/schema.ts'
import { administered } from '../support/administered.ts'
import { recordsOf } from '../support/audit-files.ts'
import { runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'
import { dataFolder } from '../support/data-folder.ts'
import { postForm } from '../support/oauth.ts'
import { bearer } from '../support/requests.ts'
import { shared } from '../support/shared.ts'
import { DEMO, ROOT } from '../support/spawn-postern.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'

const SCOPE = 'openid offline_access business.fund.list target:b/ACME'

const login = (service: StartedPostern, username = 'alice', client = 'acme-books') =>
  postForm(service, '/connect/token', {
    params: { grant_type: 'password', username, password: `${username}-password`, scope: SCOPE },
    client,
  })

const refresh = (service: StartedPostern, refresh_token = '') =>
  postForm(service, '/connect/token', { params: { grant_type: 'refresh_token', refresh_token } })

const call = async ({ baseUrl }: StartedPostern, token: string): Promise<number> => {
  const url = `${baseUrl}/api/1.0/b/ACME/fund-data/fund-list`
  return (await fetch(url, { headers: bearer(token) })).status
}

const rowsOf = async (service: StartedPostern, env: Readonly<Record<string, string>>): Promise<unknown> => {
  const { stdout } = await runVerb(['status', '--json', '--admin-url', service.adminUrl], { env })
  return (JSON.parse(stdout) as { disabled: unknown }).disabled
}

/** The demo in a file of its own. */
const demoText = (): string =>
  readFileSync(join(ROOT, 'config/demo.yaml'), 'utf8').replace(
    'demo-data.json',
    join(ROOT, 'config/demo-data.json'),
  )

const ALICE = '45733adb-9b07-4d40-ae57-20cf9b802f51'

/** A service whose configuration disables globex-ledger. Whoever else is disabled is enabled again by the same test. */
const served = shared(() =>
  administered({
    change: (loaded) => {
      const { clients } = loaded.directory
      const disabled = { ...clients['globex-ledger']!, disabled: true }
      return {
        ...loaded,
        directory: { ...loaded.directory, clients: { ...clients, 'globex-ledger': disabled } },
      }
    },
  }),
)

describe('C11.5.1 C6.3.6 a client or user of the configuration that a command disables', () => {
  it('C11.5.1 a client gets no token, and what it was issued ends, until the mark is removed', async () => {
    const { service, call: ask, command, env } = await served()
    // What other tests were issued is not counted.
    expect((await ask('POST', '/revoke', { body: { client: 'acme-books' } })).status).toBe(200)
    const held = await issueToken(service, { scope: SCOPE })
    const disabled = await command(['client', 'disable', 'acme-books', '--reason', 'leaked'])
    expect([disabled.code, disabled.stderr]).toEqual([0, ''])
    expect(disabled.stdout).toMatch(/^acme-books: disabled\n.*1 family/)
    expect((await login(service)).json.error).toBe('invalid_client')
    expect(await call(service, held.access_token)).toBe(401)
    expect((await refresh(service, held.refresh_token)).json.error).toBe('invalid_client')
    const shown = JSON.parse((await command(['client', 'show', 'acme-books', '--json'])).stdout)
    expect(shown).toMatchObject({ source: 'configuration', disabled: true, disabledByCommand: true })
    const list = JSON.parse((await command(['client', 'list', '--json'])).stdout)
    const states = (list.clients as Record<string, unknown>[]).filter((each) => each['disabledByCommand'])
    expect(states.map(({ id }) => id)).toEqual(['acme-books'])
    expect(await rowsOf(service, env)).toEqual([{ client: 'acme-books', since: expect.any(String) }])
    expect((await command(['status'])).stdout).toMatch(/disabled +client acme-books, by a command since/)

    expect(await command(['client', 'enable', 'acme-books'])).toMatchObject({ code: 0, stderr: '' })
    expect((await login(service)).status).toBe(200)
    // What has ended stays so.
    expect((await refresh(service, held.refresh_token)).json.error).toBe('invalid_grant')
    expect(await rowsOf(service, env)).toEqual([])
    expect(recordsOf(service, 'client.disabled')).toMatchObject([
      {
        on: { kind: 'client', id: 'acme-books' },
        change: { mark: 'set' },
        why: 'leaked',
        outcome: 'success',
      },
    ])
    expect(recordsOf(service, 'client.enabled')[0]).toMatchObject({ change: { mark: 'removed' } })
  })

  it('C11.5.1 a user cannot log in, and who is logged in is so no longer', async () => {
    const { service, call: ask, env } = await served()
    const held = await issueToken(service, { scope: SCOPE })
    const { status, body, etag } = await ask('POST', '/users/alice/disable')
    expect([status, body.record.disabledByCommand]).toEqual([200, true])
    expect((await login(service)).json.error).toBe('invalid_grant')
    expect(await call(service, held.access_token)).toBe(401)
    expect((await refresh(service, held.refresh_token)).json.error).toBe('invalid_grant')
    // Names of users are personal: the status has the subject.
    expect(await rowsOf(service, env)).toEqual([{ subject: ALICE, since: expect.any(String) }])
    // Of the same version, and of no other.
    expect((await ask('POST', '/users/alice/enable', { ifMatch: '"0-other"' })).status).toBe(412)
    expect((await ask('POST', '/users/alice/enable', { ifMatch: etag! })).status).toBe(200)
    expect((await login(service)).status).toBe(200)
  })

  it('C11.5.1 stays disabled over reloads, restarts and another name, whatever the configuration gives', async () => {
    const text = demoText()
    const file = configFiles({ 'postern.yaml': text })('postern.yaml')
    const data = await dataFolder()
    const env = { POSTERN_CONFIG: file, POSTERN_DATA: data, POSTERN_PORT: '0', POSTERN_ADMIN_PORT: '0' }
    const first = await postern({ file, data })
    for (const args of [
      ['client', 'disable', 'globex-ledger'],
      ['user', 'disable', 'alice'],
    ])
      expect(await runVerb(args, { env })).toMatchObject({ code: 0 })
    writeFileSync(file, text.replace('    alice:\n', '    alicia:\n'))
    expect(await runVerb(['reload', '--admin-url', first.adminUrl], { env })).toMatchObject({ code: 0 })
    const renamed = (service: StartedPostern) =>
      postForm(service, '/connect/token', {
        params: { grant_type: 'password', username: 'alicia', password: 'alice-password', scope: SCOPE },
      })
    expect((await renamed(first)).json.error).toBe('invalid_grant')
    await first.close()
    // Also without a service, and for one that starts later.
    expect(await runVerb(['client', 'disable', 'acme-books'], { env, alone: true })).toMatchObject({
      code: 0,
    })
    const again = await postern({ file, data })
    for (const client of ['acme-books', 'globex-ledger'])
      expect((await login(again, 'bob', client)).json.error).toBe('invalid_client')
    expect(await runVerb(['client', 'enable', 'acme-books'], { env, alone: true })).toMatchObject({ code: 0 })
    expect((await renamed(again)).json.error).toBe('invalid_grant')
    // Nobody has the name any more: the mark is found by it all the same.
    expect(await runVerb(['user', 'enable', 'alice'], { env })).toMatchObject({ code: 0 })
    expect((await renamed(again)).status).toBe(200)
  })

  it('C11.5.1 is not enabled where the configuration itself disables it', async () => {
    const { service, command } = await served()
    const enable = () => command(['client', 'enable', 'globex-ledger', '--admin-url', service.adminUrl])
    expect(await enable()).toMatchObject({ code: 1, stderr: expect.stringContaining('enable it there') })
    const order = ['client', 'disable', 'globex-ledger', '--admin-url', service.adminUrl]
    expect(await command(order)).toMatchObject({ code: 0 })
    const { code, stdout } = await enable()
    expect([code, stdout]).toEqual([0, expect.stringContaining('the configuration disables it still')])
    expect((await login(service, 'alice', 'globex-ledger')).json.error).toBe('invalid_client')
  })

  it('C11.5.1 opens nothing in access, in diff and for explain either', async () => {
    const { command, env } = await served()
    const access = async () => (await command(['access', '--client', 'acme-books', '--csv'])).stdout
    const before = await access()
    await command(['client', 'disable', 'acme-books'])
    expect(await access()).not.toBe(before)
    expect(await access()).toContain('the client is disabled')
    // It would give the client more, if the mark did not take everything.
    const less = `extends: ${DEMO}\ndirectory: { clients: { acme-books: { businesses: [ACME] } } }\n`
    const file = configFiles({ 'less.yaml': less })('less.yaml')
    const diff = await runVerb(['access', '--against', file, '--config', DEMO], { env })
    expect(diff).toMatchObject({ code: 0, stdout: expect.not.stringContaining('acme-books') })
    const explain = [
      'explain',
      'GET',
      '/api/1.0/b/ACME/fund-data/fund-list',
      '--client',
      'acme-books',
      '--user',
      'alice',
    ]
    const explained = await command([...explain, '--target', 'b/ACME'])
    expect(explained.code).not.toBe(0)
    expect(explained.stdout + explained.stderr).toMatch(/disabled|invalid_client/)
    expect(await command(['client', 'enable', 'acme-books'])).toMatchObject({ code: 0 })
  })

  it('C11.5.1 is in a backup of the store', async () => {
    const { command } = await served()
    await command(['client', 'disable', 'acme-books'])
    const folder = await dataFolder()
    const copy = join(await dataFolder(), 'copy.sqlite')
    expect(await command(['backup', copy])).toMatchObject({ code: 0 })
    expect(await command(['client', 'enable', 'acme-books'])).toMatchObject({ code: 0 })
    copyFileSync(copy, sqliteFile(folder))
    const restored = await postern({ config: 'demo.yaml', data: folder, keeps: 'store' })
    expect((await login(restored)).json.error).toBe('invalid_client')
  })

  it('C11.5.1 tells of businesses, funds and roles of the configuration how they are closed', async () => {
    const { command } = await served()
    const { code, stderr } = await command(['business', 'disable', 'ACME'])
    expect([code, stderr]).toEqual([1, expect.stringContaining('postern maintenance on --business ACME')])
  })
})
