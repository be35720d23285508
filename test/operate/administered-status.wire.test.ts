/** The status of a service, by the admin API and by a command (C11.5.5). */
import { describe, expect, it } from 'vitest'
import { newSecret } from '../../src/base/kernel/ids.ts'
import { hashSecret } from '../../src/identity/directory/hashing/hasher.ts'
import { operated, operatedHere } from '../support/operated.ts'

describe('operators', () => {
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
    const token = newSecret()
    const service = await operatedHere({
      change: (configuration) => ({
        ...configuration,
        admin: {
          ...configuration.admin,
          tokens: [{ name: 'screen', role: 'view' as const, hash: hashSecret(token) }],
        },
      }),
    })
    const { status, body } = await service.admin('GET', '/status', undefined, token)
    expect(status).toBe(200)
    expect(JSON.stringify(body)).not.toMatch(/alice|45733adb|secret|argon2|sha256:/)
    for (const path of ['/sessions', '/families', '/consents', '/keys', '/configuration', '/audit'])
      expect((await service.admin('GET', path, undefined, token)).status, path).toBe(403)
    expect((await service.admin('POST', '/explain', { method: 'GET', path: '/api' }, token)).status).toBe(403)
  })
})
