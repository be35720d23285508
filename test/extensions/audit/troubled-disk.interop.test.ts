/** A trail whose disk is slow, stands or takes no writes: in a service, in workers and in commands. The timeouts are the defaults. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { auditRecords } from '../../support/audit-files.ts'
import { spawnVerb } from '../../support/command-line.ts'
import { configFiles } from '../../support/config-files.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { becomes, valueOf } from '../../support/metrics.ts'
import { postForm } from '../../support/oauth.ts'
import { giveKey } from '../../support/ready-key.ts'
import { DEMO, ENDS_AT_ONCE, ROOT, spawnPostern, WITHOUT_WAITS } from '../../support/spawn-postern.ts'
import { answerJson, startUpstream } from '../../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'
import { UPSTREAM_WORLD } from '../../support/worker-pool.ts'

const preload = join(ROOT, 'test/extensions/audit/support/troubled-audit.ts')

describe('T5.5 C12.1.2 a trail whose syncs take 3 s', () => {
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

describe('C11.1 a trail of two workers', { timeout: 180_000 }, () => {
  it('C12.1.2 C11.1 shows that a trail cannot be written, what is refused for it, and that it is well again', async () => {
    const upstream = await startUpstream(answerJson({ FundSummaries: [], TotalCount: 0 }))
    const at = configFiles({
      'postern.yaml': `extends: ${UPSTREAM_WORLD}\nworkers: 2\n${WITHOUT_WAITS}\nbackends: { funds: { kind: http, target: ${upstream.url} } }`,
    })
    const service = await spawnPostern({ config: at('postern.yaml'), node: ['--require', preload] })
    onTestFinished(async () => {
      await service.stop()
    })
    await issueToken(service, { scope: ALL_AT_ACME })
    await becomes(service, 'audit_writable', 1)
    expect(await valueOf(service, 'audit_refused_total')).toBe(0)
    const trouble = join(service.data, 'audit.trouble')
    writeFileSync(trouble, 'read-only')
    const params = { grant_type: 'password', username: 'alice', password: 'alice-password', scope: 'openid' }
    expect((await postForm(service, '/connect/token', { params })).status).toBe(503)
    await expect.poll(() => valueOf(service, 'audit_refused_total'), { timeout: 30_000 }).toBeGreaterThan(0)
    await becomes(service, 'audit_writable', 0)
    rmSync(trouble)
    await becomes(service, 'audit_writable', 1)
    expect((await postForm(service, '/connect/token', { params })).status).toBe(200)
  })
})
