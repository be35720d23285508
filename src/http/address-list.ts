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
