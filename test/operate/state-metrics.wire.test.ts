/** What the metrics tell of the parts next to the calls: store, keys, certificates, maintenance, replays. */
import { X509Certificate } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { Fault } from '../../src/base/kernel/faults.ts'
import { FAMILIES } from '../../src/operate/watch/metrics/families.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { STORE_VERBS } from '../../src/state/stores/measured-store.ts'
import { withFunds } from '../support/changed-funds.ts'
import { auditedPeople } from '../support/audited-people.ts'
import { certificateFolder, makeCertificate } from '../support/certificates.ts'
import { dataFolder } from '../support/data-folder.ts'
import { becomes, seriesOf, valueOf } from '../support/metrics.ts'
import { movableClock } from '../support/movable-clock.ts'
import { postern } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'

const NOW = Date.UTC(2026, 0, 15)
const DAY = 86_400
const PATIENCE = { timeout: 30_000 }

const inFile = (loaded: Configuration): Configuration => ({
  ...loaded,
  store: { kind: 'sqlite', synchronous: 'full', deadline: 10_000 },
})

describe('C11.1 what happens rarely', () => {
  it('C11.1 is shown at 0 from the start, for every label value', async () => {
    const service = await postern()
    const series = await seriesOf(service)
    const rare = [
      ...STORE_VERBS.map((verb) => `store_errors_total{verb="${verb}"}`),
      'token_replays_total{kind="code"}',
      'token_replays_total{kind="refresh_token"}',
      ...['worker_deaths_total', 'audit_refused_total', 'audit_dropped_total', 'audit_anchor_failures_total'],
    ]
    expect(rare.filter((name) => series.get(`postern_${name}`) !== 0)).toEqual([])
    expect(series.get('postern_lockouts')).toBe(0)
    expect(series.get('postern_workers{state="serving"}')).toBe(1)
  })

  it('C11.1 a replay is counted by its kind, and names nobody', async () => {
    const clock = movableClock()
    const people = await auditedPeople({ clock })
    const { json } = await people.byPassword()
    await people.byRefresh(json.refresh_token)
    clock.advance(31_000)
    expect((await people.byRefresh(json.refresh_token)).json.error).toBe('invalid_grant')
    expect(await valueOf(people.service, 'token_replays_total{kind="refresh_token"}')).toBe(1)
    expect(await valueOf(people.service, 'token_replays_total{kind="code"}')).toBe(0)
    const { code } = await people.walk()
    await people.byCode(code)
    await people.byCode(code)
    expect(await valueOf(people.service, 'token_replays_total{kind="code"}')).toBe(1)
    const text = [...(await seriesOf(people.service)).keys()].join('\n')
    expect(text).not.toMatch(/alice|ACME|127\.0\.0\.1|45733adb/)
  })

  it('C11.1 logins that are delayed are as many as the list of lockouts has', async () => {
    const people = await auditedPeople()
    const { free } = people.service.configuration.identity.guessing.attempts
    for (let count = 0; count < free; count += 1) await people.byPassword('wrong')
    expect(await valueOf(people.service, 'lockouts')).toBe(1)
    expect(people.service.context.lockouts.list()).toHaveLength(1)
    await people.service.context.lockouts.clear({ user: 'alice' })
    expect(await valueOf(people.service, 'lockouts')).toBe(0)
  })
})

describe('C11.1 the store', () => {
  it('C11.1 its calls are measured by verb, and its changes are read all the time', async () => {
    const service = await postern({ keeps: 'store' })
    const count = 'store_verb_duration_seconds_count{verb="create"}'
    const before = (await valueOf(service, count)) ?? 0
    await issueToken(service, { scope: 'openid offline_access' })
    expect(await valueOf(service, count)).toBeGreaterThan(before)
    expect(await valueOf(service, 'store_up')).toBe(1)
    expect(await valueOf(service, 'feed_age_seconds')).toBeLessThan(60)
  })

  it('C11.1 a store whose file is gone is down', async () => {
    const data = await dataFolder()
    const service = await postern({ data, keeps: 'store', change: inFile })
    expect(await valueOf(service, 'store_up')).toBe(1)
    for (const end of ['', '-wal', '-shm']) rmSync(join(data, `postern.sqlite${end}`), { force: true })
    await becomes(service, 'store_up', 0)
  })

  it('C11.1 a feed that cannot be read grows old; when it is read again, it is young', async () => {
    const clock = movableClock(NOW)
    const service = await postern({ clock, keeps: 'nothing' })
    const changes = vi
      .spyOn(service.world.store, 'changes')
      .mockRejectedValue(new Fault('identity_unavailable'))
    await expect.poll(() => changes.mock.calls.length, PATIENCE).toBeGreaterThan(1)
    clock.advance(40_000)
    expect(await valueOf(service, 'feed_age_seconds')).toBe(40)
    changes.mockRestore()
    await becomes(service, 'feed_age_seconds', 0)
  })
})

describe('C11.1 keys and certificates', () => {
  it('C11.1 a key ages; its successor is announced, and then is the one whose age is told', async () => {
    const clock = movableClock(NOW)
    const service = await postern({ clock, keeps: 'nothing' })
    const { every, announce } = service.configuration.keys.rotation
    const created = 'signing_key_created_timestamp_seconds{algorithm="ES256"}'
    const next = 'signing_key_next_rotation_timestamp_seconds{algorithm="ES256"}'
    const seconds = NOW / 1000
    expect([await valueOf(service, created), await valueOf(service, next)]).toEqual([
      seconds,
      seconds + every / 1000,
    ])
    // The look for keys that are due runs by itself.
    clock.advance(every + DAY * 1000)
    const successor = seconds + every / 1000 + DAY + announce / 1000
    await becomes(service, next, successor)
    clock.advance(announce)
    await becomes(service, created, seconds + every / 1000 + DAY)
    expect(await valueOf(service, next)).toBe(successor + every / 1000)
  })

  it('C11.1 without automatic rotation none is planned', async () => {
    const service = await postern({
      keeps: 'nothing',
      change: (loaded) => ({
        ...loaded,
        keys: { ...loaded.keys, rotation: { ...loaded.keys.rotation, automatic: false } },
      }),
    })
    const names = [...(await seriesOf(service)).keys()].filter((name) => name.includes('signing_key'))
    expect(names.toSorted()).toEqual([
      'postern_signing_key_created_timestamp_seconds{algorithm="ES256"}',
      'postern_signing_key_created_timestamp_seconds{algorithm="RS256"}',
    ])
  })

  it('C11.1 the certificates of the listener and of backends tell when they expire', async () => {
    const folder = certificateFolder()
    const [own, shown] = [makeCertificate(folder, 'own'), makeCertificate(folder, 'shown')]
    const expiry = (file: string): number =>
      new X509Certificate(readFileSync(file)).validToDate.getTime() / 1000
    const service = await postern({
      config: 'upstream.yaml',
      keeps: 'nothing',
      environment: { UPSTREAM_URL: 'https://127.0.0.1:1' },
      change: (loaded) => {
        const { server, ...rest } = withFunds({
          tls: { verify: 'on', cert: shown.certificate, key: shown.key },
        } as never)(loaded)
        return { ...rest, server: { ...server, tls: own } }
      },
    })
    const name = (text: string): string => `certificate_expiry_timestamp_seconds{name="${text}"}`
    expect(await valueOf(service, name('server'))).toBe(expiry(own.certificate))
    expect(await valueOf(service, name('backend/funds'))).toBe(expiry(shown.certificate))
  })
})

describe('C11.1 maintenance', () => {
  const since = (scope: string): string => `maintenance_on_since_timestamp_seconds{scope="${scope}"}`
  const operator = { via: 'test', by: 'tests' }

  it('C9.1 C11.1 a planned window counts from when it begins by itself, until it ends', async () => {
    const clock = movableClock(NOW)
    const service = await postern({ clock, keeps: 'nothing' })
    const { maintenance } = service.context
    const [from, until] = [NOW + 60_000, NOW + 120_000]
    await maintenance.set({ scope: { kind: 'area', name: 'fund-data' }, from, until }, operator)
    expect(await valueOf(service, since('area'))).toBe(0)
    clock.advance(61_000)
    expect(await valueOf(service, since('area'))).toBe(from / 1000)
    clock.advance(60_000)
    expect(await valueOf(service, since('area'))).toBe(0)
  })

  it('C9.1 C11.1 of several switches the earliest counts, by kind', async () => {
    const clock = movableClock(NOW)
    const service = await postern({ clock, keeps: 'nothing' })
    const { maintenance } = service.context
    await maintenance.set({ scope: { kind: 'business', name: 'ACME' } }, operator)
    clock.advance(5000)
    await maintenance.set({ scope: { kind: 'business', name: 'GLOBEX' } }, operator)
    await maintenance.set({ scope: { kind: 'service' } }, operator)
    const found = await Promise.all(
      ['service', 'identity', 'business', 'area', 'backend'].map((scope) => valueOf(service, since(scope))),
    )
    expect(found).toEqual([NOW / 1000 + 5, 0, NOW / 1000, 0, 0])
  })

  it('C9.1 C11.1 a switch of the configuration counts since it was first read, over reloads', async () => {
    const clock = movableClock(NOW)
    const service = await postern({
      clock,
      keeps: 'nothing',
      change: (loaded) => ({ ...loaded, maintenance: [{ scope: 'backend/sample' }] as never }),
    })
    clock.advance(5000)
    await service.worker?.prepare(service.configuration)
    await service.worker?.commit()
    expect(await valueOf(service, since('backend'))).toBe(NOW / 1000)
  })
})

describe('C11.2 a sidecar', () => {
  it('C11.1 C11.2 shows nothing of a store, keys, logins and a trail that it does not have', async () => {
    const issuer = await postern({ keeps: 'nothing' })
    const sidecar = await postern({
      config: 'sidecar.yaml',
      environment: {
        UPSTREAM_URL: 'http://127.0.0.1:1',
        ISSUER: issuer.authUrl,
        ISSUER_JWKS: `${issuer.authUrl}/.well-known/jwks.json`,
        AUDIENCE: issuer.baseUrl,
      },
    })
    const absent = Object.values(FAMILIES)
      .map(({ name }) => name)
      .filter((name) => /_(store|feed|signing_key|lockouts|audit)/.test(name))
    expect(absent).toHaveLength(20)
    const shown = [...(await seriesOf(sidecar)).keys()]
    expect(shown.filter((series) => absent.some((name) => series.startsWith(name)))).toEqual([])
  })
})
