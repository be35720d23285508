import { describe, expect, it } from 'vitest'
import { runVerb, type Ended } from '../support/command-line.ts'
import { dataFolder } from '../support/data-folder.ts'
import { postForm } from '../support/oauth.ts'
import { DEMO } from '../support/spawn-postern.ts'
import { shared } from '../support/shared.ts'
import { postern } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'

type Environment = Readonly<Record<string, string>>

/** Commands on one data folder, in this process. */
const commands =
  (env: Environment) =>
  (line: string, input = ''): Promise<Ended> =>
    runVerb(line.split(' '), { env, input, alone: true })

/** A service in this process, which commands change from outside. */
const serving = shared(async () => {
  const service = await postern({ file: DEMO })
  const environment = { POSTERN_CONFIG: DEMO, POSTERN_DATA: service.data }
  return { service, run: commands(environment), environment }
})

const field = (text: string, name: string): string =>
  new RegExp(`^${name} +(\\S+)$`, 'm').exec(text)?.[1] ?? ''

const ADD = 'client add tally --kind customer --name Tally --agreement 2026-01-15 --business ACME --json'
const SCOPES = '--scope openid --scope offline_access --scope fund.read --scope business.fund.list'
const USER = 'user add dora --customer tally --access ACME=Read-only --claim name=Dora'
const PASSWORD = 'doras-long-password'

describe('postern client and postern user, beside a service that runs', () => {
  it('add, rotate, set a password, disable: the service follows', async () => {
    const { service, run } = await serving.own()
    const login = (secret: string, password: string) =>
      postForm(service, '/connect/token', {
        ...{ client: 'tally', secret },
        params: {
          ...{ grant_type: 'password', username: 'dora', password },
          scope: 'openid offline_access fund.read target:b/ACME',
        },
      })
    const call = async (token: string) =>
      (
        await fetch(`${service.baseUrl}/api/1.0/b/ACME/fund-data/fund-list`, {
          headers: { Authorization: `Bearer ${token}` },
        })
      ).status

    const added = await run(`${ADD} ${SCOPES}`)
    expect(added).toMatchObject({ code: 0, stderr: '' })
    const { secret } = JSON.parse(added.stdout) as { secret: string }
    expect(await run(USER, `${PASSWORD}\n`)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^dora: added with the subject /),
    })
    const first = await login(secret, PASSWORD)
    expect(first.status).toBe(200)
    expect(await call(first.json.access_token)).toBe(200)

    const rotated = await run('client rotate-secret tally')
    const fresh = field(rotated.stdout, 'client_secret')
    expect(rotated.stderr).toContain('The old secret is valid until')
    expect((await login(fresh, PASSWORD)).status).toBe(200)
    expect((await login(secret, PASSWORD)).status).toBe(200)
    expect((await run('client rotate-secret tally --overlap 0s')).code).toBe(0)
    expect((await login(secret, PASSWORD)).json.error).toBe('invalid_client')

    const latest = field((await run('client rotate-secret tally')).stdout, 'client_secret')
    expect((await run('user set-password dora', 'another-long-password')).code).toBe(0)
    expect(await call(first.json.access_token)).toBe(401)
    expect((await login(latest, PASSWORD)).json.error).toBe('invalid_grant')
    const second = await login(latest, 'another-long-password')
    expect(second.status).toBe(200)
    expect(await call(second.json.access_token)).toBe(200)
    const refresh = { grant_type: 'refresh_token', refresh_token: first.json.refresh_token }
    const old = { client: 'tally', secret: latest, params: refresh }
    expect((await postForm(service, '/connect/token', old)).json.error).toBe('invalid_grant')

    expect((await run('user disable dora')).code).toBe(0)
    expect(await call(second.json.access_token)).toBe(401)
    expect((await login(latest, 'another-long-password')).json.error).toBe('invalid_grant')
    expect((await run('user enable dora')).code).toBe(0)
    const third = await login(latest, 'another-long-password')
    expect(third.status).toBe(200)
    expect((await run('client disable tally')).code).toBe(0)
    expect(await call(third.json.access_token)).toBe(401)
    expect((await login(latest, 'another-long-password')).json.error).toBe('invalid_client')
  })

  it('C9.2 a stored client passes a maintenance whose allow list names it', async () => {
    const { service, environment } = await serving.own()
    const run = commands({ ...environment, POSTERN_ADMIN_PORT: new URL(service.adminUrl).port })
    const added = await run(`${ADD} ${SCOPES}`)
    const { secret } = JSON.parse(added.stdout) as { secret: string }
    expect((await run(USER, `${PASSWORD}\n`)).code).toBe(0)
    const params = {
      grant_type: 'password',
      username: 'dora',
      password: PASSWORD,
      scope: 'fund.read target:b/ACME',
    }
    const { json } = await postForm(service, '/connect/token', { client: 'tally', secret, params })
    const { access_token: other } = await issueToken(service, { scope: 'fund.read target:b/ACME' })
    const call = async (token: string): Promise<number> => {
      const headers = { Authorization: `Bearer ${token}` }
      return (await fetch(`${service.baseUrl}/api/1.0/b/ACME/fund-data/fund-list`, { headers })).status
    }
    expect(await run('maintenance on --allow-client tally --allow-client nobody')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('clients  names no client: "nobody"'),
    })
    expect((await run('maintenance on --allow-client tally')).code).toBe(0)
    expect([await call(json.access_token), await call(other)]).toEqual([200, 503])
  })

  it('list both layers, as text and as JSON, and no secret', async () => {
    const { run } = await serving()
    await run(`${ADD} ${SCOPES}`)
    const { stdout } = await run('client list')
    expect(stdout).toMatch(/^acme-books +customer +configuration +enabled +1 +Acme Books$/m)
    expect(stdout).toMatch(/^tally +customer +store +enabled +1 +Tally$/m)
    const json = await run('client list --json')
    expect(JSON.parse(json.stdout).clients).toContainEqual(
      expect.objectContaining({
        id: 'tally',
        source: 'store',
        scopes: expect.arrayContaining(['openid']),
        grants: ['password', 'refresh_token'],
      }),
    )
    expect(json.stdout).not.toMatch(/sha256|argon2/)
    const users = await run('user list --json')
    expect(JSON.parse(users.stdout).users).toContainEqual(
      expect.objectContaining({ username: 'alice', source: 'configuration' }),
    )
    expect(users.stdout).not.toMatch(/argon2/)
  })
})

describe('postern client and postern user refuse', () => {
  it.each([
    ['client', 'expected one of add, show, edit'],
    ['client disabel x', 'did you mean "disable"?'],
    ['client disable', 'expected ID, got nothing'],
    ['client rotate-secret x --overlap soon', '--overlap: expected a duration'],
    ['client add x --kind custome --name X --scope openid', '--kind  expected one of'],
    [
      'client add x --kind partner --name X --scope opnid --redirect-uri https://x.example',
      '--scope  names no scope',
    ],
    ['client list --jsn', 'there is no option "--jsn" here — did you mean "--json"?'],
    ['user add', 'expected USERNAME, got nothing'],
    ['user add x --access ACME', '--access: expected NAME=VALUE'],
    ['user add x --access ACME=Boss', '--access ACME  names no role'],
    ['user add x --claim shoe=41', '--claim shoe  is not a known key here'],
    ['user set-password', 'expected USERNAME, got nothing'],
  ])('%s: exit code 2, and why', async (line, why) => {
    const run = commands({ POSTERN_DATA: await dataFolder() })
    const { code, stdout, stderr } = await run(line, 'a-long-enough-password')
    expect(stderr).toContain(why)
    expect([code, stdout]).toEqual([2, ''])
  })

  it('no password on standard input, and say how to give it', async () => {
    const run = commands({ POSTERN_DATA: await dataFolder() })
    expect(await run('user add x', '\n')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('there is no password on standard input: write it there'),
    })
  })

  it('tell all they can do', async () => {
    const run = commands({})
    expect((await run('client --help')).stdout).toContain('  rotate-secret ID ')
    expect((await run('user --help')).stdout).toContain('  set-password USERNAME ')
    const { stdout } = await run('user add --help')
    expect(stdout).toContain('postern user add USERNAME')
    expect(stdout).not.toContain('set-password USERNAME')
    expect((await run('--help')).stdout).toMatch(/^ {2}init +Write a first/m)
  })
})
