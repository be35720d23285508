import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type JsonObject,
  type JsonValue,
  parseJson,
  stringifyJson,
} from '../../../src/base/http/body/json.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'

const bytes = (text: string): Uint8Array => Buffer.from(text)
const LIMITS = { depth: 100, nodes: 1000 }
const parse = (body: string | Uint8Array): JsonValue =>
  parseJson(typeof body === 'string' ? bytes(body) : body, LIMITS)

function refusal(body: string | Uint8Array): string | undefined {
  try {
    parse(body)
    return undefined
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    expect(error.code).toBe('body_malformed')
    expect(error.facts.say).toBeDefined()
    return error.facts.say
  }
}

describe('JSON bodies', () => {
  it('C7.6 reads what JSON can say', () => {
    const text =
      ' {"a":[1,-2.5,true,false,null,"x"],\r\n\t"b":{},"c":[ ],"":"é😀\\u00e9\\ud83d\\ude00\\"\\/"} '
    expect(parse(text)).toEqual(
      Object.assign(Object.create(null) as object, {
        a: [1, -2.5, true, false, null, 'x'],
        b: Object.create(null),
        c: [],
        '': 'é😀é😀"/',
      }),
    )
  })

  it('C7.4 ignores one leading BOM, not two', () => {
    expect(parse('\ufeff1')).toBe(1)
    expect(refusal('\ufeff\ufeff1')).toBe('Line 1, column 1: expected a value.')
    expect(refusal('1\ufeff')).toContain('something follows')
  })

  it.each([
    ['{"a":1,"a":1}', 'Line 1, column 8: the key "a" is there twice.'],
    ['{"a":1,\n "\\u0061":2}', 'Line 2, column 2: the key "a" is there twice.'],
    ['{"__proto__":1,"__proto__":2}', 'Line 1, column 16: the key "__proto__" is there twice.'],
    ['{"\\u202e":1,"\\u202e":2}', 'Line 1, column 13: the key "?" is there twice.'],
    ['"\\ud800"', 'Line 1, column 1: half a surrogate pair in a string.'],
    ['"\\udc00\\ud800"', 'Line 1, column 1: half a surrogate pair in a string.'],
    ['{"\\ud800":1}', 'Line 1, column 2: half a surrogate pair in a string.'],
    ['"a\nb"', 'Line 1, column 3: a control character in a string.'],
    ['"a\u0000"', 'Line 1, column 3: a control character in a string.'],
    ['"abc', 'Line 1, column 5: a string is not closed.'],
    ['"abc\\', 'Line 1, column 6: a string is not closed.'],
    ['"\\x41"', 'Line 1, column 1: a bad escape in a string.'],
    ['"\\u12"', 'Line 1, column 1: a bad escape in a string.'],
    ['', 'Line 1, column 1: expected a value.'],
    ['  ', 'Line 1, column 3: expected a value.'],
    ['[1,]', 'Line 1, column 4: expected a value.'],
    ['[1 2]', 'Line 1, column 4: expected "," or "]".'],
    ['[', 'Line 1, column 2: expected a value.'],
    ['{"a":1,}', 'Line 1, column 8: expected a key in double quotes.'],
    ["{'a':1}", 'Line 1, column 2: expected a key in double quotes.'],
    ['{"a" 1}', 'Line 1, column 6: expected ":" after the key.'],
    ['{"a":1', 'Line 1, column 7: expected "," or "}".'],
    ['1 2', 'Line 1, column 3: something follows the value.'],
    ['{}}', 'Line 1, column 3: something follows the value.'],
  ])('C7.6 refuses %j', (text, say) => expect(refusal(text)).toBe(say))

  it.each([
    '007',
    '01',
    '-',
    '+1',
    '.5',
    '1.',
    '1e',
    '1e+',
    '0x10',
    'NaN',
    'Infinity',
    '-Infinity',
    'undefined',
    'True',
    'nul',
    'truex',
    '\u00a01',
    '\u000b1',
    '// x\n1',
    '/**/1',
    '1;',
    "'a'",
    '`a`',
    '1_000',
    '１',
  ])('C7.6 refuses %j', (text) => {
    expect(refusal(text)).toBeDefined()
    expect(refusal(`[${text}]`)).toBeDefined()
  })

  it.each([
    ['a lone byte', [0x22, 0xff, 0x22]],
    ['an overlong form', [0x22, 0xc0, 0xaf, 0x22]],
    ['an encoded surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['a cut sequence', [0x22, 0xe2, 0x82, 0x22]],
    ['beyond Unicode', [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22]],
    ['UTF-16 with a BOM', [0xff, 0xfe, 0x31, 0x00]],
  ])('C7.6 refuses what is not UTF-8: %s', (_, body) =>
    expect(refusal(new Uint8Array(body))).toBe('It is not valid UTF-8.'),
  )

  it('C7.6 takes __proto__ and constructor for plain data', () => {
    const value = parse('{"__proto__":{"polluted":true},"constructor":1,"toString":2}') as JsonObject
    expect(Object.keys(value)).toEqual(['__proto__', 'constructor', 'toString'])
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
    expect(Object.getPrototypeOf(value)).toBeNull()
    expect(stringifyJson(value)).toBe('{"__proto__":{"polluted":true},"constructor":1,"toString":2}')
  })

  it.each([
    '1e5',
    '1.0',
    '-0',
    '0.10',
    '1E400',
    '-1e-400',
    '12345678901234567890',
    '0.1234567890123456789',
    '1e+2',
  ])('C7.5 keeps the literal %s', (literal) => {
    expect(stringifyJson(parse(literal))).toBe(literal)
    expect(stringifyJson(parse(`{"a":[${literal}]}`))).toBe(`{"a":[${literal}]}`)
  })

  it.each(['0', '1', '-1', '0.5', '9007199254740991', '1.5e-7', '1e+21'])(
    'C7.5 makes %s a number',
    (literal) => expect(typeof parse(literal)).toBe('number'),
  )

  it('T4.5 refuses more levels than allowed, and does not crash on very many', () => {
    const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
    expect(refusal(nested(100))).toBeUndefined()
    expect(refusal(nested(101))).toBe('Line 1, column 101: nested more than 100 levels deep.')
    expect(refusal(nested(5000))).toContain('100 levels')
    expect(refusal('{"a":'.repeat(500_000))).toContain('100 levels')
  })

  it('T4.5 refuses more values than allowed', () => {
    expect(refusal(`[${Array(999).fill('0').join()}]`)).toBeUndefined()
    expect(refusal(`[${Array(1000).fill('0').join()}]`)).toContain('more than 1000 values')
  })

  it('C7.6 agrees with JSON.parse on what both accept, and writes back what it read', () => {
    fc.assert(
      fc.property(fc.json({ stringUnit: 'binary', maxDepth: 6 }), (text) => {
        fc.pre(text.isWellFormed())
        const written = stringifyJson(parse(text))
        expect(JSON.parse(written)).toEqual(JSON.parse(text))
        expect(stringifyJson(parse(written))).toBe(written)
      }),
      { numRuns: 500 },
    )
  })

  it('C7.6 accepts nothing that JSON.parse refuses, and throws nothing but a fault', () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '\\',
      'a',
      '1',
      '-',
      '.',
      'e',
      '0',
      ' ',
      'true',
      'null',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join('')
        if (refusal(text) === undefined) expect(() => JSON.parse(text) as unknown).not.toThrow()
        else if (!text.includes('"')) expect(() => JSON.parse(text) as unknown).toThrow()
      }),
      { numRuns: 3000 },
    )
  })
})
