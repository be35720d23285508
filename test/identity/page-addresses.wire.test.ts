/** What programs ask of the addresses of pages: checks of links by HEAD (C6.2.1), and password managers (C6.2.2). */
import { expect, it } from 'vitest'
import { auditRecords } from '../support/audit-files.ts'
import { authorizeUrl } from '../support/audited-people.ts'
import { Person } from '../support/person.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'

const KINDS = ['code', 'session', 'consent', 'refresh_family']

/** All that is kept of what people do. */
const kept = async (service: StartedPostern) => ({
  store: await Promise.all(KINDS.map((kind) => service.world.state.store.list(kind))),
  // Not those of the service's own keys: it makes them while it serves.
  records: auditRecords(service).filter(({ event }) => event !== 'keys.signing').length,
})

it('C6.2.1 HEAD at authorize has the head of the login page, and makes no code, session, consent or record', async () => {
  const service = await postern({ keeps: 'trail', config: 'upstream.yaml' })
  const person = new Person(service.authUrl)
  const consent = await person.logIn(await person.open(authorizeUrl()))
  await person.submit(consent, { decision: 'allow' })
  const before = await kept(service)
  const head = (url: string, cookie = ''): Promise<Response> =>
    fetch(`${service.authUrl}${url}`, { method: 'HEAD', redirect: 'manual', headers: { cookie } })

  // GET of a stranger is the login page. With this cookie it would be a code.
  const page = await fetch(`${service.authUrl}${authorizeUrl()}`)
  for (const [cookie, params] of [
    ['', {}],
    [person.cookie, {}],
    [person.cookie, { prompt: 'consent' }],
    [person.cookie, { prompt: 'none' }],
  ] as const) {
    const answer = await head(authorizeUrl(params), cookie)
    expect(answer.status).toBe(200)
    expect(await answer.text()).toBe('')
    for (const name of ['content-type', 'cache-control', 'content-security-policy', 'x-frame-options'])
      expect([name, answer.headers.get(name)]).toEqual([name, page.headers.get(name)])
    expect(answer.headers.has('set-cookie')).toBe(cookie === '')
  }
  expect((await head(authorizeUrl({ client_id: 'nobody' }))).status).toBe(400)
  const refused = await head(authorizeUrl({ response_type: 'token' }), person.cookie)
  expect(refused.headers.get('location')).toContain('error=unsupported_response_type')
  expect(await kept(service)).toEqual(before)
  // And the session is the one that it was: GET gives a code.
  expect((await person.open(authorizeUrl())).location?.searchParams.has('code')).toBe(true)
})

it.each([
  ['', '/connect/account'],
  ['/tenant', '/tenant/connect/account'],
])(
  'C6.2.2 /.well-known/change-password leads to the account page: issuer path "%s"',
  async (path, leadsTo) => {
    const service = await postern({
      keeps: 'trail',
      change: ({ server, ...rest }) => ({
        ...rest,
        server: { ...server, authUrl: `http://127.0.0.1:8080${path}` },
      }),
    })
    for (const method of ['GET', 'HEAD']) {
      const url = `http://127.0.0.1:${service.port}/.well-known/change-password`
      const answer = await fetch(url, { method, redirect: 'manual', headers: { host: '127.0.0.1:8080' } })
      expect([answer.status, answer.headers.get('location')]).toEqual([303, leadsTo])
      expect(answer.headers.get('cache-control')).toBe('no-store')
    }
    const missing = `http://127.0.0.1:${service.port}/.well-known/resource-that-should-not-exist-whose-status-code-should-not-be-200`
    expect((await fetch(missing)).status).toBe(404)
  },
)
