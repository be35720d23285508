import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { BodySchema } from '../../../src/base/http/body/body-schema.ts'
import { formToJson, parseForm, singleValues } from '../../../src/base/http/body/form.ts'
import { stringifyJson } from '../../../src/base/http/body/json.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { anyText } from '../../support/any-text.ts'

const pairs = (body: string | Uint8Array): [string, readonly string[]][] => [...parseForm(body)]

function refusal(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    if (error instanceof Fault) return `${error.code}: ${error.facts.say ?? ''}`
    throw error
  }
  throw new Error('it was not refused')
}

describe('form bodies', () => {
  it.each<[string, [string, string[]][]]>([
    ['', []],
    ['&&', []],
    [
      'a=1&b=2',
      [
        ['a', ['1']],
        ['b', ['2']],
      ],
    ],
    [
      'a=1&&b=2&',
      [
        ['a', ['1']],
        ['b', ['2']],
      ],
    ],
    ['a', [['a', ['']]]],
    ['a=', [['a', ['']]]],
    ['=a', [['', ['a']]]],
    ['a=b=c', [['a', ['b=c']]]],
    [
      'a=1&b=2&a=3',
      [
        ['a', ['1', '3']],
        ['b', ['2']],
      ],
    ],
    ['a=1&%61=2', [['a', ['1', '2']]]],
    ['a+b=c+d%2B', [['a b', ['c d+']]]],
    ['scope=a b  c', [['scope', ['a b  c']]]],
    [
      'a[b]=1&a[b][]=2&c.d=3',
      [
        ['a[b]', ['1']],
        ['a[b][]', ['2']],
        ['c.d', ['3']],
      ],
    ],
    ['a=%26%3D%25%00', [['a', ['&=%\0']]]],
    ['a=%c3%A9é', [['a', ['éé']]]],
    [
      '__proto__=1&constructor=2',
      [
        ['__proto__', ['1']],
        ['constructor', ['2']],
      ],
    ],
    ['a=1;b=2', [['a', ['1;b=2']]]],
  ])('C7.6 T4.6 reads %j in one way', (body, expected) => {
    expect(pairs(body)).toEqual(expected)
    expect(pairs(Buffer.from(body))).toEqual(expected)
  })

  it('C7.4 ignores one leading BOM', () => expect(pairs(Buffer.from('\ufeffa=1'))).toEqual([['a', ['1']]]))

  it.each(['a=%', 'a=%4', 'a=%zz', 'a=%u0041', 'a=100%&b=1', 'a=%%41'])(
    'C7.6 refuses the bad escape in %j',
    (body) =>
      expect(refusal(() => parseForm(body))).toBe(
        'body_malformed: Field number 1 has a % that two hexadecimal digits do not follow.',
      ),
  )

  it('C7.6 refuses a bad escape in a name', () =>
    expect(refusal(() => parseForm('a&b=1&%=1'))).toContain('The name of field number 3 has a %'))

  it('C7.6 names the field of a bad escape where its name is known, and no other', () => {
    const known = new Set(['scope'])
    expect(refusal(() => parseForm('scope=%', { known }))).toContain('Field scope has a %')
    expect(refusal(() => parseForm('scope=1&tail=%', { known }))).toContain('Field number 2 has a %')
  })

  it.each(['%ff', '%c0%af', '%ed%a0%80', '%e2%82', '%f4%90%80%80'])(
    'C7.6 refuses %s, which is not UTF-8',
    (value) =>
      expect(refusal(() => parseForm(`a=${value}`))).toBe(
        'body_malformed: Field number 1 is not UTF-8 once decoded.',
      ),
  )

  it('C7.6 refuses raw bytes that are not UTF-8', () =>
    expect(refusal(() => parseForm(new Uint8Array([0x61, 0x3d, 0xff])))).toBe(
      'body_malformed: It is not valid UTF-8.',
    ))

  it('T4.6 bounds the fields, repeats included', () => {
    const body = (fields: number): string => Array.from({ length: fields }, (_, i) => `k${i % 7}=v`).join('&')
    expect(parseForm(body(1000)).size).toBe(7)
    expect(refusal(() => parseForm(body(1001)))).toBe('body_malformed: It has more than 1000 fields.')
    expect(refusal(() => parseForm(body(100_000)))).toContain('more than 1000')
    expect(refusal(() => parseForm('a&b&c', { maxFields: 2 }))).toContain('more than 2')
  })

  it('C7.6 reads back whatever URLSearchParams writes', () => {
    const text = anyText().filter((each) => each.isWellFormed())
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text)), (fields) => {
        const sent = new URLSearchParams(fields).toString()
        const form = parseForm(sent)
        for (const [name, value] of fields) expect(form.get(name)).toContain(value)
        expect([...form.values()].flat()).toHaveLength(fields.length)
      }),
    )
  })
})

describe('parameters of the identity endpoints', () => {
  const single = (body: string): [string, string][] => [
    ...singleValues(parseForm(body), new Set(['scope', 'a'])),
  ]

  it('C6.0 counts a parameter without a value as absent', () => {
    expect(single('a=1&b=&c')).toEqual([['a', '1']])
    expect(single('a=&a=1')).toEqual([['a', '1']])
  })

  it('C6.0 refuses a repeated parameter by name, equal values too', () => {
    expect(refusal(() => single('scope=a&x=1&scope=b'))).toBe(
      'oauth_bad_request: The parameter scope was sent twice.',
    )
    expect(refusal(() => single('scope=a&scope=a'))).toContain('scope')
  })

  it('C6.0 says a strange name back to nobody (RFC 6749 §5.2)', () => {
    for (const name of ['%22%0a', 'tail-of-a-password'])
      expect(refusal(() => single(`${name}=1&${name}=2`))).toBe(
        'oauth_bad_request: A parameter was sent twice.',
      )
  })
})

describe('a form as JSON', () => {
  const SCHEMA: BodySchema = {
    type: 'object',
    properties: {
      Text: { type: 'string' },
      Number: { type: 'number' },
      Integer: { type: 'integer' },
      Flag: { type: 'boolean' },
      Maybe: { type: ['integer', 'null'] },
      Either: { type: ['string', 'number'] },
      List: { type: 'array', items: { type: 'number' } },
      Texts: { type: 'array' },
      Object: { type: 'object' },
    },
  }
  const json = (body: string, schema: BodySchema | undefined = SCHEMA): string =>
    stringifyJson(formToJson(parseForm(body), schema))

  it.each([
    ['Text=007', '{"Text":"007"}'],
    ['Text=', '{"Text":""}'],
    ['Number=1.50', '{"Number":1.50}'],
    ['Number=-0', '{"Number":-0}'],
    ['Integer=12345678901234567890', '{"Integer":12345678901234567890}'],
    ['Flag=true', '{"Flag":true}'],
    ['Flag=false', '{"Flag":false}'],
    ['Maybe=', '{"Maybe":null}'],
    ['Maybe=5', '{"Maybe":5}'],
    ['Either=5', '{"Either":"5"}'],
    ['List=1', '{"List":[1]}'],
    ['List=1&Text=x&List=2', '{"List":[1,2],"Text":"x"}'],
    ['Texts=1&Texts=1', '{"Texts":["1","1"]}'],
    ['Unknown=5', '{"Unknown":"5"}'],
    ['__proto__=x&toString=y', '{"__proto__":"x","toString":"y"}'],
    ['Text.A=x&Text[0]=y', '{"Text.A":"x","Text[0]":"y"}'],
  ])('C7.6 makes %s into %s', (body, expected) => expect(json(body)).toBe(expected))

  it('C7.6 leaves values text without a schema', () =>
    expect(stringifyJson(formToJson(parseForm('a=5&b=true')))).toBe('{"a":"5","b":"true"}'))

  it.each([
    ['Number=007', 'Field Number: must be a number.'],
    ['Number=', 'Field Number: must be a number.'],
    ['Number=+1', 'Field Number: must be a number.'],
    ['Integer=1.5', 'Field Integer: must be a whole number.'],
    ['Flag=TRUE', 'Field Flag: must be true or false.'],
    ['Flag=1', 'Field Flag: must be true or false.'],
    ['Maybe=x', 'Field Maybe: must be a whole number or null.'],
    ['List=1&List=x', 'Field List: must be a number.'],
    ['Text=a&Text=b', 'Field Text: was sent twice, but takes one value.'],
    ['Unknown=a&Unknown=a', 'Field Unknown: was sent twice, but takes one value.'],
    ['Object=x', 'Field Object: cannot be said in a form. Send application/json or application/xml.'],
    ['a%0a%3cb=1&a%0a%3cb=2', 'Field a?<b: was sent twice, but takes one value.'],
  ])('C7.6 refuses %s', (body, say) => expect(refusal(() => json(body))).toBe(`body_invalid: ${say}`))
})
