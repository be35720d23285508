import fc from 'fast-check'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { followedBy, headerLine, headersOf, NO_HEADERS } from '../../../src/base/http/head/header-text.ts'
import { requestBytes, type RequestFraming } from '../../../src/gateway/upstream/request.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { anyText } from '../../support/any-text.ts'
import { exchangeRaw } from '../../support/raw-http.ts'

interface Parts {
  readonly method?: string
  readonly path?: string
  readonly lines?: string[]
  readonly framing?: RequestFraming
  readonly host?: string
  readonly keep?: boolean
}

/** `lines` are names and values in turn. */
function make({ method = 'GET', path = '/', lines = [], framing, host = 'up:80', keep = true }: Parts = {}) {
  let headers = NO_HEADERS
  for (let at = 0; at < lines.length; at += 2)
    headers = followedBy(headers, headerLine(lines[at]!, lines[at + 1]!))
  return requestBytes({ method, path, headers }, framing, host, keep)
}

const refuses = (parts: Parts): void => {
  let thrown: unknown
  try {
    make(parts)
  } catch (error) {
    thrown = error
  }
  expect(thrown).toBeInstanceOf(Fault)
  expect((thrown as Fault).code).toBe('internal')
}

describe('the head of a request', () => {
  it('RFC 9112 §3 is a request line, one Host, how the connection goes on, and the lines as given', () => {
    expect(make({ path: '/a?b', lines: ['accept', '*/*', 'x-own', ''] })).toBe(
      'GET /a?b HTTP/1.1\r\nhost: up:80\r\nconnection: keep-alive\r\naccept: */*\r\nx-own: \r\n\r\n',
    )
    expect(make({ keep: false })).toBe('GET / HTTP/1.1\r\nhost: up:80\r\nconnection: close\r\n\r\n')
  })

  it('RFC 9112 §3.2 has the Host that it is told, and no second one', () => {
    expect(make({ host: 'own', lines: ['a', 'b'] })).toBe(
      'GET / HTTP/1.1\r\nhost: own\r\nconnection: keep-alive\r\na: b\r\n\r\n',
    )
    refuses({ lines: ['host', 'own'] })
    refuses({ lines: ['a', 'b', 'host', 'own'] })
  })

  it('C8.2 lines are read back as they were written', () => {
    const text = followedBy(headerLine('a', 'b: c'), headerLine('d', ''))
    expect(headersOf(text)).toEqual({ a: 'b: c', d: '' })
    expect(headersOf(NO_HEADERS)).toEqual({})
  })

  it('RFC 9110 §8.6 says how long a body is, also of none where the method expects one', () => {
    const last = (parts: Parts): string | undefined => make(parts).split('\r\n').at(-3)
    expect(last({ framing: 5 })).toBe('content-length: 5')
    expect(last({ framing: 0 })).toBe('content-length: 0')
    expect(last({ framing: 'chunked' })).toBe('transfer-encoding: chunked')
    for (const method of ['POST', 'PUT', 'PATCH']) expect(last({ method })).toBe('content-length: 0')
    for (const method of ['GET', 'HEAD', 'DELETE', 'OPTIONS'])
      expect(last({ method })).toBe('connection: keep-alive')
  })

  it.each(['connection', 'content-length', 'transfer-encoding'])(
    'T2.4 %s is made here: one that is given cannot be sent',
    (name) => {
      for (let time = 0; time < 2; time += 1) refuses({ lines: [name, '5'] })
      refuses({ lines: ['a', 'b', name, 'chunked'], framing: 5 })
    },
  )

  it('T2.7 nothing that is no token is a name or a method, nothing that is not visible in a target', () => {
    for (const name of ['', ' a', 'a ', 'a:', 'a\r\nb', 'a\n', 'A', '\xe4', 'a\0', '\u0130'])
      refuses({ lines: [name, 'b'] })
    for (const method of ['', 'GET ', 'GET / HTTP/1.1\r\n', 'G\0T', 'GET\n', '\xe4']) refuses({ method })
    for (const path of [
      '',
      'a',
      '*',
      'http://other/',
      '/a b',
      '/a\r\nb',
      '/\0',
      '/\xe4',
      '/a\n',
      '/\u2028',
      '/\x7f',
    ])
      refuses({ path })
  })

  it('T2.7 no value ends its line, or is cut to another one by latin-1', () => {
    for (const value of [
      '\r\n',
      'a\n',
      'a\r',
      '\0',
      'a\x1b',
      '\x7f',
      '\u010a',
      '\u010d',
      '\u2028',
      '\u{1f600}',
    ]) {
      refuses({ lines: ['a', value] })
      refuses({ host: value })
    }
  })

  it('T2.7 a name that was good before is good in its own spelling only', () => {
    make({ lines: ['x-good', 'a'] })
    refuses({ lines: ['X-Good', 'a'] })
    refuses({ lines: ['x-good\r', 'a'] })
  })

  it('T5.1 thousands of names, long and short, are looked at like the first', () => {
    for (let index = 0; index < 3000; index += 1) {
      const name = `x-${index}-${'n'.repeat(index % 100)}`
      expect(make({ lines: [name, 'a'] })).toContain(`\r\n${name}: a\r\n`)
      refuses({ lines: [`${name}\r`, 'a'] })
    }
  })
})

describe('what a server reads of it', () => {
  const received: { request: IncomingMessage; body: string }[] = []
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request
      .on('data', (piece: Buffer) => void pieces.push(piece))
      .on('end', () => {
        received.push({ request, body: Buffer.concat(pieces).toString('latin1') })
        response.end()
      })
  })
  beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)))
  afterAll(() => new Promise((resolve) => server.close(resolve)))

  const any = fc.oneof(
    { weight: 3, arbitrary: fc.stringMatching(/^[a-z0-9-]{1,8}$/) },
    anyText({ maxLength: 8 }),
    fc.string({
      unit: fc.constantFrom('a', '\r', '\n', ':', ' ', '\0', '\u010d', '\u010a', '\xe4'),
      maxLength: 6,
    }),
    fc.constantFrom('host', 'content-length', 'transfer-encoding', 'x: y\r\n\r\nGET /forged HTTP/1.1'),
  )
  const parts = fc.record({
    method: fc.oneof({ weight: 6, arbitrary: fc.constantFrom('GET', 'POST', 'DELETE') }, any),
    path: fc.oneof({ weight: 6, arbitrary: any.map((text) => `/${text}`) }, any),
    host: fc.oneof({ weight: 6, arbitrary: fc.constant('up:80') }, any),
    lines: fc
      .array(fc.tuple(any, any), { maxLength: 4 })
      .map((pairs) => pairs.flatMap(([name, value]) => [name, value])),
    body: fc.option(fc.uint8Array({ maxLength: 40 }), { nil: undefined }),
  })

  it('T2.4, T2.7 whatever the parts hold, they are refused, or are exactly this one request', async () => {
    const { port } = server.address() as AddressInfo
    let sent = 0
    await fc.assert(
      fc.asyncProperty(parts, async ({ method, path, host, lines, body }) => {
        const content = Buffer.from(body ?? [])
        let head: string
        try {
          head = make({ method, path, host, lines, framing: body && content.length, keep: false })
        } catch (error) {
          expect((error as Fault).code).toBe('internal')
          return
        }
        received.splice(0)
        // As `writeWithBody` in upload.ts sends them.
        await exchangeRaw(port, Buffer.from(head + content.toString('latin1'), 'latin1'))
        // Node's server knows a list of methods, and answers others itself.
        if (!['GET', 'POST', 'DELETE'].includes(method)) {
          expect(received.length).toBeLessThan(2)
          return
        }
        sent += 1
        expect(received).toHaveLength(1)
        const { request, body: got } = received[0]!
        expect([request.method, request.url, got]).toEqual([method, path, content.toString('latin1')])
        const framing = body ? ['content-length'] : method === 'POST' ? ['content-length'] : []
        const names = ['host', 'connection', ...lines.filter((_, at) => at % 2 === 0)]
        expect(request.rawHeaders.filter((_, at) => at % 2 === 0)).toEqual([...names, ...framing])
        expect(request.rawHeaders[1]).toBe(host.replace(/^[\t ]+|[\t ]+$/g, ''))
      }),
      { numRuns: 1500 },
    )
    expect(sent).toBeGreaterThan(100)
  })
})
