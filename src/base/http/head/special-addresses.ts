import { BlockList } from 'node:net'
import { compileAddressList, groupsOfIpv6, plainAddress } from './addresses.ts'

/** Where the public internet is not (IANA, IPv4 Special-Purpose Address Registry; RFC 5771, RFC 1112 §4). */
const SPECIAL_IPV4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  // multicast and all that is reserved behind it
  ['224.0.0.0', 3],
] as const

/** All but 2000::/3, and what is special in that (IANA, IPv6 Special-Purpose Address Registry). */
const SPECIAL_IPV6 = [
  ['::', 3],
  ['4000::', 2],
  ['8000::', 1],
  // protocols, Teredo among them: its addresses lead through a tunnel to any IPv4 address (RFC 4380)
  ['2001::', 23],
  ['2001:db8::', 32],
  ['3fff::', 20],
] as const

/** The last groups of a NAT64 address are an IPv4 address (RFC 6052 §2.1); those behind the first of 6to4 (RFC 3056). */
const EMBEDDING = [
  { network: listOf([['64:ff9b::', 96]], 'ipv6'), from: 6 },
  { network: listOf([['2002::', 16]], 'ipv6'), from: 1 },
] as const

// Two lists: IPv4 addresses also count as those of ::ffff:0:0/96, which is in ::/3.
const special = { ipv4: listOf(SPECIAL_IPV4, 'ipv4'), ipv6: listOf(SPECIAL_IPV6, 'ipv6') }

function listOf(networks: readonly (readonly [string, number])[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const [address, bits] of networks) list.addSubnet(address, bits, family)
  return list
}

/** The IPv4 address that a translator or a tunnel sends to for an IPv6 address. */
function embeddedIpv4(address: string): string | undefined {
  const found = EMBEDDING.find(({ network }) => network.check(address, 'ipv6'))
  if (found === undefined) return undefined
  const [high = 0, low = 0] = groupsOfIpv6(address)
    .slice(found.from)
    .map((group) => Number.parseInt(group, 16))
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.')
}

/** @param address as `plainAddress` writes it, so an address of ::ffff:0:0/96 is one of IPv4 already */
function isSpecial(address: string): boolean {
  if (!address.includes(':')) return special.ipv4.check(address)
  const embedded = embeddedIpv4(address)
  return embedded === undefined ? special.ipv6.check(address, 'ipv6') : isSpecial(embedded)
}

/**
 * Whether an address is of the public internet, or one of `allowed`: no loopback, private, link-local, shared, multicast
 * or reserved one, in whatever form of IPv6 it is written. A text that is no address never is.
 * @param allowed addresses and CIDR networks
 * @throws RangeError, whose message names the entry, if one is neither
 */
export function compileReachable(allowed: readonly string[]): (address: string) => boolean {
  const isAllowed = compileAddressList(allowed)
  return (text) => {
    const address = plainAddress(text)
    if (address === undefined) return false
    if (isAllowed(address) || !isSpecial(address)) return true
    const embedded = address.includes(':') ? embeddedIpv4(address) : undefined
    return embedded !== undefined && isAllowed(embedded)
  }
}
