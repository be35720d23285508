import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FORM_TYPE, JSON_TYPE, MadeBodies, type Outcome, XML_TYPE } from '../support/made-bodies.ts'

const READ = 'scopes: { any: [fund.read] }'
const OPEN = `${READ}, body: { required: false }`
const PLAIN = 'format: xml, xml: { dialect: plain }'
const NOTE =
  'schema: { type: object, additionalProperties: false, properties: { note: { type: string }, company: { type: string } } }'

/** Each operation tells the service its business in one place, and one of them in no place but its path. */
const OPERATIONS = {
  query: `{ POST: { ${OPEN}, upstream: { query: { company: '{business}' } } } }`,
  header: `{ POST: { ${OPEN}, upstream: { headers: { X-Tenant: '{business}' } } } }`,
  set: `{ POST: { ${OPEN}, upstream: { body: { set: { /owner_id: '{business}' } } } } }`,
  deep: `{ POST: { ${OPEN}, upstream: { body: { set: { /scope/of/it: '{business}' } } } } }`,
  required: `{ POST: { ${OPEN}, upstream: { body: { require: { /realm: '{business}' } } } } }`,
  template: `{ POST: { ${OPEN}, upstream: { body: { template: { mandant: ['{business}'], data: '{body}' } } } } }`,
  part: `{ POST: { ${READ}, body: { required: true, schema: { type: object, required: [order], properties: { order: { type: object } } } }, upstream: { body: { template: '{body/order}' } } } }`,
  soap: `{ POST: { ${READ}, upstream: { body: { format: xml, template: { 's:Envelope': { '@xmlns:s': urn:s, 's:Account': { No: '{business}' } } } } } } }`,
  other: `{ GET: { ${READ} }, POST: { ${OPEN} } }`,
  ours: `{ POST: { ${OPEN}, upstream: { format: xml } } }`,
  plain: `{ POST: { ${OPEN}, upstream: { ${PLAIN} } } }`,
  rooted: `{ POST: { ${OPEN}, upstream: { format: xml, xml: { dialect: plain, root: Order } } } }`,
  form: `{ POST: { ${READ}, body: { schema: { type: object, additionalProperties: false, properties: { note: { type: string } } } }, upstream: { body: { format: form } } } }`,
  declared: `{ POST: { ${READ}, parameters: { company: {} }, body: { ${NOTE} } } }`,
}

/** One for each place in which a name is told. */
const NAMES = ['company', 'X-Tenant', 'owner_id', 'scope', 'realm', 'mandant', 'Account'] as const

/** A spelling that some service reads as the name, in a query or a form: as it stands there. */
const spellings = (name: string): readonly string[] => [
  name,
  name.toUpperCase(),
  `${name}[]`,
  `${name}[x]`,
  `${name}.x`,
  `[${name}]`,
  ` ${name}`.replace(' ', '%20'),
  `+${name}`,
  `%${name.charCodeAt(0).toString(16)}${name.slice(1)}`,
  `%25${name.charCodeAt(0).toString(16)}${name.slice(1)}`,
  `${name}%00x`,
  `%EF%BB%BF${name}`,
  name.replaceAll(/[-_]/g, ''),
  `${name.slice(0, 2)}_${name.slice(2)}`,
]

/** With its first letter in full width, which some services normalise. */
const widened = (name: string): string => String.fromCharCode(name.charCodeAt(0) + 0xfee0) + name.slice(1)

/** The same for a member of JSON, as it stands between the quotes. */
const members = (name: string): readonly string[] => [
  ...spellings(name).map((spelling) => spelling.replace('+', ' ')),
  `${String.raw`\u`}${name.charCodeAt(0).toString(16).padStart(4, '0')}${name.slice(1)}`,
  String.raw`${name}\u0000`,
  String.raw`\ufeff${name}`,
  String.raw`\u200b${name}`,
  widened(name),
]

let made: MadeBodies

beforeAll(async () => {
  made = await MadeBodies.open(OPERATIONS)
})
afterAll(() => made.close())

const at = (action: string, query: string) => ({ target: `/api/1.0/b/ACME/fund-data/${action}?${query}` })

const sentFor = async (...given: Parameters<MadeBodies['call']>): Promise<Outcome> => made.call(...given)

/** Asserts 400, and that nothing reached the service. */
const refused = async (action: string, body: string, type: string): Promise<void> => {
  const { answer, sent } = await sentFor(action, body, type)
  expect([body, answer.status, sent.length]).toEqual([body, 400, 0])
  expect(answer.body).toContain('only this service says it')
}

describe('C8.7, T4.8 a name of the business is kept out of the query', () => {
  it.each(NAMES)(
    '%s: pairs are taken out in every reading, whatever operation has the name',
    async (name) => {
      const pairs = spellings(name).map((spelling) => `${spelling}=HOOLI`)
      for (const action of ['other', 'set', 'header', 'ours']) {
        const query = `a=1&${pairs.join('&')};${name}=HOOLI&b=2`
        const { sent } = await sentFor(action, '', JSON_TYPE, at(action, query))
        expect(sent.map(({ target }) => target.replace(/^[^?]*/, ''))).toEqual(['?a=1&b=2'])
      }
    },
  )

  it.each(NAMES)('%s: one hidden in another pair is 400', async (name) => {
    for (const pair of [
      `${encodeURIComponent(widened(name))}=HOOLI`,
      `a=1%26${name}%3DHOOLI`,
      `a=1%3b${name}=HOOLI`,
      `a=1%2526${name}%253DHOOLI`,
    ]) {
      const { answer, sent } = await sentFor('other', '', JSON_TYPE, at('other', pair))
      expect([pair, answer.status, sent.length]).toEqual([pair, 400, 0])
    }
  })

  it('what Postern puts there itself stays, once', async () => {
    const { sent } = await sentFor('query', '{"note":1}', JSON_TYPE, at('query', 'Company=HOOLI&a=1'))
    expect(sent[0]?.target.replace(/^[^?]*/, '')).toBe('?a=1&company=ACME')
  })

  it('a GET of another operation loses it too', async () => {
    const { sent } = await sentFor('other', '', JSON_TYPE, {
      ...at('other', 'company=HOOLI&page=2'),
      method: 'GET',
    })
    expect(sent[0]?.target.replace(/^[^?]*/, '')).toBe('?page=2')
  })

  it('what an operation declares passes, spelled as it is there', async () => {
    const passes = await sentFor(
      'declared',
      '{"company":"HOOLI"}',
      JSON_TYPE,
      at('declared', 'company=H%20I'),
    )
    expect(passes.sent[0]?.target.replace(/^[^?]*/, '')).toBe('?company=H%20I')
    expect(passes.bodies).toEqual(['{"company":"HOOLI"}'])
    const { sent } = await sentFor(
      'declared',
      '{}',
      JSON_TYPE,
      at('declared', 'com_pany=HOOLI&Realm=HOOLI&a=1'),
    )
    expect(sent[0]?.target.replace(/^[^?]*/, '')).toBe('?a=1')
    expect((await sentFor('declared', '{}', JSON_TYPE, at('declared', 'Company=HOOLI'))).sent).toEqual([])
  })
})

describe('C8.7, T4.8 a name of the business is kept out of the headers', () => {
  it.each(NAMES)('%s: the header is left out in every spelling, though it comes twice', async (name) => {
    const spelled = [name, name.toUpperCase(), name.replaceAll('_', '-'), name.replaceAll('-', '_')]
    for (const action of ['other', 'query', 'header', 'set'])
      for (const header of [
        ...spelled,
        name.replaceAll(/[-_]/g, ''),
        `${name.slice(0, 2)}-${name.slice(2)}`,
      ]) {
        const { sent } = await sentFor(action, '{"note":1}', JSON_TYPE, {
          headers: { [header]: ['HOOLI', 'HOOLI'], 'X-Note': 'kept' },
        })
        expect(sent).toHaveLength(1)
        expect(JSON.stringify(sent[0]?.headers)).not.toContain('HOOLI')
        expect(sent[0]?.headers['x-note']).toEqual(['kept'])
        if (action === 'header') expect(sent[0]?.headers['x-tenant']).toEqual(['ACME'])
      }
  })
})

describe('C8.7, T4.8 a name of the business is kept out of bodies', () => {
  it.each(NAMES)('%s as a member of JSON is 400, in every reading', async (name) => {
    for (const action of ['other', 'query', 'header', 'rooted'])
      for (const member of members(name)) await refused(action, `{"note":1,"${member}":"HOOLI"}`, JSON_TYPE)
  })

  it.each(NAMES)('%s as a field of a form is 400, in every reading', async (name) => {
    for (const action of ['other', 'query', 'header'])
      for (const field of [...spellings(name), widened(name)])
        await refused(action, `note=1&${field}=HOOLI`, FORM_TYPE)
  })

  it.each(NAMES)('%s as an element or an attribute of XML is 400', async (name) => {
    const x = 'xmlns:x="urn:x"'
    for (const body of [`<A><${name}>H</${name}></A>`, `<A><n/><${name.toUpperCase()}/></A>`]) {
      await refused('ours', body, XML_TYPE)
      await refused('other', body, XML_TYPE)
      await refused('plain', body, XML_TYPE)
    }
    for (const body of [
      `<A ${x}><x:${name}>H</x:${name}></A>`,
      `<A ${name}="H"/>`,
      `<A ${x} x:${name}="H"><n/></A>`,
      `<x:A ${x} ${name}="H"><n/></x:A>`,
      `\ufeff<?xml version="1.0" encoding="UTF-8"?><!-- c --><A><${name} a="1">H</${name}></A>`,
    ])
      await refused('plain', body, XML_TYPE)
    await refused('rooted', `<Order><${name}>H</${name}></Order>`, XML_TYPE)
    await refused('rooted', `<Order ${name}="H"/>`, XML_TYPE)
    await refused('plain', JSON.stringify({ A: { [name]: 'H' } }), JSON_TYPE)
  })

  it('the part that is sent in place of the whole is judged', async () => {
    await refused('part', '{"order":{"Company":"HOOLI"}}', JSON_TYPE)
    expect((await sentFor('part', '{"order":{"a":1},"company":"x"}')).bodies).toEqual(['{"a":1}'])
  })

  it('a large body is judged on another thread', async () => {
    const long = 'x'.repeat(80_000)
    await refused('other', `{"a":"${long}","company":"HOOLI"}`, JSON_TYPE)
    await refused('plain', `<A><a>${long}</a><company>HOOLI</company></A>`, XML_TYPE)
    await refused('set', `{"a":"${long}","company":"HOOLI"}`, JSON_TYPE)
    expect((await sentFor('other', `{"a":"${long}"}`)).sent).toHaveLength(1)
  })

  it('a form that goes on byte for byte hides none behind a separator or an encoding', async () => {
    for (const form of ['note=1;company=HOOLI', 'note=1%26company%3DHOOLI', 'note=1%3Bcompany=HOOLI'])
      await refused('form', form, FORM_TYPE)
    expect((await sentFor('form', 'note=a;b', FORM_TYPE)).bodies).toEqual(['note=a;b'])
  })

  it('what an operation sets, requires or puts around the body is its own', async () => {
    expect((await sentFor('set', '{"ownerId":"HOOLI","a":1}')).bodies).toEqual(['{"a":1,"owner_id":"ACME"}'])
    expect((await sentFor('deep', '{"scope":{"b":1}}')).bodies).toEqual([
      '{"scope":{"b":1,"of":{"it":"ACME"}}}',
    ])
    expect((await sentFor('required', '{"realm":"ACME"}')).bodies).toEqual(['{"realm":"ACME"}'])
    expect((await sentFor('template', '{"company":"x"}')).bodies).toEqual([
      '{"mandant":["ACME"],"data":{"company":"x"}}',
    ])
    await refused('set', '{"company":"HOOLI"}', JSON_TYPE)
    await refused('required', '{"realm":"ACME","scope":{"of":{"it":"HOOLI"}}}', JSON_TYPE)
  })

  it.each([
    ['{"companies":1,"com":2,"":3,"note":{"company":"x"}}', JSON_TYPE],
    ['[{"company":"x"}]', JSON_TYPE],
    ['companies=1&=2&n[company]=3', FORM_TYPE],
  ])('%s passes', async (body, type) => {
    expect((await sentFor('other', body, type)).sent).toHaveLength(1)
  })

  it('an element below another one, and the root, pass', async () => {
    const body = '<company><n><company>x</company></n></company>'
    expect((await sentFor('plain', body, XML_TYPE)).bodies).toEqual([body])
  })
})
