import { describe, expect, it } from 'vitest'
import {
  checkHead,
  declaredBody,
  hasNoContent,
  type Head,
  SUPPORTED_METHODS,
} from '../../../src/base/http/head/head.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'

type Line = readonly [name: string, value: string]

const HOST: Line = ['Host', 'api.example.test']

function headOf(lines: readonly Line[], more: Partial<Head> = {}): Head {
  const headers = Object.fromEntries(lines.map(([name, value]) => [name.toLowerCase(), value]))
  return {
    method: 'GET',
    rawTarget: '/',
    httpVersion: '1.1',
    rawHeaders: lines.flat(),
    headers,
    remoteAddress: '192.0.2.1',
    ...more,
  }
}

function faultOf(lines: readonly Line[], more: Partial<Head> = {}): Fault {
  try {
    checkHead(headOf(lines, more))
  } catch (thrown) {
    if (thrown instanceof Fault) return thrown
    throw thrown
  }
  throw new Error(`not refused: ${JSON.stringify(lines)}`)
}

describe('C3.6 Host', () => {
  it('is accepted in every well-formed spelling, ours or not', () => {
    const names = [
      'a',
      'API.Example.Test',
      'a.test.',
      'a_b-c~d',
      '127.0.0.1',
      '[::1]',
      '[2001:DB8::1]',
      '[::ffff:1.2.3.4]',
    ]
    for (const name of names)
      for (const port of ['', ':', ':80', ':65535'])
        expect(checkHead(headOf([['host', name + port]])), name + port).toBe(0)
  })

  it('is refused when missing, in HTTP/1.0 too', () => {
    expect(faultOf([]).code).toBe('bad_host')
    expect(faultOf([['Accept', '*/*']], { httpVersion: '1.0' }).code).toBe('bad_host')
  })

  it('is refused when repeated, equal or not, in any case', () => {
    expect(faultOf([HOST, HOST]).code).toBe('bad_host')
    expect(faultOf([HOST, ['hOsT', 'evil.test']]).code).toBe('bad_host')
    expect(faultOf([['Host', ''], HOST]).code).toBe('bad_host')
  })

  it('is refused when malformed', () => {
    const malformed = [
      ...[
        '',
        ':80',
        'a b',
        'a,b',
        'a, b',
        'a/b',
        'http://a',
        'u@a',
        'a:b',
        'a:-1',
        'a:65536',
        'a:123456',
        'a:80:80',
      ],
      ...[
        '::1',
        '[::1',
        '::1]',
        '[]',
        '[:::]',
        '[a.test]',
        '[::1]a',
        '[fe80::1%25eth0]',
        'a%2eb',
        'a\\b',
        'a\tb',
        'a#',
      ],
      ...['é.test', 'a?b', 'a;b', "a'b"],
    ]
    for (const value of malformed)
      expect([value, faultOf([['Host', value]]).code]).toEqual([value, 'bad_host'])
  })
})

describe('C3.6 version and method', () => {
  it('accepts HTTP/1.0 and 1.1 and refuses every other version of a text request line', () => {
    for (const httpVersion of ['1.0', '1.1']) expect(checkHead(headOf([HOST], { httpVersion }))).toBe(0)
    for (const httpVersion of ['0.9', '1.2', '2.0', '3.0', ''])
      expect(faultOf([HOST], { httpVersion }).code).toBe('unsupported_http_version')
  })

  it('refuses TRACE, naming the methods that exist, and CONNECT', () => {
    const trace = faultOf([HOST], { method: 'TRACE' })
    expect(trace.code).toBe('trace_refused')
    expect(trace.facts.allow).toEqual(SUPPORTED_METHODS)
    expect(faultOf([HOST], { method: 'CONNECT' }).code).toBe('connect_refused')
  })
})

describe('C3.6 headers that stand once', () => {
  it('refuses a repeated Authorization or Content-Type line, and names it', () => {
    for (const name of ['Authorization', 'Content-Type']) {
      const fault = faultOf([HOST, [name, 'a'], [name.toUpperCase(), 'a']])
      expect(fault.code).toBe('repeated_header')
      expect(fault.facts.say).toContain(name.toLowerCase())
    }
  })

  it('lets other headers repeat, those of the same length too', () => {
    const others = ['Accept', 'Date', 'X-Fourteen-Chr', 'X-Thirteen-Ch', 'X-Seventeen-Chars', 'Connection']
    for (const name of others) expect(checkHead(headOf([HOST, [name, 'a'], [name, 'b']])), name).toBe(0)
  })
})

describe('T2.1, T2.3 framing', () => {
  const bad = (...lines: Line[]): void =>
    expect([lines, faultOf([HOST, ...lines]).code]).toEqual([lines, 'bad_framing'])

  it('tells what it declares of the body; zero length is no body (C7.4)', () => {
    const cases: readonly (readonly [readonly Line[], number | 'chunked'])[] = [
      [[], 0],
      [[['Content-Length', '0']], 0],
      [[['content-length', '00']], 0],
      [[['Content-Length', '17']], 17],
      [[['Transfer-Encoding', 'chunked']], 'chunked'],
      [[['transfer-encoding', 'Chunked']], 'chunked'],
    ]
    for (const [lines, declared] of cases) {
      const head = headOf([HOST, ...lines])
      expect(checkHead(head)).toBe(declared)
      expect(declaredBody(head)).toBe(declared)
    }
  })

  it('refuses a length beside a transfer coding', () => {
    bad(['Content-Length', '5'], ['Transfer-Encoding', 'chunked'])
    bad(['Transfer-Encoding', 'chunked'], ['content-length', '0'])
  })

  it('refuses every transfer coding but chunked, alone', () => {
    for (const value of [
      '',
      'gzip, chunked',
      'chunked, chunked',
      ',chunked',
      'chunked;a=b',
      'identity',
      'xchunked',
      'chunked ',
    ])
      bad(['Transfer-Encoding', value])
  })

  it('refuses chunks in HTTP/1.0 (RFC 9112 §6.1)', () => {
    expect(faultOf([HOST, ['Transfer-Encoding', 'chunked']], { httpVersion: '1.0' }).code).toBe('bad_framing')
  })

  it('refuses repeated framing lines, equal ones too', () => {
    bad(['Content-Length', '5'], ['Content-Length', '5'])
    bad(['Transfer-Encoding', 'chunked'], ['transfer-encoding', 'chunked'])
  })

  it('refuses a length that is no plain number', () => {
    for (const value of ['', '-1', '+1', '1,1', '0x10', '1e3', '1.0', ' ', '9'.repeat(16)])
      bad(['Content-Length', value])
  })

  it('refuses framing names spelled with an underscore', () => {
    bad(['Transfer_Encoding', 'chunked'])
    bad(['CONTENT_LENGTH', '5'])
  })

  it('refuses Connection that names framing or Host, in any case, spelling, place or line', () => {
    for (const name of ['Content-Length', 'transfer-encoding', 'HOST', 'content_length'])
      for (const value of [name, `close, ${name}`, `,${name} ,x`, `keep-alive,\t${name}`])
        bad(['Connection', value])
    bad(['Connection', 'close'], ['connection', 'Host'])
  })

  it('lets Connection name anything else', () => {
    for (const value of ['close', 'keep-alive, Upgrade', 'Authorization', 'X-Postern-Subject, TE', ''])
      expect(checkHead(headOf([HOST, ['Connection', value]]))).toBe(0)
  })
})

describe('RFC 9110 §15.3.6 statuses without content', () => {
  it('RFC 9110 §15.3.6 are 204, 205 and 304', () => {
    expect([200, 201, 204, 205, 206, 304, 404].filter(hasNoContent)).toEqual([204, 205, 304])
  })
})
