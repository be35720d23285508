/** What operators do to a service that runs, by the command line (C9.1, C11.1). One process serves. */
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'
import { postForm } from '../support/oauth.ts'
import { shared } from '../support/shared.ts'
import { DEMO, ROOT, spawnPostern } from '../support/spawn-postern.ts'
import { postern as startHere } from '../support/start-postern.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

/** Nothing here looks at the store: in memory it starts in less time. */
const extending = (changes = ''): string => `extends: ${DEMO}\n${changes}\nstore: { kind: memory }\n`

interface Served {
  readonly data: string
  readonly adminUrl: string
  readonly authUrl: string
  readonly baseUrl: string
}

/** A service in this process; commands find it as they find any other. One that `reloads` serves what the file says. */
const start = shared(async (reloads = false) => {
  const file = ownFile()
  const service = await startHere({ file, ...(!reloads && { keeps: 'nothing' }) })
  return { ...operate(service, file), log: () => service.log() }
})

const ownFile = (): string => configFiles({ 'a.yaml': extending() })('a.yaml')

function operate(service: Served, file: string) {
  const { data, adminUrl, baseUrl } = service
  const env = { POSTERN_CONFIG: file, POSTERN_DATA: data, POSTERN_ADMIN_PORT: new URL(adminUrl).port }
  const postern = async (...args: string[]) => {
    const { code, stdout: out, stderr: err } = await runVerb(args, { env })
    return { code, out, err }
  }
  const token = async (): Promise<string> => (await issueToken(service, { scope: ALL_AT_ACME })).access_token
  const call = async (accessToken: string, path = 'b/ACME/fund-data/fund-list') => {
    const response = await fetch(`${baseUrl}/api/1.0/${path}`, {
      headers: { Authorization: `Bearer ${accessToken}` },
    })
    return { status: response.status, body: await response.text(), headers: response.headers }
  }
  const write = (next: string): void => writeFileSync(file, extending(next))
  return { ...service, postern, token, call, write }
}

describe('operators', () => {
  it('C9.1 switch on, plan, ask, and switch off', async () => {
    const service = await start()
    const token = await service.token()
    const { postern, call } = service
    const on = await postern(
      'maintenance',
      'on',
      '--business',
      'ACME',
      '--message',
      'Back at six',
      '--until',
      '2h',
    )
    expect(on).toMatchObject({ code: 0, err: '' })
    expect(on.out).toMatch(/^on {2}business\/ACME {2}until \S+Z {2}"Back at six" {2}by \S+ {2}id \S+\n$/)
    const closed = await call(token)
    expect([closed.status, closed.body]).toEqual([503, expect.stringContaining('Back at six')])
    expect(Number(closed.headers.get('retry-after'))).toBeGreaterThan(7000)
    const plan = await postern('maintenance', 'plan', '--from', '2099-01-01T00:00Z', '--reason', 'move')
    expect(plan.out).toMatch(/^planned {2}service {2}from 2099/)
    expect((await postern('maintenance', 'status')).out.split('\n')).toHaveLength(3)
    const { switches } = JSON.parse((await postern('maintenance', 'status', '--json')).out)
    expect(switches).toMatchObject([{ scope: 'business/ACME' }, { scope: 'service', reason: 'move' }])
    expect((await postern('maintenance', 'off', '--business', 'ACME')).out).toMatch(
      /^ended:\non {2}business\/ACME/,
    )
    expect((await call(token)).status).toBe(200)
    expect((await postern('maintenance', 'off')).out).toBe('there was no maintenance to end\n')
    expect((await postern('maintenance', 'off', `--id=${switches[1].id}`)).out).toMatch(/^ended:\nplanned/)
    expect((await postern('maintenance', 'status')).out).toBe('no maintenance\n')
  })

  it('C9.2 let the clients of an allow list pass', async () => {
    const { postern, token, call } = await start.own()
    const good = await token()
    await postern('maintenance', 'on', '--allow-client', 'acme-books')
    expect((await call(good)).status).toBe(200)
    expect((await call(`${good}x`)).status).toBe(503)
    await postern('maintenance', 'on', '--allow-address', '127.0.0.0/8')
    expect((await call(`${good}x`)).status).toBe(401)
  })

  it('are told in one line what is wrong, with exit code 1 or 2', async () => {
    const { postern } = await start()
    expect(await postern('maintenance', 'on', '--business', 'ACMEE')).toEqual({
      code: 1,
      out: '',
      err: 'postern: the request does not fit\n  scope  names no business: "ACMEE" — did you mean "ACME"?\n',
    })
    expect((await postern('maintenance', 'plan')).code).toBe(2)
    expect((await postern('maintenance')).code).toBe(2)
    expect((await postern('revoke')).code).toBe(2)
    expect((await postern('restart')).err).toMatch(/not restarted\n {2}one process serves/)
  })

  it('are told where nobody answers', async () => {
    const at = configFiles({ 'a.yaml': extending('admin: { token: { env: TOKEN } }') })
    const env = { POSTERN_CONFIG: at('a.yaml'), TOKEN: 'a-token-of-some-length', POSTERN_ADMIN_PORT: '1' }
    expect(await runVerb(['reload'], { env })).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'postern: there is no answer from http://127.0.0.1:1 (bad port): is the service running, and is this its configuration?\n',
    })
  })

  it('T3.4 revoke what is out there; what is issued afterwards is good', async () => {
    const { postern, token, call } = await start()
    const before = await token()
    expect((await call(before)).status).toBe(200)
    expect((await postern('revoke', '--client', 'acme-books', '--business', 'ACME')).out).toBe(
      'revoked: 0 sessions, 0 families of refresh tokens, 0 codes, 0 consents, and the access tokens\n',
    )
    expect((await call(before)).status).toBe(401)
    expect((await call(await token())).status).toBe(200)
  })

  it('C6.3.3 revoke refresh tokens, codes and sessions with them; told how many, and before it is done', async () => {
    const service = await start()
    const { postern, call } = service
    const held = await issueToken(service, { scope: `${ALL_AT_ACME} offline_access` })
    const refresh = async (): Promise<number> => {
      const params = { grant_type: 'refresh_token', refresh_token: held.refresh_token ?? '' }
      return (await postForm(service, '/connect/token', { params })).status
    }
    const counts = '0 sessions, 1 family of refresh tokens, 0 codes, 0 consents, and the access tokens'
    expect((await postern('revoke', '--client', 'acme-books', '--preview')).out).toBe(
      `would be revoked: ${counts}. Nothing was changed.\n`,
    )
    expect((await call(held.access_token)).status).toBe(200)
    expect((await postern('revoke', '--client', 'acme-books')).out).toBe(`revoked: ${counts}\n`)
    expect((await call(held.access_token)).status).toBe(401)
    expect(await refresh()).toBe(400)
  })

  it('C6.3.3 are refused an id that nobody knows, unless they force it', async () => {
    const { postern } = await start()
    for (const args of [
      ['--client', 'acme-boks'],
      ['--subject', 'nobody'],
      ['--business', 'ACNE'],
      ['--client', 'acme-books', '--business', 'ACNE'],
      ['--family', 'AAAAAAAAAAAAAAAAAAAAAA'],
      ['--jti', 'not-of-our-form'],
    ]) {
      const refused = await postern('revoke', ...args)
      expect([refused.code, refused.out]).toEqual([1, ''])
      expect(refused.err).toMatch(/nobody and nothing of that id is known\n {2}\w+ {2}is not known: /)
      expect((await postern('revoke', ...args, '--preview')).code).toBe(1)
      expect((await postern('revoke', ...args, '--force')).code).toBe(0)
    }
  })

  it('C6.3.5 reload: who is locked, or has another password, holds nothing any more', async () => {
    const service = await start.own(true)
    const { postern, token, call, write } = service
    const held = [await token(), await token()] as const
    const bob =
      /bob:[^]*?password: (\S+)/.exec(readFileSync(join(ROOT, 'config/demo.yaml'), 'utf8'))?.[1] ?? ''
    write(`directory: { users: { alice: { password: '${bob}' } } }`)
    expect((await postern('reload')).code).toBe(0)
    expect((await call(held[0])).status).toBe(401)
    write('')
    expect((await postern('reload')).code).toBe(0)
    const again = await token()
    expect((await call(again)).status).toBe(200)
    write('directory: { users: { alice: { locked: true } } }')
    expect((await postern('reload')).code).toBe(0)
    expect((await call(again)).status).toBe(401)
  })

  it('reload: who was removed from the directory loses access, others keep it', async () => {
    const service = await start.own(true)
    const { postern, token, call, write } = service
    const held = await token()
    write('vendor: other')
    expect((await postern('reload')).out).toBe('reloaded; 0 revoked\n')
    expect((await call(held)).status).toBe(200)
    write('directory: { users: { alice: { disabled: true }, bob: { access: null } } }')
    expect((await postern('reload', '--reason', 'left')).code).toBe(0)
    expect((await call(held)).status).toBe(401)
    await expect(token()).rejects.toThrow('invalid_grant')
    // The watch of the file may have come first: then the command found nothing new.
    await expect
      .poll(() => service.log())
      .toContainEqual(expect.objectContaining({ outcome: 'reloaded', warnings: [], revoked: 2 }))
  })

  it('reload: a bad file changes nothing, and every problem is told', async () => {
    const { postern, token, call, write } = await start.own(true)
    const held = await token()
    write('vendor: NO\nadmin: { listen: "127.0.0.1:1" }')
    const refused = await postern('reload')
    expect(refused.code).toBe(1)
    expect(refused.err).toMatch(
      /the configuration was refused; nothing has changed\n {2}\S+a\.yaml:2 {2}vendor/,
    )
    expect((await call(held)).status).toBe(200)
  })

  it('C11.1 see the configuration in force, without its secrets; the token is theirs alone', async () => {
    const { adminUrl, data } = await start()
    const file = join(data, 'admin-token')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const headers = { Authorization: `Bearer ${readFileSync(file, 'utf8').trim()}` }
    const shown = await (await fetch(`${adminUrl}/configuration`, { headers })).text()
    expect(JSON.parse(shown)).toMatchObject({
      vendor: 'postern',
      directory: { clients: { 'acme-books': {} } },
    })
    expect(shown).not.toMatch(/sha256:|argon2/)
    expect(shown).toContain('[secret]')
    expect((await fetch(`${adminUrl}/configuration`)).status).toBe(401)
  })

  it('SIGHUP reloads as the command does', async () => {
    const file = ownFile()
    const spawned = await spawnPostern({ config: file })
    onTestFinished(async () => {
      await spawned.stop()
    })
    const { write, token, call } = operate(spawned, file)
    const held = await token()
    write('maintenance: [{ scope: service }]')
    process.kill(spawned.pid, 'SIGHUP')
    await expect.poll(async () => (await call(held)).status).toBe(503)
    expect(spawned.output()).not.toMatch(/configuration_refused/)
  })
})
