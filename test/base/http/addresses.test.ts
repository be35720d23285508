import { expect, it } from 'vitest'
import { networkOf, siteOf } from '../../../src/base/http/head/addresses.ts'

it.each([
  ['192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8:1:2::1', '2001:db8:1:2'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['2001:db8::2:0:0:1', '2001:db8:0:0'],
  ['2001::2:3:4:5:6', '2001:0:0:2'],
  ['::1', '0:0:0:0'],
  ['::', '0:0:0:0'],
  ['', ''],
])('C4.5 the network of %s is %s', (address, network) => {
  expect(networkOf(address)).toBe(network)
})

it.each([
  ['192.0.2.1', '192.0.2'],
  ['2001:db8:1:1234::1', '2001:db8:1:1200'],
  ['2001:db8:1:12::1', '2001:db8:1:0'],
  ['::1', '0:0:0:0'],
  ['', ''],
])('C6.3.5 the site of %s is %s', (address, site) => {
  expect(siteOf(address)).toBe(site)
})
