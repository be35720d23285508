import { describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { sendRaw } from '../support/raw-http.ts'
import { bearer, expectFault, send } from '../support/requests.ts'
import { shared } from '../support/shared.ts'
import { postern } from '../support/start-postern.ts'
import { startUpstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const METHODS = ['PROPFIND', 'PROPPATCH', 'REPORT', 'SEARCH', 'QUERY', 'MKCOL', 'MKCALENDAR'] as const
const SAFE: readonly string[] = ['PROPFIND', 'REPORT', 'SEARCH', 'QUERY']
const MULTI_STATUS = '<multistatus xmlns="DAV:"/>'

const serve = shared(async () => {
  let broken = 0
  const upstream = await startUpstream((connection) => {
    if (broken > 0) {
      broken -= 1
      connection.reset()
    } else
      connection.respond({ status: 207, headers: { 'Content-Type': 'application/xml' }, body: MULTI_STATUS })
  })
  const gateway = await postern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: (loaded: Configuration): Configuration => ({
      ...loaded,
      actions: loaded.actions.flatMap((action) => {
        const { GET } = action.methods
        if (action.action !== 'fund-list' || GET === undefined) return [action]
        const { scopes, versions, items } = GET
        const own = { scopes, versions, items, produces: ['application/xml'], consumes: ['application/xml'] }
        const all = Object.fromEntries(METHODS.map((method) => [method, own]))
        const sentAs = (method: 'POST' | (typeof METHODS)[number]) => ({ ...own, upstream: { method } })
        const turned = Object.fromEntries(METHODS.map((method) => [method, sentAs('POST')]))
        return [
          { ...action, methods: { GET, ...all } },
          { ...action, action: 'turned', methods: turned },
          ...METHODS.map((method) => ({
            ...action,
            action: `as-${method}`,
            methods: { POST: sentAs(method) },
          })),
        ]
      }),
    }),
  })
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  const call = (method: string, headers: Record<string, string> = {}, body = '', target = LIST) =>
    send(gateway, {
      ...{ method, target, body },
      headers: { ...bearer(access_token), Accept: 'application/xml', ...headers },
    })
  return { gateway, upstream, call, breakNext: () => (broken += 1) }
})

describe('C4.6 further methods', () => {
  it.each(METHODS)(
    'C8.4 %s goes on with its body and its Depth, and a 207 comes back as it is',
    async (method) => {
      const { upstream, call } = await serve()
      const answer = await call(method, { Depth: '1', 'Content-Type': 'application/xml' }, '<propfind/>')
      expect([answer.status, answer.body, answer.headers['content-type']]).toEqual([
        207,
        MULTI_STATUS,
        'application/xml',
      ])
      const [sent] = upstream.requests
      expect([sent?.method, sent?.headers['depth'], sent?.body.toString()]).toEqual([
        method,
        ['1'],
        '<propfind/>',
      ])
    },
  )

  it('C4.6 those that are not offered are 405 with all that are', async () => {
    const { upstream, call } = await serve()
    for (const method of ['COPY', 'MOVE', 'LOCK', 'UNLOCK', 'ACL', 'BIND']) {
      const answer = await call(method, { Destination: '/api/1.0/b/GLOBEX/x', Accept: 'application/json' })
      expectFault(answer, 'method_not_allowed')
      expect(answer.headers['allow']).toBe(['GET', 'HEAD', ...METHODS].join(', '))
    }
    expect(upstream.requests).toEqual([])
  })

  it.each(METHODS)('C8.5 %s is sent again after its connection failed only if it is safe', async (method) => {
    const { upstream, call, breakNext } = await serve()
    breakNext()
    expect((await call(method)).status).toBe(SAFE.includes(method) ? 207 : 500)
    expect(upstream.requests).toHaveLength(SAFE.includes(method) ? 2 : 1)
  })

  it('C8.5 a safe one with a body is never sent again', async () => {
    const { upstream, call, breakNext } = await serve()
    for (const method of SAFE) {
      breakNext()
      expect((await call(method, { 'Content-Type': 'application/xml' }, '<a/>')).status).toBe(503)
    }
    expect(upstream.requests).toHaveLength(SAFE.length)
  })

  it.each(METHODS)(
    'C8.7 a POST is sent as %s with its body, %s as a POST, and neither is sent again',
    async (method) => {
      const { upstream, call, breakNext } = await serve()
      const type = { 'Content-Type': 'application/xml' }
      const base = LIST.replace(/[^/]+$/, '')
      expect((await call('POST', type, '<a/>', `${base}as-${method}`)).status).toBe(207)
      expect((await call(method, type, '<b/>', `${base}turned`)).status).toBe(207)
      breakNext()
      await call('POST', {}, '', `${base}as-${method}`)
      breakNext()
      await call(method, {}, '', `${base}turned`)
      expect(upstream.requests.map((sent) => [sent.method, sent.body.toString()])).toEqual([
        [method, '<a/>'],
        ['POST', '<b/>'],
        [method, ''],
        ['POST', ''],
      ])
    },
  )

  it('C8.2, T2.15 Destination and a tagged If never arrive, in any spelling; an If of this resource does', async () => {
    const { upstream, gateway } = await serve()
    const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
    const raw = (lines: string) =>
      sendRaw(
        gateway.port,
        `PROPFIND ${LIST} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${access_token}\r\nAccept: application/xml\r\n${lines}\r\nConnection: close\r\n\r\n`,
      )
    for (const lines of [
      'Destination: http://x/other',
      'dEstination: /other',
      'If: </other> (<urn:uuid:1>)',
      'iF: (<urn:uuid:1>) </other> (["a"])',
      'If: (["a) </other> ("])',
      'If: (<urn:uuid:1>)\r\nIf: </other> (<urn:uuid:2>)',
    ])
      expect([lines, (await raw(lines)).status]).toEqual([lines, 207])
    expect(upstream.requests.map(({ head }) => /^(?:if|destination):/im.test(head))).not.toContain(true)
    await raw('If: (<urn:uuid:1> ["a"]) (Not <DAV:no-lock>)')
    expect(upstream.requests.at(-1)?.headers['if']).toEqual(['(<urn:uuid:1> ["a"]) (Not <DAV:no-lock>)'])
  })

  it('C11.3.1 the description has them beside the methods that OpenAPI knows', async () => {
    const { gateway } = await serve()
    const { body } = await send(gateway, { target: '/.well-known/openapi.json' })
    const { paths } = JSON.parse(body) as { paths: Record<string, Record<string, object>> }
    const item = paths['/api/1.0/b/{businessCode}/fund-data/fund-list'] ?? {}
    expect(Object.keys(item)).toEqual(['get', 'x-postern-operations'])
    expect(Object.keys(item['x-postern-operations'] ?? {})).toEqual([...METHODS])
  })
})
