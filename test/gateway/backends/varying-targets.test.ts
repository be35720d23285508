import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parseOriginPattern } from '../../../src/gateway/backends/forward/schema/origins.ts'
import { parseTemplate, solePlaceholder } from '../../../src/gateway/backends/templates/parse.ts'
import type { VaryingRules } from '../../../src/gateway/backends/forward/target/varying-targets.ts'
import type { Template } from '../../../src/base/contracts/calls/templates.ts'
import { urlOfNobody } from '../../support/free-port.ts'
import { type CallOverrides, makeCall } from '../../support/calls.ts'
import { certificateFolder, makeAuthority } from '../../support/certificates.ts'
import { openHttpBackend } from '../../support/http-backend.ts'
import { answerJson, startUpstream } from '../../support/start-upstream.ts'

const templateOf = (source: string): Template => parseTemplate(source) as Template

function varying(target: string | undefined, host?: string, origins = ['http://127.0.0.1:*']): VaryingRules {
  const templates = [target, host].map((source) => (source === undefined ? undefined : templateOf(source)))
  return {
    target: templates[0] && solePlaceholder(templates[0]),
    host: templates[1],
    origins: origins.map((text) => parseOriginPattern(text)).filter((each) => typeof each !== 'string'),
    templates: templates.flatMap((template, at) =>
      template === undefined ? [] : [{ at: [['target', 'host'][at]!], template }],
    ),
  }
}

type Rules = Parameters<typeof openHttpBackend>[1]

function open(urls: readonly string[], rules: VaryingRules, others: Rules = {}) {
  const changes: string[] = []
  const backend = openHttpBackend(urls, {
    varying: rules,
    targetChanged: (target, change) => void changes.push(`${target} ${change}`),
    ...others,
  })
  onTestFinished(() => backend.close())
  const call = (
    texts: Readonly<Record<string, string>>,
    { secrets = [] as string[], ...rest }: CallOverrides & { secrets?: string[] } = {},
  ) => backend.answer(makeCall({ values: { texts, secrets: new Set(secrets) }, ...rest }))
  const faultOf = async (texts: Readonly<Record<string, string>>, rest?: Parameters<typeof call>[1]) => {
    try {
      await call(texts, rest)
    } catch (thrown) {
      return thrown as { code: string; message: string; cause: unknown; facts: { unchanged?: boolean } }
    }
    return expect.fail('it answered')
  }
  return { backend, call, faultOf, changes }
}

const TARGET = '{business.url}'
const PATH = '/api/1.0/b/ACME/fund-data/fund-list'

describe('C8.7 a target that is a value of the business', () => {
  it('C8.7 gets the calls of its business and no other’s, below its path, under its own name', async () => {
    const [acme, hooli] = [await startUpstream(), await startUpstream()]
    const { call, backend } = open([], varying(TARGET))
    await call({ url: `${acme.url}/acme` })
    await call({ url: hooli.url })
    await call({ url: hooli.url })
    expect(acme.requests.map(({ target }) => target)).toEqual([`/acme${PATH}`])
    expect(hooli.requests.map(({ target }) => target)).toEqual([PATH, PATH])
    expect(acme.requests[0]?.headers['host']).toEqual([new URL(acme.url).host])
    expect(backend.traffic()).toMatchObject({ healthy: 2, ejected: 0 })
  })

  it('C8.7 has one pool for an origin, however many paths businesses have there', async () => {
    const upstream = await startUpstream()
    const { call, backend } = open([], varying(TARGET))
    for (const path of ['/a', '/b', '/a', '/c']) {
      await call({ url: upstream.url + path })
      await expect.poll(() => backend.traffic().idle).toBe(1)
    }
    expect(upstream.requests.map(({ target }) => target.slice(0, 3))).toEqual(['/a/', '/b/', '/a/', '/c/'])
    expect(upstream.connections).toHaveLength(1)
    expect(backend.traffic()).toMatchObject({ healthy: 1 })
  })

  it('T2.14 that leads elsewhere is 500, and nothing is sent anywhere', async () => {
    const [inside, outside] = [await startUpstream(), await startUpstream()]
    const { faultOf, backend } = open([], varying(TARGET, undefined, [inside.url]))
    for (const url of [
      outside.url,
      `${inside.url}@127.0.0.1:${outside.port}`,
      `${inside.url}\\@x`,
      '',
      'x',
      `${inside.url}/?x`,
    ]) {
      const { code, message, facts } = await faultOf({ url })
      expect([url, code, facts.unchanged]).toEqual([url, 'unsendable_value', true])
      if (url.length > 1) expect(message).not.toContain(url)
    }
    expect((await faultOf({})).code).toBe('business_value_missing')
    expect([...inside.requests, ...outside.requests]).toEqual([])
    expect([...inside.connections, ...outside.connections]).toEqual([])
    expect(backend.traffic()).toEqual({ active: 0, idle: 0, waiting: 0, healthy: 0, ejected: 0 })
  })

  it('C8.7 whose server fails is ejected by itself, and its log line says which', async () => {
    const [good, bad] = [await startUpstream(), await startUpstream((connection) => connection.reset())]
    const { call, faultOf, changes, backend } = open([], varying(TARGET), {
      ejection: { failures: 2, for: 60_000 },
      retries: 0,
    })
    await call({ url: good.url })
    for (const path of ['/a', '/b'])
      expect((await faultOf({ url: bad.url + path })).code).toBe('upstream_unreachable')
    expect(changes).toEqual([`${bad.url} ejected`])
    expect(backend.traffic()).toMatchObject({ healthy: 1, ejected: 1 })
    expect(backend.healthy()).toBe(true)
    expect((await faultOf({ url: bad.url })).code).toBe('upstream_unreachable')
    expect(bad.requests).toHaveLength(3)
  })

  it('C8.7 is connected to no more once the backend is closed, known or not', async () => {
    const [known, other] = [await startUpstream(), await startUpstream()]
    const { call, faultOf, backend } = open([], varying(TARGET), {
      healthCheck: { path: '/health', interval: 5, timeout: 5000, unhealthy: 1, healthy: 1 },
    })
    await call({ url: known.url })
    await backend.close()
    for (const { url } of [known, other]) expect((await faultOf({ url })).code).toBe('upstream_unreachable')
    expect(other.connections).toEqual([])
  })

  it('C8.7 that is a secret is told by no fault and no log line', async () => {
    const url = await urlOfNobody()
    const { faultOf, changes } = open([], varying(TARGET), {
      ejection: { failures: 1, for: 1000 },
      retries: 0,
    })
    const fault = await faultOf({ url }, { secrets: ['url'] })
    expect([fault.code, fault.cause]).toEqual(['upstream_unreachable', undefined])
    expect(JSON.stringify([fault.message, fault.facts, changes])).not.toContain(new URL(url).port)
    expect(changes).toEqual(['that of ACME ejected'])
    expect(JSON.stringify((await faultOf({ url })).cause, ['message', 'port'])).toContain(new URL(url).port)
  })

  it('C8.7 is checked for its health at its origin, from its first call on', async () => {
    const asked: string[] = []
    const upstream = await startUpstream((connection) => {
      asked.push(connection.request.target)
      answerJson({})(connection)
    })
    const { call } = open([], varying(TARGET), {
      healthCheck: { path: '/health', interval: 5, timeout: 5000, unhealthy: 1, healthy: 1 },
    })
    expect(asked).toEqual([])
    await call({ url: `${upstream.url}/acme` })
    await expect.poll(() => asked).toContain('/health')
  })

  it('C8.7 closes the connections of the origin that was unused longest, where there are 1,000', async () => {
    const upstream = await startUpstream()
    const { port } = upstream
    const at = (n: number): string => `http://127.0.${Math.floor(n / 250)}.${(n % 250) + 1}:${port}`
    const { call, faultOf, backend, changes } = open(
      [],
      varying(
        TARGET,
        undefined,
        Array.from({ length: 1003 }, (_, n) => at(n)),
      ),
      // The first call waits for all the others.
      { timeouts: { firstByte: 600_000 }, ejection: { failures: 1, for: 600_000 }, retries: 0 },
    )
    // Nobody listens at most of them: such a target is ejected by its first call, and once only while it is kept.
    const ejected = (n: number): number => changes.filter((line) => line === `${at(n)} ejected`).length
    const held = Promise.withResolvers<undefined>()
    upstream.behave((connection) => void held.promise.then(() => answerJson({})(connection)))
    const first = call({ url: at(0) })
    await expect.poll(() => upstream.requests.length).toBe(1)
    for (let n = 1; n < 1000; n++) await faultOf({ url: at(n) })
    await faultOf({ url: at(1) })
    for (const n of [1000, 1001, 1002]) await faultOf({ url: at(n) })
    expect(backend.traffic().healthy + backend.traffic().ejected).toBe(1000)
    for (const n of [1, 2]) await faultOf({ url: at(n) })
    expect([ejected(1), ejected(2)]).toEqual([1, 2])
    held.resolve(undefined)
    expect((await first).status).toBe(200)
  })
})

describe('C8.7 a target beyond 1,000', () => {
  it('C8.7 is 503 while calls use all the others, and nothing is sent', async () => {
    const upstream = await startUpstream()
    // No connection may be opened: calls wait for one.
    const { call, faultOf, backend } = open([], varying(TARGET), {
      maxConnections: 0,
      timeouts: { firstByte: 600_000 },
    })
    const others = Array.from({ length: 1000 }, (_, n) =>
      call({ url: `http://127.0.0.1:${n + 1}` }).catch(() => 'closed'),
    )
    const { code, facts } = await faultOf({ url: upstream.url })
    expect([code, facts.unchanged]).toEqual(['upstream_unreachable', true])
    expect(upstream.connections).toEqual([])
    await backend.close()
    expect(new Set(await Promise.all(others))).toEqual(new Set(['closed']))
  })
})

/** A server that knows by which name it was asked for. */
async function startNamed(files: { readonly certificate: string; readonly key: string }) {
  const asked: { readonly name: unknown; readonly host: unknown; readonly socket: number }[] = []
  let connections = 0
  const numbers = new WeakMap<object, number>()
  const pem = { cert: readFileSync(files.certificate), key: readFileSync(files.key) }
  const server = createServer(pem, (request, response) => {
    const servername: unknown = Reflect.get(request.socket, 'servername')
    asked.push({ name: servername, host: request.headers.host, socket: numbers.get(request.socket) ?? 0 })
    response.setHeader('Content-Type', 'application/json').end('{}')
  }).listen(0, '127.0.0.1')
  server.on('secureConnection', (socket) => numbers.set(socket, (connections += 1)))
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

const HOST = '{business.bucket}.s3.internal'

describe('C8.7 a host that is a template', () => {
  it('C8.7 is what Host, SNI and the verified name say, and no connection serves two names', async () => {
    const authority = makeAuthority(certificateFolder())
    const { url, asked } = await startNamed(authority.issue('s3', 'DNS:a.s3.internal,DNS:b.s3.internal'))
    const ca = readFileSync(authority.certificate)
    const { call, faultOf, backend } = open([url], varying(undefined, HOST), { tls: { ca } })
    for (const bucket of ['a', 'b', 'a', 'B', 'b']) await call({ bucket })
    expect(asked.map(({ name, host }) => [name, host])).toEqual([
      ['a.s3.internal', 'a.s3.internal'],
      ['b.s3.internal', 'b.s3.internal'],
      ['a.s3.internal', 'a.s3.internal'],
      ['b.s3.internal', 'B.s3.internal'],
      ['b.s3.internal', 'b.s3.internal'],
    ])
    for (const { name, socket } of asked)
      expect(new Set(asked.filter((each) => each.socket === socket).map((each) => each.name))).toEqual(
        new Set([name]),
      )
    const before = asked.length
    const { code, cause } = await faultOf({ bucket: 'c' })
    expect([code, String(cause)]).toEqual(['upstream_unreachable', expect.stringContaining('c.s3.internal')])
    expect(asked).toHaveLength(before)
    expect(backend.traffic()).toMatchObject({ healthy: 3 })
  })

  it('C8.7 leaves the verified name to `tls.serverName` where that is set, over the same connections', async () => {
    const authority = makeAuthority(certificateFolder())
    const { url, asked } = await startNamed(authority.issue('s3', 'DNS:s3.internal'))
    const { call, backend } = open([url], varying(undefined, HOST), {
      tls: { ca: readFileSync(authority.certificate), servername: 's3.internal' },
    })
    for (const bucket of ['a', 'b']) {
      await call({ bucket })
      await expect.poll(() => backend.traffic().idle).toBe(1)
    }
    expect(asked).toEqual([
      { name: 's3.internal', host: 'a.s3.internal', socket: 1 },
      { name: 's3.internal', host: 'b.s3.internal', socket: 1 },
    ])
  })

  it('C8.7 without TLS is the Host header alone, over the same connections', async () => {
    const upstream = await startUpstream()
    const { call, backend } = open([upstream.url], varying(undefined, `${HOST}:8080`))
    for (const bucket of ['a', 'b-1']) {
      await call({ bucket })
      await expect.poll(() => backend.traffic().idle).toBe(1)
    }
    expect(upstream.requests.map(({ headers }) => headers['host'])).toEqual([
      ['a.s3.internal:8080'],
      ['b-1.s3.internal:8080'],
    ])
    expect(upstream.connections).toHaveLength(1)
  })

  it('C8.7 leaves out a written target that health checks find unwell', async () => {
    const [well, unwell] = [
      await startUpstream(),
      await startUpstream((connection) => {
        const isCheck = connection.request.target === '/health'
        answerJson({}, { status: isCheck ? 503 : 200 })(connection)
      }),
    ]
    const { call, changes } = open([well.url, unwell.url], varying(undefined, HOST), {
      healthCheck: { path: '/health', interval: 5, timeout: 60_000, unhealthy: 1, healthy: 1 },
    })
    await call({ bucket: 'a' })
    await expect.poll(() => changes).toEqual([`${unwell.url} unhealthy`])
    const before = unwell.requests.filter(({ target }) => target !== '/health').length
    for (const bucket of ['a', 'b', 'a', 'b']) await call({ bucket })
    expect(unwell.requests.filter(({ target }) => target !== '/health')).toHaveLength(before)
  })

  it.each([
    '',
    '.',
    'a.b',
    'a/b',
    'a:1',
    'a b',
    'a\r\nX: 1',
    'ä',
    'a_b',
    '*',
    'a@b',
    'a#',
    'a%2e',
    'a'.repeat(64),
    '[::1]',
  ])('T2.14 that a value makes another one is 500, and nothing is sent: %j', async (bucket) => {
    const upstream = await startUpstream()
    const { faultOf } = open([upstream.url], varying(undefined, HOST))
    expect((await faultOf({ bucket })).code).toBe('unsendable_value')
    expect(upstream.connections).toHaveLength(0)
  })

  it('C8.7 may be a whole name, and is no IP address', async () => {
    const upstream = await startUpstream()
    const { call, faultOf } = open([upstream.url], varying(undefined, '{business.host}'))
    await call({ host: 'acme.example' })
    expect(upstream.requests[0]?.headers['host']).toEqual(['acme.example'])
    for (const host of [
      '127.0.0.1',
      'acme.example:80',
      'acme..example',
      'acme.example.',
      `${'a.'.repeat(130)}a`,
    ])
      expect([host, (await faultOf({ host })).code]).toEqual([host, 'unsendable_value'])
    expect(upstream.requests).toHaveLength(1)
  })

  it('C8.7 that a client chose is the client’s mistake', async () => {
    const upstream = await startUpstream()
    const { faultOf } = open([upstream.url], varying(undefined, '{bucket}.s3.internal'))
    expect((await faultOf({}, { params: { bucket: 'evil.example/' } })).code).toBe('unsendable_argument')
    expect(upstream.connections).toHaveLength(0)
  })
})
