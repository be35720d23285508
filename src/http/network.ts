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
