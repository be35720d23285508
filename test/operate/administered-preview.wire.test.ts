/** What a maintenance switch would close, before it is set, by the admin API and by a command (C11.5.6). */
import { describe, expect, it } from 'vitest'
import { operated, operatedHere, type Operated } from '../support/operated.ts'
import { shared } from '../support/shared.ts'
import { startUpstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const AT_ACME = '/api/1.0/b/ACME/fund-data/fund-list'
const AT_GLOBEX = '/api/1.0/b/GLOBEX/fund-data/fund-list'
const MEMBERS = '/api/1.0/f/ACME/SUPER1/member-data/member-list'

/** For what calls nothing. */
const uncalled = shared(() => operatedHere({ keeps: 'nothing' }))

const call = async ({ baseUrl }: Operated, path: string, token?: string): Promise<number> => {
  const headers = { connection: 'close', ...(token !== undefined && { authorization: `Bearer ${token}` }) }
  return (await fetch(`${baseUrl}${path}`, { headers })).status
}

async function times(count: number, act: () => Promise<unknown>): Promise<void> {
  for (let left = count; left > 0; left -= 1) await act()
}

/** Calls of two clients: 3 for ACME's funds, 2 for members there, 4 for GLOBEX's funds, and 1 without a token. */
async function callAround(service: Operated): Promise<void> {
  const books = (await issueToken(service, { scope: ALL_AT_ACME })).access_token
  const bob = { client: 'globex-ledger', username: 'bob', scope: 'openid fund.read target:b/GLOBEX' }
  const ledger = (await issueToken(service, bob)).access_token
  await times(3, () => call(service, AT_ACME, books))
  await times(2, () => call(service, MEMBERS, books))
  await times(4, () => call(service, AT_GLOBEX, ledger))
  await call(service, AT_ACME)
}

const preview = async (service: Operated, scope: string, more: object = {}) =>
  (await service.admin('POST', '/maintenance/preview', { scope, ...more })).body

const counted = (service: Operated, scope: string, total: number) =>
  expect.poll(async () => (await preview(service, scope)).calls.total).toBe(total)

describe('operators', () => {
  it.each([
    ['one worker', () => operatedHere({ keeps: 'nothing' })],
    ['two workers', () => operated(2, '', {}, 'store')],
  ])(
    'C11.5.6 see what a switch would close, and whose calls it would have refused: with %s',
    async (_name, start) => {
      const service = await start()
      await callAround(service)
      await counted(service, 'service', 10)
      const business = await preview(service, 'business/ACME')
      expect(business.calls).toMatchObject({
        ...{ total: 5, refused: 5, clients: [{ client: 'acme-books', calls: 5 }], others: 0 },
        since: expect.stringMatching(/Z$/),
      })
      expect(business.closes.businesses).toEqual({ count: 1, names: ['ACME'] })
      const area = await preview(service, 'area/fund-data')
      expect(area.closes).toMatchObject({ areas: ['fund-data'], backends: [expect.any(String)] })
      expect(area.closes.actions.names).toContain('GET fund-data/fund-list')
      expect(area.calls.clients).toEqual([
        { client: 'globex-ledger', calls: 4 },
        { client: 'acme-books', calls: 3 },
      ])
      const allowed = await preview(service, 'service', { clients: ['acme-books'], addresses: ['192.0.2.1'] })
      expect(allowed.calls).toMatchObject({
        total: 10,
        refused: 5,
        clients: [{ client: 'globex-ledger' }],
        others: 1,
      })
      expect(allowed.passes).toEqual({ clients: ['acme-books'], addresses: ['192.0.2.1'] })
      const backend = await preview(service, `backend/${area.closes.backends[0]}`)
      expect(backend.calls.total).toBe(9)
      expect((await preview(service, 'identity')).calls.total).toBe(2)
      expect((await service.admin('GET', '/maintenance')).body).toEqual({ switches: [] })
    },
  )

  it('C11.5.6 see it on the terminal, and nothing is closed: the upstream goes on being called', async () => {
    const upstream = await startUpstream((connection) => connection.respond({ body: '{"a":1}' }))
    const service = await operatedHere({ keeps: 'nothing', environment: { UPSTREAM_URL: upstream.url } })
    const token = (await issueToken(service, { scope: ALL_AT_ACME })).access_token
    expect(await call(service, AT_ACME, token)).toBe(200)
    const shown = await service.postern('maintenance', 'on', '--business', 'ACME', '--preview')
    expect(shown).toMatchObject({ code: 0, err: '' })
    expect(shown.out).toMatch(
      /^would close business\/ACME:\n {2}businesses {2}ACME\n {2}areas {7}\S[^]*1 call since \S+, of which it would have refused 1\n {2}CLIENT +CALLS\n {2}acme-books +1\nnobody would pass\nNothing was changed\.\n$/,
    )
    const passing = ['--allow-client', 'acme-books', '--preview']
    expect((await service.postern('maintenance', 'on', ...passing)).out).toContain(
      'would pass: client acme-books\n',
    )
    expect(await call(service, AT_ACME, token)).toBe(200)
    expect((await service.postern('maintenance', 'off', '--preview')).code).toBe(2)
    const planned = ['--from', '2099-01-01T00:00Z', '--preview', '--json']
    expect(JSON.parse((await service.postern('maintenance', 'plan', ...planned)).out).scope).toBe('service')
    expect((await service.postern('maintenance', 'status')).out).toBe('no maintenance\n')
  })

  it('C11.5.6 see the businesses of the store too, but for those that are disabled', async () => {
    const service = await uncalled()
    for (const code of ['UMBRELLA', 'SHUT'])
      expect((await service.admin('POST', '/businesses', { code, name: code })).status).toBe(201)
    await service.admin('POST', '/businesses/SHUT/disable')
    const all = { count: 4, names: ['ACME', 'GLOBEX', 'INITECH', 'UMBRELLA'] }
    for (const scope of ['service', 'area/fund-data'])
      expect((await preview(service, scope)).closes.businesses).toEqual(all)
    const shown = await service.postern('maintenance', 'on', '--preview')
    expect(shown.out).toMatch(/^ {2}businesses {2}ACME, GLOBEX, INITECH, UMBRELLA$/m)
  })

  it('C11.5.6 are told what is wrong with a switch before it is set', async () => {
    const service = await uncalled()
    const { status, body } = await service.admin('POST', '/maintenance/preview', { scope: 'business/ACMEE' })
    expect([status, body.problems]).toEqual([
      400,
      [expect.stringContaining('scope  names no business: "ACMEE" — did you mean "ACME"?')],
    ])
    expect((await service.admin('POST', '/maintenance/preview', {})).status).toBe(400)
  })
})
