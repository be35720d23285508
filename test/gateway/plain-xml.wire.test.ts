import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { BodySchema } from '../../src/base/http/body/body-schema.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { fundsOf } from '../support/changed-funds.ts'
import { bearer, expectFault, send, type Sent } from '../support/requests.ts'
import type { RawResponse } from '../support/raw-http.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { openUpstream, type ReceivedRequest, type Upstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const XML = 'application/xml'
const JSON_ = 'application/json'

type Xml = NonNullable<Extract<Configuration['backends'][string], { kind: 'http' }>['xml']>

const NAMED: BodySchema = {
  type: 'object',
  properties: { Name: { type: 'string' }, Size: { type: 'number' } },
  required: ['Name'],
  additionalProperties: false,
}

/** An action for each way to speak XML. Their backend says `dialect: plain` and the paths. */
const withXml = (loaded: Configuration): Configuration => {
  const funds = fundsOf(loaded)
  const rule = { scopes: { any: ['fund.read'] }, versions: [1], items: {} }
  const action = (name: string, xml?: Xml, schema?: BodySchema): Configuration['actions'][number] => {
    const operation = { ...rule, ...(xml && { upstream: { xml } }) }
    const body = { required: false, ...(schema && { schema }) }
    return {
      level: 'business',
      area: 'fund-data',
      action: name,
      methods: { GET: operation, POST: { ...operation, body } },
    }
  }
  const xml: Xml = {
    dialect: 'plain',
    arrays: ['Funds/Fund', 'f:Funds/f:Fund'],
    numbers: ['Funds/Fund/Size', 'Funds/@total', 'Fund/Size'],
    booleans: ['Funds/Fund/Open'],
  }
  const attributes = { xmlns: 'urn:funds', version: '2' }
  return {
    ...loaded,
    backends: { ...loaded.backends, funds: { ...funds, format: 'xml', xml } },
    actions: [
      ...loaded.actions,
      action('plain'),
      action('stripped', { namespaces: 'strip', arrays: ['Funds/Fund'] }),
      action('rooted', { root: 'Fund', attributes }),
      action('typed', { root: 'Fund', attributes }, NAMED),
      action('ours', { dialect: 'postern' }),
    ],
  }
}

let gateway: StartedPostern
let upstream: Upstream
let token: string
beforeAll(async () => {
  upstream = await openUpstream()
  const environment = { UPSTREAM_URL: upstream.url }
  gateway = await startPostern({ keeps: 'nothing', config: 'upstream.yaml', environment, change: withXml })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(async () => {
  await Promise.all([gateway.close(), upstream.close()])
})

const ask = (action: string, { headers, ...more }: Partial<Sent> = {}): Promise<RawResponse> =>
  send(gateway, {
    target: `/api/1.0/b/ACME/fund-data/${action}`,
    ...more,
    headers: { ...bearer(token), ...headers },
  })

const answers = (body: string | Buffer, type = 'text/xml', status = 200): void =>
  upstream.behave((connection) => connection.respond({ status, headers: { 'Content-Type': type }, body }))

/** What a client that asks for XML gets of an answer. */
const splicedOf = async (body: string | Buffer, type?: string): Promise<string> => {
  answers(body, type)
  const response = await ask('plain', { headers: { Accept: XML } })
  expect(response.status, response.body).toBe(200)
  expect(response.headers['content-type']).toBe('application/xml; charset=utf-8')
  return response.body
}
const envelope = (data: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?><ApiResponse><Errors/><Data>${data}</Data></ApiResponse>`

/** The `Data` that a client gets as JSON. */
const mappedOf = async (body: string | Buffer, action = 'plain', type?: string): Promise<unknown> => {
  answers(body, type)
  const response = await ask(action)
  expect(response.status, response.body).toBe(200)
  return (JSON.parse(response.body) as { Data: unknown }).Data
}

const FUNDS =
  '<f:Funds xmlns:f="urn:f" xmlns:xsi="urn:x" xml:lang="en" xsi:type="f:List"><f:Fund id=\'1\'>A &amp; B</f:Fund></f:Funds>'

describe('an XML client before an XML service', () => {
  it.each([
    ['the root as it is', FUNDS, FUNDS],
    ['without the declaration', `<?xml version="1.0" standalone="yes"?>\n${FUNDS}\n`, FUNDS],
    ['without comments', `<!-- a --><Fund>b<!-- <c> --></Fund><!-- </Fund> -->`, '<Fund>b</Fund>'],
    [
      'without instructions',
      '<?xml-stylesheet href="http://127.0.0.1/"?><Fund>a<?b <c> ?>d</Fund><?e?>',
      '<Fund>ad</Fund>',
    ],
    ['without a DOCTYPE', '<!DOCTYPE Fund SYSTEM "http://127.0.0.1/fund.dtd"><Fund/>', '<Fund/>'],
    ['with CDATA', '<a><![CDATA[<!-- kept --> </Data>]]></a>', '<a><![CDATA[<!-- kept --> </Data>]]></a>'],
    ['with mixed content', '<p>a<b>c</b>d</p>', '<p>a<b>c</b>d</p>'],
    ['with references', '<a b="&#10;&quot;">&#x41;&lt;&#13;</a>', '<a b="&#10;&quot;">&#x41;&lt;&#13;</a>'],
  ])('C7.7 gets %s', async (_, sent, root) => {
    expect(await splicedOf(sent)).toBe(envelope(root))
  })

  it('C2.5 gets headers that keep a browser from running what the document holds', async () => {
    answers('<script xmlns="http://www.w3.org/1999/xhtml">alert(1)</script>')
    for (const method of ['GET', 'HEAD'])
      expect((await ask('plain', { method, headers: { Accept: XML } })).headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none'; sandbox",
      })
  })

  it('C7.7 gets a large document, which another thread has cut out', async () => {
    const root = `<Funds>${'<Fund id="1">é</Fund>'.repeat(20_000)}</Funds>`
    expect(await splicedOf(`<?xml version="1.0"?><!-- large -->${root}`)).toBe(envelope(root))
  })

  it('C7.7 gets text in UTF-8, whatever the encoding of the service', async () => {
    const root = '<a b="é">\u0085ÿ</a>'
    const declared = (name: string): string => `<?xml version="1.0" encoding="${name}"?>${root}`
    const utf16le = Buffer.from(`\uFEFF${declared('UTF-16')}`, 'utf16le')
    expect(await splicedOf(Buffer.from(declared('ISO-8859-1'), 'latin1'))).toBe(envelope(root))
    expect(await splicedOf(utf16le)).toBe(envelope(root))
    expect(await splicedOf(Buffer.from(utf16le).swap16())).toBe(envelope(root))
    expect(await splicedOf(`\uFEFF${root}`)).toBe(envelope(root))
  })

  it('C7.7 gets what the charset parameter says, unless there is a byte order mark (RFC 7303 §3)', async () => {
    const latin1 = Buffer.from('<?xml version="1.0" encoding="UTF-8"?><a>é</a>', 'latin1')
    expect(await splicedOf(latin1, 'application/xml; charset=ISO-8859-1')).toBe(envelope('<a>é</a>'))
    expect(await splicedOf('\uFEFF<a>é</a>', 'text/xml; charset=iso-8859-1')).toBe(envelope('<a>é</a>'))
  })

  it('C7.7 gets empty Data for 204 and for no body', async () => {
    answers('', 'text/xml', 204)
    expect((await ask('plain', { headers: { Accept: XML } })).body).toContain('<Data/>')
    answers('')
    expect((await ask('plain', { headers: { Accept: XML } })).body).toContain('<Data/>')
    expect(await mappedOf('')).toEqual({})
  })

  it('C7.7 gets the same headers for HEAD, with an ETag of its own, since the bytes are others', async () => {
    upstream.behave((connection) =>
      connection.respond({
        headers: { 'Content-Type': 'text/xml', ETag: '"1"' },
        body: connection.request.method === 'HEAD' ? '' : '<a/>',
      }),
    )
    const [head, get] = [
      await ask('plain', { method: 'HEAD', headers: { Accept: XML } }),
      await ask('plain', { headers: { Accept: XML } }),
    ]
    expect(head.body).toBe('')
    expect(head.headers['etag']).toMatch(/^"1-xml\.[\w-]{8}"$/)
    for (const { headers } of [head, get])
      expect([headers['etag'], headers['content-type']]).toEqual([
        head.headers['etag'],
        'application/xml; charset=utf-8',
      ])
    expect(upstream.requests.at(-1)?.headers['accept']).toEqual([XML])
  })
})

describe('a JSON client before an XML service', () => {
  it.each([
    [
      'attributes, namespaces and text',
      FUNDS,
      {
        'f:Funds': {
          '@xmlns:f': 'urn:f',
          '@xmlns:xsi': 'urn:x',
          '@xml:lang': 'en',
          '@xsi:type': 'f:List',
          'f:Fund': [{ '@id': '1', '#text': 'A & B' }],
        },
      },
    ],
    ['an element as text', '<Fund>007</Fund>', { Fund: '007' }],
    ['an empty element', '<Fund/>', { Fund: '' }],
    ['repeated elements', '<a><b>1</b><c/><b>2</b></a>', { a: { b: ['1', '2'], c: '' } }],
    ['one that is always a list', '<Funds><Fund>A</Fund></Funds>', { Funds: { Fund: ['A'] } }],
    ['none of what is always a list', '<Funds/>', { Funds: { Fund: [] } }],
    [
      'numbers and booleans',
      '<Funds total="2"><Fund><Size> 1.50 </Size><Open>1</Open></Fund><Fund><Size/><Open>false</Open></Fund></Funds>',
      {
        Funds: {
          '@total': 2,
          Fund: [
            { Size: 1.5, Open: true },
            { Size: null, Open: false },
          ],
        },
      },
    ],
    [
      'text that is decoded once',
      '<a b="&amp;lt;">&amp;#65;<![CDATA[&lt;]]></a>',
      { a: { '@b': '&lt;', '#text': '&#65;&lt;' } },
    ],
    [
      'names of JavaScript',
      '<constructor><__proto__ __proto__="1"/><hasOwnProperty/></constructor>',
      JSON.parse('{"constructor":{"__proto__":{"@__proto__":"1"},"hasOwnProperty":""}}'),
    ],
  ])('C7.7 gets %s', async (_, sent, data) => {
    const found = await mappedOf(sent)
    expect(found).toEqual(data)
  })

  it('C7.7 gets names without prefixes where namespaces are stripped', async () => {
    expect(await mappedOf(FUNDS, 'stripped')).toEqual({
      Funds: { '@lang': 'en', '@type': 'f:List', Fund: [{ '@id': '1', '#text': 'A & B' }] },
    })
  })

  it('C7.7 a number keeps its spelling', async () => {
    answers('<Funds><Fund><Size>12345678901234567890.10</Size></Fund></Funds>')
    expect((await ask('plain')).body).toContain('"Size":12345678901234567890.10')
  })

  it.each([
    ['mixed content', '<a>b<c/></a>', 'plain', 'line 1, column 8: an element holds both text and elements'],
    ['text behind an element', '<a><c/>b</a>', 'plain', 'both text and elements'],
    ['two elements that strip to one', '<a xmlns:b="u"><b:c/><c/></a>', 'stripped', 'are both c'],
    ['two attributes that strip to one', '<a xmlns:b="u" b:c="" c=""/>', 'stripped', 'are both c'],
    ['a number that is none', '<Funds total="many"/>', 'plain', '@total is no number'],
    [
      'a number with a leading zero',
      '<Funds><Fund><Size>007</Size></Fund></Funds>',
      'plain',
      'Size is no number',
    ],
    ['a boolean that is none', '<Funds><Fund><Open>yes</Open></Fund></Funds>', 'plain', 'Open is no boolean'],
    ['elements in a number', '<Funds><Fund><Size><a/></Size></Fund></Funds>', 'plain', 'a number holds a'],
  ])('C7.7 gets Fault answer_unmappable for %s; the log says why', async (_, sent, action, why) => {
    answers(sent)
    expectFault(await ask(action), 'answer_unmappable')
    expect(JSON.stringify(gateway.log().findLast(({ event }) => event === 'call'))).toContain(why)
    expect((await ask(action, { headers: { Accept: XML } })).status).toBe(200)
  })

  it('C7.7 gets it for a large document too', async () => {
    answers(`<a>${'<b/>'.repeat(10_000)}text</a>`)
    expectFault(await ask('plain'), 'answer_unmappable')
  })
})

describe('documents that cannot be read', () => {
  it.each([
    ['what is not well-formed', '<a><b></a>', 'text/xml'],
    ['an unbound prefix', '<a:b/>', 'text/xml'],
    ['a second root', '<a/><b/>', 'text/xml'],
    ['a DOCTYPE with an internal subset', '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', 'text/xml'],
    ['an entity of an external DTD', '<!DOCTYPE a SYSTEM "a.dtd"><a>&b;</a>', 'text/xml'],
    ['another encoding', '<?xml version="1.0" encoding="windows-1252"?><a/>', 'text/xml'],
    ['another charset', '<a/>', 'text/xml; charset=koi8-r'],
    ['UTF-16 without a byte order mark', Buffer.from('<a/>', 'utf16le'), 'text/xml'],
    ['UTF-16 that is only said', '<?xml version="1.0" encoding="UTF-16"?><a/>', 'text/xml'],
    ['UTF-8 that is none', Buffer.from('<a>\xff</a>', 'latin1'), 'text/xml'],
    [
      'a byte order mark that contradicts',
      '\uFEFF<?xml version="1.0" encoding="ISO-8859-1"?><a/>',
      'text/xml',
    ],
  ])('C7.7 are 500, in both formats: %s', async (_, sent, type) => {
    answers(sent, type)
    expectFault(await ask('plain'), 'upstream_broken')
    expectFault(await ask('plain', { headers: { Accept: XML } }), 'upstream_broken', { format: 'xml' })
  })

  it('C7.7 a 4xx without an envelope is told in our words', async () => {
    answers('<Error>no such fund at 10.0.0.1</Error>', 'text/xml', 404)
    expectFault(await ask('plain'), 'upstream_not_found')
  })
})

/** What the service gets of a body; undefined if it gets nothing. */
const sentTo = async (
  action: string,
  type: string,
  body: string | Buffer,
): Promise<{ readonly response: RawResponse; readonly request: ReceivedRequest | undefined }> => {
  answers('<ok/>')
  const before = upstream.requests.length
  const response = await ask(action, { method: 'POST', headers: { 'Content-Type': type }, body })
  return { response, request: upstream.requests[before] }
}

describe('bodies for an XML service', () => {
  it.each([
    ['attributes, comments and instructions', `<!--a--><?b?>${FUNDS}`],
    ['a byte order mark', '\uFEFF<a/>'],
    ['CDATA and mixed content', '<a>b<c/><![CDATA[</a>]]></a>'],
    ['a large one', `<a>${'<b c="d"/>'.repeat(5000)}</a>`],
  ])('C7.7 XML goes on byte for byte: %s', async (_, body) => {
    const { request } = await sentTo('rooted', XML, body)
    expect(request?.body.toString()).toBe(body)
    expect(request?.headers['content-type']).toEqual([XML])
    expect(request?.headers['content-length']).toEqual([String(Buffer.byteLength(body))])
  })

  it.each([
    ['what is not well-formed', '<a>', 400],
    ['a DOCTYPE', '<!DOCTYPE a><a/>', 400],
    ['a DOCTYPE with a subset', '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', 400],
    ['an unbound prefix', '<a:b/>', 400],
    ['UTF-16', Buffer.from('\uFEFF<a/>', 'utf16le'), 415],
    ['a declared Latin-1', '<?xml version="1.0" encoding="ISO-8859-1"?><a/>', 415],
    ['what is no UTF-8', Buffer.from('<a>\xff</a>', 'latin1'), 415],
  ])('C7.7 refuses %s, and the service gets nothing', async (_, body, status) => {
    const { response, request } = await sentTo('plain', XML, body)
    expect(response.status).toBe(status)
    expect(request).toBeUndefined()
  })

  const ROOT = '<?xml version="1.0" encoding="UTF-8"?><Fund xmlns="urn:funds" version="2"'
  it.each([
    ['{"Name":"A & <B>","Size":1e5}', `${ROOT}><Name>A &amp; &lt;B&gt;</Name><Size>1e5</Size></Fund>`],
    ['{"@id":7,"Tag":["a","b"],"Size":null}', `${ROOT} id="7"><Tag>a</Tag><Tag>b</Tag><Size/></Fund>`],
    ['{"#text":"a","@b":"\\"\\n"}', `${ROOT} b="&quot;&#10;">a</Fund>`],
    ['{}', `${ROOT}/>`],
    ['"text"', `${ROOT}>text</Fund>`],
  ])('C7.7 JSON is built under the configured root: %s', async (json, xml) => {
    const { request, response } = await sentTo('rooted', JSON_, json)
    expect(request?.body.toString(), response.body).toBe(xml)
    expect(request?.headers['content-type']).toEqual([XML])
  })

  it('C7.7 a form is built too; without a root, the one member is it', async () => {
    const form = 'application/x-www-form-urlencoded'
    expect((await sentTo('rooted', form, 'Name=A+%26')).request?.body.toString()).toBe(
      `${ROOT}><Name>A &amp;</Name></Fund>`,
    )
    expect((await sentTo('plain', JSON_, '{"f:a":{"@xmlns:f":"u","b":true}}')).request?.body.toString()).toBe(
      '<?xml version="1.0" encoding="UTF-8"?><f:a xmlns:f="u"><b>true</b></f:a>',
    )
  })

  it.each([
    ['a name that breaks out', 'rooted', '{"a><b":"c"}', 'is no name of an element'],
    ['an attribute that breaks out', 'rooted', '{"@a=\\"b\\" c":"d"}', 'is no name of an attribute'],
    ['a prefix that nothing declares', 'rooted', '{"a:b":1}', 'is not declared'],
    ['null', 'rooted', '{"Name":null}', 'is null'],
    ['a list within a list', 'rooted', '{"a":[[1]]}', 'a list within a list'],
    ['text beside elements', 'rooted', '{"#text":"a","b":1}', 'both a text and elements'],
    ['an object in an attribute', 'rooted', '{"@a":{}}', 'is an object'],
    ['a character that XML cannot hold', 'rooted', '{"a":"\\u0000"}', 'a character that XML cannot'],
    ['another value of a configured attribute', 'rooted', '{"@xmlns":"urn:evil"}', 'not the body'],
    ['a list as the root', 'rooted', '[1]', 'a list cannot be the root'],
    ['two roots', 'plain', '{"a":1,"b":2}', 'one member'],
    ['a list of roots', 'plain', '{"a":[1,2]}', 'one member'],
  ])('C7.7 refuses %s, and the service gets nothing', async (_, action, json, say) => {
    const { response, request } = await sentTo(action, JSON_, json)
    expect(response.status, response.body).toBe(400)
    expect((JSON.parse(response.body) as { Errors: { Message: string }[] }).Errors[0]?.Message).toContain(say)
    expect(request).toBeUndefined()
  })

  it('C7.7 a schema checks the value of the mapping, of JSON and of XML', async () => {
    const root = '<Fund xmlns="urn:funds" version="2">'
    for (const [type, body] of [
      [JSON_, '{"Name":"A","Size":1}'],
      [XML, `${root}<Name>A</Name><Size>1</Size></Fund>`],
    ] as const)
      expect((await sentTo('typed', type, body)).response.status, body).toBe(200)
    for (const [type, body] of [
      [JSON_, '{"Name":"A","Colour":"red"}'],
      [XML, `${root}<Colour>red</Colour></Fund>`],
      [XML, `${root}<Name>A</Name>text</Fund>`],
      [XML, '<Fund><Name a="b">A</Name></Fund>'],
    ] as const) {
      const { response, request } = await sentTo('typed', type, body)
      expect(response.status, body).toBe(400)
      expect(request).toBeUndefined()
    }
  })

  it('C7.7 an operation may speak Postern’s own dialect to the same backend', async () => {
    const { request } = await sentTo('ours', JSON_, '{"Size":1}')
    expect(request?.body.toString()).toContain('<Size type="number">1</Size>')
  })
})
