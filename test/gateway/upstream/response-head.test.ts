import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  MalformedResponse,
  parseResponseHead,
  HeaderLineCache,
  type ResponseHead,
} from '../../../src/gateway/upstream/response-head.ts'

const OK = 'HTTP/1.1 200 OK'

const read = (lines: readonly string[], requested = 'GET'): ResponseHead =>
  parseResponseHead(lines.map((line) => `${line}\r\n`).join(''), requested)

const framing = (...lines: string[]) => read([OK, ...lines]).framing
const persistent = (line: string, ...lines: string[]) => read([line, ...lines]).persistent

describe('a status line', () => {
  it.each([
    ['HTTP/1.1 200 OK', 200],
    ['HTTP/1.0 404 Not Found', 404],
    ['HTTP/1.1 200 ', 200],
    ['HTTP/1.1 200', 200],
    ['HTTP/1.1 599 any \t text \xe4', 599],
    ['HTTP/1.1 100 Continue', 100],
    ['HTTP/1.1 999 as it comes: C8.4 judges it', 999],
  ])('RFC 9112 §4 %j is one', (line, status) => {
    expect(read([line]).status).toBe(status)
  })

  it.each([
    'HTTP/2.0 200 OK',
    'HTTP/1.2 200 OK',
    'HTTP/1.10 200 OK',
    'HTTP/0.9 200 OK',
    'http/1.1 200 OK',
    'HTTP/1.1  200 OK',
    'HTTP/1.1\t200 OK',
    ' HTTP/1.1 200 OK',
    'HTTP/1.1 20 OK',
    'HTTP/1.1 2000 OK',
    'HTTP/1.1 +20 OK',
    'HTTP/1.1 2e2 OK',
    'HTTP/1.1 000 None',
    'HTTP/1.1 099 None',
    'HTTP/1.1 200 a\0b',
    'HTTP/1.1 200 a\x1bb',
    'HTTP/1.1 200 a\x7fb',
    'HTTP/1.1 200 a\rb',
    'HTTP/1.1 200OK',
    'HTTP/1.1200 OK',
    'ICY 200 OK',
    '',
  ])('T2.3 %j is none', (line) => {
    expect(() => read([line])).toThrow(MalformedResponse)
  })
})

describe('header lines', () => {
  it('RFC 9110 §5.3 of lines that are no lists the first counts', () => {
    const { headers } = read([OK, 'ETag: "1"', 'etag: "2"', 'Retry-After: 3', 'Retry-After: 4'])
    expect(headers).toEqual({ etag: '"1"', 'retry-after': '3' })
  })

  it('RFC 9110 §5.3 names are folded to lower case, lines of one name joined, cookies kept apart', () => {
    const { headers } = read([OK, 'ETag: 1', 'X-Own:a', 'x-OWN:  b\t', 'Set-Cookie: a=1', 'set-cookie: b=2'])
    expect(headers).toEqual({ etag: '1', 'x-own': 'a, b', 'set-cookie': ['a=1', 'b=2'] })
  })

  it('T4.3 names that every object inherits are left out, and nothing is polluted', () => {
    const { headers } = read([OK, '__proto__: a', 'constructor: b', 'Constructor: c', 'toString: d'])
    expect(Object.keys(headers)).toEqual(['tostring'])
    expect(headers).toEqual({ tostring: 'd' })
    expect(Object.getPrototypeOf(headers)).toBe(Object.prototype)
    expect(({} as Record<string, unknown>)['a']).toBeUndefined()
  })

  it.each([
    ['no colon', 'Name'],
    ['a space before the colon', 'Name : a'],
    ['a tab before the colon', 'Name\t: a'],
    ['an empty name', ': a'],
    ['a fold', ' folded: a'],
    ['a fold by tab', '\tfolded: a'],
    ['a name that is no token', 'Na(me: a'],
    ['a name beyond ASCII', 'N\xe4me: a'],
    ['NUL in a name', 'Na\0me: a'],
    ['NUL in a value', 'Name: a\0b'],
    ['a carriage return in a value', 'Name: a\rb'],
    ['a line feed in a value', 'Name: a\nOther: b'],
    ['ESC in a value', 'Name: \x1b[2J'],
    ['DEL in a value', 'Name: \x7f'],
    ['an empty line', ''],
  ])('T2.3 %s makes it no head', (_what, line) => {
    expect(() => read([OK, line])).toThrow(MalformedResponse)
    expect(() => read([OK, 'A: b', line, 'C: d'])).toThrow(MalformedResponse)
  })

  it.each(['Content-Length', 'Content-Type', 'Transfer-Encoding'])(
    'T2.3 %s stands once, or the next recipient reads the other one',
    (name) => {
      for (const value of ['5', 'chunked']) {
        const line = `${name}: ${value}`
        expect(() => read([OK, line, line])).toThrow(MalformedResponse)
        expect(() => read([OK, line, 'A: b', line.toLowerCase()])).toThrow(MalformedResponse)
      }
    },
  )

  it('RFC 9110 §5 any head of tokens and visible values is read as it was written', () => {
    const name = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/)
    const value = fc.stringMatching(/^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]{0,9}[\x21-\x7e])?)?$/)
    const blank = fc.constantFrom('', ' ', '\t ', '  ')
    const own = fc.tuple(name, value, blank, blank).map(([key, ...rest]) => [`x-${key}`, ...rest] as const)
    fc.assert(
      fc.property(fc.array(own, { maxLength: 12 }), (lines) => {
        const { headers } = read([OK, ...lines.map(([key, text, a, b]) => `${key}:${a}${text}${b}`)])
        const expected: Record<string, string> = {}
        for (const [key, text] of lines) {
          const folded = key.toLowerCase()
          expected[folded] = folded in expected ? `${expected[folded]}, ${text}` : text
        }
        expect(headers).toEqual(expected)
      }),
    )
  })
})

describe('how a body ends', () => {
  it('RFC 9112 §6.3 by length, by chunks, or with the connection', () => {
    expect(framing('Content-Length: 0')).toBe(0)
    expect(framing('Content-Length: 5 ')).toBe(5)
    expect(framing('Content-Length: 0005')).toBe(5)
    expect(framing('Content-Length: 999999999999999')).toBe(999_999_999_999_999)
    expect(framing('Transfer-Encoding: chunked')).toBe('chunked')
    expect(framing('transfer-encoding: Chunked ')).toBe('chunked')
    expect(framing()).toBe('close')
  })

  const WRONG = [
    ...['', '+2', '-1', '0x2', '2e1', '2.0', '2, 2', '2,2', '2 2', '2;', '\xb2', '1000000000000000'].map(
      (length) => [`Content-Length: ${length}`],
    ),
    ...['', 'identity', 'gzip, chunked', 'chunked, chunked', ',chunked', 'chunked,', 'chunked;a', 'x'].map(
      (coding) => [`Transfer-Encoding: ${coding}`],
    ),
    ['Content-Length: 2\t'],
    ['Transfer-Encoding:\tchunked'],
    ['Content-Length: 2', 'Transfer-Encoding: chunked'],
    ['Transfer-Encoding: chunked', 'Content-Length: 2'],
    ['Transfer-Encoding: identity', 'Content-Length: 2'],
  ].map((lines) => [lines] as const)

  it.each(WRONG)('T2.3 %j is no framing, whether there is a body or not', (lines) => {
    expect(() => framing(...lines)).toThrow(MalformedResponse)
    expect(() => read([OK, ...lines], 'HEAD')).toThrow(MalformedResponse)
    for (const status of [103, 204, 304])
      expect(() => read([`HTTP/1.1 ${status} X`, ...lines])).toThrow(MalformedResponse)
  })

  it('RFC 9112 §6.1 HTTP/1.0 has no chunks', () => {
    expect(() => read(['HTTP/1.0 200 OK', 'Transfer-Encoding: chunked'])).toThrow(MalformedResponse)
  })

  it.each([
    ['HEAD', OK],
    ['GET', 'HTTP/1.1 204 X'],
    ['GET', 'HTTP/1.1 304 X'],
    ['GET', 'HTTP/1.1 103 X'],
  ])('RFC 9110 §6.4.1 an answer to %s of %s has no body, whatever it declares', (requested, line) => {
    for (const lines of [[], ['Content-Length: 5'], ['Transfer-Encoding: chunked']])
      expect(read([line, ...lines], requested).framing).toBe(0)
  })

  it('RFC 9110 §15.3.6 a 205 is framed as any other', () => {
    expect(read(['HTTP/1.1 205 X', 'Content-Length: 0']).framing).toBe(0)
    expect(read(['HTTP/1.1 205 X']).framing).toBe('close')
  })
})

describe('whether the connection persists', () => {
  it('RFC 9112 §9.3 in HTTP/1.1 unless it says close, in HTTP/1.0 if it says keep-alive', () => {
    for (const value of ['', 'keep-alive', 'Keep-Alive', 'x', 'x, keep-alive', 'closed'])
      expect(persistent(OK, `Connection: ${value}`), value).toBe(true)
    for (const value of ['close', 'Close', 'x , CLOSE', 'keep-alive, close', 'close,keep-alive'])
      expect(persistent(OK, `Connection: ${value}`), value).toBe(false)
    expect(persistent(OK, 'Connection: keep-alive', 'Connection: close')).toBe(false)
    expect(persistent(OK)).toBe(true)
    const old = 'HTTP/1.0 200 OK'
    for (const value of ['keep-alive', 'Keep-Alive', 'x, keep-alive'])
      expect(persistent(old, `Connection: ${value}`), value).toBe(true)
    for (const value of ['', 'close', 'x', 'keep-alive, close'])
      expect(persistent(old, `Connection: ${value}`), value).toBe(false)
    expect(persistent(old)).toBe(false)
  })

  it('T2.8 not behind an answer to HEAD, of 204 or of 304: a body may come all the same', () => {
    for (const lines of [[], ['Content-Length: 0'], ['Content-Length: 5'], ['Connection: keep-alive']]) {
      expect(read([OK, ...lines], 'HEAD').persistent).toBe(false)
      for (const status of ['204', '304'])
        expect(persistent(`HTTP/1.1 ${status} X`, ...lines), status).toBe(false)
    }
  })
})

it.each([
  ['many lines', 'a:\r\n'.repeat(4000)],
  ['one long line', `a: ${'b'.repeat(16_000)}\r\n`],
  ['one long blank', `a:${' '.repeat(16_000)}\r\n`],
  ['a name without end', 'a'.repeat(16_000)],
  ['many lines and a bad end', `${'a: b\r\n'.repeat(2600)}a : b\r\n`],
  ['many cookies', 'set-cookie: a\r\n'.repeat(1000)],
])(
  'T5.1 16 KiB of %s are read or refused, and soon: twenty of them within the time of a test',
  (_what, lines) => {
    for (let time = 0; time < 20; time += 1) {
      try {
        parseResponseHead(`${OK}\r\n${lines}`, 'GET')
      } catch (error) {
        expect(error).toBeInstanceOf(MalformedResponse)
      }
    }
  },
)

it('C2.6 what was wrong is told without a byte of what came', () => {
  for (const bytes of ['SECRET', `${OK}\r\nA: SECRET\0\r\n`, `${OK}\r\nContent-Length: SECRET\r\n`])
    expect(() => parseResponseHead(bytes, 'GET')).toThrow(/^(?!.*SECRET)/s)
})

describe('heads that come one after the other over a connection', () => {
  const line = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.constantFrom('Server: s', 'ETag: "1"', 'X-Own: a', 'X-Own: ab', 'X-Own: ', 'x-own: a'),
    },
    fc
      .tuple(fc.constantFrom('a', 'X-Long', 'ETag'), fc.string({ maxLength: 300 }))
      .map(([name, value]) => `${name}: ${value.replaceAll(/[^ -~]/g, '')}`),
    fc.constantFrom('', ' folded', 'no colon', 'a\nb: c', 'a: b\r', 'Content-Length: 1', 'Content-Length: 2'),
  )
  const heads = fc.array(fc.array(line, { maxLength: 6 }), { maxLength: 30 })
  /** Enough that the cache takes other lines once. */
  const REPETITIONS = [1, 70]
  const outcome = (lines: readonly string[], recent?: HeaderLineCache): unknown => {
    try {
      return parseResponseHead([OK, ...lines].map((text) => `${text}\r\n`).join(''), 'GET', recent)
    } catch (error) {
      return (error as Error).message
    }
  }

  it('RFC 9112 §5 are each read as if no other had come before', () => {
    fc.assert(
      fc.property(heads, (all) => {
        const recent = new HeaderLineCache()
        for (const repetitions of REPETITIONS)
          for (const lines of all.slice(0, 3 + 27 / repetitions))
            for (let nth = 0; nth < repetitions; nth += 1)
              expect(outcome(lines, recent)).toEqual(outcome(lines))
      }),
      { numRuns: 100 },
    )
  })

  it('T2.3 a line that begins as one before is not that one', () => {
    const recent = new HeaderLineCache()
    for (let round = 0; round < 100; round += 1) {
      expect(outcome(['X-Own: a', 'X-B: 1'], recent)).toMatchObject({ headers: { 'x-own': 'a', 'x-b': '1' } })
      expect(outcome(['X-Own: ab', 'X-B: 12'], recent)).toMatchObject({
        headers: { 'x-own': 'ab', 'x-b': '12' },
      })
      expect(outcome(['X-Own: a\r', 'X-B: 1'], recent)).toBe('a header line is malformed')
    }
  })
})
