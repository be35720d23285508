/** What is missing fails closed (`npm run doors`, which says what was deleted). */
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { decodeJwt } from 'jose'
import { expect, it, onTestFinished } from 'vitest'
import { administered } from '../support/administered.ts'
import { CREATE, JSON_BODY, NEW_FUND } from '../support/audited-calls.ts'
import { authorizeUrl, logInThrough } from '../support/audited-people.ts'
import { runVerb } from '../support/command-line.ts'
import { attackUpstream, bytesOf } from '../support/attacked.ts'
import { tokenWith } from '../support/bound-tokens.ts'
import { configFiles } from '../support/config-files.ts'
import { dataFolder } from '../support/data-folder.ts'
import { scene } from '../support/foreign-sidecar.ts'
import { INTROSPECTION, startIssuerServer } from '../support/issuer-server.ts'
import { DEMO } from '../support/spawn-postern.ts'
import { postForm } from '../support/oauth.ts'
import { sendRaw } from '../support/raw-http.ts'
import { bearer, send } from '../support/requests.ts'
import { postern, startPostern } from '../support/start-postern.ts'
import { at, withStream } from '../support/streaming.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const without = (process.env['POSTERN_WITHOUT'] ?? '').split(' ').filter((name) => name !== '')

const SIDECAR = fileURLToPath(new URL('../../config/sidecar.yaml', import.meta.url))

/** Of each extension: what somebody is told who asks for it where it is not there. */
const MISSING: Readonly<Record<string, () => Promise<void>>> = {
  async introspection() {
    const issuer = await startIssuerServer()
    const issuers = [
      'issuers:',
      `  - issuer: ${issuer.url}`,
      '    audience: a',
      '    introspection: { clientId: a, clientSecret: { env: SECRET } }',
    ]
    const file = configFiles({ 'a.yaml': [`extends: ${SIDECAR}`, ...issuers, ''].join('\n') })('a.yaml')
    const { code, stderr } = await runVerb(['check', file], { env: { SECRET: 's' } })
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/a\.yaml:5 +issuers\[0\]\.introspection +is not a known key/),
    ])
    const { call } = await scene([
      { issuer: issuer.url, introspection: { clientId: 'a', clientSecret: 'b' } },
    ])
    expect(await call('opaque')).toBe(401)
    expect(issuer.asked(INTROSPECTION)).toEqual([])
  },
  async audit() {
    const file = configFiles({ 'a.yaml': `extends: ${DEMO}\naudit: { retention: 30d }\n` })('a.yaml')
    const { code, stderr } = await runVerb(['check', file])
    expect([code, stderr]).toEqual([2, expect.stringMatching(/a\.yaml:2 +audit +is not a known key/)])
    expect((await runVerb(['check', DEMO])).stderr).toMatch(
      / audit +is off: .* — the extension `audit` is not there/,
    )
    expect(await runVerb(['audit', 'verify'])).toMatchObject({
      ...{ code: 2, stderr: expect.stringContaining('there is no command "audit"') },
    })
    // Nothing is recorded: neither a call that changes something nor an act of a command.
    const data = await dataFolder()
    const { service, call, command } = await administered({ data, keeps: 'store' })
    const { access_token: token } = await issueToken(service, { scope: ALL_AT_ACME })
    const headers = { ...bearer(token), ...JSON_BODY }
    expect((await send(service, { method: 'POST', target: CREATE, headers, body: NEW_FUND })).status).toBe(
      200,
    )
    expect([(await call('GET', '/audit')).status, (await call('POST', '/audit/verify')).status]).toEqual([
      404, 404,
    ])
    const act = { event: 'store.backed_up', outcome: 'success' }
    expect(await call('POST', '/audit/commands', { body: act })).toMatchObject({ status: 409 })
    const copied = await command(['backup', join(await dataFolder(), 'copy')])
    expect([copied.code, copied.stdout]).toEqual([0, expect.stringContaining('No audit trail is kept')])
    expect(await (await fetch(`${service.adminUrl}/metrics`)).text()).not.toMatch(/^postern_audit_/m)
    await service.close()
    // A trail that is there, of which nothing more would be in: neither a service nor a command uses its data folder.
    await writeFile(join(data, 'trail-folder'), `${join(data, 'unmounted')}\n`)
    const told =
      /has an audit trail \(.*\), and this Postern has no extension that keeps one\. Add the extension `audit`, or/
    await expect(startPostern({ data, keeps: 'store' })).rejects.toThrow(told)
    for (const args of [
      ['client', 'list'],
      ['backup', join(data, 'copy')],
    ])
      expect(await command(args)).toMatchObject({ code: 1, stderr: expect.stringMatching(told) })
    expect(existsSync(join(data, 'copy'))).toBe(false)
  },
  async developers() {
    const file = configFiles({ 'a.yaml': `extends: ${DEMO}\ndevelopers: on\n` })('a.yaml')
    const { code, stderr } = await runVerb(['check', file])
    expect([code, stderr]).toEqual([2, expect.stringMatching(/a\.yaml:2 +developers +is not a known key/)])
    const service = await postern({ keeps: 'nothing' })
    expect((await fetch(`${service.authUrl}/developers`)).status).toBe(404)
    const page = await fetch(service.authUrl, { headers: { accept: 'text/html' } })
    expect(await page.text()).not.toContain('/developers')
  },
  async fapi() {
    const file = configFiles({
      'a.yaml': `extends: ${DEMO}\nidentity:\n  par: { lifetime: 30s }\n  dpop: { nonce: required }\n`,
      'b.yaml': `extends: ${DEMO}\ndirectory:\n  clients:\n    ledgerline:\n      dpop: required\n      authentication: [private_key_jwt]\n`,
      'c.yaml': `extends: ${SIDECAR}\nissuers:\n  - { issuer: 'https://a.example', audience: a, confirmation: dpop }\n`,
    })
    const told = async (name: string) => {
      const { code, stderr } = await runVerb(['check', file(name)], {
        env: { UPSTREAM_URL: 'http://127.0.0.1:9' },
      })
      return { code, stderr }
    }
    const a = await told('a.yaml')
    expect(a.code).toBe(2)
    expect(a.stderr).toMatch(/a\.yaml:3 +identity\.par +is not a known key/)
    expect(a.stderr).toMatch(/a\.yaml:4 +identity\.dpop +is not a known key/)
    const b = await told('b.yaml')
    expect(b.code).toBe(2)
    expect(b.stderr).toMatch(/b\.yaml:5 +directory\.clients\.ledgerline\.dpop +is not a known key/)
    expect(b.stderr).toMatch(
      /b\.yaml:6 +directory\.clients\.ledgerline\.authentication\[0\] +expected one of/,
    )
    expect(await told('c.yaml')).toMatchObject({
      ...{ code: 2, stderr: expect.stringMatching(/c\.yaml:3 +issuers\[0\]\.confirmation +expected one of/) },
    })
    // Clients that were stored while their members had an effect.
    const data = await dataFolder()
    const before = await startPostern({ data, keeps: 'store' })
    const { store } = before.context
    const { ledgerline } = before.configuration.directory.clients
    const record = { ...ledgerline, authentication: ['client_secret_basic'] }
    const demands = {
      asked: {},
      allowed: { dpop: 'optional', requirePar: false, jwks: [] },
      bound: { dpop: 'required' },
      pushing: { requirePar: true },
      signing: { authentication: ['client_secret_basic', 'private_key_jwt'] },
      held: { profile: 'fapi2' },
      keyed: { jwks: [{}], secrets: [] },
    }
    for (const id of Object.keys(demands))
      await store.create('directory_client', id, { value: { record: { ...record, id }, ends: {} } })
    const refreshTokens = new Map<string, string>()
    for (const id of Object.keys(demands))
      refreshTokens.set(id, (await logInThrough(before, id)).refreshToken)
    for (const [id, more] of Object.entries(demands)) {
      const entry = await store.find('directory_client', id)
      const value = { record: { ...record, id, ...more }, ends: {} }
      await store.replace('directory_client', id, entry?.version ?? 0, value)
    }
    await before.close()
    const service = await postern({ data, keeps: 'store' })
    const refused = ['bound', 'held', 'keyed', 'pushing', 'signing']
    await expect
      .poll(() => service.log())
      .toContainEqual(
        expect.objectContaining({ event: 'clients_refused', clients: refused, number: refused.length }),
      )
    expect(service.log()).toContainEqual(expect.objectContaining({ event: 'client_members_unknown' }))
    for (const id of Object.keys(demands)) {
      const params = { grant_type: 'refresh_token', refresh_token: refreshTokens.get(id) ?? '' }
      const secret = 'ledgerline-secret'
      const { status, json } = await postForm(service, '/connect/token', { params, client: id, secret })
      const expected = refused.includes(id) ? [400, 'invalid_client'] : [200, undefined]
      expect([id, status, json.error]).toEqual([id, ...expected])
      const page = await fetch(`${service.authUrl}${authorizeUrl({ client_id: id })}`)
      expect([id, page.status]).toEqual([id, refused.includes(id) ? 400 : 200])
    }
    // A token that is bound to a key, and what comes with one.
    const token = await tokenWith(service, { cnf: { jkt: 'a'.repeat(43) } })
    const call = async (scheme: string) => {
      const headers = { Authorization: `${scheme} ${token}`, DPoP: 'a.b.c' }
      const answer = await fetch(`${service.baseUrl}${at('fund-list')}`, { headers })
      return [answer.status, answer.headers.get('www-authenticate')]
    }
    expect(await call('Bearer')).toEqual([401, expect.stringContaining('error="invalid_token"')])
    expect(await call('DPoP')).toEqual([401, expect.stringMatching(/^Bearer realm="[^"]*"$/)])
    expect((await fetch(`${service.authUrl}/connect/par`, { method: 'POST' })).status).toBe(404)
    const discovery = await (await fetch(`${service.authUrl}/.well-known/openid-configuration`)).text()
    expect(discovery).not.toMatch(/dpop|pushed|private_key_jwt/)
  },
  async logout() {
    const at = 'http://127.0.0.1:9/'
    const file = configFiles({
      'a.yaml': `extends: ${DEMO}\ndirectory:\n  clients: { ledgerline: { backchannelLogoutUri: '${at}' } }\n`,
      'b.yaml': `extends: ${DEMO}\ndirectory: { files: { clients: clients.jsonl } }\n`,
      'clients.jsonl': JSON.stringify({
        ...{
          id: 'told',
          kind: 'machine',
          name: 'Told',
          grants: ['client_credentials'],
          businesses: ['ACME'],
        },
        ...{ scopes: ['fund.read'], secrets: [`sha256:${'A'.repeat(43)}`], backchannelLogoutUri: at },
      }),
    })
    const checked = async (name: string) => runVerb(['check', file(name)])
    expect(await checked('a.yaml')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /a\.yaml:3 +directory\.clients\.ledgerline\.backchannelLogoutUri +is not a known key/,
      ),
    })
    expect(await checked('b.yaml')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/clients\.jsonl:1.*backchannelLogoutUri +is not a known key/),
    })
    // A client that was stored while it had an effect.
    const data = await dataFolder()
    const before = await startPostern({ data, keeps: 'store' })
    const { ledgerline } = before.configuration.directory.clients
    const record = { ...ledgerline, id: 'told', backchannelLogoutUri: at }
    await before.context.store.create('directory_client', 'told', { value: { record, ends: {} } })
    await before.close()
    const service = await postern({ data, keeps: 'store' })
    await expect
      .poll(() => service.log())
      .toContainEqual(
        expect.objectContaining({ event: 'client_members_unknown', members: ['backchannelLogoutUri'] }),
      )
    const discovery = await fetch(`${service.authUrl}/.well-known/openid-configuration`)
    expect(await discovery.text()).not.toContain('logout_supported')
    const { idToken, logOut } = await logInThrough(service, 'told')
    const { sub, sid } = decodeJwt(idToken)
    expect([typeof sub, sid]).toEqual(['string', undefined])
    expect((await logOut()).status).toBe(200)
    const { store } = service.context
    expect([await store.list('logout_party'), await store.list('delivery')]).toEqual([[], []])
  },
  async modules() {
    const file = configFiles({
      'a.yaml': `extends: ${DEMO}\nbackends:\n  funds: { kind: module, file: funds.mjs }\n`,
      'funds.mjs': 'throw new Error("nobody imports it")',
    })('a.yaml')
    const { code, stderr } = await runVerb(['check', file])
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/a\.yaml:3 +backends\.funds\.kind +expected one of/),
    ])
  },
  async people() {
    const people = 'directory: { people: { kind: module, file: people.mjs } }'
    const file = configFiles({
      'a.yaml': `extends: ${DEMO}\n${people}\n`,
      'people.mjs': 'throw new Error("nobody imports it")',
    })('a.yaml')
    const { code, stderr } = await runVerb(['check', file])
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/a\.yaml:2 +directory\.people +is not a known key/),
    ])
  },
  async postgres() {
    const store = 'store: { kind: postgres, url: "postgres://user@127.0.0.1:9/database" }'
    const file = configFiles({ 'a.yaml': `extends: ${DEMO}\n${store}\n` })('a.yaml')
    const checked = await runVerb(['check', file])
    expect([checked.code, checked.stderr]).toEqual([
      2,
      expect.stringMatching(/a\.yaml:2 +store\.kind +expected one of/),
    ])
    const backup = await runVerb(['backup', join(await dataFolder(), 'copy'), '--config', file])
    expect([backup.code, backup.stderr]).toEqual([2, expect.stringContaining('expected one of')])
    for (const command of ['migrate', 'nodes']) {
      const { code, stderr } = await runVerb([command, '--config', file])
      expect([code, stderr]).toEqual([2, expect.stringContaining(`there is no command "${command}"`)])
    }
    const copied = await runVerb(['store', 'copy', '--from', 'sqlite:a.sqlite', '--config', file])
    expect([copied.code, copied.stderr]).toEqual([2, expect.stringContaining('expected one of accept')])
    expect((await runVerb(['store', '--help'])).stdout).not.toMatch(/\bcopy\b/)
    expect((await runVerb(['--help'])).stdout).not.toMatch(/^ +(?:migrate|nodes) /m)
  },
  async websocket() {
    const backends = 'backends: { live: { kind: stream, target: http://127.0.0.1:9, closeOnExpiry: false } }'
    const action =
      '  - { level: fund, area: fund-data, action: live, methods: { GET: { scopes: { any: [fund.read] }, websocket: true } } }'
    const file = configFiles({ 'a.yaml': `extends: ${DEMO}\n${backends}\nactions:\n${action}\n` })('a.yaml')
    const { code, stderr } = await runVerb(['check', file])
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/a\.yaml:2 +backends\.live\.closeOnExpiry +is not a known key/),
    ])
    expect(stderr).toMatch(/a\.yaml:4 +actions\[0\]\.methods\.GET\.websocket +is not a known key/)
    const attacked = await attackUpstream({ change: withStream })
    onTestFinished(() => attacked.close())
    const handshake =
      'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
    const { status } = await sendRaw(
      attacked.port,
      bytesOf({ target: at('live/lobby'), lines: attacked.authorization + handshake }),
    )
    expect([status, attacked.received().map(({ headers }) => headers['upgrade'])]).toEqual([200, [undefined]])
  },
  async 'from-openapi'() {
    const description = configFiles({ 'api.yaml': 'openapi: 3.0.3\n' })('api.yaml')
    const folder = join(dirname(description), 'own')
    const { code, stderr } = await runVerb(['init', folder, '--from', description])
    expect([code, stderr]).toEqual([2, expect.stringContaining('--from')])
    expect(existsSync(folder)).toBe(false)
    expect((await runVerb(['init', '--help'])).stdout).not.toContain('--from')
  },
}

it('every extension has a test of what is told where it is missing', () => {
  expect(without.filter((name) => MISSING[name] === undefined)).toEqual([])
})

it.each(without)('without %s, whoever asks for it is told so, and nothing else happens', async (name) => {
  await MISSING[name]?.()
})
