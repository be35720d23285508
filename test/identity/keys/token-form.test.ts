import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseJson } from '../../../src/base/http/body/json.ts'
import { isOpaque, parseObject } from '../../../src/identity/keys/verify/token-verifier.ts'
import { foreignToken, makeIssuerKey } from '../../support/foreign-issuer.ts'

const token = await foreignToken(await makeIssuerKey('a'))
const [header = '', payload = '', signature = ''] = token.split('.')
const encode = (text: string): string => Buffer.from(text).toString('base64url')

describe('C11.2 whether a token is opaque', () => {
  it.each([
    ['a signed token', token],
    ['one without its signature', `${header}.${payload}.`],
    ['one that was cut', `${header}.${payload}`],
    ['its header alone', header],
    ['one with a part more', `${token}.${signature}`],
    ['one with many parts more', `${token}${'.a'.repeat(20)}`],
    ['an encrypted one', `${encode('{"alg":"dir","enc":"A256GCM"}')}..iv.text.tag`],
    ['one with padding', `${header}=.${payload}.${signature}`],
    ['one with characters between that decoders skip', `~${header.slice(0, 5)}~${header.slice(5)}.a.b`],
    ['one whose header begins with white space', `${encode(' \n\t{"alg":"none"}')}.${payload}.`],
    ['one with a broken header', `${encode('{"alg":')}.${payload}`],
    ['any three parts of base64url', 'abc.def.ghi'],
    ['any five parts of base64url', 'abc.def..ghi.jkl'],
    ['two dots', '..'],
  ])('T3.1 %s is not: it is judged by its signature, and never leaves', (_, text) => {
    expect(isOpaque(text)).toBe(false)
  })

  it.each([
    'Zk3xUbP1yqLmTr0cH2dVwQ',
    'ory_at_Xe1.Zk3xUbP1',
    'v2.public.a.b',
    'ya29.a0AfH6SMBx-_~+/==',
    'a.b.c~d',
    'a',
    '.',
    'a.b.c.d.e.f.g.h',
  ])('C11.2 %j is', (text) => {
    expect(isOpaque(text)).toBe(true)
  })

  it('C11.2 random bytes are, also where the first of them is the brace of a JSON object', () => {
    const bytes = fc.uint8Array({ minLength: 15, maxLength: 31 })
    const notAMember = fc.oneof(
      fc
        .uint8Array({ minLength: 1, maxLength: 1 })
        .filter(([byte = 0]) => !/[\s"]/.test(String.fromCharCode(byte))),
      fc.constant(Uint8Array.of(0x22, 0x80)),
    )
    fc.assert(
      fc.property(notAMember, bytes, (second, more) =>
        isOpaque(Buffer.concat([Buffer.from('{'), second, more]).toString('base64url')),
      ),
    )
  })

  it('T3.1 whatever is put behind or into the header of a token, the result is not', () => {
    const junk = fc.string({
      unit: fc.constantFrom('~', '+', '/', '.', '=', '-', '_', 'a', 'Z', '0'),
      maxLength: 12,
    })
    fc.assert(
      fc.property(junk, (more) => !isOpaque(`${header}.${more}`) && !isOpaque(`${header}${more}.a.b`)),
    )
    const skipped = fc.array(fc.constantFrom('~', '~~'), { maxLength: 6 })
    fc.assert(fc.property(skipped, (more) => !isOpaque(`${more.join('')}${header}.${payload}.${signature}`)))
  })
})

/** What two readers made of it, one after the other: the strict one said whether, JSON.parse said what. */
function readTwice(bytes: Buffer): unknown {
  try {
    parseJson(bytes, { depth: 16, nodes: 2000 })
    const value: unknown = JSON.parse(bytes.toString())
    return typeof value === 'object' && !Array.isArray(value) ? (value ?? 'refused') : 'refused'
  } catch {
    return 'refused'
  }
}

function readOnce(bytes: Buffer): unknown {
  try {
    return parseObject(bytes, 'payload')
  } catch {
    return 'refused'
  }
}

describe('T3.3 the claims of a token', () => {
  const numbers =
    '0 -0 0.0 -0.0 1.0 1e0 1E+2 1e-7 1e21 1e400 -1e400 1e-400 0.1 5e-324 1799999999.5 1800000000000000000001 ' +
    `9007199254740993 123456789012345678901234567890 0.30000000000000004 1.7976931348623157e308 ${'9'.repeat(400)}`

  it.each(numbers.split(' '))('T3.3 number %s is what JSON.parse makes of it', (number) => {
    const bytes = Buffer.from(`{"exp":${number},"list":[${number}]}`)
    const { exp, list } = parseObject(bytes, 'payload')
    const parsed = JSON.parse(number) as unknown
    expect([Object.is(exp, parsed), Object.is((list as unknown[])[0], parsed)]).toEqual([true, true])
  })

  it.each([
    '01 +1 .5 1. 1e 0x1 NaN Infinity -Infinity -'.split(' ').map((number) => `{"exp":${number}}`),
    ['{"a":1,"a":2}', '{"a":1,"\\u0061":2}', '{"a":"\\ud800"}', '{"__proto__":1,"__proto__":2}'],
    [
      '[]',
      '1',
      'null',
      '"{}"',
      '',
      ' ',
      '{}x',
      '{} {}',
      '{',
      '{"a"}',
      "{'a':1}",
      '{"a":1,}',
      '\uFEFF{"a":1}',
    ],
    ['{"a":"\u0000"}', '['.repeat(17) + ']'.repeat(17), `{"a":[${'1,'.repeat(2000)}1]}`],
  ])('T3.3 are refused as they were read twice', (...texts: readonly string[]) => {
    for (const text of texts) {
      const bytes = Buffer.from(text)
      expect([text, readOnce(bytes), readTwice(bytes)]).toEqual([text, 'refused', 'refused'])
    }
    for (const bytes of [[0xef], [0xef, 0xbb, 0xbf, 0x7b, 0x7d], [0x7b, 0xff, 0x7d], [0xff, 0xfe, 0x7b, 0]])
      expect([readOnce(Buffer.from(bytes)), readTwice(Buffer.from(bytes))]).toEqual(['refused', 'refused'])
  })

  it('T3.3 of any object are the same read once as twice, cut and changed anywhere', () => {
    const objects = fc.dictionary(fc.string({ maxLength: 6 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 5 })
    fc.assert(
      fc.property(objects, fc.nat(), fc.nat(255), (object, at, byte) => {
        const bytes = Buffer.from(JSON.stringify(object))
        const changed = Buffer.from(bytes)
        changed[at % bytes.length] = byte
        for (const each of [bytes, bytes.subarray(0, at % bytes.length), changed])
          expect(readOnce(each)).toEqual(readTwice(each))
      }),
      { numRuns: 500 },
    )
  })
})
