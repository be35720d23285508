import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  clientAddress,
  clientOrigin,
  compileTrustedProxies,
  forwardedLines,
} from '../../../src/base/http/head/addresses.ts'
import type { Head } from '../../../src/base/http/head/head.ts'

const headFrom = (remoteAddress: string, headers: Head['headers'] = {}): Head => ({
  method: 'GET',
  rawTarget: '/',
  httpVersion: '1.1',
  rawHeaders: Object.entries(headers).flatMap(([name, value]) => [name, String(value)]),
  headers,
  remoteAddress,
})

const PROXY = '10.0.0.1'
const byList = compileTrustedProxies(['10.0.0.0/8', '2001:db8:1::/48', '192.0.2.7'])
const byForwarded = compileTrustedProxies(['10.0.0.0/8', '2001:db8:1::/48'], 'forwarded')

const viaList = (value: string, more: Head['headers'] = {}) =>
  clientOrigin(headFrom(PROXY, { 'x-forwarded-for': value, ...more }), byList)
const viaForwarded = (value: string, more: Head['headers'] = {}) =>
  clientOrigin(headFrom(PROXY, { forwarded: value, ...more }), byForwarded)

describe('T2.2 trusted proxies', () => {
  it('are none by default', () => {
    expect(compileTrustedProxies([])).toBeUndefined()
  })

  it('are refused where they take in (nearly) everybody', () => {
    const everybody = ['0.0.0.0/0', '::/0', '128.0.0.0/1', '10.0.0.0/7', '2000::/3', '::/8', '::/80']
    for (const entry of [...everybody, '::ffff:0:0/96', '::ffff:10.0.0.0/103', '::fffe:0:0/95'])
      expect(() => compileTrustedProxies(['192.0.2.1', entry]), entry).toThrow(/trusts \(nearly\) everybody/)
  })

  it('are refused where they are no address and no network', () => {
    for (const entry of [
      '',
      'localhost',
      '*',
      '10.0.0',
      '10.0.0.1/',
      '10.0.0.1/x',
      '10.0.0.1/-1',
      '10.0.0.1/8/8',
      '/8',
      '10/8',
    ])
      expect(() => compileTrustedProxies([entry]), entry).toThrow(RangeError)
    for (const entry of ['10.0.0.0/33', '::1/129'])
      expect(() => compileTrustedProxies([entry]), entry).toThrow(/prefix/)
  })

  it('match an IPv4 address however the socket or the list spells it', () => {
    const trusted = compileTrustedProxies(['::ffff:192.0.2.0/120', 'fc00::/7'])
    for (const peer of ['192.0.2.9', '::ffff:192.0.2.9', '::FFFF:c000:209'])
      expect(clientAddress(headFrom(peer, { 'x-forwarded-for': '198.51.100.1' }), trusted)).toBe(
        '198.51.100.1',
      )
    expect(clientAddress(headFrom('192.0.3.9', { 'x-forwarded-for': '198.51.100.1' }), trusted)).toBe(
      '192.0.3.9',
    )
  })
})

describe('T2.2 the client address', () => {
  it('is the peer where nobody is trusted, or the peer is not, whatever the headers say', () => {
    const lies = {
      'x-forwarded-for': '1.1.1.1',
      forwarded: 'for=1.1.1.1;proto=https',
      'x-forwarded-proto': 'https',
    }
    for (const trusted of [undefined, byList, byForwarded])
      expect(clientOrigin(headFrom('203.0.113.5', lies), trusted)).toEqual({
        address: '203.0.113.5',
        scheme: undefined,
      })
  })

  it('has one spelling', () => {
    expect(clientAddress(headFrom('::ffff:203.0.113.5'), undefined)).toBe('203.0.113.5')
    expect(clientAddress(headFrom('2001:DB8:0:0::5'), undefined)).toBe('2001:db8::5')
    expect(clientAddress(headFrom('fe80::1%eth0'), undefined)).toBe('fe80::1')
  })

  it('is the rightmost hop that is not trusted', () => {
    expect(viaList('1.1.1.1, 203.0.113.5, 10.2.3.4, 192.0.2.7').address).toBe('203.0.113.5')
    expect(viaList('1.1.1.1,203.0.113.5').address).toBe('203.0.113.5')
    expect(viaForwarded('for=1.1.1.1, for=203.0.113.5;by=10.0.0.9, For="10.2.3.4:99"').address).toBe(
      '203.0.113.5',
    )
  })

  it('is the first hop where all are trusted, and the proxy where it says nothing', () => {
    expect(viaList('10.1.1.1, 10.2.2.2').address).toBe('10.1.1.1')
    expect(viaList('').address).toBe(PROXY)
    expect(clientAddress(headFrom(PROXY), byList)).toBe(PROXY)
  })

  it('is read with ports, brackets and quotes', () => {
    for (const node of ['203.0.113.5', '203.0.113.5:4711']) {
      expect(viaList(node).address).toBe('203.0.113.5')
      expect(viaForwarded(`for="${node}"`).address).toBe('203.0.113.5')
    }
    expect(viaList('2001:db8::5').address).toBe('2001:db8::5')
    expect(viaList('[2001:DB8::5]:80').address).toBe('2001:db8::5')
    expect(viaForwarded('for="[2001:db8::5]:80"').address).toBe('2001:db8::5')
    expect(viaForwarded('proto=https;FOR=203.0.113.5').address).toBe('203.0.113.5')
  })

  it('ends at whoever wrote an entry that cannot be read', () => {
    for (const junk of ['unknown', '_hidden', 'evil.test', ';', '1.2.3', '999.1.1.1', '"'])
      expect(viaList(`1.1.1.1, ${junk}, 10.2.2.2`).address, junk).toBe('10.2.2.2')
    expect(viaForwarded('for=1.1.1.1, for=unknown, for=10.2.2.2').address).toBe('10.2.2.2')
  })

  it('is found beside empty members, which say nothing', () => {
    for (const list of ['203.0.113.5,', '203.0.113.5, , 10.1.1.1', ',203.0.113.5,\t,,10.1.1.1, ,'])
      expect(viaList(list).address, list).toBe('203.0.113.5')
    for (const list of ['for=203.0.113.5,', ', for=203.0.113.5, , for=10.1.1.1,'])
      expect(viaForwarded(list).address, list).toBe('203.0.113.5')
    expect(viaList(' , ,').address).toBe(PROXY)
  })

  it('comes from the configured header alone', () => {
    expect(viaList('203.0.113.5', { forwarded: 'for=1.1.1.1' }).address).toBe('203.0.113.5')
    expect(viaForwarded('for=203.0.113.5', { 'x-forwarded-for': '1.1.1.1' }).address).toBe('203.0.113.5')
    expect(clientAddress(headFrom(PROXY, { forwarded: 'for=1.1.1.1' }), byList)).toBe(PROXY)
  })

  it('cannot be moved by anything that the client put before the words of the proxy', () => {
    const sent = fc.oneof(
      fc.string(),
      fc.constantFrom('for="', 'for="x, ', '"', ';', 'for=10.0.0.1', '10.0.0.1', '\\"'),
    )
    fc.assert(
      fc.property(sent, (prefix) => {
        expect(viaList(`${prefix}, 203.0.113.5, 10.9.9.9`).address).toBe('203.0.113.5')
        expect(viaForwarded(`${prefix}, for=203.0.113.5, for=10.9.9.9`).address).toBe('203.0.113.5')
        expect(viaForwarded(`${prefix}, for="[2001:db8:9::1]"`).address).toBe('2001:db8:9::1')
      }),
    )
  })

  it('is found at once in a list of thousands', () => {
    expect(viaList(`${'1.1.1.1,'.repeat(100_000)}203.0.113.5`).address).toBe('203.0.113.5')
  })
})

describe('T2.2 the client scheme', () => {
  it('is the word of the nearest trusted proxy', () => {
    expect(viaList('203.0.113.5', { 'x-forwarded-proto': 'https' }).scheme).toBe('https')
    expect(viaList('203.0.113.5', { 'x-forwarded-proto': 'http, HTTPS' }).scheme).toBe('https')
    expect(viaList('203.0.113.5', { 'x-forwarded-proto': 'gopher' }).scheme).toBeUndefined()
    expect(viaList('203.0.113.5', { 'x-forwarded-proto': 'https, ,' }).scheme).toBe('https')
  })

  it('is http or https also where the proxy names that of a websocket', () => {
    for (const [said, scheme] of [
      ['wss', 'https'],
      ['WSS', 'https'],
      ['ws', 'http'],
    ] as const) {
      expect(viaList('203.0.113.5', { 'x-forwarded-proto': said }).scheme).toBe(scheme)
      expect(viaForwarded(`for=203.0.113.5;proto=${said}`).scheme).toBe(scheme)
    }
  })

  it('is that of the hop that the client is, in Forwarded', () => {
    expect(
      viaForwarded('for=1.1.1.1;proto=http, for=203.0.113.5;proto=https, for=10.1.1.1;proto=http').scheme,
    ).toBe('https')
    expect(viaForwarded('for=203.0.113.5', { 'x-forwarded-proto': 'https' }).scheme).toBeUndefined()
  })
})

describe('C8.2 forwarding headers for the upstream', () => {
  it('are made of the judged facts alone', () => {
    expect(
      forwardedLines({ clientAddress: '203.0.113.5', scheme: 'https', host: 'api.example.test' }),
    ).toEqual([
      ...['forwarded', 'for=203.0.113.5;host=api.example.test;proto=https'],
      ...['x-forwarded-for', '203.0.113.5'],
      ...['x-forwarded-proto', 'https'],
      ...['x-forwarded-host', 'api.example.test'],
    ])
  })

  it('quote what RFC 7239 wants quoted', () => {
    const made = forwardedLines({ clientAddress: '2001:db8::5', scheme: 'http', host: '127.0.0.1:8080' })
    expect(made.slice(0, 4)).toEqual([
      ...['forwarded', 'for="[2001:db8::5]";host="127.0.0.1:8080";proto=http'],
      ...['x-forwarded-for', '2001:db8::5'],
    ])
  })
})
