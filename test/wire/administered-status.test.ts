/** The status of a service, by the admin API and by a command (C11.5.5). */
import { describe, expect, it, vi } from 'vitest'
import { newSecret } from '../../src/kernel/ids.ts'
import { hashSecret } from '../../src/directory/hasher.ts'
import { seriesOf } from '../support/metrics.ts'
import { operated, operatedHere } from '../support/operated.ts'
import { shared } from '../support/shared.ts'

/** Of an operator who may only look. */
const SCREEN = newSecret()

const one = shared(() =>
  operatedHere({
    change: (configuration) => ({
      ...configuration,
      admin: {
        ...configuration.admin,
        tokens: [{ name: 'screen', role: 'view' as const, hash: hashSecret(SCREEN) }],
      },
    }),
  }),
)
const two = shared(() => operated(2))

describe('operators', () => {
  it.each([
    ['one worker', one],
    ['two workers', two],
  ])('C11.5.5 see how a service is, by API and by command: with %s', async (_name, start) => {
    const service = await start()
    const { status, body } = await service.admin('GET', '/status')
    expect(status).toBe(200)
    expect(body).toMatchObject({
      ...{ ready: true, failing: [], degraded: [], kind: 'service', version: expect.any(String) },
      configuration: { digest: expect.stringMatching(/^[0-9a-f]{64}$/), loaded: expect.stringMatching(/Z$/) },
      store: { kind: 'sqlite', bytes: expect.any(Number) },
      keys: [
        { name: 'ES256-1', state: 'signing', nextRotation: expect.stringMatching(/Z$/) },
        { name: 'RS256-1' },
      ],
      calls: { shedding: false, websockets: 0 },
      audit: { kept: true },
      maintenance: [],
    })
    const json = await service.postern('status', '--json')
    expect(JSON.parse(json.out).configuration.digest).toBe(body.configuration.digest)
    const page = await service.postern('status')
    expect(page).toMatchObject({ code: 0, err: '' })
    expect(page.out).toMatch(/^READY {2}Postern \S+/)
    for (const label of [
      'started',
      'configuration',
      'processes',
      '  process',
      'data folder',
      'store',
      'audit trail',
      '  key',
    ])
      expect(page.out).toMatch(new RegExp(`^${label} `, 'm'))
  })

  it.each([
    ['one worker', one, ['main']],
    ['two workers', two, ['main', 'worker-1', 'worker-2']],
  ])('C11.1, C11.5.5 see what each process takes of the machine: with %s', async (_name, start, names) => {
    const service = await start()
    const status = async () => (await service.admin('GET', '/status')).body
    await vi.waitFor(
      async () => expect((await status()).processes.map(({ name }: { name: string }) => name)).toEqual(names),
      20_000,
    )
    // What a first start has made counts, and not a minute later.
    await expect.poll(async () => (await status()).data.bytes).toBeGreaterThan(0)
    const { processes, memory, data } = await status()
    for (const { memoryBytes, eventLoopDelaySeconds } of processes) {
      expect(memoryBytes).toBeGreaterThan(20 * 1024 ** 2)
      expect(eventLoopDelaySeconds).toBeGreaterThanOrEqual(0)
    }
    const sum = processes.reduce(
      (all: number, { memoryBytes }: { memoryBytes: number }) => all + memoryBytes,
      0,
    )
    expect(memory.bytes).toBe(sum)
    expect(memory.limitBytes).toBeGreaterThan(memory.bytes)
    expect(data.bytes).toBeGreaterThan(0)
    expect(data.freeBytes).toBeGreaterThan(0)
    const series = await seriesOf(service)
    for (const name of names)
      expect(series.get(`postern_process_cpu_seconds_total{process="${name}"}`), name).toBeGreaterThan(0)
  })

  it('C11.5.5 are told first what is wrong: maintenance, and areas that refuse nothing', async () => {
    const service = await operatedHere({ config: 'upstream.yaml' })
    await service.postern('maintenance', 'on', '--business', 'ACME', '--reason', 'move')
    const { body } = await service.admin('GET', '/status')
    expect(body.maintenance).toMatchObject([{ scope: 'business/ACME', state: 'on', reason: 'move' }])
    expect(body.troubles).toContain('Closed for maintenance: business/ACME, until somebody opens it.')
    const { out } = await service.postern('status')
    const troubles = out.indexOf('Closed for maintenance')
    expect(troubles).toBeGreaterThan(0)
    expect(troubles).toBeLessThan(out.indexOf('started'))
  })

  it('C11.5.5 are told since when and why a reload was refused, until one succeeds', async () => {
    const service = await operated(1)
    const digest = async (): Promise<string> =>
      (await service.admin('GET', '/status')).body.configuration.digest
    const before = await digest()
    service.write('vendor: NO')
    await service.postern('reload')
    const { body } = await service.admin('GET', '/status')
    expect(body.configuration).toMatchObject({
      digest: before,
      refused: { at: expect.stringMatching(/Z$/), problems: [expect.stringMatching(/vendor/)] },
    })
    expect(body.troubles[0]).toMatch(
      /^A reload was refused at \S+ \(.+\); the configuration of \S+ stays in force\.$/,
    )
    expect((await service.postern('status')).out).toMatch(/READY[^]*A reload was refused[^]* vendor /)
    service.write('vendor: other')
    await service.postern('reload')
    const after = await service.admin('GET', '/status')
    expect(after.body.configuration.refused).toBeUndefined()
    expect(after.body.configuration.digest).not.toBe(before)
  })

  it('C11.5.5 see the status with the right to view, which shows no person and no secret', async () => {
    const service = await one()
    const { status, body } = await service.admin('GET', '/status', undefined, SCREEN)
    expect(status).toBe(200)
    expect(JSON.stringify(body)).not.toMatch(/alice|45733adb|secret|argon2|sha256:/)
    for (const path of ['/sessions', '/families', '/consents', '/keys', '/configuration', '/audit'])
      expect((await service.admin('GET', path, undefined, SCREEN)).status, path).toBe(403)
    expect((await service.admin('POST', '/explain', { method: 'GET', path: '/api' }, SCREEN)).status).toBe(
      403,
    )
  })
})
