import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MalformedResponse, type ResponseHead } from '../../../src/gateway/upstream/response-head.ts'
import { ResponseParser } from '../../../src/gateway/upstream/response-parser.ts'

interface Reading {
  readonly head: ResponseHead | undefined
  readonly body: string
  /** What the sink was told, pieces of the body in a row as one. */
  readonly told: readonly string[]
  /** Where it ended, of all bytes. */
  readonly at: number
  readonly ended: boolean
  readonly persistent: boolean
}

/** Reads bytes in pieces that end at `cuts`, each in a buffer of its own with other bytes around it, that is wiped then. */
function read(
  bytes: Buffer,
  { requested = 'GET', cuts = [] as readonly number[], finish = true } = {},
): Reading {
  const told: string[] = []
  const pieces: Buffer[] = []
  let head: ResponseHead | undefined
  const tell = (what: string): void => {
    if (told.at(-1) !== what) told.push(what)
  }
  const sink = {
    onHead: (found: ResponseHead) => (tell('head'), (head = found)),
    onBody: (all: Buffer, start: number, end: number) => (
      tell('body'),
      pieces.push(Buffer.from(all.subarray(start, end)))
    ),
    onEnd: () => void told.push('end'),
  }
  const parser = new ResponseParser(sink, requested)
  const places = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort(
    (a, b) => a - b,
  )
  let at = 0
  for (const [index, start] of places.entries()) {
    const end = places[index + 1]
    if (end === undefined || parser.ended) break
    const around = Buffer.concat([
      Buffer.from('1\r\n'),
      bytes.subarray(start, end),
      Buffer.from('\n0\r\n\r\n'),
    ])
    at = start + parser.receive(around, 3, 3 + end - start) - 3
    around.fill('?')
  }
  if (finish) parser.finish()
  const { ended, persistent } = parser
  return { head, body: Buffer.concat(pieces).toString('latin1'), told, at, ended, persistent }
}

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')
const OK = 'HTTP/1.1 200 OK\r\n'
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`
const SMALL = `${OK}Content-Length: 2\r\n\r\nok`

/** Any response, with what it should be read as. */
const body = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
  fc.constantFrom('', '\r\n', '0\r\n\r\n', SMALL, `${OK}\r\n`),
)
const extension = fc.constantFrom('', ';a', ';a=b', ';a="b;c"', ';a="\\"";b', ';a;b=c')
const trailers = fc.constantFrom('', 'A: b\r\n', 'Expires: now\r\nSet-Cookie: a=1\r\n')
const informational = fc.constantFrom(
  '',
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\nHTTP/1.1 102\r\n\r\n',
)
const inChunks = fc
  .tuple(fc.array(fc.tuple(body, extension, fc.boolean()), { maxLength: 5 }), extension, trailers)
  .map(([chunks, last, lines]) => {
    const filled = chunks.filter(([piece]) => piece !== '')
    const text = filled.map(([piece, more, padded]) => {
      const size = piece.length.toString(16)
      return `${padded ? `00${size.toUpperCase()}` : size}${more}\r\n${piece}\r\n`
    })
    return {
      lines: 'Transfer-Encoding: chunked\r\n',
      wire: `${text.join('')}0${last}\r\n${lines}\r\n`,
      body: filled.map(([piece]) => piece).join(''),
    }
  })
const byLength = body.map((text) => ({
  lines: `Content-Length: ${text.length}\r\n`,
  wire: text,
  body: text,
}))
const framed = fc
  .tuple(informational, fc.constantFrom('', 'A: b\r\nSet-Cookie: c\r\n'), fc.oneof(inChunks, byLength))
  .map(([before, more, { lines, wire, body: expected }]) => ({
    bytes: `${before}${OK}${more}${lines}\r\n${wire}`,
    expected,
    // T2.8: nobody asked for a 1xx, and who sends it may send more.
    persistent: before === '',
  }))
const cuts = fc.array(fc.nat(4000), { maxLength: 30 })

describe('a response in pieces', () => {
  it('RFC 9112 §6 is read as in one piece, wherever it is cut, and nothing behind its end is touched', () => {
    fc.assert(
      fc.property(framed, body, cuts, ({ bytes, expected, persistent }, behind, places) => {
        const all = latin1(bytes + behind)
        const whole = read(all)
        expect(whole).toMatchObject({ body: expected, at: bytes.length, ended: true, persistent })
        expect(whole.told.join()).toMatch(/^head(,body)?,end$/)
        expect(read(all, { cuts: places })).toEqual(whole)
        expect(read(all, { cuts: Array.from(all.keys()) })).toEqual(whole)
      }),
      { numRuns: 200 },
    )
  })

  it('RFC 9112 §6.3 is whole at its last byte, and not before', () => {
    fc.assert(
      fc.property(framed, fc.nat(), ({ bytes }, place) => {
        const short = latin1(bytes).subarray(0, place % bytes.length)
        const { ended, told } = read(short)
        expect(ended).toBe(false)
        expect(told).not.toContain('end')
        expect(read(latin1(bytes), { finish: false }).ended).toBe(true)
      }),
      { numRuns: 200 },
    )
  })

  it('RFC 9112 §6.3 without framing lasts as long as the connection, and that is used no more', () => {
    fc.assert(
      fc.property(body, cuts, (text, places) => {
        const all = latin1(`${OK}\r\n${text}`)
        const whole = read(all, { cuts: places })
        expect(whole).toMatchObject({ body: text, at: all.length, ended: true, persistent: false })
        expect(read(all, { cuts: places, finish: false }).ended).toBe(false)
      }),
    )
  })

  it.each([
    ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'],
    ['HEAD', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['HEAD', 'HTTP/1.1 200 OK\r\n\r\n'],
    ['GET', 'HTTP/1.1 204 No Content\r\n\r\n'],
    ['GET', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n'],
  ])('RFC 9110 §6.4.1 an answer to %s ends with its head: %j', (requested, head) => {
    for (const cut of Array.from(latin1(head).keys())) {
      const found = read(latin1(`${head}hello`), { requested, cuts: [cut], finish: false })
      expect(found).toMatchObject({ body: '', at: head.length, ended: true, persistent: false })
      expect(found.told).toEqual(['head', 'end'])
    }
  })

  it('RFC 9112 §9.3 asks for the end of the connection where it says so', () => {
    const closing = `${OK}Connection: close\r\nContent-Length: 0\r\n\r\n`
    expect(read(latin1(closing))).toMatchObject({ ended: true, persistent: false })
  })
})

const inBothWays = (bytes: string): void => {
  const all = latin1(bytes)
  expect(() => read(all)).toThrow(MalformedResponse)
  expect(() => read(all, { cuts: Array.from(all.keys()) })).toThrow(MalformedResponse)
}

it('T5.1 chunks of one byte each are told as one piece: as many buffers would weigh a hundred times what they hold', () => {
  const pieces: string[] = []
  const sink = {
    onHead: () => undefined,
    onBody: (all: Buffer, start: number, end: number) => pieces.push(all.toString('latin1', start, end)),
    onEnd: () => pieces.push('end'),
  }
  const all = latin1(`${CHUNKED}${'1\r\na\r\n2\r\nbc\r\n'.repeat(4000)}0\r\n\r\n`)
  const parser = new ResponseParser(sink, 'GET')
  parser.receive(all, parser.receive(all, 0, 10_001), all.length)
  expect(pieces).toHaveLength(3)
  expect(pieces.join('')).toBe(`${'abc'.repeat(4000)}end`)
})

describe('bytes that are no response', () => {
  it.each([
    ['nothing of HTTP', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['an empty line before it', `\r\n${SMALL}`],
    ['lines that end with LF alone', 'HTTP/1.1 200 OK\nContent-Length: 0\n\n'.padEnd(17_000, 'x')],
    ['lines that end with LF alone, with nothing behind', 'HTTP/1.1 200 OK\nContent-Length: 0\n\n'],
    ['a status line that ends with LF alone', 'HTTP/1.1 200 OK\n'],
    ['an empty line that is LF alone', `${OK}Content-Length: 0\r\n\n`],
    ['an LF among CR LFs', `${OK}A: b\nContent-Length: 2\r\n\r\nok`],
    ['a CR among CR LFs', `${OK}A: b\rContent-Length: 2\r\n\r\nok`],
    ['a fold', `${OK}A: b\r\n c\r\n\r\n`],
    ['101, which nobody asked for', 'HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\n'],
    ['a bad 1xx before a good answer', `HTTP/1.1 103 E\r\nA : b\r\n\r\n${SMALL}`],
    ['a 1xx that is not registered, which others read as the answer', `HTTP/1.1 110 X\r\n\r\n${SMALL}`],
    ['a 1xx with a length', `HTTP/1.1 103 E\r\nContent-Length: 0\r\n\r\n${SMALL}`],
    ['a 1xx with chunks', `HTTP/1.1 100 C\r\nTransfer-Encoding: chunked\r\n\r\n${SMALL}`],
    ['a 1xx that ends the connection', `HTTP/1.1 100 C\r\nConnection: close\r\n\r\n${SMALL}`],
    ['a 1xx of HTTP/1.0', `HTTP/1.0 100 C\r\n\r\n${SMALL}`],
    ['a tab beside the length', `${OK}Content-Length: 2\t\r\n\r\nok`],
    ['a tab beside the coding', `${OK}Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n`],
  ])('T2.3 %s', (_what, bytes) => inBothWays(bytes))

  it.each([
    ['a sign', '+1', 'a'],
    ['a minus', '-1', 'a'],
    ['0x', '0x1', 'a'],
    ['a blank before it', ' 1', 'a'],
    ['a blank behind it', '1 ', 'a'],
    ['no digits', '', 'a'],
    ['an extension alone', ';a', 'a'],
    ['no hexadecimal', 'g', 'a'],
    ['a comma', '1,1', 'a'],
    ['an underscore', '1_0', 'a'],
    ['13 digits', '0000000000001', 'a'],
    ['2^64 + 1', '10000000000000001', 'a'],
    ['no semicolon before its extension', '1 a', 'a'],
    ['NUL in its extension', '1;\0', 'a'],
    ['a carriage return in its extension', '1;a\rb', 'a'],
    ['an extension without name', '1;', 'a'],
    ['a blank before its extension', '1 ;a', 'a'],
    ['a blank in its extension', '1; a', 'a'],
    ['an extension whose quotes do not end', '1;a="b', 'a'],
    ['text behind the quotes of its extension', '1;a="b"c', 'a'],
    ['NUL in the quotes of its extension', '1;a="\\\0"', 'a'],
    ['a body longer than it says', '1', 'ab'],
    ['a body with a line end in it', '1', '\r\n'],
  ])('T2.3 a chunk size with %s', (_what, size, piece) => {
    inBothWays(`${CHUNKED}${size}\r\n${piece}\r\n0\r\n\r\n`)
    inBothWays(`${CHUNKED}3\r\nabc\r\n${size}\r\n${piece}\r\n0\r\n\r\n`)
  })

  it.each([
    ['LF behind the size', '1\na\r\n0\r\n\r\n'],
    ['LF behind the data', '1\r\na\n0\r\n\r\n'],
    ['CR behind the data', '1\r\na\rx0\r\n\r\n'],
    ['LF behind the last chunk', '0\n\r\n'],
    ['LF behind a trailer', '0\r\nA: b\n\r\n'],
    ['LF at the end', '0\r\n\n'],
    ['a trailer without colon', '0\r\nA\r\n\r\n'],
    ['a trailer with a space before its colon', '0\r\nA : b\r\n\r\n'],
    ['a folded trailer', '0\r\nA: b\r\n c\r\n\r\n'],
    ['NUL in a trailer', '0\r\nA: \0\r\n\r\n'],
    ['another response as trailers', `0\r\n${SMALL}`],
    ['a length as trailer', '0\r\nContent-Length: 0\r\n\r\n'],
    ['a coding as trailer', '0\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['a trailer that ends the connection', '0\r\nConnection: close\r\n\r\n'],
  ])('T2.3 chunks with %s', (_what, wire) => inBothWays(CHUNKED + wire))

  it('RFC 9112 §7.1.2 trailers are dropped', () => {
    const claims = 'Content-Type: text/html\r\nSet-Cookie: a=1\r\n__proto__: x\r\n'
    const { head, body: found } = read(latin1(`${CHUNKED}1\r\na\r\n0\r\n${claims}\r\n`))
    expect(head?.headers).toEqual({ 'transfer-encoding': 'chunked' })
    expect(found).toBe('a')
  })
})

describe('bytes without end', () => {
  const headOf = (size: number): string => `${OK}A: ${'x'.repeat(size - OK.length - 7)}\r\n\r\n`

  it('T5.1 a head may be 16 KiB long and no longer, however it is cut', () => {
    const most = 16 * 1024 + 4
    const last = Array.from({ length: 8 }, (_, index) => most - index)
    for (const places of [[], last, [1], Array.from({ length: most }, (_, index) => index)]) {
      expect(read(latin1(headOf(most)), { cuts: places, finish: false }).told).toEqual(['head'])
      expect(() => read(latin1(headOf(most + 1)), { cuts: places })).toThrow('too large')
    }
  })

  it.each([
    ['a head', OK + 'A: b\r\n'.repeat(20_000)],
    ['a chunk extension', `${CHUNKED}1;${'x'.repeat(100_000)}`],
    ['a chunk size', CHUNKED + '0'.repeat(100_000)],
    ['a trailer', `${CHUNKED}0\r\nA: ${'x'.repeat(100_000)}`],
    ['trailers', `${CHUNKED}0\r\n${'A: b\r\n'.repeat(20_000)}`],
    ['bytes behind a chunk', `${CHUNKED}1\r\n${'x'.repeat(100_000)}`],
  ])('T5.1 %s: given up after some KiB', (_what, bytes) => {
    for (const size of [1, 1000]) {
      const ends = Array.from({ length: 34_000 / size }, (_, index) => (index + 1) * size)
      expect(() => read(latin1(bytes).subarray(0, 34_000), { cuts: ends })).toThrow(MalformedResponse)
    }
  })
})
