import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import type { BodySchema } from '../../src/base/http/body/body-schema.ts'
import { sized } from '../support/long.ts'
import { bearer, expectFault, send, type Sent } from '../support/requests.ts'
import { configurationOf, startPostern, type StartedPostern } from '../support/start-postern.ts'
import { openUpstream, type Upstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

/** Bytes: `limits.body` of these tests. */
const LIMIT = 300_000

/** An action that takes and gives any JSON, one with a schema, one whose body streams: before an upstream that speaks JSON. */
const withActions = (loaded: Configuration): Configuration => {
  const rule = { scopes: { any: ['fund.read'] }, versions: [1] }
  const action = { level: 'business', area: 'fund-data' } as const
  const text: BodySchema = { type: 'string' }
  const schema: BodySchema = {
    type: 'object',
    properties: {
      Name: text,
      Size: { type: 'integer' },
      Open: { type: 'boolean' },
      Rate: { type: ['number', 'null'] },
      Tags: { type: 'array', items: text },
      Deep: { type: 'object', properties: { Size: { type: 'integer' } } },
    },
  }
  const items = { FundSummaries: 'FundSummary', Tags: 'Tag' }
  const consuming = { ...rule, items, consumes: ['text/plain'] }
  const raw = { POST: consuming, PUT: consuming }
  const more: Configuration['actions'] = [
    {
      ...action,
      action: 'any',
      methods: { GET: { ...rule, items }, POST: { ...rule, items, body: { required: false } } },
    },
    { ...action, action: 'typed', methods: { POST: { ...rule, items, body: { required: true, schema } } } },
    { ...action, action: 'raw', methods: raw },
  ]
  const { server } = loaded
  const limits = { ...server.limits, body: LIMIT }
  return { ...loaded, server: { ...server, limits }, actions: [...loaded.actions, ...more] }
}

let gateway: StartedPostern
let upstream: Upstream
let token: string
beforeAll(async () => {
  upstream = await openUpstream()
  const environment = { UPSTREAM_URL: upstream.url }
  gateway = await startPostern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment,
    change: withActions,
  })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(async () => {
  await Promise.all([gateway.close(), upstream.close()])
})

const ask = (action: string, { headers, ...more }: Partial<Sent> = {}) =>
  send(gateway, {
    target: `/api/1.0/b/ACME/fund-data/${action}`,
    ...more,
    headers: { ...bearer(token), ...headers },
  })
const XML = 'application/xml'
const JSON_ = 'application/json'
const FORM = 'application/x-www-form-urlencoded'

/** What the upstream answers from now on. */
const answers = (json: string) =>
  upstream.behave((connection) => connection.respond({ headers: { 'Content-Type': JSON_ }, body: json }))

/** The `Data` that a client gets as XML for this JSON. */
async function asXml(json: string): Promise<string> {
  answers(json)
  const { status, body } = await ask('any', { headers: { Accept: XML } })
  expect(status, body).toBe(200)
  return /<Data>(.*)<\/Data>|<Data\/>/s.exec(body)?.[1] ?? ''
}

/** The JSON that the upstream gets for this body; the response if it was refused, and then it got nothing. */
async function forwarded(action: string, type: string, body: string | Buffer) {
  answers('{}')
  const before = upstream.requests.length
  const response = await ask(action, { method: 'POST', headers: { 'Content-Type': type }, body })
  const request = upstream.requests[before]
  if (request === undefined) return response
  expect(request.headers['content-type']).toEqual([JSON_])
  expect(request.headers['content-length']).toEqual([String(request.body.length)])
  return request.body.toString()
}
const refused = async (action: string, type: string, body: string | Buffer, say = '.') => {
  const response = await forwarded(action, type, body)
  if (typeof response === 'string') throw new Error(`was forwarded as ${response}`)
  expect(response.status, response.body).toBe(400)
  expect(response.body).toContain('API_BAD_REQUEST')
  expect(response.body).toContain(say)
}

describe('C7.5: JSON out as XML', () => {
  it.each([
    ['{"Code":"A"}', '<Code>A</Code>'],
    [
      '{"N":42,"E":1e5,"B":12345678901234567890.0}',
      '<N type="number">42</N><E type="number">1e5</E><B type="number">12345678901234567890.0</B>',
    ],
    ['{"T":true,"F":false}', '<T type="boolean">true</T><F type="boolean">false</F>'],
    ['{"Tags":["a","b"]}', '<Tags type="array"><Tag>a</Tag><Tag>b</Tag></Tags>'],
    ['{"Other":["a"]}', '<Other type="array"><Item>a</Item></Other>'],
    ['{"Tags":[]}', '<Tags type="array"/>'],
    [
      '{"Grid":[[1],[]]}',
      '<Grid type="array"><Item type="array"><Item type="number">1</Item></Item><Item type="array"/></Grid>',
    ],
    ['{"O":{"A":"b"},"E":{}}', '<O><A>b</A></O><E type="object"/>'],
    ['{"S":""}', '<S/>'],
    ['{"S":" a\\t"}', '<S> a\t</S>'],
    ['{"S":"a&b<c>d"}', '<S>a&amp;b&lt;c&gt;d</S>'],
    ['{"1st":"a","a b":"b","":"c"}', '<_x0031_st>a</_x0031_st><a_x0020_b>b</a_x0020_b><_x_>c</_x_>'],
    ['{"_x0041_":"a"}', '<_x005F_x0041_>a</_x005F_x0041_>'],
    ['{"Name":"Zoë 🏦"}', '<Name>Zoë 🏦</Name>'],
  ])('C7.5: %s', async (json, xml) => {
    expect(await asXml(json)).toBe(xml)
  })

  it('C7.5: null is xsi:nil, and the root declares xsi', async () => {
    expect(await asXml('{"A":null}')).toBe('<A xsi:nil="true"/>')
    answers('{"A":null}')
    const { body } = await ask('any', { headers: { Accept: XML } })
    expect(body).toContain('<ApiResponse xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">')
  })

  it("C7.5: the envelope's own elements carry no mark", async () => {
    answers('{}')
    const { body } = await ask('any', { headers: { Accept: XML } })
    expect(body).toMatch(/<ApiResponse><Errors\/><Data\/><\/ApiResponse>\s*$/)
  })

  it.each(['\\u0000', '\\u0001', '\\ufffe', '\\ud800'])(
    'C7.5: text that XML can’t hold (%s) is 500',
    async (text) => {
      answers(`{"Name":"a${text}b"}`)
      expectFault(await ask('any', { headers: { Accept: XML } }), 'answer_unconvertible', { format: 'xml' })
    },
  )

  it('C7.5: it is deterministic', async () => {
    const json = '{"B":1,"A":[{"C":null},{"D":{}}],"C":"x"}'
    expect(await asXml(json)).toBe(await asXml(json))
  })
})

describe('C7.5: XML in as JSON', () => {
  it.each([
    ['<Fund><Code>007</Code></Fund>', '{"Code":"007"}'],
    ['<Anything><A>b</A></Anything>', '{"A":"b"}'],
    ['<a><N type="number">1.50</N></a>', '{"N":1.50}'],
    ['<a><N type="number">12345678901234567890</N></a>', '{"N":12345678901234567890}'],
    ['<a><B type="boolean">true</B></a>', '{"B":true}'],
    ['<a><T type="array"><x>1</x><x>2</x></T></a>', '{"T":["1","2"]}'],
    ['<a><T type="array"/></a>', '{"T":[]}'],
    ['<a><O type="object"/></a>', '{"O":{}}'],
    ['<a><S/></a>', '{"S":""}'],
    ['<a><S> x </S></a>', '{"S":" x "}'],
    ['<a> <S>x</S>\n</a>', '{"S":"x"}'],
    ['<a><!-- no --><S>x<!-- no -->y</S></a>', '{"S":"xy"}'],
    ['<a><S><![CDATA[<&>]]></S></a>', '{"S":"<&>"}'],
    ['<a><S>&lt;&amp;&gt;&quot;&apos;&#65;&#x42;</S></a>', '{"S":"<&>\\"\'AB"}'],
    ['<a xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><S xsi:nil="true"/></a>', '{"S":null}'],
    ['<a xmlns="urn:x"><S>x</S></a>', '{"S":"x"}'],
    ['<?xml version="1.0" encoding="UTF-8"?>\n<a><S>x</S></a>', '{"S":"x"}'],
    ['<a><_x0031_st>x</_x0031_st></a>', '{"1st":"x"}'],
    ['<a type="array"><x>1</x></a>', '["1"]'],
    ['<a type="number">7</a>', '7'],
  ])('C7.5: %s', async (xml, json) => {
    expect(await forwarded('any', XML, xml)).toBe(json)
  })

  it.each([
    [
      '<a><Size>7</Size><Open>true</Open><Name>7</Name><Rate>1.5</Rate></a>',
      '{"Size":7,"Open":true,"Name":"7","Rate":1.5}',
    ],
    ['<a><Tags><Tag>x</Tag></Tags></a>', '{"Tags":["x"]}'],
    ['<a><Tags>x</Tags><Tags>y</Tags></a>', '{"Tags":["x","y"]}'],
    ['<a><Deep><Size>7</Size></Deep></a>', '{"Deep":{"Size":7}}'],
    ['<a><Size type="number">7</Size></a>', '{"Size":7}'],
  ])("C7.5: without a mark the action's schema says what it is: %s", async (xml, json) => {
    expect(await forwarded('typed', XML, xml)).toBe(json)
  })

  it.each([
    ['a conflict of mark and schema', 'typed', '<a><Size type="boolean">true</Size></a>'],
    ['a conflict of text and schema', 'typed', '<a><Size>many</Size></a>'],
    ['a conflict of mark and text', 'any', '<a><S type="number">x</S></a>'],
    ['an unknown mark', 'any', '<a><S type="date">x</S></a>'],
    ['another attribute', 'any', '<a id="1"/>'],
    [
      'another xsi attribute',
      'any',
      '<a xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><S xsi:type="x"/></a>',
    ],
    ['a prefixed element', 'any', '<f:a xmlns:f="urn:f"/>'],
    ['mixed content', 'any', '<a>text<S>x</S></a>'],
    ['a processing instruction', 'any', '<?app do?><a/>'],
    ['a repeated name', 'any', '<a><S>x</S><S>y</S></a>'],
    [
      'a repeated name that the schema does not say is an array',
      'typed',
      '<a><Name>x</Name><Name>y</Name></a>',
    ],
    ['a DTD', 'any', '<!DOCTYPE a><a/>'],
    ['an internal entity', 'any', '<!DOCTYPE a [<!ENTITY e "x">]><a><S>&e;</S></a>'],
    ['an external entity', 'any', '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a><S>&e;</S></a>'],
    ['another entity', 'any', '<a>&nbsp;</a>'],
    ['a cut document', 'any', '<a><S>x</S>'],
    ['a second root', 'any', '<a/><b/>'],
    ['text after the root', 'any', '<a/>x'],
    ['a character that XML can’t hold', 'any', '<a>&#0;</a>'],
    ['another encoding', 'any', '<?xml version="1.0" encoding="ISO-8859-1"?><a/>'],
    ['bounded depth', 'any', '<a>'.repeat(500) + '</a>'.repeat(500)],
    ['bounded count', 'any', `<a type="array">${'<b/>'.repeat(60_000)}</a>`],
  ])('C7.5: %s is 400, and nothing is forwarded', async (_what, action, xml) => {
    await refused(action, XML, xml)
  })

  it('C7.5: bounded size', async () => {
    const body = `<a><S>${'x'.repeat(LIMIT)}</S></a>`
    const headers = { 'Content-Type': XML }
    expectFault(await ask('any', { method: 'POST', headers, body }), 'body_too_large')
  })

  it('C7.5: UTF-8 that is none is 400', async () => {
    await refused('any', XML, Buffer.from('<a><S>\xff</S></a>', 'latin1'))
  })
})

describe('C7.5: lossless both ways', () => {
  it('C7.5: JSON to XML to JSON is the identity, over the wire', async () => {
    const key = fc.oneof(
      fc.string({ maxLength: 8 }),
      fc.constantFrom('Name', 'Tags', '_x0041_', 'xsi:nil', ''),
    )
    const holdable = (text: string) => !/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u.test(text)
    const value = fc
      .jsonValue({ maxDepth: 4 })
      .filter((each) => holdable(JSON.stringify(each, (_, v: unknown) => v)))
    const data = fc.dictionary(key, value, { maxKeys: 5 }).filter((each) => {
      const text = JSON.stringify(each)
      return holdable(text) && !/\\u[0-9a-f]{4}|\\[bf]/.test(text)
    })
    await fc.assert(
      fc.asyncProperty(data, async (given) => {
        // -0 is written 0 by JSON.stringify already.
        const json = JSON.stringify(given)
        const xml = await asXml(json)
        const xsi = ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
        const mark = xml === '' ? ' type="object"' : ''
        const back = await forwarded('any', XML, `<a${xsi}${mark}>${xml}</a>`)
        expect(JSON.parse(back as string)).toEqual(JSON.parse(json))
      }),
      { numRuns: sized(60, 200) },
    )
  })
})

describe('C7.6: JSON in', () => {
  it.each([
    ['duplicate keys', '{"a":1,"a":2}'],
    ['duplicate keys in another spelling', '{"a":1,"\\u0061":2}'],
    ['duplicate keys, deep', '{"x":[{"a":1,"a":1}]}'],
    ['a lone surrogate', '{"a":"\\ud800"}'],
    ['a lone surrogate in a key', '{"\\udc00":1}'],
    ['a trailing comma', '{"a":1,}'],
    ['a comment', '{}//'],
    ['NaN', '{"a":NaN}'],
    ['single quotes', "{'a':1}"],
    ['more behind it', '{}{}'],
    ['too deep', '['.repeat(5000) + ']'.repeat(5000)],
  ])('C7.6: %s is 400, and nothing is forwarded', async (_what, json) => {
    await refused('any', JSON_, json)
  })

  it('C7.6: UTF-8 that is none is 400', async () => {
    await refused('any', JSON_, Buffer.from('{"a":"\xff"}', 'latin1'))
    await refused('any', JSON_, Buffer.from('{"a":1}', 'utf16le'))
  })

  it('C7.6: __proto__ is plain data', async () => {
    const json = '{"__proto__":{"x":1},"constructor":{"prototype":2}}'
    expect(await forwarded('any', JSON_, json)).toBe(json)
    expect(await forwarded('any', XML, '<a><__proto__><x>1</x></__proto__></a>')).toBe(
      '{"__proto__":{"x":"1"}}',
    )
    expect(await forwarded('any', FORM, '__proto__=1')).toBe('{"__proto__":"1"}')
    expect(({} as Record<string, unknown>)['x']).toBeUndefined()
  })

  it('C7.6: a body that needs no conversion is forwarded byte for byte', async () => {
    const json = ' {\n  "b" : 1.50e+1,"a":"\\u00e9\\/", "n":12345678901234567890 }\r\n'
    expect(await forwarded('any', JSON_, json)).toBe(json)
    expect(await forwarded('typed', JSON_, '{"Size" : 7}')).toBe('{"Size" : 7}')
  })
})

describe('C7.6: forms in', () => {
  it.each([
    ['any', 'a=1&b=true&c=', '{"a":"1","b":"true","c":""}'],
    ['any', 'a+b=c+d&e%20=%C3%A9', '{"a b":"c d","e ":"é"}'],
    ['any', 'a.b=1&a[0]=2&a[]=3', '{"a.b":"1","a[0]":"2","a[]":"3"}'],
    ['typed', 'Name=7&Size=7&Open=false&Rate=1.50', '{"Name":"7","Size":7,"Open":false,"Rate":1.50}'],
    ['typed', 'Tags=a&Tags=b', '{"Tags":["a","b"]}'],
    ['typed', 'Tags=a', '{"Tags":["a"]}'],
  ])('C7.6: to %s, %s', async (action, body, json) => {
    expect(await forwarded(action, FORM, body)).toBe(json)
  })

  it.each([
    ['a repeat', 'any', 'a=1&a=2'],
    ['a repeat that the schema does not say is an array', 'typed', 'Name=a&Name=b'],
    ['a value that the schema does not allow', 'typed', 'Size=many'],
    ['a bad escape', 'any', 'a=%zz'],
    ['a cut escape', 'any', 'a=%4'],
    ['UTF-8 that is none', 'any', 'a=%ff'],
  ])('C7.6: %s is 400', async (_what, action, body) => {
    await refused(action, FORM, body)
  })
})

describe('C7.6: sizes', () => {
  const bodyOf = (length: number) => `{"a":"${'x'.repeat(length - 8)}"}`
  const post = (headers: Sent['headers'], body: string) =>
    ask('any', { method: 'POST', headers: { 'Content-Type': JSON_, ...headers }, body })

  it('C7.6: up to the limit a body is taken, beyond it is 413', async () => {
    answers('{}')
    expect(await post({}, bodyOf(LIMIT))).toMatchObject({ status: 200 })
    expectFault(await post({}, bodyOf(LIMIT + 1)), 'body_too_large')
  })

  it('C7.6: of a chunked body what arrives is counted', async () => {
    const text = bodyOf(LIMIT + 1)
    const chunks = `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`
    expectFault(await post({ 'Transfer-Encoding': 'chunked' }, chunks), 'body_too_large')
  })

  it('C7.6: the limit is 1 MiB by default', () => {
    expect(configurationOf({}, '').configuration.server.limits.body).toBe(1024 ** 2)
  })

  it('C7.6: for opaque actions C4.11 ends after Content-Type and declared length: they stream', async () => {
    answers('{}')
    const before = upstream.requests.length
    const body = 'x'.repeat(3 * LIMIT)
    const response = await ask('raw', { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body })
    expect(response.status).toBe(200)
    expect(upstream.requests[before]?.body.toString()).toBe(body)
    expectFault(
      await ask('raw', { method: 'POST', headers: { 'Content-Type': JSON_ }, body: '{}' }),
      'unsupported_media_type',
    )
  })

  it('C8.2: of a body that passes unread the upstream gets the coding and the part that it is', async () => {
    answers('{}')
    const before = upstream.requests.length
    const said = { 'Content-Encoding': 'gzip', 'Content-Range': 'bytes 4-7/8' }
    const headers = { 'Content-Type': 'text/plain', ...said, Connection: 'Content-Range' }
    expect((await ask('raw', { method: 'PUT', headers, body: 'part' })).status).toBe(200)
    expect(upstream.requests[before]?.headers).toMatchObject({
      'content-type': ['text/plain'],
      'content-encoding': ['gzip'],
      'content-range': ['bytes 4-7/8'],
    })
  })

  it('C4.11: a part of a body that would be parsed is refused, and the upstream hears nothing', async () => {
    const before = upstream.requests.length
    const headers = { 'Content-Type': JSON_, 'Content-Range': 'bytes 0-1/9' }
    expectFault(await ask('any', { method: 'POST', headers, body: '{}' }), 'body_partial')
    expect(upstream.requests.length).toBe(before)
  })
})
