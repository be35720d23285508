/** The configuration file beside the configuration in force, by the admin API and by commands (C11.5.4). */
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { operated, operatedHere } from '../support/operated.ts'
import { shared } from '../support/shared.ts'
import { issueToken } from '../support/tokens.ts'

const here = shared(() => operated(1, '', {}, 'nothing'))

/** On one file, which says again what is in force when a test begins. */
async function served() {
  const service = await here()
  service.write('')
  expect((await service.admin('POST', '/reload')).status).toBe(200)
  return service
}

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'

describe('operators', () => {
  it.each([
    [1, served],
    [2, () => operated(2, '', {}, 'store')],
  ])(
    'C11.5.4 check a bad file while what is in force goes on; then reload a good one: with %i worker(s)',
    async (_workers, start) => {
      const service = await start()
      const good = await service.admin('POST', '/configuration/check')
      expect(good).toEqual({
        status: 200,
        body: { fits: true, problems: [], warnings: expect.any(Array), needsRestart: [] },
      })
      const digest = async (): Promise<string> =>
        (await service.admin('GET', '/configuration')).body.vendor as string
      const before = await digest()
      service.write('vendor: NO')
      const bad = await service.admin('POST', '/configuration/check', {})
      expect(bad.body).toMatchObject({
        fits: false,
        problems: [expect.stringMatching(/a\.yaml:\d+ {2}vendor {2}/)],
      })
      const checked = await service.postern('configuration', 'check')
      expect([checked.code, checked.out]).toEqual([
        2,
        expect.stringMatching(/ {2}vendor {2}[^]*a reload would be refused\n$/),
      ])
      expect((await service.postern('configuration', 'reload')).err).toMatch(/the configuration was refused/)
      expect(await digest()).toBe(before)
      expect((await service.admin('GET', '/configuration/diff')).status).toBe(409)
      const { access_token: token } = await issueToken(service, { scope: 'fund.read target:b/ACME' })
      expect(token).not.toBe('')
      service.write('vendor: other')
      expect((await service.postern('configuration', 'reload')).code).toBe(0)
      expect(await digest()).toBe('other')
      expect((await service.postern('configuration', 'diff')).out).toBe('the file says what is in force\n')
    },
  )

  it('C11.5.4 see what a reload would change, without values: settings, access, what needs a restart', async () => {
    const service = await served()
    // A reload is refused for the setting that needs a restart, so the difference stays.
    service.write(
      'dataGroup: own\ndirectory: { clients: { acme-books: { disabled: true } } }\nvendor: geheim',
    )
    const { body } = await service.admin('GET', '/configuration/diff')
    expect(body).toMatchObject({
      same: false,
      changed: expect.arrayContaining(['directory.clients.acme-books.disabled', 'dataGroup', 'vendor']),
      needsRestart: ['dataGroup'],
      gained: [],
      withStored: true,
    })
    expect(body.changedCount).toBe(body.changed.length)
    expect(body.lost).toContainEqual({
      ...{ kind: 'client', who: 'acme-books', where: 'ACME' },
      what: expect.stringMatching(/^GET fund-data\//),
    })
    expect(JSON.stringify(body)).not.toContain('geheim')
    const { out } = await service.postern('configuration', 'diff')
    expect(out).toMatch(/^\d settings differ\n[^]*dataGroup {2}cannot change[^]*clients\n {2}- acme-books/)
    expect((await service.admin('POST', '/configuration/check')).body.fits).toBe(false)
  })

  it('C11.5.4 reload, check and see status while nothing of the file can be read, as the service has announced itself and by --admin-url', async () => {
    const service = await served()
    service.overwrite('server: [')
    const found = await service.postern('configuration', 'check')
    expect([found.code, found.out]).toEqual([2, expect.stringMatching(/a reload would be refused\n$/)])
    const access = ['--admin-url', service.adminUrl, '--admin-token', `@${join(service.data, 'admin-token')}`]
    const { code, out } = await service.postern('configuration', 'check', ...access)
    expect([code, out]).toEqual([2, expect.stringMatching(/a\.yaml:\d+[^]*a reload would be refused\n$/)])
    const refused = await service.postern('reload', ...access)
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('nothing has changed')])
    expect(await service.postern('reload', '--admin-url', 'nowhere')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--admin-url: expected a URL'),
    })
  })

  it('C11.5.4 are told that a service has no file', async () => {
    const service = await operatedHere({ keeps: 'nothing' })
    for (const [method, path] of [
      ['POST', '/configuration/check'],
      ['GET', '/configuration/diff'],
    ] as const)
      expect(await service.admin(method, path)).toMatchObject({
        status: 409,
        body: { problems: ['the configuration does not come from a file'] },
      })
    expect((await fetch(`${service.baseUrl}${LIST}`)).status).toBe(401)
  })
})
