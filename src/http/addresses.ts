import { BlockList } from 'node:net'
import { plainAddress } from './forwarded.ts'

const familyOf = (address: string): 'ipv4' | 'ipv6' => (address.includes(':') ? 'ipv6' : 'ipv4')
const BITS = { ipv4: 32, ipv6: 128 } as const

function addTo(list: BlockList, entry: string): void {
  const [, text = '', bits] = /^([^/]*)(?:\/([0-9]{1,3}))?$/.exec(entry) ?? []
  const address = plainAddress(text)
  if (address === undefined) throw new RangeError(`"${entry}" is neither an IP address nor a CIDR network`)
  const family = familyOf(address)
  const prefix = bits === undefined ? BITS[family] : Number(bits)
  if (prefix > BITS[family]) throw new RangeError(`"${entry}" has a prefix longer than ${BITS[family]} bits`)
  list.addSubnet(address, prefix, family)
}

/**
 * Compiles IP addresses and CIDR networks to the question whether an address is among them; what is no address never
 * is. Throws RangeError, whose message names the entry, if one is neither.
 */
export function compileAddressList(entries: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const entry of entries) addTo(list, entry)
  if (entries.length === 0) return () => false
  return (text) => {
    const address = plainAddress(text)
    return address !== undefined && list.check(address, familyOf(address))
  }
}

/**
 * The network that an address stands for where calls are counted by address: itself for IPv4; for IPv6 its first 64
 * bits, since the others are the client's own to choose (RFC 4291 §2.5.4).
 * @param address as `clientOrigin` writes it: RFC 5952, IPv4 never as IPv6
 */
export function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address
  const [head = '', tail] = address.split('::')
  const before = groupsOf(head)
  if (before.length >= 4) return before.slice(0, 4).join(':')
  const after = groupsOf(tail ?? '')
  const gap = Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0')
  return [...before, ...gap, ...after].slice(0, 4).join(':')
}

const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':'))

/**
 * The site that an address belongs to, where people are to be recognised by where they come from: the first 24 bits of
 * IPv4 and the first 56 of IPv6, which is what providers give to one customer, or move one around in.
 * @param address as `clientOrigin` writes it: RFC 5952, IPv4 never as IPv6
 */
export function siteOf(address: string): string {
  if (!address.includes(':')) return address.split('.').slice(0, 3).join('.')
  const groups = networkOf(address).split(':')
  const last = Number.parseInt(groups[3] ?? '0', 16) & 0xff00
  return [...groups.slice(0, 3), last.toString(16)].join(':')
}
