import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { BEGINNING_KIND, beginningKey, placeOfTrail } from '../../../src/extensions/audit/format/beginning.ts'
import type { SealedText } from '../../../src/base/contracts/people/keys.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { FolderKeys } from '../../../src/identity/keys/signing/folder-keys.ts'
import { Seals } from '../../../src/identity/keys/signing/seal.ts'
import { SealedKeys } from '../../../src/extensions/postgres/sealed-keys.ts'
import { recordsOf } from '../../support/audit-files.ts'
import { configFiles } from '../../support/config-files.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { freePort } from '../../support/free-port.ts'
import { collect, expectKept } from '../../support/holdings.ts'
import { needing } from '../../support/machine.ts'
import { sqliteAt } from '../../support/patient-store.ts'
import { type PlaceOptions, placeOnPostgres, SEAL } from './support/place-on-postgres.ts'
import { giveKey } from '../../support/ready-key.ts'
import { ROOT, WITHOUT_WAITS } from '../../support/spawn-postern.ts'
import { startPostern } from '../../support/start-postern.ts'
import { startUpstream } from '../../support/start-upstream.ts'

/** The data folder of a machine with a key and a store, and where that is copied to. */
async function machine(options?: PlaceOptions) {
  const data = await dataFolder()
  await giveKey(data)
  const path = join(data, 'postern.sqlite')
  const to = await placeOnPostgres(options)
  const copy = (more = '') => to.run(`store copy --from sqlite:${path}${more}`)
  return { data, path, to, copy }
}

async function filled(options?: PlaceOptions) {
  const all = await machine(options)
  const store = await sqliteAt(all.path)
  await store.create('code', 'k', { value: { a: 1 } })
  const { sequence } = await store.append('topic', { b: 2 })
  await store.close()
  return { ...all, sequence }
}

const nodeWith = (kind: string) => ({ store: { kind }, server: { listen: '127.0.0.1:8080' } })

describe('C11.7.6 store copy', needing('postgresql'), () => {
  it('C11.7.6 takes over what the store remembers of the trail (C12.4.5): it is that of this host then', async () => {
    const { data, path, to, copy } = await machine()
    const folder = join(data, 'audit')
    const store = await sqliteAt(path)
    const value = {
      ...placeOfTrail(nodeWith('sqlite'), folder),
      hash: 'h',
      signed: '2026-11-22T00:00:00.000Z',
    }
    await store.create(BEGINNING_KIND, beginningKey(placeOfTrail(nodeWith('sqlite'), folder)), { value })
    await store.close()
    expect(await copy()).toMatchObject({ code: 0 })
    const copied = await (await to.store()).list(BEGINNING_KIND)
    const own = placeOfTrail(nodeWith('postgres'), folder)
    expect(copied).toMatchObject([{ key: beginningKey(own), value: { ...value, ...own } }])
  })

  it('C11.7.6 C6.3.4 seals secret values of businesses anew, with the seal of the new store', async () => {
    const { data, path, to, copy } = await machine()
    const place = ['directory_business', 'HOOLI', 'key']
    const sealed = await new FolderKeys(join(data, 'keys')).sealText('sesame', place)
    const record = { code: 'HOOLI', name: 'Hooli', funds: 'any', values: { db: 'x', key: { sealed } } }
    const store = await sqliteAt(path)
    await store.create('directory_business', 'HOOLI', { value: { record } })
    await store.close()
    const { code, stdout } = await copy(' --json')
    expect([code, JSON.parse(stdout).sealed]).toEqual([0, expect.arrayContaining(['HOOLI.key'])])
    const shared = await to.store()
    const [entry] = await shared.list('directory_business')
    const { values } = entry?.value['record'] as { values: { db: string; key: { sealed: SealedText } } }
    expect([values.db, values.key.sealed.seal]).toEqual(['x', 'test'])
    const keys = new SealedKeys(shared, new Seals([{ id: 'test', key: SEAL }]))
    expect(await keys.openText(values.key.sealed, place)).toBe('sesame')
    expect(await keys.openText(values.key.sealed, ['directory_business', 'OTHER', 'key'])).toBeUndefined()
  })

  it('C11.7.6 takes over tokens, logins, people, revocations, switches and keys', async () => {
    const upstream = await startUpstream()
    const environment = { UPSTREAM_URL: upstream.url, POSTERN_PORT: String(await freePort()) }
    const { data, to, copy } = await machine({ environment })
    const file = configFiles({ 'one.yaml': `extends: ${ROOT}/config/upstream.yaml\n${WITHOUT_WAITS}\n` })(
      'one.yaml',
    )
    const before = await startPostern({ file, data, environment: { ...environment, POSTERN_DATA: data } })
    const held = await collect(before, data, 'erik')
    const refused = await copy()
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('stop it')])
    await before.close()
    const copied = await copy(' --json')
    expect([copied.code, JSON.parse(copied.stdout)]).toEqual([
      0,
      expect.objectContaining({
        changes: expect.any(Number),
        sealed: ['ES256-1', 'RS256-1', 'secret of refresh tokens'],
      }),
    ])
    const outcomes = recordsOf(to, 'store.copied').map(({ outcome }) => outcome)
    expect(outcomes.toSorted()).toEqual(['failed', 'success'])
    await expectKept(await to.serve(), held)
  })

  it('C11.7.6 keeps versions, uses, ends, long keys and the numbers of changes', async () => {
    const { path, to, copy } = await machine()
    const store = await sqliteAt(path)
    const ends = systemClock.now() + 3_600_000
    const long = `${'ü'.repeat(300)}\u0000 end`
    await store.create('code', long, { value: { a: 'é"\\' }, expiresAt: ends, indexes: { client: long } })
    await store.replace('code', long, 1, { a: 2 })
    const used = await store.consume('code', long)
    await store.create('code', 'gone', { value: {}, expiresAt: systemClock.now() - 1 })
    const first = await store.append('topic', { n: 1 }, { expiresAt: ends })
    await store.append('topic', { n: 2 }, { expiresAt: systemClock.now() - 1 })
    const { sequence: last } = await store.append('topic', { n: 3 })
    await store.close()
    expect((await copy()).stdout).toMatch(
      /^1 record and [23] changes are in postgres .*; sealed: RS256-1, secret /,
    )

    const copied = await to.store()
    expect(await copied.listBy('code', 'client', long)).toEqual([used?.entry])
    expect(await copied.consume('code', long)).toEqual({ first: false, entry: used?.entry })
    const { changes } = await copied.changes(undefined, 10)
    expect(changes.filter(({ value }) => value['n'] !== 2)).toMatchObject([
      { sequence: first.sequence, value: { n: 1 }, expiresAt: ends },
      { sequence: last, value: { n: 3 } },
    ])
    expect((await copied.append('topic', {})).sequence).toBeGreaterThan(last)
  })

  it('C11.7.6 leaves a store alone that holds something', async () => {
    const { copy, to } = await filled()
    expect((await copy()).code).toBe(0)
    const before = to.sql('SELECT count(*), max(attempt) FROM SCHEMA.record')
    // The first refusal does not keep the store from the next copy.
    for (let nth = 0; nth < 2; nth += 1) {
      const { code, stderr } = await copy()
      expect([code, stderr]).toEqual([1, expect.stringContaining('holds something already')])
    }
    expect(to.sql('SELECT count(*), max(attempt) FROM SCHEMA.record')).toBe(before)
  })

  it('C11.7.6 that was broken off keeps services away, and is begun anew', async () => {
    const { copy, to } = await filled()
    await to.run('migrate')
    to.sql(
      `INSERT INTO SCHEMA.record (kind, key, value, attempt) VALUES ('store_copy', 'unfinished', '{}', 'x')`,
    )
    to.sql(`INSERT INTO SCHEMA.record (kind, key, value, attempt) VALUES ('code', 'of-before', '{}', 'x')`)
    to.sql(`INSERT INTO SCHEMA.change (sequence, mark, topic, value) VALUES (7, 'x', 'topic', '{}')`)
    await expect(to.serve()).rejects.toThrow(/begun and has not ended/)
    expect((await to.run('keys list')).stderr).toContain('`postern store copy`')
    expect((await copy()).code).toBe(0)
    expect(to.sql(`SELECT key FROM SCHEMA.record WHERE kind IN ('code', 'store_copy')`)).toBe('k')
    expect(to.sql('SELECT count(*) FROM SCHEMA.change')).toBe('1')
  })

  it('C11.7.6 waits for nobody: of two at once one says so', async () => {
    const { copy, to } = await filled()
    await to.run('migrate')
    to.sql(`INSERT INTO SCHEMA.lease VALUES ('store_copy', 'another', ${Date.now() + 60_000})`)
    expect((await copy()).stderr).toContain('Another copy into the store')
  })

  it('C11.7.6 tells what is missing: the file, its schema, its keys, the tables', async () => {
    const { copy, data, path, to } = await machine()
    expect((await copy()).stderr).toContain(`There is no store at ${path}`)
    await (await sqliteAt(path)).close()
    expect((await copy(` --keys ${join(data, 'nowhere')}`)).stderr).toContain('cannot be opened')
    expect((await copy(` --keys ${await dataFolder()}`)).stderr).toContain('name their folder with --keys')
    for (const from of ['', ' --from sqlite:', ` --from ${path}`])
      expect(await to.run(`store copy${from}`)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('--from sqlite:PATH'),
      })
    rmSync(path)
    expect((await copy()).code).toBe(1)
  })
})
