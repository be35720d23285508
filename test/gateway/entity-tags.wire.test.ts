import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { fundsOf } from '../support/changed-funds.ts'
import { CHANGED, type LockingService, openLockingService } from '../support/locking-service.ts'
import { bearer, send, type Sent } from '../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../support/start-postern.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const JSON_ = { Accept: 'application/json' }
const XML = { Accept: 'application/xml' }
const versioned = (version: number, format: string) => ({
  Accept: `application/vnd.postern.action.v${version}+${format}`,
})

const operation = { scopes: { any: ['fund.read'] }, versions: [1, 2], items: {} }
const body = { required: true }

/** One document in several representations: bare, a part of it, in envelopes of its own, and as bytes. */
function withDocuments(loaded: Configuration): Configuration {
  const funds = { ...fundsOf(loaded), responseHeaders: ['Content-Location'] }
  const action = (name: string, methods: Configuration['actions'][number]['methods']) =>
    ({ level: 'business', area: 'fund-data', action: name, methods }) as const
  const path = '/docs/{business}/{id}'
  const documents = [
    action('doc/{id}', {
      GET: { ...operation, upstream: { path } },
      PUT: { ...operation, body, upstream: { path } },
      POST: { ...operation, body, upstream: { path } },
    }),
    action('bare/{id}', {
      PUT: { ...operation, body, upstream: { path: `${path}/bare`, requestHeaders: ['Accept-Language'] } },
      GET: { ...operation, upstream: { path: `${path}/bare`, requestHeaders: [] } },
    }),
    action('part/{id}', { GET: { ...operation, upstream: { path: `${path}/part`, data: '/doc' } } }),
    action('whole/{id}', {
      GET: { ...operation, upstream: { backend: 'enveloping', path: `${path}/envelope` } },
    }),
    action('numbered/{id}', { GET: { ...operation, upstream: { path: `${path}/numbered` } } }),
    action('bytes/{id}', {
      GET: {
        ...operation,
        produces: ['application/octet-stream'],
        upstream: { path: `${path}/bytes` },
      },
    }),
  ]
  return {
    ...loaded,
    backends: { ...loaded.backends, funds, enveloping: { ...funds, payload: 'envelope' } },
    actions: [...loaded.actions, ...documents],
  }
}

let service: LockingService
let gateway: StartedPostern
let token: string
beforeAll(async () => {
  service = await openLockingService()
  gateway = await startPostern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: service.url },
    change: withDocuments,
  })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
beforeEach(() => service.tagBy((state) => `"v${state}"`))
afterAll(async () => {
  await Promise.all([gateway.close(), service.close()])
})

async function ask(name: string, headers: Sent['headers'], sent: Partial<Sent> = {}) {
  const target = `/api/1.0/b/ACME/fund-data/${name}/1`
  const response = await send(gateway, { target, ...sent, headers: { ...bearer(token), ...headers } })
  return { ...response, etag: String(response.headers['etag']), asked: service.asked.at(-1)?.conditions }
}
const put = (headers: Sent['headers'], title = 'New', name = 'doc') =>
  ask(
    name,
    { 'Content-Type': 'application/json', ...headers },
    { method: 'PUT', body: JSON.stringify({ title }) },
  )

/** Every way to read the document that has a tag of its own. */
const READINGS = [
  ['JSON', 'doc', JSON_],
  ['XML', 'doc', XML],
  ['version 1 in JSON', 'doc', versioned(1, 'json')],
  ['version 2 in JSON', 'doc', versioned(2, 'json')],
  ['version 2 in XML', 'doc', versioned(2, 'xml')],
  ['a part of it in JSON', 'part', JSON_],
  ['a part of it in XML', 'part', XML],
  ['its own envelope', 'whole', JSON_],
  ['its own envelope in XML', 'whole', XML],
] as const

const MARKED = /^"v1-(?:json|xml)\.[\w-]{8}"$/

describe('optimistic locking', () => {
  it.each([...READINGS, ['bytes as they are', 'bytes', {}]] as const)(
    'C8.6 a PUT with the tag of %s reaches the service with its own tag; a stale one is 412',
    async (_what, name, accept) => {
      const { etag } = await ask(name, accept)
      expect(etag).toMatch(/^"v1/)
      const done = await put({ ...JSON_, 'If-Match': etag })
      expect([done.status, done.asked]).toEqual([200, { 'if-match': '"v1"' }])
      const stale = await put({ ...JSON_, 'If-Match': etag })
      expect([stale.status, stale.asked]).toEqual([412, { 'if-match': '"v1"' }])
      const next = await put({ ...XML, 'If-Match': `"other" , ${done.etag}` }, 'Third')
      expect([next.status, next.asked]).toEqual([200, { 'if-match': '"other", "v2"' }])
      expect((await ask('doc', JSON_)).body).toContain('Third')
    },
  )

  it('C8.6 each representation has a tag of its own, which is strong and stays', async () => {
    const tags = await Promise.all(READINGS.map(async ([, name, accept]) => (await ask(name, accept)).etag))
    for (const tag of tags) expect(tag).toMatch(MARKED)
    expect(new Set(tags).size).toBe(READINGS.length)
    const again = await Promise.all(READINGS.map(async ([, name, accept]) => (await ask(name, accept)).etag))
    expect(again).toEqual(tags)
  })

  it('C7.5, C8.6 one whose keys are whole numbers has a strong tag in XML, and its members in the order of the service', async () => {
    const first = await ask('numbered', XML)
    expect(first.etag).toMatch(MARKED)
    expect(first.body).toContain(
      '<b type="number">1</b><_x0031_0 type="number">2</_x0031_0><_x0039_>Füür</_x0039_>',
    )
    const [again, same] = [await ask('numbered', XML), { ...XML, 'If-None-Match': first.etag }]
    expect([again.etag, again.body]).toEqual([first.etag, first.body])
    expect((await ask('numbered', same)).status).toBe(304)
    expect((await ask('numbered', JSON_)).etag).not.toBe(first.etag)
  })

  it('C8.6 `*` and a tag without a mark go on as they came, and a weak tag stays weak', async () => {
    for (const [condition, status] of [
      ['*', 200],
      ['W/"v2"', 412],
      ['"v2"', 200],
    ] as const)
      expect([condition, (await put({ 'If-Match': condition })).status]).toEqual([condition, status])
    service.tagBy((state) => `W/"v${state}"`)
    const { etag } = await ask('doc', JSON_)
    expect(etag).toMatch(/^W\/"v1-json\.[\w-]{8}"$/)
    const weak = await put({ 'If-Match': etag })
    expect([weak.status, weak.asked]).toEqual([412, { 'if-match': 'W/"v1"' }])
  })

  it('C8.6 a change under If-None-Match is refused by the tag of any representation', async () => {
    const { etag } = await ask('doc', XML)
    const refused = await put({ ...JSON_, 'If-None-Match': etag })
    expect([refused.status, refused.asked]).toEqual([412, { 'if-none-match': '"v1"' }])
    expect((await put({ 'If-None-Match': '*' })).status).toBe(412)
  })

  it('C8.6, C8.8 the tag of an answer with Content-Location holds at that address', async () => {
    const made = await ask(
      'doc',
      { ...JSON_, 'Content-Type': 'application/json' },
      { method: 'POST', body: '{"title":"Made"}' },
    )
    const { pathname } = new URL(String(made.headers['content-location']), gateway.baseUrl)
    expect(pathname).toBe('/api/1.0/b/ACME/fund-data/doc/1')
    const same = await ask('doc', { ...JSON_, 'If-None-Match': made.etag }, { target: pathname })
    expect([same.status, same.etag]).toEqual([304, made.etag])
    expect((await put({ 'If-Match': made.etag })).status).toBe(200)
  })
})

describe('a condition of a change that does not reach the service', () => {
  it.each([
    ['If-Match', '"v1"'],
    ['If-None-Match', '*'],
    ['If-Unmodified-Since', CHANGED],
  ])('C8.2 %s, where requestHeaders leaves it out: 400, and nothing is sent', async (name, value) => {
    const before = service.asked.length
    const refused = await put({ [name]: value }, 'New', 'bare')
    expect(refused.status).toBe(400)
    expect(refused.body).toContain(`${name} is not passed on here`)
    // A client that calls it one of the connection's has it dropped too.
    expect((await put({ [name]: value, Connection: name })).status).toBe(400)
    expect(service.asked).toHaveLength(before)
  })

  it('C8.2 without one the change is made, and a read is answered whole', async () => {
    expect((await put({}, 'New', 'bare')).status).toBe(200)
    expect((await ask('bare', { 'If-None-Match': '"v2"', 'If-Match': '"v2"' })).status).toBe(200)
  })

  it('C8.2 a memory backend has no versions: 400, and nothing is changed', async () => {
    const demo = await postern({ keeps: 'nothing' })
    const { access_token } = await issueToken(demo, { scope: ALL_AT_ACME })
    const create = (headers: Record<string, string>) =>
      send(demo, {
        method: 'POST',
        target: '/api/1.0/b/ACME/fund-data/fund-create',
        headers: { ...bearer(access_token), 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify({ Code: 'NEW1', Name: 'New' }),
      })
    expect((await create({ 'If-None-Match': '*' })).status).toBe(400)
    expect((await create({})).status).toBeLessThan(300)
  })
})

describe('a condition of a GET or HEAD', () => {
  it.each(READINGS)('C8.6 the tag of %s is confirmed by 304, with that tag', async (_what, name, accept) => {
    const { etag } = await ask(name, accept)
    const headers = { ...accept, 'If-None-Match': etag, 'If-Modified-Since': CHANGED }
    for (const method of ['GET', 'HEAD']) {
      const same = await ask(name, headers, { method })
      expect([same.status, same.etag, same.body]).toEqual([304, etag, ''])
      expect(same.asked).toMatchObject({ 'if-none-match': '"v1"' })
      expect((await ask(name, accept, { method: 'HEAD' })).etag).toBe(etag)
    }
  })

  it.each(READINGS)('C8.6 whoever has %s and asks for another gets 200', async (what, name, accept) => {
    const { etag } = await ask(name, accept)
    for (const [other, otherName, otherAccept] of READINGS) {
      if (other === what) continue
      const headers = { ...otherAccept, 'If-None-Match': etag, 'If-Modified-Since': CHANGED }
      const whole = await ask(otherName, headers)
      expect([other, whole.status, whole.asked?.['if-none-match']]).toEqual([other, 200, etag])
      const changed = await ask(otherName, { ...otherAccept, 'If-Match': etag })
      expect([other, changed.status]).toEqual([other, 412])
    }
  })

  it('C8.6 of a list, the tag of the asked representation counts', async () => {
    const [json, xml] = [(await ask('doc', JSON_)).etag, (await ask('doc', XML)).etag]
    const both = await ask('doc', { ...XML, 'If-None-Match': [json, `W/${xml}`] })
    expect([both.status, both.etag]).toEqual([304, xml])
    expect(both.asked).toEqual({ 'if-none-match': `${json}, W/"v1"` })
  })

  it('C8.6, RFC 9111 §4.3.4 a tag that was given without a mark is confirmed as the client has it', async () => {
    for (const old of ['W/"v1"', '"v1"'])
      for (const accept of [JSON_, XML]) {
        const same = await ask('doc', { ...accept, 'If-None-Match': `"v0", ${old}` })
        expect([same.status, same.etag]).toEqual([304, old])
      }
    const { etag } = await ask('doc', JSON_)
    const both = await ask('doc', { ...JSON_, 'If-None-Match': `"v1", ${etag}` })
    expect([both.status, both.etag]).toEqual([304, etag])
    const star = await ask('doc', { ...JSON_, 'If-None-Match': '*' })
    expect([star.status, star.etag]).toEqual([304, etag])
    const since = await ask('doc', { ...JSON_, 'If-Modified-Since': CHANGED })
    expect([since.status, since.etag]).toEqual([304, etag])
  })

  it('C8.2, C8.6 ranges are of the bytes whose tag If-Range has; others get the whole', async () => {
    for (const [name, accept] of [
      ['bytes', {}],
      ['whole', JSON_],
    ] as const) {
      const { etag, headers, body: all } = await ask(name, accept)
      expect(headers['accept-ranges']).toBe('bytes')
      const rest = { ...accept, Range: 'bytes=5-' }
      const part = await ask(name, { ...rest, 'If-Range': etag })
      expect([part.status, part.body, part.etag]).toEqual([206, all.slice(5), etag])
      expect(part.asked?.['if-range']).toBe('"v1"')
      const { etag: xml } = await ask('whole', XML)
      for (const other of [xml, `W/${etag}`, '"v0"', etag.slice(1)])
        expect([other, (await ask(name, { ...rest, 'If-Range': other })).status]).toEqual([other, 200])
    }
    const { headers, etag } = await ask('doc', JSON_)
    expect(headers['accept-ranges']).toBeUndefined()
    const whole = await ask('doc', { ...JSON_, Range: 'bytes=5-', 'If-Range': etag })
    expect([whole.status, whole.asked]).toEqual([200, {}])
  })
})

describe('the tag of a service', () => {
  it.each([
    ['that ends like a mark', '"v1-json.AAAAAAAA"'],
    ['that ends like two', '"v1-xml.abcd_-12-own.upstream"'],
    ['with commas, spaces in no tag, and every mark', `"a,b;c=d\\'(){}<>?/!#$%&*+@[]^\`|~"`],
    ['beyond ASCII', '"\u00e9\u00ff"'],
    ['that is empty', '""'],
    ['that is long', `"${'x'.repeat(6000)}"`],
  ])('C8.6 %s is restored exactly, from every representation', async (_what, own) => {
    service.tagBy((state) => (state === 1 ? own : '"later"'))
    for (const [, name, accept] of [...READINGS, ['bytes', 'bytes', {}]] as const) {
      service.tagBy((state) => (state === 1 ? own : '"later"'))
      const { etag } = await ask(name, accept)
      const same = await ask(name, { ...accept, 'If-None-Match': etag })
      expect([name, same.status, same.etag, same.asked?.['if-none-match']]).toEqual([name, 304, etag, own])
      const done = await put({ 'If-Match': etag })
      expect([name, done.status, done.asked]).toEqual([name, 200, { 'if-match': own }])
    }
  })

  it('C8.6 that is none passes as it came, and a condition that cannot be read too', async () => {
    service.tagBy(() => 'v1')
    expect((await ask('doc', JSON_)).etag).toBe('v1')
    service.tagBy((state) => `"v${state}"`)
    const { etag } = await ask('doc', JSON_)
    for (const odd of [etag.slice(1), `${etag} ${etag}`, `${etag}, v1`, `w/${etag}`, ',', `${etag}, *`]) {
      const refused = await put({ 'If-Match': odd })
      expect([odd, refused.status, refused.asked]).toEqual([odd, 412, { 'if-match': odd }])
    }
    const many = Array.from({ length: 150 }, (_, at) => `"x${at}"`).join(', ')
    const done = await put({ 'If-Match': `${many}, ${etag}` })
    expect([done.status, done.asked]).toEqual([200, { 'if-match': `${many}, "v1"` }])
  })

  it('C7.1 of an action with produces passes as it came', async () => {
    expect((await ask('bytes', {})).etag).toBe('"v1"')
  })
})
