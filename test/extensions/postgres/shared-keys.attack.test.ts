/** Signing keys of several nodes, in the Postgres store that they share. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Fault } from '../../../src/base/kernel/faults.ts'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import { fundsOf } from '../../support/changed-funds.ts'
import { eventually } from '../../support/eventually.ts'
import { needing } from '../../support/machine.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { postForm } from '../../support/oauth.ts'
import { query, sharedPostgres } from '../../support/postgres.ts'
import { bearer } from '../../support/requests.ts'
import { sealKey } from '../../support/seal-key.ts'
import { shared } from '../../support/shared.ts'
import { sharedStore } from '../../support/shared-store.ts'
import { postern, type StartedPostern } from '../../support/start-postern.ts'
import { openUpstream } from '../../support/start-upstream.ts'
import { issueToken } from '../../support/tokens.ts'

type Shared = Awaited<ReturnType<typeof sharedStore>>

const SCOPE = 'openid business.fund.list target:b/ACME'

/** A node under the addresses that all nodes have: those of the first one. */
const node = (store: Shared, first?: StartedPostern): Promise<StartedPostern> =>
  postern({
    keeps: 'store',
    change: (configuration: Configuration) => ({
      ...configuration,
      store,
      server: {
        ...configuration.server,
        ...(first !== undefined && { authUrl: first.authUrl, baseUrl: first.baseUrl }),
      },
    }),
  })

const local = ({ port }: StartedPostern): string => `http://127.0.0.1:${port}`

const call = async (service: StartedPostern, token: string): Promise<number> => {
  const url = `${local(service)}/api/1.0/b/ACME/fund-data/fund-list`
  const response = await fetch(url, { headers: bearer(token) })
  await response.arrayBuffer()
  return response.status
}

const published = async (service: StartedPostern): Promise<readonly string[]> => {
  const response = await fetch(`${local(service)}/.well-known/jwks.json`)
  const { keys } = (await response.json()) as { keys: { kid: string }[] }
  return keys.map(({ kid }) => kid).sort()
}

const tokenOf = async (service: StartedPostern): Promise<string> =>
  (await issueToken({ authUrl: local(service) }, { scope: SCOPE })).access_token

/** Another `kid` in the header: the signature then fits no longer, but the key is looked for first. */
function underKey(token: string, kid: string): string {
  const [header = '', ...rest] = token.split('.')
  const members = JSON.parse(Buffer.from(header, 'base64url').toString()) as object
  return [Buffer.from(JSON.stringify({ ...members, kid })).toString('base64url'), ...rest].join('.')
}

describe('keys in the store that nodes share', needing('postgresql'), () => {
  /** A node whose keys no test changes. */
  const alone = shared(async () => {
    const store = await sharedStore()
    return { store, one: await node(store) }
  })

  it('C6.3.4 a token of one node is good at the others, also one whose key was made a moment ago', async () => {
    const store = await sharedStore()
    const one = await node(store)
    const other = await node(store, one)
    expect(await published(other)).toEqual(await published(one))
    expect(await call(other, await tokenOf(one))).toBe(200)
    // All keys are removed: the next token is signed by a key that only one node knows.
    const { place } = one.world.keys!
    for (const name of await place.names()) await place.remove(name)
    await one.world.keys!.refresh()
    const token = await tokenOf(one)
    await eventually(async () => expect(await call(other, token)).toBe(200))
    await eventually(async () => expect(await published(other)).toEqual(await published(one)))
  })

  it('C4.15 a token with an unknown key is 503 while the keys cannot be read, and 401 again when they can', async () => {
    const { one: service } = await alone()
    const token = await tokenOf(service)
    const unknown = underKey(token, 'of-another-node')
    // A reading that takes longer than a call may wait is 503 too, on a busy machine.
    await eventually(async () => expect(await call(service, unknown)).toBe(401))
    const { store } = service.world
    const keys = service.world.keys!
    const list = store.list.bind(store)
    const confirm = keys.confirm.bind(keys)
    Object.assign(store, { list: () => Promise.reject(new Fault('identity_unavailable')) })
    // A reading of the change feed that finds nothing new is as good as one of the keys: it is switched off too.
    Object.assign(keys, { confirm: () => false })
    expect(await call(service, unknown)).toBe(503)
    expect(await call(service, token)).toBe(200)
    Object.assign(store, { list })
    Object.assign(keys, { confirm })
    await eventually(async () => expect(await call(service, unknown)).toBe(401))
  })

  it('T7 a node with another seal does not start, and changes no key', async () => {
    const { store, one } = await alone()
    const rows = async (): Promise<string> =>
      query(
        await sharedPostgres(),
        `SELECT kind, key, value FROM ${store.schema}.record WHERE kind IN ('signing_key', 'secret') ORDER BY kind, key`,
      )
    const before = await rows()
    await expect(node({ ...store, seal: [sealKey('other')] }, one)).rejects.toThrow(
      /sealed with the seal test, which `store\.seal` does not have/,
    )
    expect(await rows()).toBe(before)
    expect(await call(one, await tokenOf(one))).toBe(200)
  })

  it('T3.15 the database has no private key, no secret and no seal that can be read', async () => {
    const { store, one } = await alone()
    const { world } = one
    const { text } = await world.keys!.place.secret()
    const rows = query(await sharedPostgres(), `SELECT kind, key, value FROM ${store.schema}.record`)
    expect(rows).toContain('signing_key|ES256-1|')
    for (const hidden of [text, store.seal[0]!.key, '"kty"', '"d"']) expect(rows).not.toContain(hidden)
  })

  it('T3.10 stolen keys that are replaced at one node are refused at the others, and refresh tokens too', async () => {
    const store = await sharedStore()
    const one = await node(store)
    const other = await node(store, one)
    const scope = `offline_access ${SCOPE}`
    const { access_token, refresh_token = '' } = await issueToken({ authUrl: local(one) }, { scope })
    expect(await call(other, access_token)).toBe(200)
    const token = await readFile(join(one.data, 'admin-token'), 'utf8')
    const replaced = await fetch(`${one.adminUrl}/keys/rotate`, {
      method: 'POST',
      headers: { ...bearer(token.trim()), 'content-type': 'application/json' },
      body: JSON.stringify({ compromised: true, reason: 'stolen' }),
    })
    expect(await replaced.json()).toMatchObject({
      outcome: 'rotated',
      removed: ['ES256-1', 'RS256-1'],
      families: 1,
    })
    const refreshed = await postForm({ authUrl: local(other) }, '/connect/token', {
      params: { grant_type: 'refresh_token', refresh_token },
    })
    expect([refreshed.status, refreshed.json.error]).toEqual([400, 'invalid_grant'])
    await eventually(async () => {
      expect([await call(one, access_token), await call(other, access_token)]).toEqual([401, 401])
      expect(await published(other)).toEqual(await published(one))
    })
    await eventually(() => expect(other.world.keys!.secretId).toBe(one.world.keys!.secretId))
    expect(await call(other, await tokenOf(one))).toBe(200)
  })

  it('C6.3.4 C8.2 calls go on to upstreams that get a signed token, though the keys cannot be read for long', async () => {
    const store = await sharedStore()
    const upstream = await openUpstream()
    onTestFinished(() => upstream.close())
    const clock = movableClock(Date.now())
    const service = await postern({
      clock,
      config: 'upstream.yaml',
      keeps: 'store',
      environment: { UPSTREAM_URL: upstream.url },
      change: (configuration: Configuration) => ({
        ...configuration,
        store,
        keys: { rotation: { ...configuration.keys.rotation, announce: 0 } },
        backends: {
          ...configuration.backends,
          funds: { ...fundsOf(configuration), identity: 'token' as const },
        },
      }),
    })
    const token = await tokenOf(service)
    const away = (): Promise<never> => Promise.reject(new Fault('identity_unavailable'))
    Object.assign(service.world.store, { changes: away, list: away, find: away })
    clock.advance(2 * 60_000)
    const { keys } = service.world
    await expect(keys!.sign({}, { typ: 'JWT', algorithm: 'ES256' })).rejects.toThrow(/keys were not read/)
    expect(await call(service, token)).toBe(200)
    expect(upstream.requests.at(-1)?.headers['x-postern-token']).toHaveLength(1)
  })
})
