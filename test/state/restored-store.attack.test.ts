/** A backup of the store was restored: what was revoked since would be good again. */
import { copyFileSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { sqliteFile } from '../../src/state/stores/schema.ts'
import { recordsOf } from '../support/audit-files.ts'
import { runVerb } from '../support/command-line.ts'
import { dataFolder } from '../support/data-folder.ts'
import { eventually } from '../support/eventually.ts'
import { postForm } from '../support/oauth.ts'
import { bearer } from '../support/requests.ts'
import { shared } from '../support/shared.ts'
import { DEMO } from '../support/spawn-postern.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'

const MINUTE = 60_000
const SCOPE = 'openid offline_access business.fund.list target:b/ACME'

const refresh = (service: StartedPostern, refresh_token: string) =>
  postForm(service, '/connect/token', { params: { grant_type: 'refresh_token', refresh_token } })

const call = async ({ baseUrl }: StartedPostern, token: string): Promise<number> => {
  const url = `${baseUrl}/api/1.0/b/ACME/fund-data/fund-list`
  return (await fetch(url, { headers: bearer(token) })).status
}

const order = (service: StartedPostern, data: string, ...args: readonly string[]) =>
  runVerb([...args, '--reason', 'backup restored', '--admin-url', service.adminUrl], {
    env: { POSTERN_DATA: data },
  })

const degraded = async ({ adminUrl }: StartedPostern): Promise<unknown> => {
  const response = await fetch(`${adminUrl}/health/ready`)
  expect(response.status).toBe(200)
  return ((await response.json()) as { degraded: unknown }).degraded
}

describe('T3.17 all that was given before', () => {
  it('C11.5 C6.3.3 ends with `postern revoke --before now`, and what is given later is good', async () => {
    const data = await dataFolder()
    const service = await postern({ data })
    const held = await issueToken(service, { scope: SCOPE })
    const others = await issueToken(service, { username: 'bob', scope: 'openid' }).catch(() => held)
    expect(await order(service, data, 'revoke', '--before', 'now', '--preview')).toMatchObject({ code: 0 })
    expect(await call(service, held.access_token)).toBe(200)
    const { code, stdout } = await order(service, data, 'revoke', '--before', 'now')
    expect([code, stdout]).toEqual([0, expect.stringContaining('1 family')])
    for (const { access_token } of [held, others]) expect(await call(service, access_token)).toBe(401)
    expect((await refresh(service, held.refresh_token!)).json.error).toBe('invalid_grant')
    const later = await issueToken(service, { scope: SCOPE })
    expect(await call(service, later.access_token)).toBe(200)
    expect((await refresh(service, later.refresh_token!)).status).toBe(200)
    const [record] = recordsOf(service, 'revocation.ordered')
    expect(record).toMatchObject({ outcome: 'success', change: { before: 'now', families: 1 } })
  })

  it('C11.6 is told by no other time', async () => {
    const { code, stderr } = await runVerb(['revoke', '--before', 'yesterday'], {})
    expect([code, stderr]).toEqual([2, expect.stringContaining('--before: expected now')])
  })
})

const MEMORY = 'store-seen.json'

interface Memory {
  readonly at: number
  readonly boot: string
}

/** What a service on one machine leaves, with a copy of its store from before a client was disabled. */
const left = shared(async () => {
  const data = await dataFolder()
  const copy = join(await dataFolder(), 'copy.sqlite')
  const first = await postern({ config: 'demo.yaml', data })
  await issueToken(first, { scope: SCOPE })
  const env = { POSTERN_CONFIG: DEMO, POSTERN_DATA: data }
  const command = async (...args: string[]) => expect(await runVerb(args, { env })).toMatchObject({ code: 0 })
  await command('maintenance', 'on', '--identity', '--message', 'short')
  await command('maintenance', 'off', '--identity')
  await command('backup', copy)
  const remembered = JSON.parse(readFileSync(join(data, MEMORY), 'utf8')) as Memory
  // The disabling is more than a minute younger than what the copy has.
  const store = new DatabaseSync(copy)
  store.exec(`UPDATE change SET sequence = sequence - ${6 * MINUTE};
    UPDATE sqlite_sequence SET seq = seq - ${6 * MINUTE}`)
  store.close()
  await command('client', 'disable', 'acme-books', '--admin-url', first.adminUrl)
  await first.close()
  return { data, copy, remembered }
})

/** The same service, for one test: its store can be put back. */
async function machine() {
  const before = await left()
  const data = await dataFolder()
  cpSync(before.data, data, { recursive: true })
  const start = () => postern({ config: 'demo.yaml', data })
  const putBack = (): void => {
    const path = sqliteFile(data)
    for (const file of [`${path}-wal`, `${path}-shm`]) rmSync(file, { force: true })
    copyFileSync(before.copy, path)
  }
  /** What the service remembered before, with some of it changed. */
  const remember = (changes: Partial<Memory>): void =>
    writeFileSync(join(data, MEMORY), JSON.stringify({ ...before.remembered, sequence: 0, ...changes }))
  return { data, start, putBack, remember }
}

const LACKING = {
  name: 'store',
  reason: expect.stringMatching(
    /audit trail has later changes: .*client\.disabled acme-books .*`postern store accept --contents`/,
  ),
}

const login = (service: StartedPostern) =>
  postForm(service, '/connect/token', {
    params: { grant_type: 'password', username: 'alice', password: 'alice-password', scope: SCOPE },
  })

describe('T3.17 C11.7.3 a store of this machine that was put back', () => {
  it('C11.7.3 issues nothing until it is accepted, and it is told what it lacks', async () => {
    const { data, start, putBack } = await machine()
    putBack()
    const service = await start()
    const refused = await login(service)
    expect([refused.status, refused.json.error]).toEqual([503, 'temporarily_unavailable'])
    expect(await degraded(service)).toEqual([LACKING])
    await service.close()
    // Nobody has accepted it: a start does not either.
    const again = await start()
    expect((await login(again)).status).toBe(503)
    expect(await order(again, data, 'store', 'accept', '--contents')).toMatchObject({ code: 0 })
    await eventually(async () => expect(await degraded(again)).toEqual([]))
    // That is why nobody is let in by a store that is put back: the client is enabled again.
    expect((await login(again)).status).toBe(200)
    await again.close()
    expect(await degraded(await start())).toEqual([])
  })

  it('C11.7.3 is noticed by the trail where the service was killed before it remembered, or its folder was put back', async () => {
    const { start, putBack, remember } = await machine()
    putBack()
    remember({})
    const killed = await start()
    expect(await degraded(killed)).toEqual([LACKING])
    await killed.close()
    putBack()
    remember({ at: Date.now() - 60 * MINUTE, boot: 'of another machine' })
    expect(await degraded(await start())).toEqual([LACKING])
  })

  it('C11.7.3 is not doubted after a power cut, which takes the last changes, nor without a memory of it', async () => {
    const { start, putBack, remember } = await machine()
    putBack()
    remember({ boot: 'before the power cut' })
    const service = await start()
    expect(await degraded(service)).toEqual([])
    expect((await login(service)).status).toBe(200)
    await service.close()
    expect(await degraded(await start())).toEqual([])
  })

  it('C11.7.3 C11.5.8 is not doubted after acts that change nothing in the store: an export, and a link for a password', async () => {
    const data = await dataFolder()
    const env = { POSTERN_CONFIG: DEMO, POSTERN_DATA: data }
    const add = ['user', 'add', 'dora', '--customer', 'acme-books', '--access', 'ACME=Read-only']
    expect(await runVerb(add, { env, input: 'dora-password-1\n' })).toMatchObject({ code: 0 })
    const start = () => postern({ config: 'demo.yaml', data })
    const service = await start()
    for (const act of ['export', 'link'])
      expect(await runVerb(['user', act, 'dora', '--admin-url', service.adminUrl], { env })).toMatchObject({
        code: 0,
      })
    await service.close()
    for (const event of ['user.exported', 'user.link_made'] as const)
      expect(recordsOf(service, event)).toHaveLength(2)
    // Both acts are more than a minute younger than what the store has.
    const store = new DatabaseSync(sqliteFile(data))
    store.exec(`UPDATE change SET sequence = sequence - ${6 * MINUTE};
      UPDATE sqlite_sequence SET seq = seq - ${6 * MINUTE}`)
    store.close()
    const memory = JSON.parse(readFileSync(join(data, MEMORY), 'utf8')) as Memory
    writeFileSync(join(data, MEMORY), JSON.stringify({ ...memory, sequence: 0 }))
    const again = await start()
    expect(await degraded(again)).toEqual([])
    expect((await login(again)).status).toBe(200)
  })
})
