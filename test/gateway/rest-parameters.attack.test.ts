import { describe, expect, it } from 'vitest'
import { withForwardedActions } from '../support/forwarded-action.ts'
import { HOSTILE } from '../support/hostile-segments.ts'
import { sendRaw } from '../support/raw-http.ts'
import { bearer, send } from '../support/requests.ts'
import { shared } from '../support/shared.ts'
import { postern } from '../support/start-postern.ts'
import { startUpstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const BASE = '/api/1.0/b/ACME/fund-data'

const serve = shared(async () => {
  const upstream = await startUpstream()
  const gateway = await postern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: withForwardedActions({
      'files/{path...}': { path: '/tenants/{business}/{path...}/end' },
      'keep/{path...}': {},
      'v2/{name...:/[a-z0-9._-]+/}/manifests/{reference}': { path: '/r/{name...}/manifests/{reference}' },
    }),
  })
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  const raw = (path: string, method = 'GET') =>
    sendRaw(
      gateway.port,
      `${method} ${BASE}/${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${access_token}\r\nConnection: close\r\n\r\n`,
    )
  return { gateway, upstream, raw, token: access_token }
})

describe('T1.1 what a rest parameter is made to say', () => {
  it('C3.4 each segment is judged as any other: nothing that climbs or divides is sent', async () => {
    const { upstream, raw } = await serve()
    for (const hostile of HOSTILE)
      for (const path of [
        hostile,
        `a/${hostile}/b`,
        `${hostile}/${hostile}`,
        `a/x${hostile}y`,
        `a/${hostile}`,
      ]) {
        const sent = path.startsWith('#') || path.includes('/#') || path.includes('#')
        for (const action of ['files', 'keep']) {
          const before = upstream.requests.length
          const { status } = await raw(`${action}/${path}`)
          const target = upstream.requests.at(-1)?.target ?? ''
          if (upstream.requests.length === before) expect([path, status, sent]).toEqual([path, 400, sent])
          else {
            expect(status).toBe(200)
            const root = action === 'files' ? '/tenants/ACME/' : `${BASE}/keep/`
            expect(target.startsWith(root)).toBe(true)
            expect(target).not.toMatch(/\/\.{1,2}(?:\/|$)|%2f|%5c|\\|;|\/\//i)
            expect(target.split('/').length).toBe(
              root.split('/').length + path.split('/').length - (action === 'files' ? 0 : 1),
            )
          }
        }
      }
  })

  it('C3.4 an empty segment is 400: at the beginning, within, and at the end', async () => {
    const { upstream, raw } = await serve()
    for (const path of ['files/', 'files//a', 'files/a//b', 'files/a/', 'keep//'])
      expect((await raw(path)).status).toBe(400)
    expect(upstream.requests).toEqual([])
  })

  it('C8.7 each segment is encoded by itself, and decoding it gives what the client meant', async () => {
    const { upstream, raw } = await serve()
    for (const path of ['a/b', 'a%20b/c%26d', '%41/%c3%a9/%3F', "x'(1)*!", 'a..b/...', 'a:b@c/$d,e', 'a%25'])
      expect([path, (await raw(`files/${path}`)).status]).toEqual([path, 200])
    expect(upstream.requests.map(({ target }) => target)).toEqual(
      [
        ...[
          'a/b',
          'a%20b/c%26d',
          'A/%C3%A9/%3F',
          'x%27%281%29%2A%21',
          'a..b/...',
          'a%3Ab%40c/%24d%2Ce',
          'a%25',
        ],
      ].map((path) => `/tenants/ACME/${path}/end`),
    )
  })

  it('C3.3 more than 32 segments, and a segment of another type, are 404, and nothing is sent', async () => {
    const { upstream, raw } = await serve()
    expect((await raw(`keep/${Array(32).fill('a').join('/')}`)).status).toBe(200)
    expect((await raw(`keep/${Array(33).fill('a').join('/')}`)).status).toBe(404)
    expect((await raw('v2/lib/Nginx/manifests/1')).status).toBe(404)
    expect((await raw('v2/manifests/1')).status).toBe(404)
    expect(upstream.requests).toHaveLength(1)
  })

  it('C4.6 another method is 405 with what the path offers', async () => {
    const { raw } = await serve()
    const answer = await raw('keep/a/b', 'DELETE')
    expect([answer.status, answer.headers['allow']]).toEqual([405, 'GET, HEAD'])
  })

  it('C3.3 a path of so many segments that is none of an action costs little to refuse', async () => {
    const { raw } = await serve()
    expect((await raw(`v2/${'a/'.repeat(3000)}manifests`)).status).toBe(404)
  })
})

it('C11.3.1 the description has the rest parameter as one, and says that it holds slashes', async () => {
  const { gateway } = await serve()
  const { body } = await send(gateway, { target: '/.well-known/openapi.json' })
  const { paths } = JSON.parse(body) as {
    paths: Record<string, { get: { parameters: { name: string; 'x-postern-rest'?: true }[] } }>
  }
  const described = paths['/api/1.0/b/{businessCode}/fund-data/v2/{name}/manifests/{reference}']
  expect(described?.get.parameters.filter((each) => each['x-postern-rest']).map(({ name }) => name)).toEqual([
    'name',
  ])
})

it('C8.8 a Location of the service’s becomes the public URL, and leads to the same again', async () => {
  const upstream = await startUpstream((connection) =>
    connection.respond({
      status: 201,
      headers: { Location: '/r/lib/nginx/manifests/7', 'Content-Type': 'application/json' },
      body: '{}',
    }),
  )
  const gateway = await postern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: withForwardedActions(
      { 'v2/{name...}/manifests/{reference}': { path: '/r/{name...}/manifests/{reference}' } },
      (backend) => ({ ...backend, responseHeaders: ['Location'] }),
    ),
  })
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  const answer = await send(gateway, {
    target: `${BASE}/v2/a/b/c/manifests/1`,
    headers: bearer(access_token),
  })
  expect(answer.headers['location']).toMatch(/\/api\/1\.0\/b\/ACME\/fund-data\/v2\/lib\/nginx\/manifests\/7$/)
  expect(upstream.requests.map(({ target }) => target)).toEqual(['/r/a/b/c/manifests/1'])
})
