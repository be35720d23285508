import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import type { FaultCode } from '../../src/base/kernel/faults.ts'
import { replacedService } from '../support/replaced-service.ts'
import { bearer, expectFault, send, type Sent } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { answerJson, openUpstream, type Upstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken, MEMBER } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'
const MEMBER_DETAIL = `/api/1.0/f/ACME/SUPER1/member-data/member-detail/${MEMBER}`

const replaced = replacedService({ keeps: 'nothing' })
let gateway: StartedPostern
let token: string
beforeAll(async () => {
  gateway = await startPostern({ keeps: 'nothing' })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(() => gateway.close())

const ask = ({ headers, ...more }: Partial<Sent> = {}, of = gateway, as = token) =>
  send(of, { target: LIST, ...more, headers: { ...bearer(as), ...headers } })
const accepting = (accept: string | readonly string[] | undefined, target = LIST) =>
  ask({ target, headers: { Accept: accept } })

const JSON_TYPE = 'application/json; charset=utf-8'
const XML_TYPE = 'application/xml; charset=utf-8'
const vendor = (version: number | string, format: string) =>
  `application/vnd.postern.action.v${String(version)}+${format}`

describe('C7.1: supported response types', () => {
  it.each([
    ['application/json', JSON_TYPE],
    ['application/xml', XML_TYPE],
    [vendor(1, 'json'), `${vendor(1, 'json')}; charset=utf-8`],
    [vendor(1, 'xml'), `${vendor(1, 'xml')}; charset=utf-8`],
  ])('C7.1: %s', async (accept, type) => {
    const { status, headers, body } = await accepting(accept)
    expect([status, headers['content-type']]).toEqual([200, type])
    expect(body.startsWith(type.includes('xml') ? '<?xml' : '{"Errors"')).toBe(true)
  })

  it('C7.1: the vendor is configuration', async () => {
    const own = await replaced({ change: (loaded) => ({ ...loaded, vendor: 'acme' }) })
    const { access_token } = await issueToken(own, { scope: ALL_AT_ACME })
    const as = (accept: string) => ask({ headers: { Accept: accept } }, own, access_token)
    expect(await as('application/vnd.acme.action.v1+xml')).toMatchObject({ status: 200 })
    expectFault(await as(vendor(1, 'json')), 'not_acceptable')
  })
})

describe('C7.1: an action with produces and consumes of its own', () => {
  let own: StartedPostern
  let upstream: Upstream
  let as: string
  beforeAll(async () => {
    upstream = await openUpstream()
    const change = (loaded: Configuration): Configuration => {
      const scopes = { any: ['fund.read'] }
      const action = { level: 'business', area: 'fund-data' } as const
      const GET = { scopes, versions: [1], items: {}, produces: ['text/csv', 'image/*'] }
      const POST = { scopes, versions: [1], items: {}, consumes: ['application/octet-stream', 'image/*'] }
      return {
        ...loaded,
        actions: [...loaded.actions, { ...action, action: 'file', methods: { GET, POST } }],
      }
    }
    own = await startPostern({
      keeps: 'nothing',
      config: 'upstream.yaml',
      environment: { UPSTREAM_URL: upstream.url },
      change,
    })
    as = (await issueToken(own, { scope: ALL_AT_ACME })).access_token
  })
  afterAll(async () => {
    await Promise.all([own.close(), upstream.close()])
  })
  const file = (sent: Partial<Sent>) => ask({ target: '/api/1.0/b/ACME/fund-data/file', ...sent }, own, as)

  it('C7.1: its successes are of its own types and not enveloped', async () => {
    upstream.behave((connection) =>
      connection.respond({ headers: { 'Content-Type': 'text/csv' }, body: 'a,b\r\n' }),
    )
    const { status, headers, body } = await file({ headers: { Accept: 'text/csv' } })
    expect([status, headers['content-type'], body]).toEqual([200, 'text/csv', 'a,b\r\n'])
  })

  it('C7.1, C2.6: its failures are enveloped, and name its own types', async () => {
    const offered = 'text/csv or image/*'
    expectFault(await file({ headers: { Accept: 'application/json' } }), 'not_acceptable', { offered })
    expectFault(await file({ headers: { Accept: 'application/xml' } }), 'not_acceptable', {
      format: 'xml',
      offered,
    })
    upstream.behave((connection) => connection.respond({ status: 404, body: 'none' }))
    expectFault(await file({ headers: { Accept: 'text/csv' } }), 'upstream_not_found')
  })

  it('C7.1, C7.6: its request bodies stream through as they are, of its own types only', async () => {
    upstream.behave(answerJson({}))
    const before = upstream.requests.length
    const bytes = Buffer.from([0, 1, 2, 0xff, 0xfe, 10, 13])
    const sent = { method: 'POST', body: bytes }
    expect(await file({ ...sent, headers: { 'Content-Type': 'image/png' } })).toMatchObject({ status: 200 })
    expect(upstream.requests[before]).toMatchObject({
      body: bytes,
      headers: { 'content-type': ['image/png'] },
    })
    expectFault(
      await file({ ...sent, headers: { 'Content-Type': 'application/json' } }),
      'unsupported_media_type',
      { offered: 'application/octet-stream or image/*' },
    )
    expect(upstream.requests.length).toBe(before + 1)
  })
})

describe('C7.2: Accept by RFC 9110 §12.5.1', () => {
  const CHOICES: readonly (readonly [string | readonly string[] | undefined, string])[] = [
    [undefined, JSON_TYPE],
    ['', JSON_TYPE],
    ['*/*', JSON_TYPE],
    ['application/*', JSON_TYPE],
    ['APPLICATION/XML', XML_TYPE],
    ['application/json;q=0.5, application/xml;q=0.6', XML_TYPE],
    ['application/xml;q=0.6, application/json;q=0.5', XML_TYPE],
    ['application/json, application/xml', JSON_TYPE],
    ['application/xml, application/json', XML_TYPE],
    ['*/*, application/xml', XML_TYPE],
    ['*/*;q=1, application/xml;q=0.5', JSON_TYPE],
    ['application/*, application/xml;q=0.9', JSON_TYPE],
    ['application/json;q=0, */*', XML_TYPE],
    ['application/json;q=0.0, application/*', XML_TYPE],
    ['application/xml;q=0, */*', JSON_TYPE],
    [['image/png', 'application/xml'], XML_TYPE],
    [['application/json;q=0.1', 'application/xml;q=0.2'], XML_TYPE],
    ['application/xml;level=1', XML_TYPE],
    ['application/xml;charset=utf-8', XML_TYPE],
    ['application/xml;charset="UTF-8"', XML_TYPE],
    ['application/xml;charset=latin1, application/json', JSON_TYPE],
    ['nonsense, application/xml', XML_TYPE],
    ['application/json;q=abc, application/xml;q=0.1', XML_TYPE],
    ['application/json;q=2, application/xml;q=0.1', XML_TYPE],
    [', ,application/xml', XML_TYPE],
    ['application/xml ; q=0.5 , application/json; q=0.4', XML_TYPE],
    [`${vendor(1, 'xml')}, application/json;q=0.9`, `${vendor(1, 'xml')}; charset=utf-8`],
    [`*/*, ${vendor(1, 'xml')}`, `${vendor(1, 'xml')}; charset=utf-8`],
  ]
  it.each(CHOICES)('C7.2: %j is answered as %s', async (accept, type) => {
    const { status, headers } = await accepting(accept)
    expect([status, headers['content-type']]).toEqual([200, type])
  })

  it.each([
    'text/html',
    'text/xml',
    'image/*',
    'application/json;q=0',
    '*/*;q=0',
    'application/json;charset=latin1',
    'nonsense',
    'application',
    '/',
    'application/json;q=abc',
    'text/*, image/png',
    'application/json;q=0, application/xml;q=0, */*',
  ])('C7.2: %s is 406', async (accept) => {
    const response = await accepting(accept)
    expect(response.status).toBe(406)
    expect(response.body).toContain('API_NOT_ACCEPTABLE')
  })

  it('C7.2: without a wish, the configured default', async () => {
    const own = await replaced({ change: (loaded) => ({ ...loaded, defaultFormat: 'xml' }) })
    const { access_token } = await issueToken(own, { scope: ALL_AT_ACME })
    for (const accept of [undefined, '', '*/*', 'application/*']) {
      const { headers } = await ask({ headers: { Accept: accept } }, own, access_token)
      expect(headers['content-type']).toBe(XML_TYPE)
    }
  })
})

describe('C7.3: action versions', () => {
  const versionOf = async (accept: string | undefined) => {
    const { status, body } = await accepting(accept, MEMBER_DETAIL)
    expect(status).toBe(200)
    return body.includes('CommunicationPreferences') ? 2 : 1
  }

  it('C7.3: the version that is asked for answers', async () => {
    for (const format of ['json', 'xml']) {
      expect(await versionOf(vendor(1, format))).toBe(1)
      expect(await versionOf(vendor(2, format))).toBe(2)
    }
  })

  it("C7.3: no version asked: the action's lowest", async () => {
    for (const accept of ['application/json', 'application/xml', '*/*', undefined])
      expect(await versionOf(accept)).toBe(1)
  })

  it('C7.3: unless its configuration says otherwise', async () => {
    const change = (loaded: Configuration): Configuration => ({
      ...loaded,
      actions: loaded.actions.map((action) => {
        const { GET } = action.methods
        return GET?.versions.includes(2)
          ? { ...action, methods: { ...action.methods, GET: { ...GET, defaultVersion: 2 } } }
          : action
      }),
    })
    const own = await replaced({ change })
    const { access_token } = await issueToken(own, { scope: ALL_AT_ACME })
    const { body } = await ask({ target: MEMBER_DETAIL }, own, access_token)
    expect(body).toContain('CommunicationPreferences')
  })

  it.each([
    [vendor(3, 'json'), 'json'],
    [vendor(0, 'json'), 'json'],
    [vendor('', 'json'), 'json'],
    [vendor('x', 'json'), 'json'],
    [vendor('01', 'json'), 'json'],
    [vendor('1.0', 'json'), 'json'],
    [vendor('1e0', 'xml'), 'xml'],
    [vendor('99999999999999999999', 'xml'), 'xml'],
    [`${vendor(3, 'json')}, image/png`, 'json'],
  ] as const)('C7.3, C2.6: %s alone is 501, and the versions are named', async (accept, format) => {
    expectFault(await accepting(accept, MEMBER_DETAIL), 'unknown_action_version', {
      format,
      offered: '1 or 2',
    })
  })

  it.each([
    [`${vendor(3, 'json')}, application/xml;q=0.1`, XML_TYPE],
    [`${vendor('x', 'json')}, ${vendor(2, 'json')};q=0.5`, `${vendor(2, 'json')}; charset=utf-8`],
    [`${vendor(3, 'xml')}, */*;q=0.1`, JSON_TYPE],
  ])('C7.3: %s is passed over for %s', async (accept, type) => {
    const { status, headers } = await accepting(accept, MEMBER_DETAIL)
    expect([status, headers['content-type']]).toEqual([200, type])
  })

  it.each([
    'application/vnd.other.action.v1+json',
    'application/vnd.postern.action.v1+yaml',
    'application/vnd.postern.action.v1',
    'application/vnd.postern.other.v1+json',
    'application/vnd.posternx.action.v1+json',
  ])('C7.3: %s is 406', async (accept) => {
    expectFault(await accepting(accept, MEMBER_DETAIL), 'not_acceptable')
  })
})

describe('C7.4: request body types', () => {
  const write = (type: string | undefined, body: string | Buffer, more: Sent['headers'] = {}) =>
    ask({ method: 'POST', target: DETAIL, body, headers: { 'Content-Type': type, ...more } })

  it.each([
    ['application/json', '{"MemberLimit":5}'],
    ['APPLICATION/JSON', '{"MemberLimit":5}'],
    ['application/json;charset=utf-8', '{"MemberLimit":5}'],
    ['application/json; charset="UTF-8"', '{"MemberLimit":5}'],
    ['application/json;', '{"MemberLimit":5}'],
    ['application/json\t;\tversion=1', '{"MemberLimit":5}'],
    ['application/json', '\u{feff}{"MemberLimit":5}'],
    ['application/xml', '<a><MemberLimit>5</MemberLimit></a>'],
    ['application/xml; charset=utf-8', '\u{feff}<a><MemberLimit>5</MemberLimit></a>'],
    [undefined, '<a><MemberLimit>5</MemberLimit></a>'],
    ['application/x-www-form-urlencoded', 'MemberLimit=5'],
    ['application/x-www-form-urlencoded; charset=UTF-8', 'MemberLimit=5'],
  ])('C7.4: %s is parsed as what it is: %s', async (type, body) => {
    expect(await write(type, body)).toMatchObject({ status: 200, body: '{"Errors":[],"Data":{}}' })
  })

  it.each([
    'text/plain',
    'text/xml',
    'text/json',
    'application/json; charset=latin1',
    'application/xml; charset=utf-16',
    'multipart/form-data; boundary=x',
    'application/json, application/xml',
    'application/jsonp',
    'application/json;charset=utf-8;charset=utf-8',
    'json',
    '',
    'application/vnd.postern.action.v1+json',
  ])('C7.4: %j is 415, with or without a body', async (type) => {
    expectFault(await write(type, '{}'), 'unsupported_media_type')
    expectFault(await write(type, ''), 'unsupported_media_type')
    expectFault(await ask({ headers: { 'Content-Type': type } }), 'unsupported_media_type')
  })

  it.each(['gzip', 'deflate', 'br', 'identity, gzip', 'x'])(
    'C7.4: Content-Encoding %s is 415',
    async (coding) => {
      expectFault(
        await write('application/json', '{}', { 'Content-Encoding': coding }),
        'unsupported_media_type',
      )
    },
  )

  it('C7.4: Content-Encoding identity is none', async () => {
    const identity = { 'Content-Encoding': 'identity' }
    expect(await write('application/json', '{}', identity)).toMatchObject({ status: 200 })
  })

  it.each<readonly [string, string | undefined, string, FaultCode]>([
    ['JSON said to be XML', 'application/xml', '{"MemberLimit":5}', 'body_malformed'],
    ['JSON without a type', undefined, '{"MemberLimit":5}', 'body_malformed'],
    ['XML said to be JSON', 'application/json', '<a/>', 'body_malformed'],
    ['JSON said to be a form', 'application/x-www-form-urlencoded', '{"a":1}', 'body_invalid'],
  ])(
    'C7.4: the type that is judged is the type that is parsed: %s is 400',
    async (_what, type, body, fault) => {
      expectFault(await write(type, body), fault, { say: '' })
    },
  )

  it.each([
    ['no body at all', {}],
    ['zero length', { 'Content-Length': '0' }],
  ])('C7.4: %s is 400 where the action needs one, whatever the type', async (_what, headers) => {
    for (const type of ['application/json', 'application/xml', undefined])
      expectFault(await write(type, '', headers), 'body_missing')
  })

  it('C7.4: an empty chunked body is no body', async () => {
    const headers = { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' }
    expectFault(await ask({ method: 'POST', target: DETAIL, headers, body: '0\r\n\r\n' }), 'body_missing')
  })

  it('C7.4: a body where the action declares none is 400, chunked too', async () => {
    const headers = { 'Content-Type': 'application/json' }
    expectFault(await ask({ headers, body: '{}' }), 'body_unexpected')
    const chunked = { ...headers, 'Transfer-Encoding': 'chunked' }
    expectFault(await ask({ headers: chunked, body: '2\r\n{}\r\n0\r\n\r\n' }), 'body_unexpected')
    expect(await ask({ headers: chunked, body: '0\r\n\r\n' })).toMatchObject({ status: 200 })
    expect(await ask({ headers: { 'Content-Length': '0' } })).toMatchObject({ status: 200 })
  })

  it('C7.4: one leading byte order mark is ignored, a second is not', async () => {
    const twice = '\u{feff}\u{feff}'
    expectFault(await write('application/json', `${twice}{}`), 'body_malformed', { say: '' })
    expectFault(await write('application/xml', `${twice}<a/>`), 'body_malformed', { say: '' })
  })
})
