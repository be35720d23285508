import { userInfo } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { verifyTrail } from '../../../src/extensions/audit/read/verify.ts'
import { readChains, readTrail } from '../audit/support/audit-chain.ts'
import { recordsOf } from '../../support/audit-files.ts'
import { runVerb } from '../../support/command-line.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { eventually } from '../../support/eventually.ts'
import { needing } from '../../support/machine.ts'
import { placeOnPostgres } from './support/place-on-postgres.ts'
import { query } from '../../support/postgres.ts'
import { ROOT } from '../../support/spawn-postern.ts'

describe('the commands of a store that several nodes share', needing('postgresql'), () => {
  it('C11.7.4 migrate makes the tables, says so once, and leaves a record', async () => {
    const { run, data } = await placeOnPostgres()
    const check = await run('migrate --check')
    expect([check.code, check.stdout]).toEqual([
      1,
      'there are no tables, and this Postern knows 1: run `postern migrate`\n',
    ])
    expect((await run('migrate')).stdout).toBe('version 0 → 1\n')
    expect((await run('migrate')).stdout).toBe('version 1: nothing was to be done\n')
    const again = await run('migrate --check --json')
    expect([again.code, JSON.parse(again.stdout)]).toEqual([
      0,
      { version: 1, readableFrom: 1, known: 1, upToDate: true },
    ])
    expect(recordsOf({ data }, 'store.migrated')).toHaveLength(2)
  })

  it('C11.7.4 migrate refuses tables of a version that this one cannot use', async () => {
    const { run, cluster, schema } = await placeOnPostgres()
    await run('migrate')
    query(cluster, `UPDATE ${schema}.meta SET version = 9, readable_from = 8`)
    const { code, stderr } = await run('migrate --check')
    expect(code).toBe(1)
    expect(stderr).toContain('tables of version 9, which need a Postern that knows version 8 or later')
  })

  it('C11.7.4 migrate --finish waits until no older node was seen for ten minutes', async () => {
    const { run, cluster, schema } = await placeOnPostgres()
    await run('migrate')
    const facts = `{"host":"old-host","schema":0,"workers":1,"clockOffset":0,"feedAge":0}`
    const seen = (minutes: number): unknown =>
      query(
        cluster,
        `INSERT INTO ${schema}.node SELECT 'n', '0.1.0', 'c', '${facts}',
           (extract(epoch FROM clock_timestamp()) * 1000)::int8 - ${minutes} * 60000
         ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at`,
      )
    seen(9)
    const refused = await run('migrate --finish')
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('old-host (0.1.0)')])
    seen(11)
    expect((await run('migrate --finish')).code).toBe(0)
  })

  it('C11.7.4 nodes lists those that serve, with their clocks and the age of what they know', async () => {
    const { run, serve, cluster, schema } = await placeOnPostgres()
    expect((await run('nodes')).stderr).toContain('run `postern migrate`')
    const service = await serve()
    const listed = async () => JSON.parse((await run('nodes --json')).stdout).nodes
    await eventually(async () =>
      expect(await listed()).toEqual([
        expect.objectContaining({ schema: 1, workers: 1, config: expect.stringMatching(/^[\w-]{12}$/) }),
      ]),
    )
    expect((await run('nodes')).stdout).toMatch(/^NODE .* CLOCK .*\n\S{12} .* 0\.\d s  +\d s ago\n$/)
    const [node] = await listed()
    expect(Object.keys(node).slice(0, 6)).toEqual(['id', 'version', 'config', 'host', 'address', 'schema'])
    const { id, address } = node
    expect(address).toMatch(/:[1-9]\d*$/)
    // Another one that is alive, with another configuration.
    const another = `INSERT INTO ${schema}.node SELECT 'another', version, 'another', facts, seen_at FROM ${schema}.node
      WHERE id <> 'another' ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at`
    query(cluster, another)
    const differing = await run('nodes')
    expect([differing.code, differing.stderr]).toEqual([
      1,
      expect.stringContaining('2 different configurations'),
    ])
    await eventually(async () => {
      query(cluster, another)
      const status = await run('status')
      expect([status.code, status.stdout]).toEqual([1, expect.stringContaining('2 different configurations')])
      // One digest in both.
      expect(differing.stdout).toContain(/digest (\S+)/.exec(status.stdout)![1])
    })
    query(cluster, `DELETE FROM ${schema}.node WHERE id = 'another'`)
    await service.close()
    expect(service.log().every(({ node }) => node === id)).toBe(true)
    expect(await listed()).toEqual([])
  })

  it('C12.1.7 C11.7.4 what they do beside a node that runs is recorded by it, in its chain', async () => {
    const { run, serve, data } = await placeOnPostgres()
    await run('migrate')
    const node = await serve()
    const there = join(await dataFolder(), 'postern.sqlite')
    const begun = readTrail(join(data, 'audit')).length
    const ends = []
    for (const line of [
      'migrate --reason upgrade',
      'migrate --finish',
      'keys rewrap',
      `store copy --from sqlite:${there}`,
    ])
      ends.push(await run(line))
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0, 1])
    for (const { stderr } of ends) expect(stderr).not.toContain('could not be recorded')
    await node.close()
    const [records = [], ...others] = readChains(join(data, 'audit')).values()
    expect(others).toEqual([])
    const actor = { kind: 'operator', operator: 'admin', via: 'cli', claimed: userInfo().username }
    const acts = ['store.migrated', 'keys.resealed', 'store.copied']
    expect(records.slice(begun).filter(({ event }) => acts.includes(event))).toMatchObject([
      { event: 'store.migrated', outcome: 'success', actor, change: { finish: false }, why: 'upgrade' },
      { event: 'store.migrated', outcome: 'success', actor, change: { finish: true } },
      { event: 'keys.resealed', outcome: 'success', actor, on: { kind: 'key' } },
      { event: 'store.copied', outcome: 'failed', actor, change: { from: there } },
    ])
    expect(verifyTrail({ folder: join(data, 'audit') })).toMatchObject({ whole: true, unsigned: 0 })
  })

  it('C11.7.4 check --connect tells whether the database can be used', async () => {
    const { run } = await placeOnPostgres()
    const before = await run('check --connect')
    expect([before.code, before.stdout]).toEqual([0, expect.stringContaining('There are no tables yet')])
    await run('migrate')
    expect((await run('check --connect')).stdout).not.toMatch(/FAIL|WARN/)
    const { code, stdout } = await run(`check --connect --json`)
    expect([code, JSON.parse(stdout).store.length]).toEqual([0, 5])
  })

  it('C11.7.4 check --connect names the rights that a role lacks', async () => {
    const { run, cluster, schema } = await placeOnPostgres()
    const role = `r_${schema}`
    query(cluster, `CREATE ROLE ${role} LOGIN`)
    onTestFinished(() => void query(cluster, `DROP OWNED BY ${role}; DROP ROLE ${role}`))
    const poor = await placeOnPostgres({ url: cluster.url(role), schema })
    const before = await poor.run('check --connect')
    expect([before.code, before.stdout]).toEqual([1, expect.stringContaining('no right to make them')])
    await run('migrate')
    query(cluster, `GRANT USAGE ON SCHEMA ${schema} TO ${role}`)
    query(cluster, `GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA ${schema} TO ${role}`)
    const after = await poor.run('check --connect')
    expect([after.code, after.stdout]).toEqual([
      1,
      expect.stringMatching(new RegExp(`^FAIL The role lacks rights: DELETE on ${schema}.record,`, 'm')),
    ])
  })

  it('C11.7.4 check --connect fails where nothing listens, and names no password', async () => {
    const { run } = await placeOnPostgres({ url: 'postgres://u:very-secret@127.0.0.1:1/d' })
    const { code, stdout, stderr } = await run('check --connect')
    expect(code).toBe(1)
    expect(stdout).toContain('FAIL postgres 127.0.0.1:1/d')
    expect(stdout + stderr).not.toContain('very-secret')
  })

  it('C11.7.4 backup names pg_dump, and the commands refuse a store of one machine', async () => {
    const { run } = await placeOnPostgres()
    expect(await run('backup /tmp/never-written')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('pg_dump'),
    })
    const { code, stderr } = await runVerb(['nodes', '--config', `${ROOT}/config/demo.yaml`], {
      env: { POSTERN_DATA: await dataFolder() },
    })
    expect([code, stderr]).toEqual([2, expect.stringContaining('the store is of kind sqlite')])
  })
})
