/** T5.21: a service that starts while its trail cannot be signed. */
import { mkdir, readFile, symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { verifyTrail } from '../../../src/extensions/audit/read/verify.ts'
import { readChains, segmentsOf } from './support/audit-chain.ts'
import { CREATE, JSON_BODY, LIST, NEW_FUND } from '../../support/audited-calls.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { eventually } from '../../support/eventually.ts'
import { freePort } from '../../support/free-port.ts'
import { giveKey } from '../../support/ready-key.ts'
import { bearer, expectFault, send } from '../../support/requests.ts'
import { ENDS_AT_ONCE } from '../../support/spawn-postern.ts'
import { postern, startPostern } from '../../support/start-postern.ts'
import { answerJson, startUpstream } from '../../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'
import { poolConfig, startPool } from '../../support/worker-pool.ts'
import { withAudit } from '../../support/with-audit.ts'

it('T5.21 C12.4.4 C12.1.2 it serves reads, and refuses what must be recorded; once it can sign it does both, without a restart', async () => {
  const upstream = await startUpstream(answerJson({ Code: 'NEW1' }))
  const data = await dataFolder()
  await giveKey(data)
  // Its port is a part of the issuer's URL, which stays.
  const environment = { UPSTREAM_URL: upstream.url, POSTERN_PORT: String(await freePort()) }
  const served = { config: 'upstream.yaml', data, environment }
  const before = await startPostern(served)
  const { access_token: token } = await issueToken(before, { scope: ALL_AT_ACME })
  await before.close()

  // Another trail begins, whose manifest cannot be made: it is a link to a folder that there is not.
  const folder = join(data, 'unsigned')
  const manifest = join(folder, 'manifest.jsonl')
  await mkdir(folder, { mode: 0o700 })
  await symlink(join(data, 'not-there', 'manifest.jsonl'), manifest)
  const service = await postern({
    ...served,
    change: (all) => withAudit(all, { folder }),
  })
  const readiness = async () => {
    const response = await fetch(`${service.adminUrl}/health/ready`)
    return { status: response.status, text: await response.text() }
  }
  const headers = { ...bearer(token), ...JSON_BODY }
  const change = () => send(service, { method: 'POST', target: CREATE, headers, body: NEW_FUND })
  const read = () => send(service, { target: LIST, headers })

  const { status, text } = await readiness()
  expect(status).toBe(200)
  expect(text).toContain('what is recorded cannot be signed')
  expect(text).toContain('records cannot be written: what must be recorded first is refused with 503')
  expectFault(await change(), 'audit_unavailable')
  await expect(issueToken(service, { scope: ALL_AT_ACME })).rejects.toThrow()
  expect(upstream.requests).toEqual([])
  expect((await read()).status).toBe(200)
  expect(upstream.requests).toHaveLength(1)
  expect(segmentsOf(folder).size).toBe(0)
  const events = () => service.log().map(({ event }) => event)
  expect(events()).toContain('audit_manifest_unwritable')

  await unlink(manifest)
  await eventually(async () => expect((await readiness()).text).toContain('"degraded":[]'))
  expect(events()).toContain('audit_manifest_writable')
  expect((await change()).status).toBe(200)
  expect((await issueToken(service, { scope: ALL_AT_ACME })).access_token).not.toBe('')
  expect(upstream.requests).toHaveLength(2)
  await service.close()
  expect(await readFile(manifest, 'utf8')).toMatch(/^\{"v":2,"n":1,/)
  const [records = [], ...others] = readChains(folder).values()
  expect(others).toEqual([])
  const told = records.filter(({ event }) => event.startsWith('call.'))
  expect(told.filter(({ outcome }) => outcome !== 'refused').map(({ event }) => event)).toEqual([
    'call.intended',
    'call.settled',
  ])
  expect(verifyTrail({ folder })).toMatchObject({ whole: true, unsigned: 0, open: 0 })
})

it('T5.21 C12.4.4 C12.1.2 so do its workers, who send their records: they refuse at once, and leave no intent of what they refused', async () => {
  const upstream = await startUpstream(answerJson({ Code: 'NEW1' }))
  const data = await dataFolder()
  await giveKey(data)
  const environment = { POSTERN_PORT: String(await freePort()), POSTERN_DATA: data }
  const settings = (folder: string) => `${ENDS_AT_ONCE}\naudit: { timeout: 20s, folder: ${folder} }`
  const before = await startPool(poolConfig(upstream.url, settings(join(data, 'audit'))), { environment })
  const token = await before.token()
  expect(await before.stop()).toBe(0)

  const folder = join(data, 'unsigned')
  const manifest = join(folder, 'manifest.jsonl')
  await mkdir(folder, { mode: 0o700 })
  await symlink(join(data, 'not-there', 'manifest.jsonl'), manifest)
  const service = await startPool(poolConfig(upstream.url, settings(folder)), { environment })
  const headers = { ...bearer(token), ...JSON_BODY }
  const change = () => send(service, { method: 'POST', target: CREATE, headers, body: NEW_FUND })
  const ready = async () => (await fetch(`${service.adminUrl}/health/ready`)).text()
  const each = Array.from({ length: 4 })
  const refused = await Promise.all(each.map(change))
  for (const answer of refused) expectFault(answer, 'audit_unavailable')
  expect(upstream.requests).toEqual([])
  expect((await service.call(token)).status).toBe(200)
  expect(await ready()).toContain('what is recorded cannot be signed')
  expect(segmentsOf(folder).size).toBe(0)

  await unlink(manifest)
  await eventually(async () => expect(await ready()).toContain('"degraded":[]'))
  await eventually(async () => {
    const answers = await Promise.all(each.map(change))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  })
  expect(await service.stop()).toBe(0)
  const [records = [], ...others] = readChains(folder).values()
  expect(others).toEqual([])
  const ids = new Set(refused.map((answer) => answer.headers['x-request-id']))
  const told = records.filter(({ requestId = '' }) => ids.has(requestId))
  expect(told.map(({ event }) => event)).not.toContain('call.intended')
  expect(verifyTrail({ folder })).toMatchObject({ whole: true, unsigned: 0, open: 0 })
})
