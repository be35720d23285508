/** T7: what a service refuses to start with: by the command, and once by the whole program. */
import { spawn } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'
import { dataFolder } from '../support/data-folder.ts'
import { PROGRAM } from '../support/program.ts'
import { giveKey } from '../support/ready-key.ts'
import { shared } from '../support/shared.ts'
import { ROOT, withSettings } from '../support/spawn-postern.ts'
import { startPostern } from '../support/start-postern.ts'

const DEMO = join(ROOT, 'config/demo.yaml')

const fileWith = (changes: string): string =>
  configFiles({ 'a.yaml': `extends: ${DEMO}\n${changes}` })('a.yaml')

const onFreePorts = async (): Promise<Record<string, string>> => ({
  POSTERN_PORT: '0',
  POSTERN_ADMIN_PORT: '0',
  POSTERN_DATA: await dataFolder(),
})

const servedOnce = shared(async () => {
  const data = await dataFolder()
  await giveKey(data)
  await (await startPostern({ data, keeps: 'store' })).close()
  return data
})

/** A data folder as a service without a trail leaves it when it has ended. */
async function served(): Promise<string> {
  const data = await dataFolder()
  cpSync(await servedOnce(), data, { recursive: true })
  return data
}

/** The same by the command, in this process: it ends before it serves. */
async function refusal(environment: Record<string, string>) {
  const env = { ...(await onFreePorts()), ...environment }
  const { code, stderr } = await runVerb(['serve', fileWith('')], { env })
  return { code, said: stderr }
}

/** Starts the program and waits for its end: the exit code, and what it said. */
async function start(changes: string) {
  const given = { ...process.env, ...(await onFreePorts()) }
  const [args, env] = withSettings([[PROGRAM, 'serve', fileWith(changes)], given])
  const child = spawn(process.execPath, args, {
    ...{ cwd: ROOT, env },
    stdio: ['ignore', 'ignore', 'pipe'],
    // Should it serve after all, it is ended, and the test fails by its exit code.
    timeout: 20_000,
  })
  const [said, code] = await Promise.all([
    text(child.stderr),
    new Promise<number | null>((resolve) => child.once('exit', resolve)),
  ])
  return { code, said }
}

describe('T7 the service does not start', () => {
  it.each([
    [
      'with a proxy list that trusts everybody',
      'server: { trustedProxies: [0.0.0.0/0] }',
      /server\.trustedProxies {2}"0\.0\.0\.0\/0" trusts \(nearly\) everybody/,
    ],
    [
      'with the demo’s secrets off loopback',
      'server: { listen: "0.0.0.0:0" }',
      /demo {2}holds secrets that everyone knows/,
    ],
    [
      'with the demo’s secrets off loopback, also where it calls itself something else',
      'demo: false\nserver: { listen: "0.0.0.0:0", authUrl: https://id.example.com, baseUrl: https://api.example.com }',
      /directory\.clients\.acme-books.* is a secret of the demo world/,
    ],
    [
      'with an admin listener off loopback without authentication',
      'admin: { listen: "0.0.0.0:0" }',
      /admin\.listen {2}is off loopback without authentication/,
    ],
    [
      'with an issuer on http off loopback',
      'server: { authUrl: http://id.example.com }',
      /server\.authUrl {2}is http off loopback/,
    ],
    [
      'with an action that asks for no scope',
      'actions: [{ level: business, area: fund-data, action: open, methods: { GET: { scopes: {} } } }]',
      /actions\[0\]\.methods\.GET\.scopes {2}needs either any or all/,
    ],
    [
      'with sample data in several workers',
      'workers: 2',
      /backends\.sample\.kind {2}is memory, which several workers would not share/,
    ],
  ])('%s', async (_, changes, problem) => {
    const { code, stderr } = await runVerb(['serve', fileWith(changes)], { env: await onFreePorts() })
    expect(stderr).toMatch(problem)
    expect(code).toBe(2)
  })

  it('as a program either: it ends with 2', async () => {
    const { code, said } = await start('server: { trustedProxies: [0.0.0.0/0] }')
    expect(said).toMatch(/server\.trustedProxies/)
    expect(code).toBe(2)
  })

  it('with a key file, or an admin token, that other users may read', async () => {
    const data = await served()
    const folder = join(data, 'keys')
    const key = join(folder, readdirSync(folder).find((name) => /256/.test(name)) ?? '')
    chmodSync(key, 0o644)
    const withKey = await refusal({ POSTERN_DATA: data })
    expect(withKey.said).toMatch(/is open to other users \(mode 0644\)/)
    expect(withKey.code).toBe(1)
    chmodSync(key, 0o600)
    chmodSync(join(data, 'admin-token'), 0o640)
    const withToken = await refusal({ POSTERN_DATA: data })
    expect(withToken.said).toMatch(/^postern: The admin token \S+ is open to other users/m)
    expect(withToken.code).toBe(1)
  })

  it('with a store of a newer version, nor with a file that is none', async () => {
    const data = await served()
    const file = join(data, 'postern.sqlite')
    const store = new DatabaseSync(file)
    store.exec('PRAGMA user_version = 999')
    store.close()
    const newer = await refusal({ POSTERN_DATA: data })
    expect(newer.said).toMatch(/^postern: .*newer/m)
    expect(newer.code).toBe(1)
    const other = await dataFolder()
    mkdirSync(other, { recursive: true })
    writeFileSync(
      join(other, 'postern.sqlite'),
      'no store at all, but long enough to be looked at'.repeat(50),
    )
    const broken = await refusal({ POSTERN_DATA: other })
    expect(broken.said).toMatch(/^postern: /m)
    expect(broken.said).not.toMatch(/\n\s+at /)
    expect(broken.code).toBe(1)
  })
})
