import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import { compileQueryRule } from '../../../src/gateway/actions/parameters.ts'
import type { ParameterConfig } from '../../../src/gateway/actions/schema.ts'
import { type BodySchema, requires } from '../../../src/base/http/body/body-schema.ts'
import { literalOf } from '../../../src/base/http/body/json.ts'

function compile(config: Readonly<Record<string, unknown>>) {
  const problems = new Problems()
  const rule = compileQueryRule(config as Record<string, ParameterConfig>, ['parameters'], problems)
  return { rule, problems: problems.list.map(({ path, message }) => `${path.join('.')} ${message}`) }
}

describe('C4.11 the declaration of parameters', () => {
  it.each([
    [{ a: { type: 'array' } }, 'parameters.a.type is not one of'],
    [{ a: { type: ['string', 'null'] } }, 'parameters.a.type is not one of'],
    [{ a: { type: 'integer', default: 'ten' } }, 'parameters.a.default does not fit'],
    [{ a: { type: 'integer', maximum: 5, default: 6 } }, 'parameters.a.default does not fit'],
    [{ a: { enum: [1, 2] } }, 'parameters.a.enum does not fit'],
    [{ a: { type: 'integer', required: true, default: 1 } }, 'parameters.a.default has no use'],
    [{ a: {}, A: {} }, 'parameters.A could be taken for "a"'],
    [{ page: {}, 'page[size]': {} }, 'parameters.page[size] could be taken for "page"'],
    [{ 'page[size]': {}, 'page.size': {} }, 'parameters.page.size could be taken for'],
    [{ '[]': {} }, 'parameters.[] is a name of nothing but'],
  ])('C4.11 %j is a problem', (config, problem) => {
    expect(compile(config).problems.join('\n')).toContain(problem)
  })

  it('C4.11 without a type a parameter is a text', () => {
    const { rule, problems } = compile({ a: {}, 'page[size]': {}, 'page[no]': {} })
    expect(problems).toEqual([])
    expect(rule?.read('?a=1&page[size]=2')).toEqual({ a: '1', 'page[size]': '2' })
  })

  it('C4.11 names of members of every object are parameters as any', () => {
    const { rule } = compile({ __proto__x: {}, constructor: {}, toString: { default: 'd' } })
    expect({ ...rule?.read('') }).toEqual({ toString: 'd' })
    expect({ ...rule?.read('?constructor=a') }).toEqual({ constructor: 'a', toString: 'd' })
  })

  it('C4.11 every text and every number is read as an independent parser reads it', () => {
    const { rule } = compile({ text: {}, number: { type: 'number' }, whole: { type: 'integer' } })
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }).filter((text) => !/[%&;=]/.test(text.normalize('NFKC'))),
        fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !String(value).includes('e')),
        fc.bigInt(),
        (text, number, whole) => {
          const pairs = new URLSearchParams({ text, number: String(number), whole: String(whole) })
          const query = `?${pairs.toString()}`
          const read = rule?.read(query)
          expect(read?.['text']).toBe(text)
          expect(literalOf(read?.['number'] as number)).toBe(String(number))
          expect(literalOf(read?.['whole'] as number)).toBe(String(whole))
        },
      ),
    )
  })

  it('C4.11, T1.7 no query has two values for a parameter in any reading, and none is unchecked', () => {
    const { rule } = compile({ limit: { type: 'integer', maximum: 50 } })
    const piece = fc.constantFrom(
      ...[
        'limit',
        'Limit',
        '=',
        '&',
        ';',
        '%26',
        '%3D',
        '%2526',
        '999',
        '5',
        '[',
        ']',
        '.',
        '%00',
        '%',
        '?',
        '+',
        'a',
      ],
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const query = `?${pieces.join('')}`
        let read: unknown
        try {
          read = rule?.read(query)['limit']
        } catch {
          return
        }
        const seen = new URLSearchParams(query).getAll('limit')
        expect(seen.map(Number)).toEqual(read === undefined ? [] : [Number(read)])
        for (const [name, value] of new URLSearchParams(query.toLowerCase().replaceAll(';', '&')))
          if (name.split(/[[.\0]/)[0] === 'limit') expect(Number(value)).toBeLessThanOrEqual(50)
      }),
      { numRuns: 20_000 },
    )
  })
})

describe('C8.7 what every body has', () => {
  const schema = {
    type: 'object',
    required: ['a', 'list'],
    properties: {
      a: { type: 'object', required: ['b'], properties: { b: { type: 'string' }, c: {} } },
      open: { required: ['b'] },
      list: { type: 'array', minItems: 2, items: { type: 'object', required: ['x'] } },
    },
  } as const

  it.each([
    [[], true],
    [['a'], true],
    [['a', 'b'], true],
    [['a', 'c'], false],
    [['open'], false],
    [['list', '1', 'x'], true],
    [['list', '2'], false],
    [['list', '-'], false],
    [['toString'], false],
  ] as const)('C8.7 %j is required: %j', (pointer, expected) => {
    expect(requires(schema, pointer)).toBe(expected)
  })

  it('C8.7 a member is required only where nothing but an object fits', () => {
    expect(requires({ required: ['a'] }, ['a'])).toBe(false)
    expect(requires({ type: ['object', 'null'], required: ['a'] }, ['a'])).toBe(false)
    expect(requires(undefined, ['a'])).toBe(false)
  })

  it('C8.7 a schema that contains itself requires what it says at any depth', () => {
    const node: { type: 'object'; required: string[]; properties: Record<string, BodySchema> } = {
      ...{ type: 'object', required: ['next'], properties: {} },
    }
    node.properties['next'] = node
    expect(requires(node, ['next', 'next', 'next'])).toBe(true)
    expect(requires(node, ['next', 'other'])).toBe(false)
  })
})
