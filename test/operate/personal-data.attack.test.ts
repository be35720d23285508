import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { newSecret } from '../../src/base/kernel/ids.ts'
import { hashSecret } from '../../src/identity/directory/hashing/hasher.ts'
import { recordsOf } from '../support/audit-files.ts'
import { behindProxy } from '../support/behind-proxy.ts'
import { configFiles } from '../support/config-files.ts'
import { dataFolder } from '../support/data-folder.ts'
import { eventually } from '../support/eventually.ts'
import {
  ADDRESS,
  asOperator,
  becomeKnown,
  byBrowser,
  byPassword,
  byRefresh,
  DORA,
  erase,
  exportOf,
  foundIn,
  lookInto,
  type OperatedService,
  recordsAbout,
  valuesOf,
} from '../support/known-person.ts'
import { isLong } from '../support/long.ts'
import { spawnPostern, WITHOUT_WAITS } from '../support/spawn-postern.ts'
import { postern, type StartedPostern, type StartOptions } from '../support/start-postern.ts'
import { UPSTREAM_WORLD } from '../support/worker-pool.ts'

// T3.27: what was erased is found in the files of the service, comes back by a call that was under way, or is left by a crash.

const open = (options: StartOptions = {}) => postern({ change: behindProxy, ...options })

/** What may stay: that the subject is never given again, by its hash. */
const LEFT = ['audit_erasure', 'former_subject']

const leftOf = (service: OperatedService) => recordsAbout(service).filter(({ kind }) => !LEFT.includes(kind))

/** The places outside of the change feed in which the name of the user stands, or the subject outside of the trail. */
function expectForgotten(service: OperatedService, values: readonly string[]): void {
  expect(values.length).toBeGreaterThan(9)
  expect(foundIn(service, values)).toEqual([])
  expect(leftOf(service)).toEqual([])
  const trail = foundIn(service, [DORA.username]).filter((found) => found.startsWith('/audit'))
  expect(trail).toEqual([])
  const tables = lookInto(service, (db) => [
    db.prepare("SELECT key FROM record WHERE kind = 'former_subject'").all(),
    db.prepare('SELECT topic FROM change WHERE value LIKE ?').all(`%${DORA.username}%`),
  ])
  expect(tables[0]).toContainEqual({ key: createHash('sha256').update(DORA.subject).digest('base64url') })
  expect(new Set(tables[1]?.map((row) => row['topic']))).toEqual(new Set(['directory']))
}

/** Everybody's behind the proxy: where others sign in too, their records have it. */
const notShared = (values: readonly string[]): readonly string[] =>
  values.filter((value) => value !== ADDRESS)

/** YAML of the demo behind a proxy, in processes of its own. */
const spawnedConfig = (workers: number): string =>
  configFiles({
    'a.yaml': `extends: ${UPSTREAM_WORLD}\nworkers: ${workers}\n${WITHOUT_WAITS.replace('server: {', 'server: { trustedProxies: [127.0.0.1],')}\n`,
  })('a.yaml')

async function spawned(workers: number, data: string) {
  const service = await spawnPostern({
    config: spawnedConfig(workers),
    detached: true,
    environment: { POSTERN_DATA: data },
  })
  onTestFinished(async () => {
    await service.stop()
  })
  return { ...service, data }
}

describe('T3.27 the files of a service after an erasure', () => {
  it('T3.27 C11.5.8 neither store nor trail has a value, a hash or an address of the person', async () => {
    const service = await open()
    await becomeKnown(service)
    const values = valuesOf(service)
    expect(foundIn(service, [DORA.claims.email]).length).toBeGreaterThan(0)
    expect((await erase(service)).status).toBe(200)
    expectForgotten(service, values)
    expect(service.logLines().join('')).not.toMatch(/wintermute|argon2/)
  })

  it('T3.27 C11.5.8 of two workers that are in use, too', async () => {
    const service = await spawned(2, await dataFolder())
    await becomeKnown(service)
    const values = valuesOf(service)
    let ended = false
    const load = Array.from({ length: 3 }, async () => {
      while (!ended) await byPassword(service, { username: 'alice', password: 'alice-password' })
    })
    expect((await erase(service)).status).toBe(200)
    ended = true
    await Promise.all(load)
    expectForgotten(service, notShared(values))
  })

  it('T3.27 C11.5.8 a file from before has it in free pages: they are written anew', async () => {
    const data = await dataFolder()
    await (await postern({ data, change: behindProxy })).close()
    const path = join(data, 'postern.sqlite')
    const older = new DatabaseSync(path)
    older.exec('PRAGMA secure_delete = OFF')
    const insert = older.prepare("INSERT INTO record (kind, key, value) VALUES ('older', ?, ?)")
    for (let n = 0; n < 200; n += 1) insert.run(`old-${n}`, `{"email":"MARKER-OF-DORA ${'x'.repeat(n)}"}`)
    older.exec("DELETE FROM record WHERE kind = 'older'")
    older.close()
    expect(readFileSync(path).includes('MARKER-OF-DORA')).toBe(true)
    const service = await open({ data })
    await becomeKnown(service)
    expect((await erase(service)).status).toBe(200)
    expect(foundIn(service, ['MARKER-OF-DORA'])).toEqual([])
  })

  it('T3.27 C11.5.8 SQLite leaves copies where it moves records: they go too', async () => {
    const service = await open({ keeps: 'store' })
    const { store } = service.world
    const owner = { subject: DORA.subject }
    expect((await asOperator(service, 'POST', '/users', DORA)).status).toBe(201)
    let seed = 3
    const chance = (): number => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff
    for (let n = 0; n < 2000; n += 1) {
      const isHers = chance() < 0.15
      const value = { text: (isHers ? 'MARKER-OF-DORA' : 'others').padEnd(chance() * 200, '-') }
      const indexes = isHers ? owner : { subject: `other-${n % 50}` }
      await store.create('session', `key-${chance()}`, { value, indexes })
    }
    expect((await erase(service)).body.removed.sessions).toBeGreaterThan(200)
    expect(foundIn(service, ['MARKER-OF-DORA'])).toEqual([])
  })
})

describe('T3.27 another process that reads the store', () => {
  it('T3.27 C11.5.8 is waited for; then the answer is 503, others write meanwhile, and a second call ends it', async () => {
    const service = await open()
    const { refreshToken } = await becomeKnown(service)
    const values = valuesOf(service)
    const reader = new DatabaseSync(join(service.data, 'postern.sqlite'), { readOnly: true })
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM record').get()
    const size = statSync(join(service.data, 'postern.sqlite')).size
    const erased = erase(service)
    const other = await byPassword(service, { username: 'alice', password: 'alice-password' })
    expect(other.status).toBe(200)
    const { body, status } = await erased
    expect([status, body.error]).toEqual([503, expect.stringContaining('another process reads it')])
    expect(leftOf(service)).toEqual([])
    expect((await byRefresh(service, refreshToken)).status).toBe(400)
    // Nothing of it makes the log larger with each try.
    expect(statSync(join(service.data, 'postern.sqlite-wal')).size).toBeLessThan(10 * size + 1_000_000)
    reader.exec('COMMIT')
    reader.close()
    expect((await erase(service)).status).toBe(200)
    expectForgotten(service, notShared(values))
  })
})

describe('T3.27 a call that is under way while the data is erased', () => {
  /** Holds calls of a method of the world open until it is released. */
  function held<T extends object>(part: T, name: keyof T & string) {
    const own = (part[name] as (...args: unknown[]) => Promise<unknown>).bind(part)
    const { promise: gate, resolve: release } = Promise.withResolvers<undefined>()
    const { promise: reached, resolve: reach } = Promise.withResolvers<undefined>()
    const spy = vi.spyOn(part as never, name as never) as unknown as {
      mockImplementationOnce: (held: (...args: unknown[]) => Promise<unknown>) => { mockRestore: () => void }
    }
    const restored = spy.mockImplementationOnce(async (...args) => {
      const result = await own(...args)
      reach(undefined)
      await gate
      return result
    })
    onTestFinished(() => restored.mockRestore())
    return { release, reached }
  }

  const WAYS: Readonly<Record<string, (service: StartedPostern, refreshToken: string) => Promise<unknown>>> =
    {
      'a login by password': (service) => byPassword(service),
      'a login by a browser': (service) => byBrowser(service),
      'a use of a refresh token': (service, token) => byRefresh(service, token),
    }
  const POINTS: Readonly<Record<string, (service: StartedPostern) => ReturnType<typeof held>>> = {
    'its password is verified': ({ world }) => held(world.hasher, 'verify'),
    'its record is durable': ({ world }) => held(world.audit, 'require'),
  }
  const cases = Object.keys(WAYS).flatMap((way) =>
    Object.keys(POINTS)
      .filter((point) => !(way.includes('refresh') && point.includes('password')))
      .map((point) => ({ way, point })),
  )

  it.each(cases)('T3.27 C11.5.8 $way leaves nothing: erased when $point', async ({ way, point }) => {
    const service = await open()
    const { refreshToken } = await becomeKnown(service)
    const { reached, release } = POINTS[point]!(service)
    const call = WAYS[way]!(service, refreshToken)
    await reached
    expect((await erase(service)).status).toBe(200)
    expect(leftOf(service)).toEqual([])
    release(undefined)
    await call
    expect(leftOf(service)).toEqual([])
    const { body } = await exportOf(service)
    expect([body.sessions, body.families, body.networks]).toEqual([[], [], []])
  })
})

describe('T3.27 T5.7 a service killed while it erases', () => {
  it.each(isLong ? [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14] : [1, 3, 6])(
    'T3.27 C11.5.8 behind write %i: a second call ends it, and nothing of the person is left',
    async (writes) => {
      const data = await dataFolder()
      const before = await spawned(1, data)
      await becomeKnown(before)
      const values = valuesOf(before)
      const watch = new DatabaseSync(join(data, 'postern.sqlite'), { readOnly: true })
      const statement = watch.prepare('PRAGMA data_version')
      const version = (): unknown => statement.get()?.['data_version']
      let [seen, last, isOver] = [0, version(), false]
      const erased = erase(before).then(
        () => (isOver = true),
        () => (isOver = true),
      )
      while (seen < writes && !isOver) {
        for (let look = 0; look < 200 && seen < writes; look += 1) {
          const next = version()
          if (next !== last) seen += 1
          last = next
        }
        await nextTurn()
      }
      process.kill(before.pid, 'SIGKILL')
      watch.close()
      await erased
      const service = await open({ data })
      const { body, status } = await eventually(() => erase(service))
      expect([status, body.subject]).toEqual([200, DORA.subject])
      expectForgotten(service, values)
      expect((await asOperator(service, 'POST', '/users', DORA)).status).toBe(409)
    },
  )
})

describe('T3.27 operators', () => {
  it('T3.27 C12.2.4 C11.5.8 without the right to administer erase and export nothing', async () => {
    const tokens = (['view', 'operate', 'audit'] as const).map((role) => ({ role, secret: newSecret() }))
    const named = tokens.map(({ role, secret }) => ({ name: `${role}er`, role, hash: hashSecret(secret) }))
    const service = await open({
      change: (all) => ({ ...behindProxy(all), admin: { ...all.admin, tokens: named } }),
    })
    const { refreshToken } = await becomeKnown(service)
    const before = recordsAbout(service)
    for (const { secret } of tokens) {
      const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
      const path = `${service.adminUrl}/subjects/${DORA.subject}`
      const body = JSON.stringify({ reason: 'mine' })
      const answers = [
        await fetch(`${path}/erase`, { method: 'POST', headers, body }),
        await fetch(`${path}/export`, { headers }),
      ]
      expect(answers.map(({ status }) => status)).toEqual([403, 403])
      for (const answer of answers) expect(await answer.text()).not.toContain('wintermute')
    }
    expect(recordsAbout(service)).toEqual(before)
    for (const event of ['user.erased', 'user.exported', 'audit.redacted'])
      expect(recordsOf(service, event)).toEqual([])
    expect((await byRefresh(service, refreshToken)).status).toBe(200)
  })

  it('T3.27 C11.5.8 the log of both operations has neither subject nor name', async () => {
    const service = await open({ keeps: 'store' })
    await becomeKnown(service)
    const before = service.logLines().length
    await exportOf(service)
    await erase(service)
    await erase(service)
    const lines = service.logLines().slice(before).join('')
    expect(lines).toContain('person_exported')
    expect(lines).toContain('person_erased')
    expect(lines).not.toMatch(/dunkelfeld|wintermute/)
  })
})
