import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { withForwardedActions } from '../support/forwarded-action.ts'
import { bearer, expectFault, send } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { openUpstream, type Upstream, type UpstreamAnswer } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const JSON_ = 'application/json'
const XML = 'application/xml'
const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'

let upstream: Upstream
let gateway: StartedPostern
let token: string
beforeAll(async () => {
  upstream = await openUpstream()
  gateway = await startPostern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: withForwardedActions({
      items: { data: '/items' },
      deep: { data: '/a~1b/1/~0' },
      whole: { data: '' },
      mine: { format: 'xml', data: '/Funds/List' },
      document: { format: 'xml', xml: { dialect: 'plain' }, data: '' },
      plain: { format: 'xml', xml: { dialect: 'plain' }, data: '/env:Envelope/env:Body/Fund' },
      stripped: {
        format: 'xml',
        xml: { dialect: 'plain', namespaces: 'strip', arrays: ['Funds/Fund'] },
        data: '/Funds/Fund',
      },
    }),
  })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(async () => {
  await Promise.all([gateway.close(), upstream.close()])
})

function told(action: string, answer: UpstreamAnswer, accept = JSON_, method = 'GET') {
  upstream.behave((connection) => connection.respond(answer))
  const target = `/api/1.0/b/ACME/fund-data/${action}`
  return send(gateway, { method, target, headers: { ...bearer(token), Accept: accept } })
}
const json = (body: string): UpstreamAnswer => ({ headers: { 'Content-Type': JSON_ }, body })
const xml = (body: string): UpstreamAnswer => ({ headers: { 'Content-Type': XML }, body })

describe('C8.8 a part of a bare payload is the data', () => {
  it.each([
    ['an object', '{"a":1,"b":"ü"}', '{"a":1,"b":"ü"}'],
    ['an array', '[1,"b"]', '{"Items":[1,"b"]}'],
    ['a scalar', '"text"', '{"Value":"text"}'],
    ['null', 'null', '{}'],
    ['numbers as they are written', '{"a":1.0,"b":1e5,"c":-0,"d":12345678901234567890}', undefined],
  ])('C8.6, C8.8 %s', async (_what, part, data = part) => {
    const response = await told('items', json(`{"next":"/x","items":${part},"count":2}`))
    expect(response.status).toBe(200)
    expect(response.body).toBe(`{"Errors":[],"Data":${data}}`)
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8')
  })

  it('C8.8, RFC 6901 a pointer goes through lists and escaped names', async () => {
    const response = await told('deep', json('{"a/b":[0,{"~":{"x":1}}]}'))
    expect(response.body).toBe('{"Errors":[],"Data":{"x":1}}')
    expect((await told('whole', json('[1]'))).body).toBe('{"Errors":[],"Data":{"Items":[1]}}')
  })

  it('C7.5, C8.8 in XML too', async () => {
    const response = await told('items', json('{"items":[{"a":1}]}'), XML)
    expect(response.body).toContain(
      '<Data><Items type="array"><Item><a type="number">1</a></Item></Items></Data>',
    )
  })

  it.each([
    '{"Items":[]}',
    '[]',
    'null',
    '1',
    '{"items"',
    '{"__proto__":{"items":[]}}',
    '{"items":[],"items":[1]}',
  ])('C8.8 %s has no such part: 500, and the log says so', async (body) => {
    const response = await told('items', json(body))
    expectFault(response, 'upstream_broken')
    const id = response.headers['x-request-id']
    const line = gateway.log().find(({ requestId }) => requestId === id)
    expect(String(line?.['detail'])).toMatch(/has nothing at \/items|cannot be converted/)
  })

  it('C8.6, C8.8 an answer without a body is empty data; HEAD has the headers', async () => {
    expect((await told('items', { status: 204 })).body).toBe('{"Errors":[],"Data":{}}')
    expect((await told('items', { status: 201 })).body).toBe('{"Errors":[],"Data":{}}')
    const answer = { ...json('{"items":[]}'), headers: { 'Content-Type': JSON_, ETag: '"1"' } }
    const [get, head] = [await told('items', answer), await told('items', answer, JSON_, 'HEAD')]
    expect([head.status, head.body]).toEqual([200, ''])
    expect(head.headers['etag']).toMatch(/^"1-json\.[\w-]{8}"$/)
    expect(get.headers['etag']).toBe(head.headers['etag'])
  })

  it('T4.7, C8.8 a large answer is read on another thread, byte for byte in its numbers', async () => {
    const items = `[${Array.from({ length: 40_000 }, (_, at) => `{"n":${at}.50}`).join(',')}]`
    const response = await told('items', json(`{"before":1,"items":${items}}`))
    expect(response.body).toBe(`{"Errors":[],"Data":{"Items":${items}}}`)
  })
})

describe('C8.8 a part of an answer in XML, by names from the root on', () => {
  it('C7.5, C8.8 of Postern’s dialect', async () => {
    const body = '<Funds><List type="array"><Fund>A</Fund><Fund>B</Fund></List><More>1</More></Funds>'
    expect((await told('mine', xml(body))).body).toBe('{"Errors":[],"Data":{"Items":["A","B"]}}')
    expect((await told('mine', xml(body), XML)).body).toContain('<Data><Items type="array"><Item>A</Item>')
    expectFault(await told('mine', xml('<Other><List/></Other>')), 'upstream_broken')
  })

  const ENVELOPE =
    '<env:Envelope xmlns:env="urn:env" xmlns="urn:d" xmlns:x="urn:x"><env:Body><!-- c --><Fund id="1"><x:Name>A &lt;' +
    '<!-- c --></x:Name></Fund></env:Body><Other/></env:Envelope>'

  it('C7.7, C8.8 XML goes to XML as it is, its namespaces declared', async () => {
    const response = await told('plain', xml(ENVELOPE), XML)
    expect(response.body).toBe(
      `${DECLARATION}<ApiResponse><Errors/><Data><Fund xmlns="urn:d" xmlns:env="urn:env" xmlns:x="urn:x" id="1">` +
        '<x:Name>A &lt;</x:Name></Fund></Data></ApiResponse>',
    )
  })

  it('C7.7, C8.8 an empty path is the whole document, in either format', async () => {
    const body = '<Funds><Fund>A</Fund></Funds>'
    expect((await told('document', xml(body), XML)).body).toContain(`<Data>${body}</Data>`)
    expect((await told('document', xml(body))).body).toContain('"Data":{"Funds":{"Fund":"A"}}')
  })

  it('C7.7, C8.8 XML goes to JSON by its mapping', async () => {
    const response = await told('plain', xml(ENVELOPE))
    expect(response.body).toBe('{"Errors":[],"Data":{"@id":"1","x:Name":"A <"}}')
  })

  it('C7.7, C8.8 repeated elements are a list; what is always one may be empty', async () => {
    const two = '<f:Funds xmlns:f="urn:f"><f:Fund>A</f:Fund><f:Fund xmlns:f="urn:f">B</f:Fund></f:Funds>'
    expect((await told('stripped', xml(two))).body).toBe('{"Errors":[],"Data":{"Items":["A","B"]}}')
    expect((await told('stripped', xml(two), XML)).body).toContain(
      '<Data><f:Fund xmlns:f="urn:f">A</f:Fund><f:Fund xmlns:f="urn:f">B</f:Fund></Data>',
    )
    expect((await told('stripped', xml('<Funds/>'))).body).toBe('{"Errors":[],"Data":{"Items":[]}}')
    expect((await told('stripped', xml('<Funds/>'), XML)).body).toContain('<Data></Data>')
  })

  it.each([
    ['stripped', '<Fonds><Fund>A</Fund></Fonds>'],
    ['plain', '<env:Envelope xmlns:env="urn:e"><env:Body/></env:Envelope>'],
    [
      'plain',
      '<env:Envelope xmlns:env="urn:e"><env:Body><Fund/></env:Body><env:Body><Fund/></env:Body></env:Envelope>',
    ],
    ['plain', '<env:Envelope xmlns:env="urn:e"><Fund/></env:Envelope>'],
  ])('C8.8 %s: %s has no such part, in either format', async (action, body) => {
    expectFault(await told(action, xml(body)), 'upstream_broken')
    expectFault(await told(action, xml(body), XML), 'upstream_broken', { format: 'xml' })
  })

  it('C7.7, C8.8 many parts below many declarations do not grow without a bound', async () => {
    const declarations = Array.from({ length: 200 }, (_, at) => ` xmlns:p${at}="urn:${'x'.repeat(20)}"`)
    const body = `<Funds${declarations.join('')}>${'<Fund/>'.repeat(5000)}</Funds>`
    expectFault(await told('stripped', xml(body), XML), 'answer_too_large', { format: 'xml' })
  })

  it('C7.7, C8.8 parts get the declarations of the elements around them, not of those before them', async () => {
    const body = `<Funds xmlns:a="urn:a"><x xmlns:b="urn:b"><y xmlns:a="urn:c"/></x><Fund>1</Fund></Funds>`
    expect((await told('stripped', xml(body), XML)).body).toContain(
      '<Data><Fund xmlns:a="urn:a">1</Fund></Data>',
    )
  })
})
