import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { TextOrSecret } from '../../src/base/config/schema.ts'
import { reportText } from '../../src/base/config/problems.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { fundsOf, type HttpConfig } from '../support/changed-funds.ts'
import { configFiles } from '../support/config-files.ts'
import { certificateFolder, makeAuthority } from '../support/certificates.ts'
import { bearer, send } from '../support/requests.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { answerJson, startUpstream } from '../support/start-upstream.ts'
import { at, withStream } from '../support/streaming.ts'
import { grantEach, oauth2 } from '../support/token-endpoint.ts'
import { issueToken } from '../support/tokens.ts'
import { askWebsocket, messageOn, startWebsocketUpstream } from '../support/websocket-upstream.ts'
import { SETTINGS } from '../support/settings.ts'

/** T2.14: targets and credentials that are values of a business. */

type Values = Readonly<Record<string, TextOrSecret>>

const LIST = 'fund-data/fund-list'
const ANYWHERE = ['http://127.0.0.1:*']

/** @param funds what the backend says */
async function world(
  values: Readonly<Record<'ACME' | 'GLOBEX', Values>>,
  funds: Partial<HttpConfig>,
  more: (loaded: Configuration) => Configuration = (loaded) => loaded,
) {
  const gateway = await postern({
    config: 'upstream.yaml',
    keeps: 'nothing',
    environment: { UPSTREAM_URL: 'http://127.0.0.1:9' },
    change: (loaded) => {
      const { directory } = loaded
      const { target: _written, ...rest } = fundsOf(loaded)
      const businesses = Object.fromEntries(
        Object.entries(directory.businesses).map(([code, business]) => [
          code,
          { ...business, values: values[code === 'ACME' ? 'ACME' : 'GLOBEX'] },
        ]),
      )
      return more({
        ...loaded,
        directory: { ...directory, businesses },
        backends: {
          ...loaded.backends,
          funds: { ...rest, ...(funds.target === undefined && { target: _written }), ...funds },
        },
      })
    },
  })
  const call = async (business: string, action = LIST) => {
    const headers = bearer(await tokenAt(gateway, business))
    return send(gateway, { target: `/api/1.0/b/${business}/${action}`, headers })
  }
  return { gateway, call }
}

const tokenAt = async (gateway: StartedPostern, business: string): Promise<string> => {
  const scope = `fund.read business.fund.list target:b/${business}`
  return (await issueToken(gateway, { scope })).access_token
}

describe('T2.14 a server for each business', () => {
  it('C8.7 gets the calls of its business with its credentials, and none of another’s', async () => {
    const [acme, globex] = [
      await startUpstream(answerJson({ of: 'acme' })),
      await startUpstream(answerJson({ of: 'globex' })),
    ]
    const { call, gateway } = await world(
      {
        ACME: { url: `${acme.url}/erp`, user: 'a', key: { secret: 'acme-pässword' } },
        GLOBEX: { url: { secret: globex.url }, user: 'g', key: { secret: 'globex-password' } },
      },
      {
        target: '{business.url}',
        origins: ANYWHERE,
        auth: { basic: { user: '{business.user}', password: '{business.key}' } },
      },
    )
    for (const business of ['ACME', 'GLOBEX', 'ACME', 'GLOBEX'])
      expect(JSON.parse((await call(business)).body).Data).toEqual({ of: business.toLowerCase() })
    const basic = (text: string) => [`Basic ${Buffer.from(text).toString('base64')}`]
    expect(acme.requests.map(({ target, headers }) => [target, headers['authorization']])).toEqual(
      Array(2).fill([`/erp/api/1.0/b/ACME/${LIST}`, basic('a:acme-pässword')]),
    )
    expect(globex.requests.map(({ target, headers }) => [target, headers['authorization']])).toEqual(
      Array(2).fill([`/api/1.0/b/GLOBEX/${LIST}`, basic('g:globex-password')]),
    )
    const told = gateway.logLines().join('')
    for (const secret of ['-password', 'pässword', `:${globex.port}`]) expect(told).not.toContain(secret)
  })

  it('C8.4 is 503 for its business alone while it is down; a secret address is told nowhere', async () => {
    const [acme, globex] = [await startUpstream(), await startUpstream()]
    await globex.close()
    const { call, gateway } = await world(
      { ACME: { url: acme.url }, GLOBEX: { url: { secret: globex.url } } },
      { target: '{business.url}', origins: ANYWHERE },
    )
    for (let count = 0; count < 6; count++) expect((await call('GLOBEX')).status).toBe(503)
    expect((await call('ACME')).status).toBe(200)
    expect(gateway.log()).toContainEqual(
      expect.objectContaining({ event: 'upstream_target_ejected', target: 'that of GLOBEX' }),
    )
    expect(gateway.logLines().join('')).not.toContain(`:${globex.port}`)
  })

  it('C8.8 follows no redirect to the server of another business, though `origins` of targets lists it', async () => {
    const other = await startUpstream()
    const own = await startUpstream((connection) =>
      connection.respond({ status: 302, headers: { Location: `${other.url}/api/1.0/b/ACME/${LIST}` } }),
    )
    const { call } = await world(
      { ACME: { url: own.url, key: 'k' }, GLOBEX: { url: other.url, key: 'g' } },
      {
        target: '{business.url}',
        origins: ANYWHERE,
        auth: { bearer: '{business.key}' },
        redirects: { max: 3, within: [], origins: [] },
      },
    )
    expect((await call('ACME')).status).toBe(500)
    expect(other.requests).toEqual([])
  })

  it('C8.8 follows a redirect no further than the path of its business, on one server', async () => {
    const upstream = await startUpstream((connection) => {
      if (connection.request.target.startsWith('/a/api'))
        connection.respond({ status: 302, headers: { Location: `/b/api/1.0/b/ACME/${LIST}` } })
      else answerJson({ secret: true })(connection)
    })
    const { call } = await world(
      { ACME: { url: `${upstream.url}/a` }, GLOBEX: { url: `${upstream.url}/b` } },
      { target: '{business.url}', origins: ANYWHERE, redirects: { max: 3, within: [], origins: [] } },
    )
    expect((await call('ACME')).status).toBe(500)
    expect(upstream.requests.map(({ target }) => target)).toEqual([`/a/api/1.0/b/ACME/${LIST}`])
  })

  it('C8.7 opens websockets under the name of its business, to a certificate of that name', async () => {
    const authority = makeAuthority(certificateFolder())
    const { certificate, key } = authority.issue('files', 'DNS:acme.s3.internal')
    const upstream = await startWebsocketUpstream({
      tls: { cert: readFileSync(certificate), key: readFileSync(key) },
    })
    const { gateway } = await world(
      { ACME: { bucket: 'acme' }, GLOBEX: { bucket: 'globex' } },
      {
        target: upstream.url,
        host: '{business.bucket}.s3.internal',
        tls: { ca: authority.certificate, verify: 'always' },
      },
      withStream,
    )
    const asked = async (business: string) =>
      askWebsocket(gateway.baseUrl.replace('http', 'ws') + at('live/lobby').replace('ACME', business), {
        headers: bearer(await tokenAt(gateway, business)),
      })
    const [acme, globex] = [await asked('ACME'), await asked('GLOBEX')]
    expect([acme.kind, globex.kind]).toEqual(['open', 'refused'])
    expect(upstream.handshakes.map(({ headers }) => headers.host)).toEqual(['acme.s3.internal'])
    if (acme.kind === 'open') acme.socket.close()
  })

  it('C8.7 gets the websockets of its business', async () => {
    const [acme, globex] = [await startWebsocketUpstream(), await startWebsocketUpstream()]
    const { gateway } = await world(
      { ACME: { url: acme.url, key: 'ka' }, GLOBEX: { url: globex.url, key: 'kg' } },
      { target: '{business.url}', origins: ANYWHERE, auth: { bearer: '{business.key}' } },
      withStream,
    )
    for (const [business, upstream] of [
      ['ACME', acme],
      ['GLOBEX', globex],
    ] as const) {
      const url = gateway.baseUrl.replace('http', 'ws') + at('live/lobby').replace('ACME', business)
      const asked = await askWebsocket(url, { headers: bearer(await tokenAt(gateway, business)) })
      if (asked.kind !== 'open') expect.fail(`it answered ${asked.status}`)
      const heard = messageOn(asked.socket)
      asked.socket.send('hello')
      await heard
      expect(upstream.handshakes).toHaveLength(1)
      expect(upstream.handshakes[0]?.headers.authorization).toBe(`Bearer k${business[0]?.toLowerCase()}`)
      asked.socket.close()
    }
  })
})

describe('T2.14 tokens of one business', () => {
  it('C8.7 are never sent for another one, also where a service refuses them', async () => {
    const endpoint = await startUpstream(grantEach())
    const upstream = await startUpstream()
    const { call } = await world(
      { ACME: { id: 'a', key: { secret: 'ka' } }, GLOBEX: { id: 'g', key: { secret: 'kg' } } },
      {
        target: upstream.url,
        auth: oauth2(endpoint.url, { clientId: '{business.id}', clientSecret: '{business.key}' }),
      },
    )
    for (const business of ['ACME', 'GLOBEX', 'ACME', 'GLOBEX'])
      expect((await call(business)).status).toBe(200)
    const sent = () => upstream.requests.map(({ headers }) => headers['authorization']?.[0])
    expect(sent()).toEqual(['Bearer token-1', 'Bearer token-2', 'Bearer token-1', 'Bearer token-2'])
    upstream.behave((connection) =>
      connection.request.headers['authorization']?.[0] === 'Bearer token-1'
        ? connection.respond({ status: 401 })
        : answerJson({})(connection),
    )
    expect((await call('ACME')).status).toBe(200)
    expect((await call('GLOBEX')).status).toBe(200)
    expect(sent().slice(4)).toEqual(['Bearer token-1', 'Bearer token-3', 'Bearer token-2'])
    expect(endpoint.requests).toHaveLength(3)
  })
})

describe('C8.7 a configuration whose values lead elsewhere', () => {
  const told = async (backend: string, values = `url: 'https://a.erp.internal'`): Promise<string> => {
    const file = configFiles({
      'a.yaml': [
        `extends: ${new URL('../../config/demo.yaml', import.meta.url).pathname}`,
        'directory:',
        '  businesses:',
        ...['ACME', 'GLOBEX', 'INITECH'].map(
          (code) => `    ${code}: { name: ${code}, funds: any, values: { ${values} } }`,
        ),
        'backends:',
        `  erp: { kind: http, ${backend} }`,
        'areas:',
        '  fund-data: { backend: erp }',
      ].join('\n'),
    })('a.yaml')
    return reportText(await SETTINGS.check(file, { URL: 'https://secret.example', KEY: 'k' }))
  }
  const TARGET = `target: '{business.url}', origins: ['https://*.erp.internal']`

  it('C8.7 is a problem that names business and backend, and not the value', async () => {
    expect(await told(TARGET)).not.toContain('origins')
    const text = await told(TARGET, 'url: { env: URL }')
    expect(text).toContain(
      'has a value "url" of business "ACME" that is of an origin that `origins` does not list: the backend erp',
    )
    expect(text).not.toContain('secret.example')
  })

  it.each([
    [`target: '{business.url}'`, '`origins` has to say where it may lead'],
    [`target: 'https://{business.url}.erp.internal'`, 'has a placeholder beside other text'],
    [`target: '{business.url}/x', origins: ['https://x']`, 'expected an http:// or https:// URL'],
    [`targets: ['{business.url}']`, 'expected an http:// or https:// URL'],
    [`target: '{business}', origins: ['https://x']`, 'must be a value of the business'],
    [`target: '{body/url}', origins: ['https://x']`, 'must be a value of the business'],
    [`target: '{business.url}', origins: ['https://a*.x']`, 'has a * beside other characters'],
    [`target: 'https://x', origins: ['https://x']`, 'is for a `target` that is a placeholder'],
    [`target: 'https://x', host: '{business.url}_x'`, 'expected a host name'],
    [`target: 'https://x', host: '{nobody}.x'`, 'has {nobody}'],
    [
      `target: 'https://x', auth: { bearer: plain }`,
      'expected { file: … } or { env: … }, or a text with a placeholder',
    ],
    [
      `target: 'https://x', auth: { bearer: 'a{{b' }`,
      'expected { file: … } or { env: … }, or a text with a placeholder',
    ],
    [
      `target: 'https://x', auth: { basic: { user: '{business.user}', password: { env: KEY } } }`,
      'lacks a value',
    ],
    [
      `target: 'https://x', auth: { oauth2: { tokenUrl: 'https://{business.url}/', clientId: a, clientSecret: { env: KEY } } }`,
      'the token endpoint is the same for all calls',
    ],
  ])('C8.7 is a problem: %s', async (backend, problem) => {
    expect(await told(backend)).toContain(problem)
  })
})
