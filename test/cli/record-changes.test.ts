/** `postern client edit` and `postern user edit`: what is left of tokens, what is refused, and keys of clients. */
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { recordsOf } from '../support/audit-files.ts'
import { runVerb } from '../support/command-line.ts'
import { dataFolder } from '../support/data-folder.ts'
import { postForm } from '../support/oauth.ts'
import { giveKey } from '../support/ready-key.ts'
import { shared } from '../support/shared.ts'
import { DEMO } from '../support/spawn-postern.ts'
import { postern } from '../support/start-postern.ts'

const SCOPES = 'openid offline_access fund.read business.fund.list'
const KIND = ['--kind', 'customer', '--name', 'Tally', '--agreement', '2026-01-15']
const HOLDS = ['--business', 'ACME', '--business', 'GLOBEX', '--scope', SCOPES, '--json']
const ROLES = ['--access', 'ACME=Read-only', '--access', 'GLOBEX=Read-only']
const PASSWORD = 'doras-long-password'

const serving = shared(async () => {
  const data = await dataFolder()
  await giveKey(data)
  return { data, service: await postern({ file: DEMO, data }) }
})
let places = 0

/** A client and a user of the test's own, in a service that all tests share. */
async function place() {
  const { data, service } = await serving()
  const [tally, dora] = [`tally${++places}`, `dora${places}`]
  const env = { POSTERN_DATA: data, POSTERN_CONFIG: DEMO }
  const run = (args: readonly string[], input = '') => runVerb(args, { env, input, alone: true })
  const added = await run(['client', 'add', tally, ...KIND, ...HOLDS])
  const { secret } = JSON.parse(added.stdout) as { secret: string }
  await run(['user', 'add', dora, '--customer', tally, ...ROLES], `${PASSWORD}\n`)
  const client = (...args: readonly string[]) => run(['client', 'edit', tally, ...args])
  const user = (...args: readonly string[]) => run(['user', 'edit', dora, ...args])
  const records = (event: string) => recordsOf(service, event)
  return { ...{ data, env, run, service, secret, client, user, records }, tally, dora }
}

describe('C6.3.3 a change of a client or user, beside a service that runs', () => {
  it('is in force when the command ends, and ends what was issued beyond it', async () => {
    const { service, secret, client, user, tally, dora } = await place()
    const ask = (params: Readonly<Record<string, string>>) =>
      postForm(service, '/connect/token', { client: tally, secret, params })
    const login = (scope: string) =>
      ask({ grant_type: 'password', username: dora, password: PASSWORD, scope })
    const call = async (business: string, token: string) => {
      const url = `${service.baseUrl}/api/1.0/b/${business}/fund-data/fund-list`
      return (await fetch(url, { headers: { Authorization: `Bearer ${token}` } })).status
    }
    /** What the gateway says of a token at GLOBEX. */
    const why = async (token: string) => {
      const url = `${service.baseUrl}/api/1.0/b/GLOBEX/fund-data/fund-list`
      const { headers } = await fetch(url, { headers: { Authorization: `Bearer ${token}` } })
      return headers.get('www-authenticate')
    }
    const tokenAt = async (business: string) => {
      const { status, json } = await login(`openid offline_access fund.read target:b/${business}`)
      expect(status).toBe(200)
      return json
    }
    const [acme, globex] = [await tokenAt('ACME'), await tokenAt('GLOBEX')]
    expect([await call('ACME', acme.access_token), await call('GLOBEX', globex.access_token)]).toEqual([
      200, 200,
    ])

    const less = await client('--business', 'ACME')
    expect(less.stdout).toBe(
      `${tally}: changed: business\n` +
        `${tally}: ended what was issued at GLOBEX: 1 family of refresh tokens, 0 codes, and the access tokens\n`,
    )
    expect([await call('ACME', acme.access_token), await call('GLOBEX', globex.access_token)]).toEqual([
      200, 401,
    ])
    const refreshed = await ask({ grant_type: 'refresh_token', refresh_token: globex.refresh_token })
    expect(refreshed.json.error).toBe('invalid_grant')

    const json = await user('--access', 'GLOBEX=Read-only')
    expect(json.stdout).toContain('ended what was issued at ACME: 1 family')
    expect(await call('ACME', acme.access_token)).toBe(401)

    expect((await client('--business', 'GLOBEX', '--json')).stdout).toContain('"changed": [')
    const wide = await tokenAt('GLOBEX')
    const narrow = (await login('openid offline_access target:b/GLOBEX')).json
    expect((await client('--scope', 'openid offline_access')).code).toBe(0)
    // What has the lost value ends; what has not, and every family, stays: a refresh gives less.
    expect(await call('GLOBEX', wide.access_token)).toBe(401)
    expect(await why(narrow.access_token)).toContain('insufficient_scope')
    expect(await why(wide.access_token)).toContain('invalid_token')
    const refreshedLess = await ask({ grant_type: 'refresh_token', refresh_token: wide.refresh_token })
    expect([refreshedLess.status, refreshedLess.json.scope]).toEqual([
      200,
      'openid offline_access target:b/GLOBEX',
    ])
    expect((await login('fund.read target:b/GLOBEX')).json.error).toBe('invalid_scope')
  })
})

describe('postern client edit and user edit', () => {
  it('change what is given only; an empty value removes', async () => {
    const { client, user, records, dora } = await place()
    await user(
      '--claim',
      'name=Dora',
      '--claim',
      'address.locality=Sydney',
      '--claim',
      'address.country=Australia',
    )
    await user('--claim', 'name=', '--claim', 'address.country=')
    expect(records('user.changed').at(-1)?.['change']).toEqual({ claims: ['name', 'address.country'] })
    expect((await user('--customer', '', '--access', '')).stdout).toContain(
      `${dora}: changed: customer, access\n`,
    )
    expect((await client('--agreement', '')).stderr).toContain('--agreement  is missing')
    expect(records('client.changed').at(-1)?.['change']).toEqual({ agreement: { before: '2026-01-15' } })
  })

  it('refuse what add refuses, and say which option it is', async () => {
    const { client, user, run, records, tally, dora } = await place()
    const bad = await client('--business', 'ACNE', '--access-token-lifetime', '2d')
    expect(bad).toMatchObject({ code: 2, stdout: '' })
    expect(bad.stderr).toMatch(/--business {2}names no business .* did you mean "ACME"/)
    expect(bad.stderr).toMatch(/--access-token-lifetime {2}expected `1s` to `24h`/)
    expect((await client('--kind', 'public')).stderr).toContain('a public client has no secret')
    expect((await client('--name', '')).code).toBe(2)
    expect((await user('--access', 'ACME=Reader')).code).toBe(2)
    expect((await user('--subject', 'other')).code).toBe(2)
    expect((await user()).stderr).toContain('expected an option that says what changes')
    expect((await client()).stderr).toContain('expected an option that says what changes')
    expect((await run(['client', 'edit', `${tally}y`, '--name', 'x'])).stderr).toBe(
      `postern: There is no client "${tally}y" — did you mean "${tally}"?\n`,
    )
    expect((await run(['user', 'edit', `${dora}a`, '--access', ''])).stderr).toContain(
      `did you mean "${dora}"?`,
    )
    expect((await run(['client', 'edit', 'acme-books', '--name', 'x'])).stderr).toContain(
      'in the configuration',
    )
    expect([...records('client.changed'), ...records('user.changed')]).toEqual([])
  })
})

describe('C6.1.2 a client with keys, by commands', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ROBOT = ['--kind', 'machine', '--name', 'Robot', '--business', 'ACME', '--scope', 'fund.read']

  async function withFiles() {
    const here = await place()
    const file = (name: string, content: unknown): string => {
      const path = join(here.data, name)
      writeFileSync(path, JSON.stringify(content))
      return path
    }
    const add = (id: string, ...args: readonly string[]) => here.run(['client', 'add', id, ...ROBOT, ...args])
    const shown = async (id: string): Promise<Record<string, unknown>> =>
      JSON.parse((await here.run(['client', 'show', id, '--json'])).stdout) as Record<string, unknown>
    return { ...here, add, file, shown, robot: `robot-of-${here.tally}` }
  }

  it.each([
    ['a key set', { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k1' }] }],
    ['one key', { ...publicKey.export({ format: 'jwk' }), kid: 'k1' }],
  ])('is added with %s of a file, and gets no secret', async (_, content) => {
    const { add, file, run, shown, robot } = await withFiles()
    const added = await add(robot, '--jwks', file('keys.json', content))
    expect(added).toMatchObject({ code: 0, stdout: expect.not.stringContaining('client_secret') })
    expect(await shown(robot)).toMatchObject({ jwks: [{ kid: 'k1' }], validSecrets: 0 })
    const rotated = await run(['client', 'rotate-secret', robot])
    expect(rotated).toMatchObject({ code: 1, stdout: '' })
    expect(rotated.stderr).toContain('authenticates by its keys')
  })

  it('gets a secret too if it is to authenticate by one', async () => {
    const { add, file, shown, robot } = await withFiles()
    const keys = file('keys.json', publicKey.export({ format: 'jwk' }))
    const methods = ['--authentication', 'private_key_jwt', '--authentication', 'client_secret_basic']
    expect((await add(robot, '--jwks', keys, ...methods)).stdout).toContain('client_secret')
    expect(await shown(robot)).toMatchObject({ validSecrets: 1 })
  })

  it('is refused with a private key, and with a file that holds no keys', async () => {
    const { add, file, robot } = await withFiles()
    const secret = await add(robot, '--jwks', file('private.json', privateKey.export({ format: 'jwk' })))
    expect(secret).toMatchObject({ code: 2, stdout: '' })
    expect(secret.stderr).toContain('--jwks  holds a private key')
    expect((await add(robot, '--jwks', file('list.json', [1]))).stderr).toContain('no JSON Web Key')
    const deep = JSON.parse(`{"keys":${'['.repeat(5000)}${']'.repeat(5000)}}`) as object
    expect((await add(robot, '--jwks', file('deep.json', deep))).stderr).toContain('no JSON Web Key')
    expect((await add(robot, '--secret-post')).stderr).toContain('no option "--secret-post"')
  })
})
