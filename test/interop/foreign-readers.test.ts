/** Programs that others wrote read the store's file while it serves: each opens it, and closes it again. */
import { execFileSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { systemClock } from '../../src/base/kernel/clock.ts'
import { SqliteStore } from '../../src/state/stores/sqlite/sqlite.ts'
import { dataFolder } from '../support/data-folder.ts'
import { needing } from '../support/machine.ts'
import { ROOT, spawnPostern, WITHOUT_WAITS } from '../support/spawn-postern.ts'
import { ALL_AT_ACME, basic, issueToken } from '../support/tokens.ts'

/** Debian's program: it is linked to a SQLite of its own. */
const sqlite3 = (file: string, command: string): string =>
  execFileSync('sqlite3', [file, command], { encoding: 'utf8' }).trim()

/** What operators and their backup tools do. */
const COMMANDS = (copies: string): readonly string[] => [
  'select count(*) from record',
  `vacuum into '${copies}.vacuum'`,
  `.backup ${copies}.backup`,
  'pragma wal_checkpoint(passive)',
  'pragma wal_checkpoint(truncate)',
  'select count(*) from change',
]

/** A file that this process has open all the time, and looks at as the store's thread does once a second. */
const LOOKED_AT = 1100

async function refresh(of: { readonly authUrl: string }, token: string): Promise<string> {
  const response = await fetch(`${of.authUrl}/connect/token`, {
    method: 'POST',
    headers: { Authorization: basic('acme-books') },
    body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: token }),
  })
  const { refresh_token = '' } = (await response.json()) as { readonly refresh_token?: string }
  expect(response.status).toBe(200)
  return refresh_token
}

async function readWhileServing(workers: number): Promise<void> {
  const folder = await dataFolder()
  const config = join(folder, 'postern.yaml')
  const backends = workers > 1 ? '\nbackends: { funds: { kind: http, target: http://127.0.0.1:9 } }' : ''
  const world = join(ROOT, 'config', workers > 1 ? 'upstream.yaml' : 'demo.yaml')
  writeFileSync(config, `extends: ${world}\nworkers: ${workers}\n${WITHOUT_WAITS}${backends}\n`)
  const postern = await spawnPostern({ config })
  onTestFinished(async () => {
    await postern.stop()
  })
  const file = join(postern.data, 'postern.sqlite')
  const login = async (): Promise<string> =>
    (await issueToken(postern, { scope: `${ALL_AT_ACME} offline_access` })).refresh_token ?? ''
  const tokens: string[] = []
  for (const command of COMMANDS(join(folder, 'copy'))) {
    tokens.push(await login())
    // Until each process has looked at its file: only what it does then made the next command harmful.
    await delay(LOOKED_AT)
    sqlite3(file, command)
    expect(existsSync(`${file}-wal`)).toBe(true)
    for (const [at, token] of tokens.entries()) tokens[at] = await refresh(postern, token)
  }
  expect(sqlite3(file, 'pragma integrity_check')).toBe('ok')
  expect(sqlite3(`${join(folder, 'copy')}.vacuum`, 'pragma integrity_check')).toBe('ok')
  expect(await (await fetch(`${postern.adminUrl}/health/ready`)).json()).toMatchObject({
    status: 'ready',
  })
  expect(postern.output()).not.toContain('store.unfit')
}

describe('T5.14 a foreign program reads the store’s file', needing('sqlite3'), () => {
  it('while one worker serves, or four: logins and refreshes go on, and nothing is lost', async () => {
    await Promise.all([1, 4].map(readWhileServing))
  })

  it('after the store’s thread has died and another one has begun: nothing is lost', async () => {
    const path = join(await dataFolder(), 'postern.sqlite')
    const post = vi.spyOn(Worker.prototype, 'postMessage')
    onTestFinished(() => post.mockRestore())
    const store = await SqliteStore.open(
      { path, synchronous: 'normal', maxSize: undefined, marked: true },
      systemClock,
    )
    onTestFinished(() => store.close())
    for (const key of ['a', 'b', 'c']) {
      await vi.waitUntil(() => store.create('key', key, { value: {} }).catch(() => false), {
        timeout: 30_000,
      })
      expect(sqlite3(path, 'select count(*) from record')).not.toBe('0')
      expect(existsSync(`${path}-wal`)).toBe(true)
      await (post.mock.contexts as Worker[]).at(-1)?.terminate()
    }
    const found = await vi.waitUntil(() => store.list('key').catch(() => undefined), { timeout: 30_000 })
    expect(found.map(({ key }) => key)).toEqual(['a', 'b', 'c'])
  })

  it('while two parts of one process use it and one of them ends: the other goes on', async () => {
    const path = join(await dataFolder(), 'postern.sqlite')
    const plan = { path, synchronous: 'normal', maxSize: undefined, marked: true } as const
    const [ends, stays] = [
      await SqliteStore.open(plan, systemClock),
      await SqliteStore.open(plan, systemClock),
    ]
    onTestFinished(() => stays.close())
    await stays.create('key', 'a', { value: {} })
    await ends.close()
    sqlite3(path, 'select count(*) from record')
    expect(existsSync(`${path}-wal`)).toBe(true)
    expect(await stays.create('key', 'b', { value: {} })).toBe(true)
    expect(sqlite3(path, 'select count(*) from record')).toBe('2')
  })
})
