/** Nodes whose configurations have different seals: for the signing keys that they share, and for secret values of businesses. */
import { writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { SealKey } from '../../../src/identity/keys/signing/seal.ts'
import { runVerb } from '../../support/command-line.ts'
import { configFiles } from '../../support/config-files.ts'
import { directoryEditors } from '../../support/directory-editors.ts'
import { eventually } from '../../support/eventually.ts'
import { needing } from '../../support/machine.ts'
import { postForm } from '../../support/oauth.ts'
import { drawSchema, sharedPostgres } from '../../support/postgres.ts'
import { bearer, send } from '../../support/requests.ts'
import { sealKey } from '../../support/seal-key.ts'
import { secretValues, UPSTREAM_BASE } from '../../support/secret-values.ts'
import { DEMO, ENDS_AT_ONCE } from '../../support/spawn-postern.ts'
import { postern, type StartedPostern } from '../../support/start-postern.ts'
import { openUpstream, startUpstream } from '../../support/start-upstream.ts'
import { fillStore, STORED_PASSWORD } from '../../support/stored-records.ts'
import { issueToken } from '../../support/tokens.ts'

const SCOPE = 'openid offline_access business.fund.list target:b/ACME'
const ADMIN_TOKEN = 'a-token-of-this-test-0123456789'

/** Nodes of one store under one address, each with a file of its own. */
async function cluster() {
  const [postgres, schema] = [await sharedPostgres(), drawSchema()]
  const upstream = await openUpstream()
  onTestFinished(() => upstream.close())
  const text = (seals: readonly SealKey[]): string =>
    JSON.stringify({
      extends: DEMO,
      server: { baseUrl: 'http://127.0.0.1:8080', authUrl: 'http://127.0.0.1:8080' },
      admin: { token: { env: 'ADMIN_TOKEN' } },
      store: {
        ...{ kind: 'postgres', url: postgres.url(), schema, connections: 2 },
        seal: seals.map(({ id }) => ({ id, key: { env: `SEAL_${id}` } })),
      },
      backends: { sample: null, funds: { kind: 'http', target: upstream.url } },
      areas: { 'fund-data': { backend: 'funds' }, 'member-data': { backend: 'funds' } },
    })
  return async (all: readonly SealKey[], ...seals: readonly SealKey[]) => {
    const file = configFiles({
      'postern.json': text(seals),
      'quick.yaml': `extends: postern.json\n${ENDS_AT_ONCE}`,
    })
    const keys = Object.fromEntries(all.map(({ id, key }) => [`SEAL_${id}`, key]))
    const service = await postern({
      file: file('quick.yaml'),
      environment: { ADMIN_TOKEN, ...keys },
    })
    const order = async (path: string, body: object = {}) => {
      const headers = { ...bearer(ADMIN_TOKEN), 'content-type': 'application/json' }
      const init = { method: 'POST', headers, body: JSON.stringify(body) }
      const response = await fetch(`${service.adminUrl}${path}`, init)
      return { status: response.status, text: await response.text() }
    }
    return {
      service,
      order,
      reloadWith: async (...next: readonly SealKey[]) => {
        await writeFile(file('postern.json'), text(next))
        return order('/reload')
      },
    }
  }
}

const local = ({ port }: StartedPostern) => ({ authUrl: `http://127.0.0.1:${port}` })

const login = (service: StartedPostern) =>
  postForm(local(service), '/connect/token', {
    params: { grant_type: 'password', username: 'alice', password: 'alice-password', scope: SCOPE },
  })

const refresh = (service: StartedPostern, refresh_token: string) =>
  postForm(local(service), '/connect/token', { params: { grant_type: 'refresh_token', refresh_token } })

const callWith = async (service: StartedPostern, token: string): Promise<number> => {
  const url = `${local(service).authUrl}/api/1.0/b/ACME/fund-data/fund-list`
  const response = await fetch(url, { headers: bearer(token) })
  await response.arrayBuffer()
  return response.status
}

const readiness = async ({ adminUrl }: StartedPostern) => {
  const response = await fetch(`${adminUrl}/health/ready`)
  return { status: response.status, body: (await response.json()) as object }
}

const UNKNOWN_SEAL = {
  name: 'signing keys',
  reason: expect.stringMatching(/sealed with the seal b, which store\.seal does not have here/),
}

describe('C6.3.4 a node that lacks the seal of another one', needing('postgresql'), () => {
  it('C6.3.4 C11.7.2 answers logins and refreshes with 503, says why, and works again with the seal', async () => {
    const node = await cluster()
    const [a, b] = [sealKey('a'), sealKey('b')]
    const one = await node([a, b], a)
    const other = await node([a, b], b, a)
    const before = await issueToken(local(one.service), { scope: SCOPE })
    expect((await other.order('/keys/rotate', { compromised: true, reason: 'stolen' })).status).toBe(200)
    await eventually(async () => expect(await callWith(one.service, before.access_token)).toBe(503))
    const elsewhere = await eventually(() => issueToken(local(other.service), { scope: SCOPE }))
    await eventually(async () => {
      const { status, body } = await readiness(one.service)
      expect(status).toBe(200)
      expect(body).toMatchObject({ status: 'ready', degraded: [UNKNOWN_SEAL] })
    })
    for (const answer of [await login(one.service), await refresh(one.service, elsewhere.refresh_token!)])
      expect([answer.status, answer.json.error]).toEqual([503, 'temporarily_unavailable'])
    expect(await callWith(one.service, elsewhere.access_token)).toBe(503)

    expect(await one.reloadWith(b, a)).toMatchObject({ status: 200 })
    await eventually(async () => {
      expect((await login(one.service)).status).toBe(200)
      expect(await callWith(one.service, elsewhere.access_token)).toBe(200)
      expect((await readiness(one.service)).body).toMatchObject({ degraded: [] })
    })
    expect((await refresh(one.service, elsewhere.refresh_token!)).status).toBe(200)
  })

  it('C6.3.4 T7 refuses a reload whose seals do not open what the store has, and goes on with its own', async () => {
    const node = await cluster()
    const [a, c] = [sealKey('a'), sealKey('c')]
    const one = await node([a, c], a)
    const refused = await one.reloadWith(c)
    expect(refused.status).toBe(409)
    expect(refused.text).toContain('store.seal  ')
    expect(refused.text).toContain('sealed with the seal a, which `store.seal` does not have')
    expect((await login(one.service)).status).toBe(200)
    expect(await one.reloadWith(c, a)).toMatchObject({ status: 200 })
    expect((await login(one.service)).status).toBe(200)
  })
})

describe('T2.13 a secret value of nodes that share a store', needing('postgresql'), () => {
  it('C6.3.4 C11.7.2 is in force on every node when a change is answered, sealed, and sealed anew by `keys rewrap`, as `keys doctor` says', async () => {
    const OTHER = 'the-one-after-it-9914'
    const [postgres, schema] = [await sharedPostgres(), drawSchema()]
    const upstream = await startUpstream()
    const seals = { a: sealKey('a').key, b: sealKey('b').key }
    const text = (...ids: readonly string[]): string =>
      JSON.stringify({
        extends: UPSTREAM_BASE,
        server: { baseUrl: 'http://127.0.0.1:8080', authUrl: 'http://127.0.0.1:8080' },
        admin: { token: { env: 'ADMIN_TOKEN' } },
        store: {
          ...{ kind: 'postgres', url: postgres.url(), schema, connections: 2 },
          seal: ids.map((id) => ({ id, key: { env: `SEAL_${id}` } })),
        },
      })
    const environment = {
      ...{ UPSTREAM_URL: upstream.url, KEY: 'from-the-environment-8361', ADMIN_TOKEN },
      ...{ SEAL_a: seals.a, SEAL_b: seals.b },
    }
    const files = configFiles({ 'store.json': text('a'), 'a.yaml': secretValues('store.json', ENDS_AT_ONCE) })
    const start = () => postern({ file: files('a.yaml'), environment })
    const [one, other] = [await start(), await start()]
    const admin = async (method: string, path: string, body: object) => {
      const headers = { ...bearer(ADMIN_TOKEN), 'content-type': 'application/json' }
      const init = { method, headers, body: JSON.stringify(body) }
      return (await fetch(`${one.adminUrl}${path}`, init)).status
    }
    const editors = await directoryEditors(one.configuration, one.world, () => Promise.resolve())
    const secret = await fillStore(editors)
    const scope = 'fund.read target:b/STORED'
    const ann = { client: 'tally', secret, username: 'ann', password: STORED_PASSWORD, scope }
    const { access_token } = await issueToken({ authUrl: `http://127.0.0.1:${one.port}` }, ann)
    const sentBy = async (node: StartedPostern) => {
      upstream.requests.splice(0)
      const target = '/api/1.0/b/STORED/fund-data/fund-list'
      await send(node, { target, headers: bearer(access_token) })
      return upstream.requests.map((request) => [request.target, ...(request.headers['x-key'] ?? [])])
    }
    const stored = async () => JSON.stringify(await one.world.store.find('directory_business', 'STORED'))

    for (const key of ['sealed-in-the-store-5527', OTHER]) {
      const values = { db: 'x', key: { secret: key } }
      expect(await admin('PATCH', '/businesses/STORED', { values })).toBe(200)
      expect(await sentBy(other)).toEqual([['/x', key]])
      expect(await sentBy(one)).toEqual([['/x', key]])
      expect(await stored()).toContain('"seal":"a"')
      expect(await stored()).not.toContain(key)
    }

    writeFileSync(files('store.json'), text('b', 'a'))
    const env = { ...environment, POSTERN_CONFIG: files('a.yaml'), POSTERN_DATA: one.data }
    const doctor = async () => (await runVerb(['keys', 'doctor'], { env })).stdout
    expect(await doctor()).toContain('WARN STORED.key: sealed with the seal a, which is not the first.')
    const rewrap = await runVerb(['keys', 'rewrap'], { env })
    expect([rewrap.code, rewrap.stdout]).toEqual([0, expect.stringContaining('STORED.key: sealed with')])
    expect(await stored()).toContain('"seal":"b"')
    expect(await doctor()).not.toContain('sealed with')
    writeFileSync(files('store.json'), text('b'))
    for (const node of [one, other]) {
      const headers = bearer(ADMIN_TOKEN)
      const reloaded = await fetch(`${node.adminUrl}/reload`, { method: 'POST', headers })
      expect([reloaded.status, await reloaded.text()]).toEqual([200, expect.any(String)])
      await node.world.storedPlaces.readAll()
      expect(await sentBy(node)).toEqual([['/x', OTHER]])
    }
  })
})
