import { describe, expect, it } from 'vitest'
import { cleanRequestHeaders } from '../../../src/backends/client-headers.ts'

const clean = (headers: Record<string, string | undefined>) => cleanRequestHeaders({ headers })

describe('the client’s headers that go on', () => {
  it('C8.2 are the end-to-end ones, unknown ones included', () => {
    const headers = { 'user-agent': 'x/1', 'if-none-match': '"1"', 'x-anything': '1', 'idempotency-key': 'k' }
    expect(clean(headers)).toEqual(headers)
  })

  it.each([
    'x-postern-subject',
    'x_postern_subject',
    'x-postern_scope',
    'x.postern.subject',
    'x!postern~subject',
    'x.forwarded.for',
    'content.length',
    'X-Postern-Fund',
    'x-forwarded-for',
    'x_forwarded_host',
    'forwarded',
    'x-original-url',
    'x_original_url',
    'x-rewrite-url',
    'x-http-method-override',
    'x-http-method',
    'x-method-override',
    'x-real-ip',
    'true-client-ip',
    'traceparent',
    'x-request-id',
    'accept',
    'authorization',
    'proxy-authorization',
    'cookie',
    'host',
    'content-type',
    'content-length',
    'content_length',
    'content-encoding',
    'transfer-encoding',
    'transfer_encoding',
    'expect',
    'keep-alive',
    'te',
    'trailer',
    'upgrade',
    'connection',
    'http2-settings',
    'proxy',
    'remote-user',
    '__proto__',
  ])('T2.2 never hold %s', (name) => {
    expect(clean({ [name]: 'x', 'x-other': '1' })).toEqual({ 'x-other': '1' })
  })

  it('T2.1 lack what Connection names, in any case and with _ for -', () => {
    const headers = { connection: 'Keep-Alive, X-One ,x_two', 'x-one': '1', 'x-two': '2', 'x-three': '3' }
    expect(clean(headers)).toEqual({ 'x-three': '3' })
  })
})
