import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FORM_TYPE, JSON_TYPE, MadeBodies, type Outcome, XML_TYPE } from '../support/made-bodies.ts'

const READ = 'scopes: { any: [fund.read] }'
const OPEN = `${READ}, body: { required: false }`

const ACTIONS = {
  typed: `{ POST: { ${OPEN}, upstream: { body: { template: {
    as: '{body/n}', text: 'n is {business}', object: '{body/o}', none: '{body/absent}', list: ['{body/absent}', '{body/l}', 1.50],
    "10": 1, "9": 2, __proto__: '{area}', nothing: null, yes: true, braces: '{{x}}' } } } } }`,
  setting: `{ POST: { ${OPEN}, upstream: { body: { set: { /data/company: '{business}', /no: 7 } } } } }`,
  requiring: `{ POST: { ${OPEN}, upstream: { body: { require: { /company: '{business}' } } } } }`,
  asked: `{ GET: { ${READ}, upstream: { method: POST, body: { template: { query: 'funds of {business}', id: '{requestId}' } } } } }`,
  named: `{ POST: { ${READ}, body: { schema: { type: object, required: [Id], properties: { Id: { type: string } } } }, upstream: { path: '/v2/{body/Id}', query: { of: '{body/Id}' }, headers: { X-Id: '{body/Id}' } } } }`,
  soap: `{ POST: { ${READ}, body: { schema: { type: object, required: [Note], additionalProperties: false, properties: {
      Note: { type: string }, Tags: { type: array, items: { type: string } }, Size: { type: number }, Id: { type: string } } } },
    upstream: { headers: { SOAPAction: '"urn:x#AddOrder"' }, body: { format: xml, type: 'text/xml; charset=utf-8', template: {
      's:Envelope': { '@xmlns:s': 'http://schemas.xmlsoap.org/soap/envelope/', 's:Body': { 'f:AddOrder': {
        '@xmlns:f': 'urn:x', '@f:id': '{body/Id}', 'f:Business': '{business}', 'f:Note': '{body/Note}', 'f:Tag': '{body/Tags}',
        'f:Size': { '@unit': 'm', '#text': '{body/Size}' } } } } } } } } }`,
  form: `{ POST: { ${OPEN}, upstream: { body: { format: form, template: {
    business: '{business}', 'a b&c': '{body/n}', list: ['x', '{body/none}', '{body/l}'], none: '{body/none}', text: 'n={body/n}&' } } } } }`.replace(
    '{ required: false }',
    '{ schema: { type: object, required: [n], properties: { n: { type: [string, number] }, none: { type: string }, l: { type: string } } } }',
  ),
  formed: `{ POST: { ${READ}, body: { schema: { type: object, additionalProperties: false, properties: { a: { type: [string, 'null'] }, l: { type: array, items: { type: integer } } } } }, upstream: { body: { format: form } } } }`,
  plainSet: `{ POST: { ${READ}, body: { schema: { type: object, additionalProperties: false, properties: { Order: { type: [object, string], additionalProperties: false, properties: {
      '@company': { type: string }, company: { type: string }, 'x:Company': { type: string }, '@xmlns:x': { type: string }, Note: { type: string } } } } } },
    upstream: { format: xml, xml: { dialect: plain }, body: { set: { /Order/company: '{business}', '/Order/@of': '{business}' } } } } }`,
  plainRequire: `{ POST: { ${OPEN}, upstream: { format: xml, xml: { dialect: plain }, body: { require: { /Order/company: '{business}' } } } } }`,
  oursRequire: `{ POST: { ${OPEN}, upstream: { format: xml, body: { require: { /company: '{business}' } } } } }`,
  formRequire: `{ POST: { ${READ}, body: { schema: { type: object, additionalProperties: false, properties: { company: { type: string }, a: { type: string } } } }, upstream: { body: { format: form, require: { /company: '{business}' } } } } }`,
  typing: `{ POST: { ${OPEN}, upstream: { body: { type: 'application/json-rpc' } } } }`,
}

let made: MadeBodies

beforeAll(async () => {
  made = await MadeBodies.open(ACTIONS)
})
afterAll(() => made.close())

type Given = Parameters<MadeBodies['call']>

const call = (...given: Given): Promise<Outcome> => made.call(...given)

const bodyOf = async (...given: Given): Promise<string | undefined> => (await call(...given)).bodies[0]

const refusal = async (...given: Given): Promise<number> => {
  const { answer, sent } = await call(...given)
  expect(sent).toEqual([])
  return answer.status
}

describe('C8.7 the body is made by a template', () => {
  it('a leaf that is one placeholder keeps its type and its digits, and what is absent is left out', async () => {
    expect(await bodyOf('typed', '{"n":1.50,"o":{"a":[null,12345678901234567890]},"l":[1e5]}')).toBe(
      '{"as":1.50,"text":"n is ACME","object":{"a":[null,12345678901234567890]},"list":[[1e5],1.50],"10":1,"9":2,"__proto__":"fund-data","nothing":null,"yes":true,"braces":"{x}"}',
    )
  })

  it('a value is never parsed again', async () => {
    const hostile = '{"n":"{business} ${x} {{y}} \\" \\n ]]> \\u2028"}'
    expect(JSON.parse((await bodyOf('typed', hostile)) ?? '')).toMatchObject({
      as: '{business} ${x} {{y}} " \n ]]> \u2028',
    })
  })

  it('a GET is sent as a POST with a body', async () => {
    const { sent, bodies } = await call('asked', '', JSON_TYPE, { method: 'GET' })
    expect(sent[0]).toMatchObject({ method: 'POST', headers: { 'content-type': [JSON_TYPE] } })
    expect(JSON.parse(bodies[0] ?? '')).toEqual({
      query: 'funds of ACME',
      id: sent[0]?.headers['x-request-id']?.[0],
    })
  })

  it('the type is that of the configuration, and the client’s body goes on byte for byte', async () => {
    const { sent, bodies } = await call('typing', ' {"a" : 1.0}')
    expect(bodies).toEqual([' {"a" : 1.0}'])
    expect(sent[0]?.headers['content-type']).toEqual(['application/json-rpc'])
  })
})

describe('C8.7, T4.8 members of the client’s body are set', () => {
  it.each([
    ['{"a":1.0,"data":{"x":1}}', '{"a":1.0,"data":{"x":1,"company":"ACME"},"no":7}'],
    ['{}', '{"data":{"company":"ACME"},"no":7}'],
    ['', '{"data":{"company":"ACME"},"no":7}'],
    [
      '{"data":{"company":"X","Com-pany":"Y","COM_PANY":[1],"company[x]":2}}',
      '{"data":{"company":"ACME"},"no":7}',
    ],
    ['{"No":1,"Data":{"n":1}}', '{"Data":{"n":1,"company":"ACME"},"no":7}'],
    [
      '{"__proto__":{"company":"X"},"data":{}}',
      '{"__proto__":{"company":"X"},"data":{"company":"ACME"},"no":7}',
    ],
  ])('%s', async (given, sent) => {
    expect(await bodyOf('setting', given)).toBe(sent)
  })

  it.each([
    '{"data":{},"Data":{}}',
    '{"data":[]}',
    '{"data":"x"}',
    '{"data":null}',
    '[]',
    '"x"',
    '{"data":{},"data":{}}',
  ])('%s is 400, and nothing is sent', async (given) => {
    expect(await refusal('setting', given)).toBe(400)
  })
})

describe('C8.7, T4.8 members of the client’s body are required', () => {
  it.each(['{"company":"ACME"}', ' { "a":1.0, "company" : "\\u0041CME" }'])(
    '%s goes on byte for byte',
    async (given) => {
      expect(await bodyOf('requiring', given)).toBe(given)
    },
  )

  it.each([
    '{"company":"HOOLI"}',
    '{"Company":"ACME"}',
    '{"company":"ACME","Company":"HOOLI"}',
    '{"company":"ACME","com_pany":"HOOLI"}',
    '{"company":"ACME","company":"HOOLI"}',
    '{"company":"ACME","comp\\u0061ny":"HOOLI"}',
    '{"company":"ACME","\\uff43ompany":"HOOLI"}',
    '{"company":"ACME","company\\u0000x":"HOOLI"}',
    '{"company":["ACME"]}',
    '{"company":{"x":"ACME"}}',
    '{"company":null}',
    '{}',
    '[{"company":"ACME"}]',
    '',
  ])('%s is 400, and nothing is sent', async (given) => {
    expect(await refusal('requiring', given)).toBe(400)
  })
})

describe('C8.7 path, query and headers name parts of the client’s body', () => {
  it('they are sent, and the body goes on', async () => {
    const plain = await call('named', '{"Id":"7"}')
    expect(plain.sent).toMatchObject([{ target: '/v2/7?of=7', headers: { 'x-id': ['7'] } }])
    expect(plain.bodies).toEqual(['{"Id":"7"}'])
  })

  it.each([JSON.stringify({ Id: '../x' }), JSON.stringify({ Id: '' }), JSON.stringify({ Id: 'a/b' })])(
    '%s is 400, and nothing is sent',
    async (given) => {
      expect(await refusal('named', given)).toBe(400)
    },
  )

  it('XML and forms are read as JSON is', async () => {
    expect((await call('named', '<a><Id>7</Id></a>', XML_TYPE)).sent[0]?.target).toBe('/v2/7?of=7')
    expect((await call('named', 'Id=7', FORM_TYPE)).sent[0]?.target).toBe('/v2/7?of=7')
  })
})

const ENVELOPE = (inside: string): string =>
  '<?xml version="1.0" encoding="UTF-8"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>' +
  `<f:AddOrder xmlns:f="urn:x"${inside}</f:AddOrder></s:Body></s:Envelope>`

describe('C8.7 the body is XML', () => {
  it('in the order of the template; a list repeats its element, and what is absent is left out', async () => {
    const { sent, bodies } = await call('soap', '{"Note":"a","Tags":["x","y"],"Size":1.50,"Id":"7"}')
    expect(bodies).toEqual([
      ENVELOPE(
        ' f:id="7"><f:Business>ACME</f:Business><f:Note>a</f:Note><f:Tag>x</f:Tag><f:Tag>y</f:Tag><f:Size unit="m">1.50</f:Size>',
      ),
    ])
    expect(sent[0]?.headers).toMatchObject({
      'content-type': ['text/xml; charset=utf-8'],
      soapaction: ['"urn:x#AddOrder"'],
    })
    expect(await bodyOf('soap', '{"Note":"","Tags":[]}')).toBe(
      ENVELOPE('><f:Business>ACME</f:Business><f:Note/><f:Size unit="m"/>'),
    )
  })

  it('T4.9 a value stays a value: quotes, markup and line feeds', async () => {
    const hostile = '"\'<b>&amp;]]>{business}${x}'
    expect(await bodyOf('soap', JSON.stringify({ Note: hostile, Id: `${hostile}\n\t\r` }))).toBe(
      ENVELOPE(
        ' f:id="&quot;&apos;&lt;b&gt;&amp;amp;]]&gt;{business}${x}&#10;&#9;&#13;"><f:Business>ACME</f:Business>' +
          '<f:Note>"\'&lt;b&gt;&amp;amp;]]&gt;{business}${x}</f:Note><f:Size unit="m"/>',
      ),
    )
  })

  it.each([
    '{"Note":"\\u0001"}',
    '{"Note":"\\uffff"}',
    '{"Note":"a","Id":"\\u0000"}',
    '{"Note":"a","@xsi:type":"b"}',
  ])('%s is 400, and nothing is sent', async (given) => {
    expect(await refusal('soap', given)).toBe(400)
  })

  it('members of a client’s document are set, last; attributes and prefixes make no other member', async () => {
    const sent =
      '<?xml version="1.0" encoding="UTF-8"?><Order of="ACME"><Note>n</Note><company>ACME</company></Order>'
    for (const given of [
      '<Order><Note>n</Note></Order>',
      '<Order company="X"><Note>n</Note></Order>',
      '<Order><company>X</company><Note>n</Note></Order>',
    ])
      expect(await bodyOf('plainSet', given, XML_TYPE)).toBe(sent)
    expect(
      await bodyOf('plainSet', '<Order xmlns:x="urn:x"><x:Company>X</x:Company></Order>', XML_TYPE),
    ).toBe(
      '<?xml version="1.0" encoding="UTF-8"?><Order xmlns:x="urn:x" of="ACME"><company>ACME</company></Order>',
    )
    expect(await bodyOf('plainSet', '<Order/>', XML_TYPE)).toContain(
      '<Order of="ACME"><company>ACME</company></Order>',
    )
    expect(await bodyOf('plainSet', '{"Order":{"Note":"n"}}')).toBe(sent)
    expect(await refusal('plainSet', '<Order>text</Order>', XML_TYPE)).toBe(400)
    expect(await refusal('plainSet', '<Order><Other/></Order>', XML_TYPE)).toBe(400)
  })

  it.each([
    ['plainRequire', '<!-- a --><Order b="1"><company>ACME</company><!-- <company>X</company> --></Order>'],
    ['plainRequire', '<Order><company><![CDATA[ACME]]></company><a><b/> <!-- c --> <b/></a></Order>'],
    [
      'plainRequire',
      '\ufeff<Order>\r\n<company\r\n>&#65;CME</company ><a x="&lt;!-- >"><!-- c --></a></Order>',
    ],
    [
      'plainRequire',
      '<Order><company>ACME</company><a><![CDATA[<!-- ]] > -->]]></a><b>\ud83d\ude00</b></Order>',
    ],
    ['oursRequire', '<Any><company>ACME</company></Any>'],
  ])('%s: %s goes on byte for byte', async (action, given) => {
    expect(await bodyOf(action, given, XML_TYPE)).toBe(given)
  })

  it.each([
    ['plainRequire', '<Order><company>HOOLI</company></Order>'],
    ['plainRequire', '<Order company="ACME"/>'],
    ['plainRequire', '<Order company="HOOLI"><company>ACME</company></Order>'],
    ['plainRequire', '<Order><company>ACME</company><company>HOOLI</company></Order>'],
    ['plainRequire', '<Order><Company>ACME</Company></Order>'],
    ['plainRequire', '<Order xmlns:x="urn:x"><company>ACME</company><x:company>HOOLI</x:company></Order>'],
    ['plainRequire', '<Order xmlns:x="urn:x" x:company="HOOLI"><company>ACME</company></Order>'],
    ['plainRequire', '<Order xmlns:x="urn:x"><x:company>ACME</x:company></Order>'],
    ['plainRequire', '<x:Order xmlns:x="urn:x"><company>ACME</company></x:Order>'],
    ['plainRequire', '<Order><company>AC<!-- -->ME</company></Order>'],
    ['plainRequire', '<Order><company>AC<![CDATA[ME]]></company></Order>'],
    ['plainRequire', '<Order><company>AC<?p i?>ME</company></Order>'],
    ['plainRequire', '<Order><company><!--HOOLI-->ACME</company></Order>'],
    ['plainRequire', '<Order><company>ACME<!--HOOLI--></company></Order>'],
    ['plainRequire', '<Order><company><?p HOOLI?>ACME</company></Order>'],
    ['plainRequire', '<Order><company><![CDATA[]]>ACME</company></Order>'],
    ['plainRequire', '<Order><company><![CDATA[ACME]]><![CDATA[]]></company></Order>'],
    ['plainRequire', '<Order><company><!----><![CDATA[ACME]]></company></Order>'],
    ['plainRequire', '<Order><company a="1">ACME</company></Order>'],
    ['plainRequire', '<Order><company>ACME </company></Order>'],
    ['plainRequire', '<!DOCTYPE Order [<!ENTITY a "ACME">]><Order><company>&a;</company></Order>'],
    ['plainRequire', '<!DOCTYPE Order><Order><company>ACME</company></Order>'],
    ['oursRequire', '<Any><company>AC<!-- -->ME</company></Any>'],
    ['oursRequire', '<Any><company><!--HOOLI-->ACME</company></Any>'],
    ['oursRequire', '<Any><company>ACME</company><company>HOOLI</company></Any>'],
    ['oursRequire', '<Any><company>ACME</company><COMPANY>HOOLI</COMPANY></Any>'],
    ['oursRequire', '<Any><company>ACME</company><_x0063_ompany>HOOLI</_x0063_ompany></Any>'],
  ])('T4.8 %s: %s is 400, and nothing is sent', async (action, given) => {
    expect(await refusal(action, given, XML_TYPE)).toBe(400)
  })
})

describe('C8.7 the body is a form', () => {
  it('a list repeats its name, and values are encoded', async () => {
    const { sent, bodies } = await call('form', '{"n":"é&=\\n+%41 \\"","l":"y"}')
    expect(bodies).toEqual([
      'business=ACME&a%20b%26c=%C3%A9%26%3D%0A%2B%2541%20%22&list=x&list=y&text=n%3D%C3%A9%26%3D%0A%2B%2541%20%22%26',
    ])
    expect(sent[0]?.headers['content-type']).toEqual([FORM_TYPE])
    expect(await bodyOf('form', '{"n":1.50}')).toBe('business=ACME&a%20b%26c=1.50&list=x&text=n%3D1.50%26')
  })

  it('a client’s body becomes a form, and a form goes on byte for byte', async () => {
    expect(await bodyOf('formed', '{"a":"b c","l":[1,2]}')).toBe('a=b%20c&l=1&l=2')
    expect(await bodyOf('formed', 'a=b+c&l=1', FORM_TYPE)).toBe('a=b+c&l=1')
    expect(await refusal('formed', '{"a":null}')).toBe(400)
    expect(await refusal('formed', '{"x":"1"}')).toBe(400)
  })

  it.each(['company=ACME&a=1', 'a=+&company=%41CME', 'company=ACME&a=x;y', 'a=x%26y%3Dcompany&company=ACME'])(
    '%s has what is required',
    async (given) => {
      expect(await bodyOf('formRequire', given, FORM_TYPE)).toBe(given)
    },
  )

  it.each([
    'company=HOOLI',
    'company=ACME&company=HOOLI',
    'company=ACME&Company=HOOLI',
    'company=ACME&company[]=HOOLI',
    'company=ACME&comp%2561ny=HOOLI',
    'Company=ACME',
    'a=1',
    'a=x;company=HOOLI&company=ACME',
    'company=ACME&a=x;Company[]=HOOLI',
    'company=ACME&a=x%3Bcompany=HOOLI',
    'company=ACME&a=x;com-pa%5Fny=HOOLI',
    'company=ACME&a=x%26company%3DHOOLI',
    'company=ACME&a=x%2526company%253DHOOLI',
    'company=ACME&a=\uff06company=HOOLI',
  ])('T4.8 %s is 400, and nothing is sent', async (given) => {
    expect(await refusal('formRequire', given, FORM_TYPE)).toBe(400)
  })
})
