import { describe, expect, it } from 'vitest'
import { cleanRequestHeaders } from '../../../src/base/http/head/end-to-end-headers.ts'

const clean = (headers: Record<string, string | undefined>) => cleanRequestHeaders({ headers })

describe('C8.2 the client’s headers that a backend lists', () => {
  const allowed = new Set(['accept-language', 'if-none-match'])

  it('T2.2 pass, and no other, in no other spelling', () => {
    const headers = {
      ...{ 'accept-language': 'en', accept_language: 'fr', 'user-agent': 'x', 'sec-websocket-key': 'k' },
      ...{ 'accept-encoding': 'gzip', 'x-trace': '1', origin: 'https://x.example' },
    }
    expect(cleanRequestHeaders({ headers }, allowed)).toEqual({ 'accept-language': 'en' })
    expect(cleanRequestHeaders({ headers }, new Set())).toEqual({})
  })

  it('T2.1 do not pass where Connection names them', () => {
    const headers = { connection: 'Accept-Language', 'accept-language': 'en', 'if-none-match': '"1"' }
    expect(cleanRequestHeaders({ headers }, allowed)).toEqual({ 'if-none-match': '"1"' })
  })

  it('C8.2 come beside what a websocket’s handshake needs', () => {
    const own = {
      ...{ 'sec-websocket-key': 'k', 'sec-websocket-version': '13', 'sec-websocket-protocol': 'chat' },
      ...{ 'sec-websocket-extensions': 'permessage-deflate' },
    }
    const headers = { ...own, origin: 'https://x.example', 'user-agent': 'x', 'sec-websocket-other': '1' }
    expect(cleanRequestHeaders({ headers }, allowed, true)).toEqual(own)
  })
})

describe('the client’s headers that go on', () => {
  it.each([
    'x-authority',
    'x-consumers',
    'sslmode',
    'impersonated',
    'x-googly',
    'x-user-agent',
    'remote-control',
  ])('T2.2 hold %s, which only looks like one of a family', (name) => {
    expect(clean({ [name]: '1' })).toEqual({ [name]: '1' })
  })

  it('T2.2 are told apart also when thousands of names were seen before', () => {
    for (let at = 0; at < 3000; at++)
      expect(clean({ [`x-${at}`]: '1', 'x-auth-user': '1' })).toEqual({ [`x-${at}`]: '1' })
    expect(clean({ 'x-0': '1', [`x-auth-${'a'.repeat(200)}`]: '1' })).toEqual({ 'x-0': '1' })
  })

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
