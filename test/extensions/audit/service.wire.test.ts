/** What the audit trail keeps of operators and of the service itself (C12.1.4, C12.3). */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { hashSecret } from '../../../src/identity/directory/hashing/hasher.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { newSecret } from '../../../src/base/kernel/ids.ts'
import { recordsOf } from '../../support/audit-files.ts'
import { configFiles } from '../../support/config-files.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { eventually } from '../../support/eventually.ts'
import { shared } from '../../support/shared.ts'
import { DEMO, WITHOUT_WAITS } from '../../support/spawn-postern.ts'
import { postern, startPostern, type StartedPostern } from '../../support/start-postern.ts'
import { startPool, UPSTREAM_WORLD } from '../../support/worker-pool.ts'

/** As the one token's owner, or as the one of another token. */
function admin({ adminUrl, data }: Pick<StartedPostern, 'adminUrl' | 'data'>, token?: string) {
  const own = token ?? readFileSync(join(data, 'admin-token'), 'utf8').trim()
  return async (method: string, path: string, body?: object) => {
    const response = await fetch(`${adminUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${own}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
}

/** Nobody calls its upstream. */
const TWO_WORKERS = `
extends: ${UPSTREAM_WORLD}
workers: 2
${WITHOUT_WAITS}
backends: { funds: { kind: http, target: http://127.0.0.1:9 } }
`

const unavailable = (service: StartedPostern): void => {
  vi.spyOn(service.world.audit, 'require').mockRejectedValue(new Fault('audit_unavailable'))
}

/** A service on a configuration file that a test may edit. */
async function editable(changes = '') {
  const text = (more: string): string => `extends: ${DEMO}\nstore: { kind: memory }\n${more}\n`
  const file = configFiles({ 'a.yaml': text(changes) })('a.yaml')
  const data = await dataFolder()
  const service = await startPostern({ file, data })
  let stopped: Promise<number> | undefined
  const end = (): Promise<number> => (stopped ??= service.close())
  onTestFinished(async () => {
    await end()
  })
  return {
    ...service,
    write: (more: string) => writeFileSync(file, text(more)),
    ask: (...args: Parameters<ReturnType<typeof admin>>) => admin(service)(...args),
    records: (event: string) => recordsOf({ data }, event),
    end,
  }
}

describe('C12.1.4 what operators do', () => {
  const serve = shared(() => postern({ keeps: 'trail' }))

  it('maintenance on takes effect at once and is kept; off is durable before, with who and why', async () => {
    const service = await serve()
    const ask = admin(service)
    const on = { scope: 'business/ACME', reason: 'database move', by: 'ann' }
    expect((await ask('PUT', '/maintenance', on)).status).toBe(200)
    expect((await ask('DELETE', '/maintenance?scope=business/ACME&by=ann')).status).toBe(200)
    const who = { kind: 'operator', operator: 'admin', claimed: 'ann', via: 'admin' }
    expect(recordsOf(service, 'maintenance.switched')).toMatchObject([
      {
        outcome: 'success',
        actor: who,
        on: { kind: 'switch' },
        change: { change: 'on', switches: [{ scope: 'business/ACME' }] },
        why: 'database move',
        values: { 'actor.address': '127.0.0.1' },
      },
      { outcome: 'pending', actor: who, change: { change: 'off' } },
      { outcome: 'success', actor: who, change: { change: 'off' }, intent: expect.any(Number) },
    ])
  })

  it('without a trail: closing works, opening is 503 and what was closed stays closed', async () => {
    const service = await postern({ keeps: 'trail' })
    const ask = admin(service)
    unavailable(service)
    expect((await ask('PUT', '/maintenance', { scope: 'service' })).status).toBe(200)
    expect(await ask('DELETE', '/maintenance?scope=service')).toEqual({
      status: 503,
      body: { error: 'the audit trail cannot be written, so this is not done: try again when it can' },
    })
    // One that replaces it might let more through.
    expect((await ask('PUT', '/maintenance', { scope: 'service', clients: ['acme-books'] })).status).toBe(503)
    const { switches } = (await ask('GET', '/maintenance')).body
    expect(switches).toMatchObject([{ scope: 'service', state: 'on' }])
  })

  it('a revocation takes effect without a trail, and clearing lockouts does not', async () => {
    const service = await serve()
    const ask = admin(service)
    unavailable(service)
    const revoked = await ask('POST', '/revoke', { client: 'acme-books', business: 'ACME', reason: 'lost' })
    expect(revoked).toMatchObject({ status: 200, body: { outcome: 'revoked' } })
    expect((await ask('DELETE', '/lockouts?user=alice')).status).toBe(503)
    vi.restoreAllMocks()
    expect((await ask('DELETE', '/lockouts?user=alice')).body).toEqual({ cleared: 0 })
    expect(recordsOf(service, 'revocation.ordered')).toMatchObject([
      {
        outcome: 'success',
        on: { kind: 'tokens', client: 'acme-books', business: 'ACME' },
        change: { sessions: 0, withConsents: false },
        why: 'lost',
      },
    ])
    expect(recordsOf(service, 'lockout.cleared')).toMatchObject([
      { outcome: 'pending', values: { 'on.user': 'alice' } },
      { outcome: 'success', change: { cleared: 0 } },
    ])
  })

  it('refuses a reason that a record has no room for', async () => {
    const ask = admin(await serve())
    const problems = ['reason  is longer than 500 bytes']
    const answer = await ask('POST', '/revoke', { client: 'acme-books', reason: 'é'.repeat(251) })
    expect(answer).toMatchObject({ status: 400, body: { problems } })
  })
})

describe('C12.3 events of the service', () => {
  it('tells its start and its end, with version, workers and digests of its files', async () => {
    const service = await editable()
    await eventually(() => expect(service.records('keys.signing').length).toBeGreaterThan(0))
    await service.end()
    const service2 = { files: { 'a.yaml': expect.stringMatching(/^[\w-]{43}$/) } }
    expect(service.records('service.started')).toMatchObject([
      { actor: { kind: 'service' }, change: { version: expect.any(String), workers: 1, ...service2 } },
    ])
    expect(service.records('service.stopped')).toMatchObject([{ change: { connectionsCut: 0 } }])
  })

  it('tells a reload with who gains and who loses access, and a refused one with its problems', async () => {
    const service = await editable()
    service.write('directory: { users: { alice: { access: { ACME: Read-only } } } }')
    expect((await service.ask('POST', '/reload', { reason: 'less for one' })).status).toBe(200)
    const all = service.records('configuration.reloaded')
    const [pending, done] = all
    expect(pending).toMatchObject({
      outcome: 'pending',
      change: {
        files: { 'a.yaml': { before: expect.any(String), after: expect.any(String) } },
        gainedCount: expect.any(Number),
      },
    })
    expect(JSON.stringify(pending)).not.toContain('alice')
    expect(done).toMatchObject({ outcome: 'success', intent: pending?.['seq'] })
    service.write('vendor: NO')
    expect((await service.ask('POST', '/reload')).status).toBe(409)
    await eventually(() => expect(service.records('configuration.refused')).not.toEqual([]))
    const refused = service.records('configuration.refused').at(-1)
    expect(refused).toMatchObject({ outcome: 'refused', change: { count: 1 } })
    expect(JSON.stringify(refused)).toContain('vendor')
  })

  it('tells once, of two workers, that a planned window has begun and ended', async () => {
    const pool = await startPool(TWO_WORKERS)
    const records = (event: string) => recordsOf(pool, event)
    const [from, until] = [2000, 4000].map((ms) => new Date(Date.now() + ms).toISOString())
    const planned = await pool.order('PUT', '/maintenance', {
      scope: 'business/ACME',
      from,
      until,
      by: 'ann',
    })
    expect(planned).toMatchObject({ state: 'planned' })
    await eventually(() => expect(records('maintenance.ended')).not.toEqual([]))
    for (const event of ['maintenance.began', 'maintenance.ended'])
      expect(records(event)).toMatchObject([
        {
          actor: { kind: 'service', claimed: 'ann', via: 'schedule' },
          change: { scope: 'business/ACME', id: planned['id'] },
        },
      ])
    expect(await pool.order('POST', '/restart')).toEqual({ outcome: 'restarted', workers: 2 })
    await eventually(() => expect(records('workers.restarted')).toMatchObject([{ change: { workers: 2 } }]))
    const [pid = 0] = pool.workers()
    process.kill(pid, 'SIGKILL')
    await eventually(() =>
      expect(records('worker.died')).toMatchObject([{ outcome: 'failed', change: { pid } }]),
    )
    // Each key was told once, though three processes read them.
    const signing = records('keys.signing').map(({ change }) => (change as { kid: string }).kid)
    expect(new Set(signing).size).toBe(signing.length)
    expect(signing.length).toBeGreaterThan(0)
  })

  it('C12.2.4 cuts off, by a reload, an operator who has left', async () => {
    const token = newSecret()
    const line = `admin: { tokens: [{ name: ann, role: operate, hash: '${hashSecret(token)}' }] }`
    const service = await editable(line)
    const asAnn = admin({ adminUrl: service.adminUrl, data: service.data }, token)
    expect((await asAnn('PUT', '/maintenance', { scope: 'business/ACME' })).status).toBe(200)
    await eventually(() =>
      expect(service.records('maintenance.switched')).toMatchObject([{ actor: { operator: 'ann' } }]),
    )
    service.write('')
    expect((await service.ask('POST', '/reload')).status).toBe(200)
    expect((await asAnn('GET', '/maintenance')).status).toBe(401)
    // It only took away, so it was in force before it was recorded.
    await eventually(() =>
      expect(service.records('configuration.reloaded')).toMatchObject([{ outcome: 'success' }]),
    )
  })
})
