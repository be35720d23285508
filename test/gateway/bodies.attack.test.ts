import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  attackMemory,
  attackUpstream,
  bytesOf,
  type AttackedMemory,
  type AttackedUpstream,
} from '../support/attacked.ts'
import { HEAVY_BODIES } from '../support/heavy-documents.ts'
import { sendRaw } from '../support/raw-http.ts'
import { MEMBER } from '../support/tokens.ts'

/** T4: bodies and media types, on the wire. What a refused body holds never reaches a backend. */

let memory: AttackedMemory
let http: AttackedUpstream

beforeAll(async () => {
  memory = await attackMemory()
  http = await attackUpstream()
})
afterAll(async () => {
  await memory.close()
  await http.close()
})
beforeEach(() => {
  memory.forget()
  http.forget()
})

const JSON_TYPE = 'application/json'
const XML = 'application/xml'
const FORM = 'application/x-www-form-urlencoded'
const MEMBER_TARGET = `/api/1.0/f/ACME/SUPER1/member-data/member-detail/${MEMBER}`
const ANY_TARGET = '/api/1.0/b/ACME/fund-data/any/x'

const request = (
  authorization: string,
  target: string,
  contentType: string | undefined,
  body: string | Buffer,
): Buffer => {
  const type = contentType === undefined ? '' : `Content-Type: ${contentType}\r\n`
  const bytes = Buffer.from(body)
  const lines = `${authorization}${type}Content-Length: ${bytes.length}\r\n`
  return bytesOf({ method: 'POST', target, lines, body: bytes })
}

const post = (contentType: string | undefined, body: string | Buffer, target = MEMBER_TARGET) =>
  sendRaw(http.port, request(http.authorization, target, contentType, body))

/** Refused by both backends' gateways with this status; nothing got through. */
async function expectRefused(contentType: string, body: string | Buffer, status = 400): Promise<void> {
  for (const attacked of [memory, http])
    for (const target of [MEMBER_TARGET, ANY_TARGET]) {
      const answer = await sendRaw(attacked.port, request(attacked.authorization, target, contentType, body))
      const shown = body.toString('latin1').slice(0, 60)
      expect([shown, answer.status, attacked.reached()]).toEqual([shown, status, []])
    }
}

describe('T4.1 Content-Type', () => {
  const json = '{"Status":"Active"}'
  const xml = '<r><Status>Active</Status></r>'
  const form = 'Status=Active'

  /** What is sent as the type, and as what its body is then read; undefined: 415, and nothing is read. */
  const types: readonly (readonly [string, string | undefined])[] = [
    ['application/json', json],
    ['APPLICATION/JSON', json],
    ['application/json;', json],
    ['application/json ;', json],
    ['application/json\t;\tcharset=utf-8', json],
    ['application/json; charset="UTF-8"', json],
    ['\tapplication/json\t', json],
    ['application/xml', xml],
    ['application/XML;charset=utf-8;', xml],
    ['application/x-www-form-urlencoded', form],
    ['application/json, application/xml', undefined],
    ['application/json; charset=utf-16', undefined],
    ['application/json; charset=utf-8; charset=utf-16', undefined],
    ['application/jsonx', undefined],
    ['application/json/xml', undefined],
    ['application/ json', undefined],
    ['application\t/json', undefined],
    ['application/json xml', undefined],
    ['text/json', undefined],
    ['text/xml', undefined],
    ['application/*', undefined],
    ['json', undefined],
    ['', undefined],
    ['multipart/form-data; boundary=x', undefined],
    ['application/json+xml', undefined],
    ['application/soap+xml', undefined],
    ['application/json\u00a0', undefined],
  ]

  it.each(types)('C7.4 judges, parses and forwards one and the same type: %j', async (type, body) => {
    const answer = await post(type, body ?? json)
    if (body === undefined) {
      expect([answer.status, http.reached()]).toEqual([415, []])
      return
    }
    expect(answer.status).toBe(200)
    const [received] = http.received()
    expect(JSON.parse(String(received?.body))).toEqual({ Status: 'Active' })
    expect(received?.headers['content-type']).toEqual(['application/json'])
  })

  it.each(types.filter(([, body]) => body === json))(
    'C7.4 never reads a body by another type than the one judged: %j',
    async (type) => {
      for (const other of [xml, form]) expect((await post(type, other)).status).toBe(400)
      expect(http.reached()).toEqual([])
    },
  )

  it('C7.4 refuses a Content-Encoding, whatever it is', async () => {
    for (const coding of ['gzip', 'deflate', 'br', 'gzip, identity', 'x-gzip']) {
      const lines = `${http.authorization}Content-Encoding: ${coding}\r\nContent-Type: ${JSON_TYPE}\r\nContent-Length: 2\r\n`
      const { status } = await sendRaw(
        http.port,
        bytesOf({ method: 'POST', target: ANY_TARGET, lines, body: '{}' }),
      )
      expect([coding, status, http.reached()]).toEqual([coding, 415, []])
    }
  })
})

describe('T4.2 names', () => {
  it('C7.5 escapes a JSON key that is markup, in the answer of an upstream', async () => {
    const key = 'a><Injected>1</Injected><b'
    http.upstream.behave((connection) => {
      const body = JSON.stringify({ [key]: 'x', 'xmlns:evil': 'y', '': 'z', __proto__x: 1 })
      connection.respond({ headers: { 'Content-Type': JSON_TYPE }, body })
    })
    const lines = `${http.authorization}Accept: ${XML}\r\n`
    const target = '/api/1.0/b/ACME/fund-data/echo/x'
    const { status, body } = await sendRaw(http.port, bytesOf({ target, lines }))
    expect(status).toBe(200)
    expect(body).not.toContain('<Injected>')
    expect(body).not.toContain('xmlns:evil=')
    expect(body).toContain('a_x003E__x003C_Injected')
  })
})

describe('T4.3, T4.5, T4.6 hostile documents', () => {
  const dtd = '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'

  it.each([
    ['a DTD', '<!DOCTYPE r><r/>'],
    ['an entity of its own', `${dtd}<r><Status>&b;</Status></r>`],
    [
      'an external entity',
      '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r><Status>&x;</Status></r>',
    ],
    ['a parameter entity', '<!DOCTYPE r [<!ENTITY % x SYSTEM "http://127.0.0.1/"> %x;]><r/>'],
    ['an undeclared entity', '<r><Status>&nbsp;</Status></r>'],
    ['XInclude', '<r xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="file:///etc/passwd"/></r>'],
    ['a stylesheet', '<?xml-stylesheet href="x"?><r/>'],
    ['another encoding', '<?xml version="1.0" encoding="UTF-16"?><r/>'],
    ['UTF-7', '<?xml version="1.0" encoding="UTF-7"?><r>+ADw-x+AD4-</r>'],
    ['a mark that its text belies', '<r><AccountBalance type="number">much</AccountBalance></r>'],
    ['an unknown mark', '<r><Status type="script">x</Status></r>'],
    ['an attribute', '<r onload="x"/>'],
    ['an attribute with a prefix', '<r xml:base="x"/>'],
  ])('C7.5 refuses XML with %s', async (_what, xml) => {
    await expectRefused(XML, xml)
  })

  it('C7.5 refuses UTF-16, other encodings and two byte order marks', async () => {
    const xml = '<r><Status>Active</Status></r>'
    await expectRefused(XML, Buffer.from(`\ufeff${xml}`, 'utf16le'))
    await expectRefused(XML, Buffer.from(xml, 'utf16le'))
    await expectRefused(XML, Buffer.from(`\ufeff\ufeff${xml}`))
    await expectRefused(XML, Buffer.from('<r><Status>\xe9</Status></r>', 'latin1'))
  })

  it.each([
    ['depth', '['.repeat(5000) + ']'.repeat(5000)],
    ['depth in objects', '{"a":'.repeat(5000) + '1' + '}'.repeat(5000)],
    ['equal keys', '{"Status":"a","Status":"b"}'],
    ['equal keys by an escape', '{"Status":"a","Stat\\u0075s":"b"}'],
    ['a lone surrogate', '{"Status":"\\ud800"}'],
    ['a lone surrogate in a key', '{"\\udfff":1}'],
    ['a comment', '{"Status":"a"/**/}'],
    ['a trailing comma', '{"Status":"a",}'],
    ['NaN', '{"AccountBalance":NaN}'],
    ['a leading zero', '{"AccountBalance":007}'],
    ['two documents', '{"Status":"a"}{"Status":"b"}'],
    ['a raw control character', '{"Status":"a\u0001"}'],
    ['single quotes', "{'Status':'a'}"],
  ])('C7.6 refuses JSON with %s', async (_what, json) => {
    await expectRefused(JSON_TYPE, json)
  })

  it('C7.6 refuses JSON that is not UTF-8', async () => {
    await expectRefused(JSON_TYPE, Buffer.from('{"Status":"\xff"}', 'latin1'))
    await expectRefused(JSON_TYPE, Buffer.from('{"Status":"\xed\xa0\x80"}', 'latin1'))
    await expectRefused(JSON_TYPE, Buffer.from('{"Status":"x"}', 'utf16le'))
  })

  it.each([
    ['a repeated key', 'Status=a&Status=b'],
    ['percent junk', 'Status=%zz'],
    ['an escape cut short', 'Status=%4'],
    ['an escape that is not UTF-8', 'Status=%ff'],
  ])('C7.6 refuses a form with %s', async (_what, form) => {
    await expectRefused(FORM, form)
  })

  it('C7.6 takes the names of a form and of JSON literally: no nesting, no prototypes', async () => {
    const answer = await post(FORM, 'a%5Bb%5D=1&__proto__=2&constructor.prototype.x=3', ANY_TARGET)
    expect(answer.status).toBe(200)
    const sent = String(http.received()[0]?.body)
    expect(sent).toBe('{"a[b]":"1","__proto__":"2","constructor.prototype.x":"3"}')
    const json = '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'
    expect((await post(JSON_TYPE, json, ANY_TARGET)).status).toBe(200)
    expect(String(http.received()[1]?.body)).toBe(json)
    expect(await post(JSON_TYPE, json)).toMatchObject({ status: 400 })
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })
})

describe('T4.4 silent changes', () => {
  it.each([
    '007',
    '1e5',
    '0x1F',
    ' 1',
    '1.0',
    '1e400',
    '12345678901234567890',
    '0.1000000000000000055511151231257827',
    'null',
    'true',
    '',
  ])('C7.5 %j sent as text in XML arrives as that text', async (text) => {
    expect((await post(XML, `<r><Value>${text}</Value></r>`, ANY_TARGET)).status).toBe(200)
    expect(JSON.parse(String(http.received()[0]?.body))).toEqual({ Value: text })
  })

  it.each(['1e5', '1.0', '12345678901234567890', '0.1000000000000000055511151231257827', '1E+2', '-0'])(
    'C7.5 the number %s arrives with the same literal from XML, and byte for byte from JSON',
    async (literal) => {
      expect((await post(XML, `<r><Value type="number">${literal}</Value></r>`, ANY_TARGET)).status).toBe(200)
      expect((await post(JSON_TYPE, `{ "Value": ${literal} }`, ANY_TARGET)).status).toBe(200)
      expect(http.received().map(({ body }) => String(body))).toEqual([
        `{"Value":${literal}}`,
        `{ "Value": ${literal} }`,
      ])
    },
  )

  it('C7.5 empty, null, absent and lists of one stay what they are', async () => {
    const xml =
      '<r xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><Empty/><Null xsi:nil="true"/>' +
      '<Object type="object"/><None type="array"/><One type="array"><Item>x</Item></One></r>'
    expect((await post(XML, xml, ANY_TARGET)).status).toBe(200)
    expect(String(http.received()[0]?.body)).toBe(
      '{"Empty":"","Null":null,"Object":{},"None":[],"One":["x"]}',
    )
  })

  it.each(['\u0000', '\u0001', '\ufffe', '\u001b'])(
    'C7.5 an answer that holds %j is 500 in XML, never a changed text',
    async (character) => {
      http.upstream.behave((connection) =>
        connection.respond({
          headers: { 'Content-Type': JSON_TYPE },
          body: JSON.stringify({ Value: `a${character}b` }),
        }),
      )
      const ask = (accept: string) =>
        sendRaw(
          http.port,
          bytesOf({
            target: '/api/1.0/b/ACME/fund-data/echo/x',
            lines: `${http.authorization}Accept: ${accept}\r\n`,
          }),
        )
      expect((await ask(XML)).status).toBe(500)
      const json = await ask(JSON_TYPE)
      expect(JSON.parse(json.body)).toMatchObject({ Data: { Value: `a${character}b` } })
    },
  )
})

describe('T4.3 heavy documents', () => {
  it.each(HEAVY_BODIES)('T4.3 refuses %s', async (_what, type, body) => {
    const { status } = await sendRaw(memory.port, request(memory.authorization, MEMBER_TARGET, type, body))
    expect([400, 413]).toContain(status)
    expect(memory.reached()).toEqual([])
  })

  it('T4.3 leaves other calls unharmed while such documents come', async () => {
    const target = '/api/1.0/b/ACME/fund-data/fund-list'
    const attackers = HEAVY_BODIES.map(([, type, body]) =>
      sendRaw(memory.port, request(memory.authorization, MEMBER_TARGET, type, body)),
    )
    for (let call = 0; call < 50; call += 1)
      expect((await sendRaw(memory.port, bytesOf({ target, lines: memory.authorization }))).status).toBe(200)
    for (const { status } of await Promise.all(attackers)) expect([400, 413]).toContain(status)
  })
})
