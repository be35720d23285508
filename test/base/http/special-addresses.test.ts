import { describe, expect, it } from 'vitest'
import { compileReachable } from '../../../src/base/http/head/special-addresses.ts'

describe('T3.18 addresses that are reached', () => {
  it.each([
    '1.1.1.1',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '198.17.255.255',
    '223.255.255.255',
    '2606:4700::1111',
    '2a00::1',
    '3ffe::1',
    '::ffff:1.1.1.1',
    '64:ff9b::101:101',
    '2002:101:101::1',
  ])('T3.18 %s is reached, being public', (address) => {
    expect(compileReachable([])(address)).toBe(true)
  })

  it.each([
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '100.64.0.1',
    '100.127.255.255',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.8',
    '192.0.2.1',
    '192.88.99.1',
    '192.168.1.1',
    '198.19.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::127.0.0.1',
    '::ffff:0:127.0.0.1',
    '100::1',
    'fc00::1',
    'fd12:3456::1',
    'fe80::1',
    'fe80::1%eth0',
    'fec0::1',
    'ff02::1',
    '2001:db8::1',
    '2001::1',
    '2001:20::1',
    '3fff::1',
    '5f00::1',
    // IPv4 in IPv6
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::FFFF:10.0.0.1',
    '0:0:0:0:0:ffff:a9fe:a9fe',
    '64:ff9b::127.0.0.1',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b::a00:1',
    '64:ff9b:1::7f00:1',
    '64:ff9b:1:7f00:0:100::',
    '2002:7f00:1::',
    '2002:a9fe:a9fe::1',
    '2002:c0a8:101::1',
    // the client's address stands inverted in those of Teredo
    '2001:0:4136:e378:8000:63bf:80ff:fffe',
    '2001:0:7f00:1::1',
    // no address
    '',
    'localhost',
    '0x7f.1',
    '2130706433',
    '127.1',
    '1.1.1.1/32',
  ])('T3.18 %s is not', (address) => {
    expect(compileReachable([])(address)).toBe(false)
  })

  it('T3.18 a network that is listed is, also within IPv6', () => {
    const isReached = compileReachable(['10.1.0.0/16', 'fd00:1::/32', '::1'])
    const reached = ['10.1.2.3', '::ffff:10.1.2.3', '64:ff9b::a01:203', '2002:a01:203::1', 'fd00:1::9', '::1']
    const others = ['10.2.0.1', '127.0.0.1', 'fd00:2::9', '64:ff9b::a02:1', '::ffff:127.0.0.1']
    expect(reached.filter((address) => !isReached(address))).toEqual([])
    expect(others.filter(isReached)).toEqual([])
  })

  it('an entry that is no network is refused by its name', () => {
    expect(() => compileReachable(['intranet'])).toThrow('"intranet"')
  })
})
