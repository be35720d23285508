import { describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import {
  AUDIENCE,
  foreignToken,
  ISSUER,
  makeIssuerKey,
  startForeignIssuer,
  type ForeignIssuer,
} from '../support/foreign-issuer.ts'
import { movableClock, type MovableClock } from '../support/movable-clock.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { answerJson, startUpstream, type Upstream } from '../support/start-upstream.ts'

// T3.5, T3.10: a sidecar and the keys of its issuer: withdrawn, unreachable, ambiguous, unfit.

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const SOON = { timeout: 30_000, interval: 20 }

interface Scene {
  readonly sidecar: StartedPostern
  readonly upstream: Upstream
  readonly clock: MovableClock
  readonly call: (token: string) => Promise<number>
}

async function sidecarOf(issuer: ForeignIssuer): Promise<Scene> {
  const upstream = await startUpstream(answerJson({ FundSummaries: [], TotalCount: 0 }))
  const clock = movableClock(Date.now())
  const sidecar = await postern({
    keeps: 'nothing',
    config: 'sidecar.yaml',
    clock,
    environment: { UPSTREAM_URL: upstream.url, ISSUER, ISSUER_JWKS: issuer.url, AUDIENCE },
  })
  const call = async (token: string): Promise<number> =>
    (await fetch(`${sidecar.baseUrl}${LIST}`, { headers: { Authorization: `Bearer ${token}` } })).status
  return { sidecar, upstream, clock, call }
}

const eventsOf = (sidecar: StartedPostern): unknown[] => sidecar.log().map((line) => line['event'])

/** A key set is in use and older than a minute; resolves when it was asked for again. */
async function untilReadAgain(issuer: ForeignIssuer, { clock, call }: Scene, token: string): Promise<void> {
  const before = issuer.asked
  await call(token)
  clock.advance(61_000)
  await expect.poll(() => issuer.asked, SOON).toBeGreaterThan(before)
}

async function reload({ pool }: StartedPostern, configuration: Configuration): Promise<void> {
  await pool.prepare(configuration)
  await pool.commit()
}

describe('T3.10 a key that its issuer withdraws', () => {
  it('C4.16 opens no door any more within a minute, remembered or not; the keys beside it go on', async () => {
    const [stolen, kept] = [await makeIssuerKey('stolen'), await makeIssuerKey('kept')]
    const issuer = await startForeignIssuer([stolen.jwk, kept.jwk])
    const scene = await sidecarOf(issuer)
    const { call, clock, upstream } = scene
    const [known, good] = [await foreignToken(stolen), await foreignToken(kept)]
    expect([await call(known), await call(good)]).toEqual([200, 200])
    issuer.keys = [kept.jwk]
    await untilReadAgain(issuer, scene, good)
    await expect.poll(() => call(known), SOON).toBe(401)
    const reached = upstream.requests.length
    expect(await call(await foreignToken(stolen, clock.now()))).toBe(401)
    expect(upstream.requests).toHaveLength(reached)
    expect(await call(good)).toBe(200)
  })

  it('C4.15 is not one that a reading that failed did not bring', async () => {
    const key = await makeIssuerKey('a')
    const issuer = await startForeignIssuer([key.jwk])
    const scene = await sidecarOf(issuer)
    const token = await foreignToken(key)
    expect(await scene.call(token)).toBe(200)
    const failures: ForeignIssuer['keys'][] = [
      (response) => response.writeHead(500).end('{"keys":[]}'),
      (response) => response.end('{"keys":['),
      (response) =>
        response.writeHead(200, { 'Content-Length': 30 }).write('{"keys":[]}') && response.destroy(),
      (response) => response.destroy(),
    ]
    for (const failure of failures) {
      issuer.keys = failure
      await untilReadAgain(issuer, scene, token)
      expect(await scene.call(token)).toBe(200)
    }
    await expect.poll(() => eventsOf(scene.sidecar), SOON).toContain('issuer_keys_unreachable')
    expect(await scene.call(token)).toBe(200)
  })
})

describe('T3.5 reloads', () => {
  it('C4.15 a reload while the issuer is down takes no good token away', async () => {
    const key = await makeIssuerKey('a')
    const issuer = await startForeignIssuer([key.jwk])
    const { sidecar, call } = await sidecarOf(issuer)
    const token = await foreignToken(key)
    expect(await call(token)).toBe(200)
    issuer.keys = (response) => response.destroy()
    for (let times = 0; times < 3; times++) {
      await reload(sidecar, sidecar.configuration)
      expect(await call(token)).toBe(200)
      // Not remembered by any cache: only the key is.
      expect(await call(await foreignToken(key, Date.now() - 1000 * (times + 1)))).toBe(200)
    }
  })

  it('C4.16 an issuer that is not configured any more is believed no more, and its keys are given up', async () => {
    const [old, next] = [await makeIssuerKey('old'), await makeIssuerKey('next')]
    const [before, after] = [await startForeignIssuer([old.jwk]), await startForeignIssuer([next.jwk])]
    const { sidecar, call } = await sidecarOf(before)
    expect(await call(await foreignToken(old))).toBe(200)
    const [issuer] = sidecar.configuration.issuers
    await reload(sidecar, { ...sidecar.configuration, issuers: [{ ...issuer!, jwks: after.url }] })
    expect(await call(await foreignToken(old))).toBe(401)
    expect(await call(await foreignToken(next))).toBe(200)
  })
})

describe('C11.1 readiness of a sidecar', () => {
  const readiness = async ({ adminUrl }: StartedPostern) => {
    const response = await fetch(`${adminUrl}/health/ready`)
    return { code: response.status, ...((await response.json()) as object) }
  }

  it('C11.1 is not ready until the keys of its issuer were had once, and stays ready when they cannot be had later', async () => {
    const key = await makeIssuerKey('a')
    const issuer = await startForeignIssuer((response) => response.destroy())
    const scene = await sidecarOf(issuer)
    const { sidecar, clock, call } = scene
    const name = `issuer ${ISSUER}`
    await expect.poll(() => issuer.asked, SOON).toBe(1)
    expect(await readiness(sidecar)).toMatchObject({
      code: 503,
      failing: ['issuer keys'],
      degraded: [{ name, reason: expect.stringContaining('503') as string }],
    })
    expect(await call(await foreignToken(key))).toBe(503)
    // No call comes to an instance that is not ready: it finds out by itself.
    issuer.keys = [key.jwk]
    clock.advance(6_000)
    const well = { code: 200, failing: [], degraded: [] }
    await expect.poll(() => readiness(sidecar), SOON).toMatchObject(well)
    const token = await foreignToken(key)
    expect(await call(token)).toBe(200)
    issuer.keys = (response) => response.destroy()
    await untilReadAgain(issuer, scene, token)
    const degraded = [{ name, reason: expect.stringContaining('go on') as string }]
    await expect.poll(() => readiness(sidecar), SOON).toMatchObject({ ...well, degraded })
  })
})

describe('T3.5 key sets that are ambiguous or unfit', () => {
  it('C11.2 two keys of one kid are both tried', async () => {
    const [one, other] = [await makeIssuerKey('same'), await makeIssuerKey('same')]
    const stranger = await makeIssuerKey('same')
    const { call } = await sidecarOf(await startForeignIssuer([one.jwk, other.jwk]))
    expect(await call(await foreignToken(one))).toBe(200)
    expect(await call(await foreignToken(other))).toBe(200)
    expect(await call(await foreignToken(stranger))).toBe(401)
  })

  it('C2.6 private members in a key set are told once, and neither kept nor logged', async () => {
    const key = await makeIssuerKey('leaked')
    const issuer = await startForeignIssuer([key.privateJwk])
    const scene = await sidecarOf(issuer)
    const token = await foreignToken(key)
    expect(await scene.call(token)).toBe(200)
    await untilReadAgain(issuer, scene, token)
    await untilReadAgain(issuer, scene, token)
    const told = scene.sidecar.log().filter((line) => line['event'] === 'issuer_key_private')
    expect(told).toEqual([expect.objectContaining({ level: 'warn', issuer: ISSUER, kid: 'leaked' })])
    expect(scene.sidecar.logLines().join('')).not.toContain(key.privateJwk.d)
  })

  it('C11.2 keys that may not verify are refused, and told with the reason', async () => {
    const [ops, enc, good] = [
      await makeIssuerKey('ops'),
      await makeIssuerKey('enc'),
      await makeIssuerKey('good'),
    ]
    const rsa = await makeIssuerKey('rsa', 'RS256')
    const even = { ...rsa.jwk, kid: 'even', e: 'AQAC' }
    const one = { ...rsa.jwk, kid: 'one', e: 'AQ' }
    const short = { ...rsa.jwk, kid: 'short', n: rsa.jwk.n?.slice(0, 171) ?? '' }
    const { call, sidecar } = await sidecarOf(
      await startForeignIssuer([
        { ...ops.jwk, key_ops: ['encrypt'] },
        { ...enc.jwk, use: 'enc' },
        ...[even, one, short],
        { ...good.jwk, key_ops: ['verify'] },
        rsa.jwk,
      ]),
    )
    expect(await call(await foreignToken(good))).toBe(200)
    expect(await call(await foreignToken(rsa))).toBe(200)
    // All at once: each of them is looked for in a further reading, of which there is one a second.
    const unfit = [ops, enc, ...[even, one, short].map(({ kid }) => ({ ...rsa, kid }))]
    const answers = unfit.map(async (key) => call(await foreignToken(key)))
    expect(await Promise.all(answers)).toEqual(Array(5).fill(401))
    const told = sidecar.log().filter((line) => line['event'] === 'issuer_key_refused')
    expect(told.map(({ kid, level, reason }) => [kid, level, reason])).toEqual([
      ['ops', 'warn', 'its `key_ops` do not name `verify`'],
      ['enc', 'info', 'its `use` is not `sig`'],
      ['even', 'warn', 'its RSA exponent is even'],
      ['one', 'warn', 'its RSA exponent is 1'],
      ['short', 'warn', 'its RSA modulus has less than 2048 bits'],
    ])
  })
})
