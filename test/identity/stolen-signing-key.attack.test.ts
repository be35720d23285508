import { chmod, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { WebSocket } from 'ws'
import { runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'
import { ROOT } from '../support/spawn-postern.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { answerJson, startUpstream } from '../support/start-upstream.ts'
import { at, streaming } from '../support/streaming.ts'
import { type Forge, keyFiles, stealKey } from '../support/thief.ts'
import { ALL_AT_ACME, basic, issueToken, type TokenResponse } from '../support/tokens.ts'
import {
  askWebsocket,
  closeOf,
  startWebsocketUpstream,
  type WebsocketUpstream,
} from '../support/websocket-upstream.ts'
import { poolConfig, startPool } from '../support/worker-pool.ts'

// T3.10: a signing key was stolen. Once it is removed, nothing that it has signed opens any door any more, remembered
// or not, forged or genuine.

const LIST = at('fund-list')
const DEMO = join(ROOT, 'config/demo.yaml')

interface Scene {
  readonly gateway: StartedPostern
  readonly upstream: WebsocketUpstream
  /** Issued by the service itself, and never shown to it since. */
  readonly primed: string
  /** Made by the thief. */
  readonly forged: string
  readonly forge: Forge
}

async function steal(): Promise<Scene> {
  const upstream = await startWebsocketUpstream()
  const gateway = await postern({ ...streaming(upstream.url), keeps: 'store' })
  const primed = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
  const forge = stealKey(gateway.data, primed)
  return { gateway, upstream, primed, forge, forged: forge({ jti: 'forged' }) }
}

const call = async ({ baseUrl }: StartedPostern, token: string, path = LIST): Promise<number> =>
  (await fetch(`${baseUrl}${path}`, { headers: { Authorization: `Bearer ${token}` } })).status

const isActive = async ({ authUrl }: StartedPostern, token: string): Promise<boolean> => {
  const response = await fetch(`${authUrl}/connect/introspect`, {
    method: 'POST',
    headers: { Authorization: basic('acme-books') },
    body: new URLSearchParams({ token }),
  })
  return ((await response.json()) as { active: boolean }).active
}

async function openSocket({ baseUrl }: StartedPostern, token: string): Promise<WebSocket> {
  const asked = await askWebsocket(baseUrl.replace('http', 'ws') + at('live/lobby'), {
    headers: { Authorization: `Bearer ${token}` },
  })
  if (asked.kind !== 'open') throw new Error(`${asked.status} ${asked.body}`)
  return asked.socket
}

/** What the doors say of a token. */
const doors = async (gateway: StartedPostern, token: string) => ({
  api: await call(gateway, token),
  userinfo: (await call(gateway, token, '/api/1.0/u/connect/userinfo')) < 400,
  active: await isActive(gateway, token),
})

const OPEN = { api: 200, active: true }
const SHUT = { api: 401, userinfo: false, active: false }

/** Milliseconds within which every process follows; polled, so that a slow machine fails nothing that is right. */
const SOON = { timeout: 30_000, interval: 20 }

async function rotateCompromised({ data }: StartedPostern, kind = 'sqlite') {
  const config = configFiles({ 'postern.yaml': `extends: ${DEMO}\nstore: { kind: ${kind} }\n` })(
    'postern.yaml',
  )
  const args = ['keys', 'rotate', '--compromised', '--yes', '--config', config]
  const { code, stdout, stderr } = await runVerb(args, { env: { POSTERN_DATA: data } })
  return { code, told: `${stdout}${stderr}` }
}

const removeKeys = async ({ data }: Pick<StartedPostern, 'data'>): Promise<void> => {
  for (const file of keyFiles(data)) await rm(join(data, 'keys', file))
}

describe('T3.10 a stolen signing key', () => {
  it.each([
    ['is withdrawn by `keys rotate --compromised`', (gateway: StartedPostern) => rotateCompromised(gateway)],
    ['is withdrawn by the removal of every key file', removeKeys],
  ])('C4.16 %s: what it has signed opens no door any more, remembered or not', async (_, withdraw) => {
    const { gateway, upstream, primed, forge, forged } = await steal()
    // Remembered by the gateway as verified; and tunnelled.
    expect(await doors(gateway, forged)).toMatchObject(OPEN)
    const tunnelled = [await openSocket(gateway, forged), await openSocket(gateway, primed)]
    const ends = tunnelled.map(closeOf)
    await withdraw(gateway)
    await expect.poll(() => doors(gateway, forged), SOON).toEqual(SHUT)
    expect(await doors(gateway, primed)).toEqual(SHUT)
    expect((await Promise.all(ends)).map(({ code }) => code)).toEqual([1008, 1008])
    // Not only what is remembered: another one made with the key, now.
    expect(await doors(gateway, forge({ jti: 'later' }))).toEqual(SHUT)
    const reached = upstream.requests.length
    await call(gateway, forged)
    expect(upstream.requests).toHaveLength(reached)
    // And the service goes on, with a key of its own making.
    const fresh = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
    expect(await doors(gateway, fresh)).toMatchObject(OPEN)
  })

  it('C4.16 is withdrawn with its own file, and the keys beside it go on', async () => {
    const { gateway, primed, forged } = await steal()
    const [idTokens] = keyFiles(gateway.data).filter((name) => name.startsWith('RS256'))
    expect(await doors(gateway, forged)).toMatchObject(OPEN)
    await rm(join(gateway.data, 'keys', 'ES256-1.jwk'))
    await expect.poll(() => doors(gateway, forged), SOON).toEqual(SHUT)
    expect(await doors(gateway, primed)).toEqual(SHUT)
    expect(keyFiles(gateway.data)).toContain(idTokens)
  })

  it('C4.16 is withdrawn with its own file though another file is damaged', async () => {
    const { gateway, forged } = await steal()
    expect(await doors(gateway, forged)).toMatchObject(OPEN)
    await writeFile(join(gateway.data, 'keys', 'RS256-1.jwk'), '{}')
    await rm(join(gateway.data, 'keys', 'ES256-1.jwk'))
    await expect.poll(() => doors(gateway, forged), SOON).toEqual(SHUT)
    expect(gateway.log().map((line) => line['event'])).toContain('signing_keys_unreadable')
  })

  it('C4.16 an id_token of it is no hint any more', async () => {
    const gateway = await postern({ keeps: 'nothing' })
    const { id_token: hint = '' } = await issueToken(gateway, { scope: 'openid target:b/ACME' })
    // Another client than the hint's is refused, as long as the hint says anything.
    const query = new URLSearchParams({ id_token_hint: hint, client_id: 'ledgerline' })
    const ask = async (): Promise<number> =>
      (await fetch(`${gateway.authUrl}/connect/endsession?${query.toString()}`)).status
    expect(await ask()).toBe(400)
    await removeKeys(gateway)
    await expect.poll(ask, SOON).toBe(200)
  })
})

describe('T3.10 several processes', () => {
  it('C4.16 every worker refuses what a withdrawn key has signed', async () => {
    const upstream = await startUpstream(answerJson({ FundSummaries: [], TotalCount: 0 }))
    const pool = await startPool(poolConfig(upstream.url))
    const forged = stealKey(pool.data, await pool.token())({ jti: 'forged' })
    // By turns, so that every worker has verified it, and would remember it.
    const ask = async (): Promise<Set<number>> =>
      new Set(
        (await Promise.all(Array.from({ length: 8 }, () => pool.call(forged)))).map(({ status }) => status),
      )
    expect(await ask()).toEqual(new Set([200]))
    await removeKeys(pool)
    await expect.poll(ask, SOON).toEqual(new Set([401]))
    expect((await pool.call(await pool.token())).status).toBe(200)
  })
})

describe('T3.10 refresh tokens, whose secret was in the same folder', () => {
  const refresh = async ({ authUrl }: StartedPostern, token: string): Promise<TokenResponse | number> => {
    const response = await fetch(`${authUrl}/connect/token`, {
      method: 'POST',
      headers: { Authorization: basic('acme-books') },
      body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: token }),
    })
    return response.status === 200 ? ((await response.json()) as TokenResponse) : response.status
  }
  const login = (gateway: StartedPostern): Promise<TokenResponse> =>
    issueToken(gateway, { scope: 'openid offline_access target:b/ACME' })

  it.each(['sqlite', 'memory'] as const)('C6.1.7 all families end, with a store of kind %s', async (kind) => {
    const gateway = await postern({
      keeps: kind === 'sqlite' ? 'store' : 'nothing',
    })
    const { refresh_token: used = '' } = await login(gateway)
    const { refresh_token: unused = '' } = await login(gateway)
    const next = await refresh(gateway, used)
    const successor = typeof next === 'number' ? '' : (next.refresh_token ?? '')
    expect(successor).not.toBe('')
    const { code, told } = await rotateCompromised(gateway, kind)
    expect([code, told]).toEqual([0, expect.stringContaining('2 families')])
    for (const token of [unused, successor, used])
      await expect.poll(() => refresh(gateway, token), SOON).toBe(400)
    // Until the service has read the new secret, a login gives a token of the old one, and that ends with the others.
    const ofNewLogin = async () => refresh(gateway, (await login(gateway)).refresh_token ?? '')
    await expect.poll(ofNewLogin, SOON).toMatchObject({ token_type: 'bearer' })
  })
})

describe('T3.10 what is no withdrawal', () => {
  it('C6.3.4 an empty folder in the place of the keys’ is trouble, and the keys in memory go on', async () => {
    const { gateway, primed } = await steal()
    const folder = join(gateway.data, 'keys')
    await rename(folder, `${folder}.away`)
    await mkdir(folder, { mode: 0o700 })
    const events = (): unknown[] => gateway.log().map((line) => line['event'])
    await expect.poll(events, SOON).toContain('signing_keys_unreadable')
    expect(await doors(gateway, primed)).toMatchObject(OPEN)
    expect(keyFiles(gateway.data)).toEqual([])
    // The volume is back.
    await rm(folder, { recursive: true })
    await rename(`${folder}.away`, folder)
    expect(await doors(gateway, primed)).toMatchObject(OPEN)
    expect(
      await doors(gateway, (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token),
    ).toMatchObject(OPEN)
  })

  it('C6.3.4 a folder that cannot be used is trouble, and the keys in memory go on', async () => {
    const { gateway, primed } = await steal()
    const folder = join(gateway.data, 'keys')
    await chmod(folder, 0o777)
    const events = (): unknown[] => gateway.log().map((line) => line['event'])
    await expect.poll(events, SOON).toContain('signing_keys_unreadable')
    expect(await doors(gateway, primed)).toMatchObject(OPEN)
    await chmod(folder, 0o700)
  })
})
