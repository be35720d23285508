import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import type { SealKey } from '../../../src/identity/keys/signing/seal.ts'
import { recordsOf } from '../../support/audit-files.ts'
import { runVerb } from '../../support/command-line.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { needing } from '../../support/machine.ts'
import { query, sharedPostgres } from '../../support/postgres.ts'
import { sealKey } from '../../support/seal-key.ts'
import { openShared, sharedStore } from '../../support/shared-store.ts'

/** Commands about keys that are in a schema of their own. The seals of each call are those of the shell. */
async function shared(prepare = true) {
  const [data, cluster] = [await dataFolder(), await sharedPostgres()]
  const store = await sharedStore()
  const { schema } = store
  if (prepare) await (await openShared(store, systemClock)).close()
  const run = async (seals: readonly SealKey[], ...args: readonly string[]) => {
    const seal = seals.map(({ id }, at) => ({ id, key: { env: `SEAL_${at}` } }))
    const configured = { kind: 'postgres', url: cluster.url(), schema, connections: 1, seal }
    const file = join(data, 'postern.json')
    const admin = { token: { env: 'ADMIN_TOKEN' } }
    await writeFile(file, JSON.stringify({ data, store: configured, admin, areas: {}, actions: [] }))
    const env = Object.fromEntries(seals.map(({ key }, at) => [`SEAL_${at}`, key]))
    return { ...(await runIn({ ...env, ADMIN_TOKEN: 'x'.repeat(40) }, '--config', file, ...args)) }
  }
  const rows = (): string =>
    query(
      cluster,
      `SELECT kind, key, version FROM ${schema}.record WHERE kind IN ('signing_key', 'secret') ORDER BY 1, 2`,
    )
  return { run, rows, schema, data }
}

async function runIn(env: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const [, , ...rest] = args
  const ended = await runVerb(['keys', ...rest, ...args.slice(0, 2)], { env })
  if (ended.code === 2) throw new Error(ended.stderr)
  return ended
}

describe('postern keys, where nodes share a store', needing('postgresql'), () => {
  it('T7 without tables they say what to do, and make none', async () => {
    const { run, schema } = await shared(false)
    for (const verb of ['list', 'doctor', 'rotate', 'rewrap']) {
      const { code, stderr } = await run([sealKey('a')], verb)
      expect([verb, code]).toEqual([verb, 1])
      expect(stderr).toMatch(/has no tables, or old ones: run `postern migrate`/)
    }
    const found = `SELECT count(*) FROM information_schema.tables WHERE table_schema = '${schema}'`
    expect(query(await sharedPostgres(), found)).toBe('0')
  })

  it('C6.3.4 rotate, list and doctor work on the keys in the store', async () => {
    const { run } = await shared()
    const seals = [sealKey('a')]
    expect(await run(seals, 'doctor')).toMatchObject({
      code: 0,
      stdout: 'WARN The store has no keys: the first start makes them.\n',
    })
    const made = await run(seals, 'rotate')
    expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ES256-1: made and published; /m) })
    expect(await run(seals, 'list')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^ES256-1 +signing +[\w-]{43} {2}signs from /m),
    })
    expect(await run(seals, 'doctor')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('ES256-1 signs'),
    })
  })

  it('C6.3.4 rewrap seals with the first seal, once; then the older one can go', async () => {
    const { run, rows, data } = await shared()
    const [a, b] = [sealKey('a'), sealKey('b')]
    await run([a], 'rotate')
    expect((await run([b, a], 'doctor')).stdout).toMatch(/^WARN ES256-1, RS256-1: sealed with the seal a/m)
    expect(await run([b, a], 'rewrap')).toMatchObject({
      code: 0,
      stdout: 'ES256-1: sealed with the first seal now\nRS256-1: sealed with the first seal now\n',
    })
    expect(rows()).toBe('signing_key|ES256-1|2\nsigning_key|RS256-1|2')
    const again = await run([b, a], 'rewrap', '--json')
    expect(JSON.parse(again.stdout)).toEqual({ sealed: [], already: ['ES256-1', 'RS256-1'] })
    expect((await run([b], 'list')).code).toBe(0)
    expect(recordsOf({ data }, 'keys.resealed')).toHaveLength(2)
  })

  it('T7 without its seal a command fails, and says which one is missing', async () => {
    const { run, rows } = await shared()
    await run([sealKey('a')], 'rotate')
    const before = rows()
    for (const verb of ['list', 'rotate', 'rewrap']) {
      const { code, stderr } = await run([sealKey('b')], verb)
      expect([verb, code]).toEqual([verb, 1])
      expect(stderr).toMatch(/^postern: signing_key ES256-1 .* the seal a, which .*Restore the seal\./)
    }
    expect((await run([sealKey('b')], 'doctor')).stdout).toMatch(/^FAIL signing_key ES256-1 .* the seal a/)
    expect(rows()).toBe(before)
  })

  it('T3.10 rotate --compromised makes new keys also where the seal is lost for good', async () => {
    const { run, rows } = await shared()
    await run([sealKey('a')], 'rotate')
    const next = [sealKey('b')]
    const { code, stdout } = await run(next, 'rotate', '--compromised', '--yes')
    expect(code).toBe(0)
    expect(stdout).toContain('secret of refresh tokens: replaced\n')
    expect(stdout).toContain(
      'ES256-1: removed; tokens that it signed are refused, by other nodes within a second\n',
    )
    expect(rows()).toBe('secret|successors|1\nsigning_key|ES256-2|1\nsigning_key|RS256-2|1')
    expect((await run(next, 'list')).code).toBe(0)
  })
})
