import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  compileAuthorities,
  decodeSegment,
  parseRequestTarget,
  type RequestTarget,
  TARGET_RULES,
} from '../../../src/base/http/head/request-target.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'

const authorities = compileAuthorities(['http://127.0.0.1:8080', 'https://api.example.test'])
const parse = (raw: string): RequestTarget => parseRequestTarget(raw, authorities)

function faultOf(raw: string, limit?: number): Fault {
  try {
    parseRequestTarget(raw, authorities, limit)
  } catch (thrown) {
    if (thrown instanceof Fault) return thrown
    throw thrown
  }
  throw new Error(`not refused: ${JSON.stringify(raw)}`)
}

/** Each byte of the text as an escape, then each `%` of that as one, `depth` times in all. */
const escaped = (text: string, depth: number): string =>
  depth === 0
    ? text
    : escaped(
        Array.from(Buffer.from(text, 'latin1'), (byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''),
        depth - 1,
      )

describe('C3.4 the canonical form', () => {
  it('keeps a plain path as it is', () => {
    const target = parse('/api/1.0/b/ACME/fund-data/fund-list')
    expect(target.path).toBe('/api/1.0/b/ACME/fund-data/fund-list')
    expect(target.segments).toEqual(['api', '1.0', 'b', 'ACME', 'fund-data', 'fund-list'])
    expect(target.query).toBe('')
  })

  it('is that of the path alone, whatever queries and however many other paths came before', () => {
    const path = '/api/1.0/b/ACME/fund-data/fund-list'
    const segments = ['api', '1.0', 'b', 'ACME', 'fund-data', 'fund-list']
    for (let other = 0; other < 2_000; other += 1) {
      for (const query of ['', `?page=${other}`, '?'])
        expect(parse(path + query)).toMatchObject({ path, segments, query })
      expect(parse(`/api/1.0/b/B${other}`)).toMatchObject({ path: `/api/1.0/b/B${other}`, query: '' })
      expect(faultOf(`/api/1.0/b/B${other};`).code).toBe('bad_target')
    }
  })

  it('gives the root no segments', () => {
    expect(parse('/')).toMatchObject({ path: '/', segments: [], query: '' })
    expect(parse('/?')).toMatchObject({ path: '/', segments: [], query: '?' })
  })

  it('decodes escaped unreserved characters and keeps other escapes, in upper case', () => {
    expect(parse('/%41CM%45/%7e%2d%5F%2E9').path).toBe('/ACME/~-_.9')
    expect(parse('/a%20b%2bc%c3%a9%23%3f%25').path).toBe('/a%20b%2Bc%C3%A9%23%3F%25')
  })

  it('gives the decoded text of a canonical segment', () => {
    const [segment = ''] = parse('/a%20b%c3%a9%25x%23').segments
    expect(decodeSegment(segment)).toBe('a bé%x#')
  })

  it('is frozen, segments too, with a query or without', () => {
    for (const raw of ['/a/%62?c', '/a/b', '/a/b', '/a/b?c']) {
      const target = parse(raw)
      expect(Object.isFrozen(target)).toBe(true)
      expect(Object.isFrozen(target.segments)).toBe(true)
    }
  })

  it('is a type that only the parser makes', () => {
    const target = parse('/a')
    /* eslint-disable @typescript-eslint/no-misused-spread, @typescript-eslint/no-unsafe-class-instance-assignment --
       what is forbidden here is what the type must refuse */
    // @ts-expect-error a copy with another path was never judged
    const forged: RequestTarget = { ...target, path: '/b' }
    /* eslint-enable */
    expect(forged.path).toBe('/b')
  })
})

describe('C3.4 what is refused', () => {
  const refusals: Readonly<Record<keyof typeof TARGET_RULES, readonly string[]>> = {
    form: ['', 'a/b', 'api', 'ftp://127.0.0.1:8080/', '127.0.0.1:8080', '?x', 'http:/a', '\\a'],
    empty: ['//', '///a', '//evil.test/a', '/a//b', '/a/', '/api/1.0/', '/a//', '/%61/', '/a/?x'],
    dots: ['/.', '/..', '/a/../b', '/a/.', '/%2e', '/a/%2E./b', '/.%2e/b', '/%2e%2e'],
    separator: ['/a%2fb', '/a%2Fb', '/a%5cb', '/..%5C..', '/%2f', '/a/..%2fb'],
    backslash: ['/a\\b', '/a\\..\\..\\b', '/\\evil', '/a/\\'],
    semicolon: ['/a;b', '/..;/b', '/a;', '/a%3bb', '/a%3B=1'],
    fragment: ['/a#b', '/#', '/a?b#c', '/a?#', 'http://127.0.0.1:8080#x'],
    control: [
      ...['/a b', '/a\tb', '/a\r\nb', '/a\0', '/a\x7f', '/%00', '/a%0d%0ab', '/a%7f', '/a%1B', '/a%c2%85'],
      ...['/?a b', '/?\r\n', '/?\x7f', '/?a\0'],
    ],
    foreign: ['/\xe9', '/a\xff', '/\u2028', '/?\xe9', '/?\u{1f600}', '/\u212a'],
    escape: ['/%', '/%a', '/%zz', '/a%2', '/%2%35', '/%%32e', '/%u002e', '/%4g'],
    nested: ['/%252e%252e', '/%252f', '/%25%32%65', '/a%2541', '/%25252e', '/%25ff', '/%25u002f'],
    utf8: [
      '/%ff',
      '/%c0%af',
      '/%c0%ae%c0%ae',
      '/%e0%80%af',
      '/%ed%a0%80',
      '/%c3',
      '/%c3x%a9',
      '/%f4%90%80%80',
    ],
  }

  for (const [rule, targets] of Object.entries(refusals)) {
    it(`refuses by the rule "${rule}", and says so`, () => {
      for (const raw of targets) {
        const fault = faultOf(raw)
        expect([raw, fault.code], raw).toEqual([raw, 'bad_target'])
        expect(fault.facts.say, raw).toBe(TARGET_RULES[rule as keyof typeof TARGET_RULES])
      }
    })
  }

  it('refuses separators, dot segments, NUL and semicolons at any depth of encoding, anywhere in the path', () => {
    const dangerous = fc.constantFrom('/', '\\', '\0', ';', '.', '..', '../', '..\\', '\r\n')
    const around = fc.constantFrom('/api/1.0/b/ACME', '/connect', '/a..b/%20')
    fc.assert(
      fc.property(dangerous, around, fc.integer({ min: 1, max: 5 }), (text, prefix, depth) => {
        expect(faultOf(`${prefix}/${escaped(text, depth)}`).code).toBe('bad_target')
        expect(faultOf(`${prefix}/${escaped(text, depth)}/x`).code).toBe('bad_target')
      }),
    )
  })

  it('refuses a nested escape however its digits are spelled', () => {
    const digit = fc.constantFrom('2', '%32', 'e', '%65', 'E', '%45')
    fc.assert(
      fc.property(fc.constantFrom('%25', '%2525'), digit, digit, (percent, high, low) => {
        expect(faultOf(`/a/x${percent}${high}${low}y`).code).toBe('bad_target')
      }),
    )
  })

  it('says nothing that an error_description may not hold, and nothing of the target (RFC 6749 §5.2)', () => {
    for (const text of Object.values(TARGET_RULES)) expect(text).toMatch(/^[ !#-[\]-~]+$/)
  })
})

describe('C3.4 legal odd targets', () => {
  const names = [
    ...[
      'a..b',
      '...',
      '....',
      '.a',
      '..a',
      'a.',
      'a..',
      '.-',
      '~',
      '-',
      '_',
      "'",
      '!',
      '$',
      '&',
      '(',
      ')',
      '*',
      '+',
    ],
    ...[
      ',',
      '=',
      ':',
      '@',
      '::',
      'a:b@c',
      '"',
      '<',
      '>',
      '[',
      ']',
      '^',
      '`',
      '{',
      '|',
      '}',
      '{id}',
      "it's",
      'a=b&c',
    ],
    ...[
      '%20',
      '%21',
      '%22',
      '%23',
      '%24',
      '%25',
      '%26',
      '%27',
      '%2A',
      '%2B',
      '%2C',
      '%3A',
      '%3C',
      '%3F',
      '%40',
    ],
    ...[
      '%5B',
      '%5E',
      '%60',
      '%7B',
      '%7C',
      '%C3%A9',
      '%E2%82%AC',
      '%F0%9F%98%80',
      '100%25',
      '%25x',
      '%25%20',
      '%25u',
    ],
  ]
  const queries = ['', '?', '??', '?a=b&c=\'{}|^`<>"[]', '?x=\\..\\;%2e%2e/%00%zz//', '?x=/api/1.0/b/OTHER']

  it('arrive byte for byte, 200 and more of them', () => {
    const targets = names.flatMap((name) => queries.map((query) => `/api/1.0/${name}/x${name}x${query}`))
    expect(targets.length).toBeGreaterThan(200)
    for (const raw of targets) {
      const target = parse(raw)
      expect(target.path + target.query).toBe(raw)
    }
  })

  it('arrive byte for byte in any mixture, and with any query that a request line can hold', () => {
    const segment = fc
      .array(fc.constantFrom(...names), { minLength: 2, maxLength: 6 })
      .map((parts) => parts.join('~'))
    const query = fc
      .string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)) })
      .map((text) => `?${text.replaceAll('#', '')}`)
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1 }), query, (segments, text) => {
        const raw = `/${segments.join('/')}${text}`
        const target = parse(raw)
        expect(target.path + target.query).toBe(raw)
        expect(target.segments).toEqual(segments)
      }),
    )
  })
})

describe('C3.4 whatever is sent', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      '/',
      '.',
      '..',
      '%',
      '%2',
      '%25',
      '%2e',
      '%2F',
      '%5c',
      '\\',
      ';',
      '#',
      '?',
      'a',
      '%41',
      '%c3%a9',
      '%C0%AF',
    ),
    fc.string({ unit: 'binary-ascii', maxLength: 3 }),
    fc.integer({ min: 0, max: 255 }).map((byte) => `%${byte.toString(16).padStart(2, '0')}`),
  )
  const anything = fc.array(piece, { maxLength: 12 }).map((pieces) => `/${pieces.join('')}`)

  it('is refused as a bad target, or has a canonical path that parses to itself', () => {
    fc.assert(
      fc.property(anything, (raw) => {
        let target: RequestTarget
        try {
          target = parse(raw)
        } catch (thrown) {
          expect(thrown).toMatchObject({ code: 'bad_target' })
          return
        }
        const again = parse(target.path)
        expect(again).toMatchObject({ path: target.path, segments: target.segments, query: '' })
        expect(target.path).toBe(`/${target.segments.join('/')}`)
      }),
      { numRuns: 5000 },
    )
  })

  it('never decodes to a separator, a dot segment or a control, nor means another path to a URL parser', () => {
    fc.assert(
      fc.property(anything, (raw) => {
        let target: RequestTarget
        try {
          target = parse(raw)
        } catch {
          return
        }
        for (const segment of target.segments) {
          const text = decodeSegment(segment)
          expect(text).not.toMatch(/[/\\;\p{Cc}]|^\.{0,2}$/u)
          expect(text).not.toMatch(/%[0-9a-f]{2}/i)
        }
        const seen = new URL(`http://upstream.test${target.path}`).pathname
        expect(decodeURIComponent(seen)).toBe(decodeURIComponent(target.path))
      }),
      { numRuns: 5000 },
    )
  })
})

describe('C3.4 the trailing slash', () => {
  it('is allowed once below /connect/, and is not part of the canonical path', () => {
    expect(parse('/connect/token/').path).toBe('/connect/token')
    expect(parse('/%63onnect/token/?a').path).toBe('/connect/token')
    expect(parse('/connect/token/').segments).toEqual(['connect', 'token'])
  })

  it('is refused twice, on /connect/ itself, and everywhere else', () => {
    for (const raw of [
      '/connect/token//',
      '/connect/',
      '/connect//',
      '/connected/a/',
      '/api/1.0/u/connect/userinfo/',
    ])
      expect(faultOf(raw).facts.say, raw).toBe(TARGET_RULES.empty)
  })

  it('follows the path of an auth_url that has one', () => {
    const nested = compileAuthorities(['https://login.example.test/id/'])
    expect(parseRequestTarget('/id/connect/token/', nested).path).toBe('/id/connect/token')
    expect(() => parseRequestTarget('/connect/token/', nested)).toThrow(Fault)
  })
})

describe('C3.6 the forms of a target', () => {
  it('accepts the absolute form of a known authority, whatever its case, trailing dot or default port', () => {
    const known = [
      ...[
        'http://127.0.0.1:8080',
        'HTTP://127.0.0.1:8080',
        'https://api.example.test',
        'https://API.Example.TEST',
      ],
      ...['https://api.example.test.', 'https://api.example.test:443', 'https://api.example.test.:443'],
      ...['https://api.example.test:', 'http://api.example.test', 'http://api.example.test:80'],
    ]
    for (const origin of known) {
      expect(parse(`${origin}/a/%62?c=d`), origin).toMatchObject({ path: '/a/b', query: '?c=d' })
      expect(parse(origin).path, origin).toBe('/')
      expect(parse(`${origin}?x`), origin).toMatchObject({ path: '/', query: '?x' })
    }
  })

  it('refuses every other authority', () => {
    const unknown = [
      ...[
        'http://evil.test/',
        'http://127.0.0.1/',
        'http://127.0.0.1:8081/',
        'http://127.0.0.1:08080/',
        'http://',
      ],
      ...['http://127.1:8080/', 'http://u@127.0.0.1:8080/', 'http://127.0.0.1:8080@evil.test/', 'http:///a'],
      ...['https://api.example.test..', 'https://api%2eexample.test/', 'http://127.0.0.1:8080.evil.test/'],
      ...['https://api.example.test:80/', 'https://xapi.example.test/'],
    ]
    for (const raw of unknown) expect([raw, faultOf(raw).code]).toEqual([raw, 'bad_authority'])
  })

  it('holds the path of an absolute form to the same rules', () => {
    for (const rest of ['//a', '/a/', '\\a', '/a;b', '/%2e%2e', '/..'])
      expect(faultOf(`http://127.0.0.1:8080${rest}`).code, rest).toBe('bad_target')
  })

  it('answers an asterisk as outside every door', () => {
    expect(faultOf('*').code).toBe('outside')
    expect(faultOf('*a').code).toBe('bad_target')
  })

  it('C4.1 refuses a target over the limit, and takes one at the limit', () => {
    expect(faultOf(`/${'a'.repeat(10)}`, 10).code).toBe('target_too_long')
    expect(parseRequestTarget(`/${'a'.repeat(9)}`, authorities, 10).path).toHaveLength(10)
  })

  it('knows IPv6 authorities by their canonical spelling', () => {
    const six = compileAuthorities(['http://[::1]:8080'])
    expect(parseRequestTarget('http://[::1]:8080/a', six).path).toBe('/a')
    expect(() => parseRequestTarget('http://[::2]:8080/a', six)).toThrow(Fault)
  })
})
