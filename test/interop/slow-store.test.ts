/** A store or a trail that answers slowly: the machine or its disk is busy. The deadlines are those that nobody has set. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { auditRecords } from '../support/audit-files.ts'
import { spawnVerb } from '../support/command-line.ts'
import { dataFolder } from '../support/data-folder.ts'
import { needing } from '../support/machine.ts'
import { startNodes } from '../support/nodes.ts'
import { postForm } from '../support/oauth.ts'
import { sharedPostgres } from '../support/postgres.ts'
import { DEMO, ENDS_AT_ONCE, ROOT, spawnPostern, type SpawnedPostern } from '../support/spawn-postern.ts'
import { giveKey } from '../support/ready-key.ts'
import { startStoreProcess } from '../support/store-process.ts'
import { issueToken } from '../support/tokens.ts'

/** Milliseconds for which no write is answered. */
const SLOW = 3000

interface Slow {
  /** Begins when it resolves; no write is answered until `end`. */
  readonly begin: () => Promise<{ readonly end: () => unknown }>
}

/** What is asked meanwhile: all of it is answered as ever, and only later. Calls do not wait. */
async function expectPatience(postern: SpawnedPostern, { begin }: Slow): Promise<void> {
  const login = () => issueToken(postern, { scope: 'openid offline_access business.fund.list target:b/ACME' })
  const post = async (path: string, params: Record<string, string>): Promise<number> =>
    (await postForm(postern, path, { params })).status
  const refresh = (token = '') =>
    post('/connect/token', { grant_type: 'refresh_token', refresh_token: token })
  const [used, revoked] = [await login(), await login()]
  const { end } = await begin()
  let ended = false
  const slow = [
    login().then(() => 200),
    refresh(used.refresh_token),
    post('/connect/revocation', { token: revoked.refresh_token ?? '' }),
  ].map(async (status) => ({ status: await status, waited: ended }))
  const called = fetch(`${postern.baseUrl}/api/1.0/b/ACME/fund-data/fund-list`, {
    headers: { Authorization: `Bearer ${used.access_token}` },
  }).then(({ status }) => ({ status, waited: ended }))
  expect(await called).toEqual({ status: 200, waited: false })
  await delay(SLOW)
  ended = true
  await end()
  expect(await Promise.all(slow)).toEqual(slow.map(() => ({ status: 200, waited: true })))
  expect(await refresh(revoked.refresh_token)).toBe(400)
}

describe('T5.5 a store that takes 3 s makes logins, refreshes and revocations slow, and fails none', () => {
  it('in a file that another process has locked', async () => {
    const config = join(await dataFolder(), 'postern.yaml')
    writeFileSync(config, `extends: ${join(ROOT, 'config/demo.yaml')}\n${ENDS_AT_ONCE}\n`)
    const postern = await spawnPostern({ config })
    onTestFinished(async () => {
      await postern.stop()
    })
    await expectPatience(postern, {
      begin: async () => {
        const holder = startStoreProcess('hold', join(postern.data, 'postern.sqlite'))
        await holder.line('held')
        return { end: () => holder.process.stdin?.write('release\n') }
      },
    })
  })

  it('in a Postgres whose tables another session has locked', needing('postgresql'), async () => {
    const cluster = await sharedPostgres()
    const started = await startNodes(cluster, { count: 1 })
    onTestFinished(() => started.close())
    const [node] = started.nodes
    const client = new pg.Client({ connectionString: cluster.url() })
    await client.connect()
    onTestFinished(() => client.end())
    await expectPatience(node!, {
      begin: async () => {
        const tables = ['record', 'feed'].map((table) => `${started.schema}.${table}`)
        // As a disk that does not take commits: what is there is read all the same.
        await client.query(`BEGIN; LOCK TABLE ${tables.join(', ')} IN EXCLUSIVE MODE`)
        return { end: () => client.query('COMMIT') }
      },
    })
  })
})

describe('C12.1.2 a trail whose syncs take 3 s', () => {
  const preload = join(ROOT, 'test/support/troubled-audit.ts')

  it('makes logins slow, one after another and ten at once, and fails none', async () => {
    const config = join(await dataFolder(), 'postern.yaml')
    writeFileSync(config, `extends: ${join(ROOT, 'config/demo.yaml')}\n${ENDS_AT_ONCE}\n`)
    const postern = await spawnPostern({ config, node: ['--require', preload] })
    onTestFinished(async () => {
      await postern.stop()
    })
    const login = () =>
      issueToken(postern, { scope: 'openid offline_access business.fund.list target:b/ACME' })
    await login()
    writeFileSync(join(postern.data, 'audit.trouble'), 'slow')
    const first = login()
    // It rejects where it is refused.
    await Promise.all([first, ...Array.from({ length: 10 }, login)])
    expect(postern.output()).not.toMatch(/audit_(held|lost|dropped|unwritable)/)
  })

  it('fails no command that works without a service: neither what gives nor what takes away', async () => {
    const data = await dataFolder()
    await giveKey(data)
    writeFileSync(join(data, 'audit.trouble'), 'slow')
    const env = { POSTERN_DATA: data, POSTERN_CONFIG: DEMO, NODE_OPTIONS: `--require ${preload}` }
    const lines = [
      'client add tally --kind customer --name Tally --agreement 2026-01-15 --business ACME --scope openid',
      'client disable tally',
      `backup ${join(data, 'copy.sqlite')}`,
    ]
    for (const line of lines) {
      const { code, stderr } = await spawnVerb(line.split(' '), { env })
      expect({ code, told: /record|trail/.exec(stderr) }).toEqual({ code: 0, told: null })
    }
    expect(auditRecords({ data }).filter(({ event }) => event === 'client.added')).toHaveLength(2)
  })

  it('holds no command for ever whose disk stands: nothing is given, and it says why', async () => {
    const data = await dataFolder()
    await giveKey(data)
    const env = { POSTERN_DATA: data, POSTERN_CONFIG: DEMO, NODE_OPTIONS: `--require ${preload}` }
    const add =
      'client add tally --kind customer --name Tally --agreement 2026-01-15 --business ACME --scope openid'
    // The folder of the trail is there, and the manifest that is written in it before.
    await spawnVerb(['keys', 'list'], { env })
    writeFileSync(join(data, 'audit.trouble'), 'frozen')
    const given = spawnVerb(add.split(' '), { env })
    const { code, stdout, stderr } = await given
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain('nothing was changed, because it could not be recorded')
  })
})
