import { BlockList, isIP, SocketAddress } from 'node:net'
import { quotedString } from './authorization.ts'
import type { Head } from './head.ts'

/** Which header the trusted proxies write. Only that one is read: a proxy passes the other on as its client sent it. */
type ForwardingHeader = 'forwarded' | 'x-forwarded-for'

export interface TrustedProxies {
  readonly list: BlockList
  readonly header: ForwardingHeader
}

/** Narrower than this is a network one can run: 10.0.0.0/8 and fc00::/7 are the widest private ones. */
const WIDEST = { ipv4: 8, ipv6: 7 } as const
/** The prefix length of ::ffff:0:0/96, under which IPv6 writes every IPv4 address. */
const MAPPED_BITS = 96

/**
 * Compiles the proxies whose word on the client's address counts (T2.2). An empty list trusts nobody.
 * @param entries addresses and CIDR networks, IPv4 or IPv6
 * @throws RangeError if an entry is neither, or trusts (nearly) everybody
 */
export function compileTrustedProxies(
  entries: readonly string[],
  header: ForwardingHeader = 'x-forwarded-for',
): TrustedProxies | undefined {
  if (entries.length === 0) return undefined
  const list = new BlockList()
  for (const entry of entries) addEntry(list, entry)
  return Object.freeze({ list, header })
}

function addEntry(list: BlockList, entry: string): void {
  const { text, address, family, bits } = readNetwork(entry)
  const mapped = family === 'ipv4' && text.includes(':')
  const prefix = checkedPrefix(entry, family, bits, mapped ? MAPPED_BITS : 0)
  if (prefix < WIDEST[family] || coversMapped(address, family, prefix)) {
    throw new RangeError(`"${entry}" trusts (nearly) everybody; name the proxies' own networks`)
  }
  list.addSubnet(address, prefix, family)
}

const FULL = { ipv4: 32, ipv6: 128 } as const
type Family = keyof typeof FULL

interface Network {
  readonly text: string
  readonly address: string
  readonly family: Family
  readonly bits: string | undefined
}

function readNetwork(entry: string): Network {
  const [, text = '', bits] = /^([^/]*)(?:\/([0-9]{1,3}))?$/.exec(entry) ?? []
  const address = plainAddress(text)
  if (address === undefined) throw new RangeError(`"${entry}" is neither an IP address nor a CIDR network`)
  return { text, address, family: familyOf(address), bits }
}

/** The length of a network's prefix; without one it is a single address. */
function checkedPrefix(entry: string, family: Family, bits: string | undefined, mapped = 0): number {
  const prefix = bits === undefined ? FULL[family] : Number(bits) - mapped
  if (prefix > FULL[family]) throw new RangeError(`"${entry}" has a prefix longer than ${FULL[family]} bits`)
  return prefix
}

/** An IPv6 network around ::ffff:0:0/96 would take in all of IPv4. */
function coversMapped(address: string, family: 'ipv4' | 'ipv6', prefix: number): boolean {
  if (family === 'ipv4' || prefix > MAPPED_BITS) return false
  const network = new BlockList()
  network.addSubnet(address, prefix, 'ipv6')
  return network.check('::ffff:0:0', 'ipv6')
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (address.includes(':') ? 'ipv6' : 'ipv4')

const MAPPED = '::ffff:'

/** One spelling per address: no zone, IPv6 as in RFC 5952, IPv4 never as IPv6. Undefined if it is no address. */
export function plainAddress(text: string): string | undefined {
  if (isIP(text) === 0) return undefined
  if (!text.includes(':')) return text
  const { address } = new SocketAddress({ address: withoutZone(text), family: 'ipv6' })
  return address.startsWith(MAPPED) && address.includes('.') ? address.slice(MAPPED.length) : address
}

/** `fe80::1%eth0` without the part from the `%` on. */
const withoutZone = (address: string): string => {
  const zone = address.indexOf('%')
  return zone < 0 ? address : address.slice(0, zone)
}

const isTrusted = (address: string, { list }: TrustedProxies): boolean =>
  list.check(address, familyOf(address))

/** Where a request comes from, as far as trusted proxies say. */
interface ClientOrigin {
  /** The rightmost address that is no trusted proxy's; the peer's own where nobody is trusted. */
  readonly address: string
  /** The scheme that the client used; undefined where no trusted proxy says so. */
  readonly scheme: 'http' | 'https' | undefined
}

/** One hop as a proxy reports it. `address` is undefined where it is hidden, unknown or no address. */
interface Hop {
  readonly address: string | undefined
  readonly scheme: ClientOrigin['scheme']
}

/**
 * The client's address and scheme. The chain is read from its end, and each entry believed only while the one who
 * wrote it is trusted; an entry that can't be read ends the walk at whoever wrote it.
 * @param trusted undefined trusts nobody: the peer is the client
 */
export function clientOrigin(head: Head, trusted: TrustedProxies | undefined): ClientOrigin {
  const peer = plainAddress(head.remoteAddress)
  if (peer === undefined) return { address: head.remoteAddress, scheme: undefined }
  if (trusted === undefined || !isTrusted(peer, trusted)) return { address: peer, scheme: undefined }
  let address = peer
  let scheme = SCHEME_BESIDE[trusted.header](head)
  for (const member of membersFromEnd(headerOf(head, trusted.header))) {
    const hop = READERS[trusted.header](member)
    scheme = hop.scheme ?? scheme
    if (hop.address === undefined) break
    address = hop.address
    if (!isTrusted(address, trusted)) break
  }
  return { address, scheme }
}

export const clientAddress = (head: Head, trusted: TrustedProxies | undefined): string =>
  clientOrigin(head, trusted).address

const headerOf = (head: Head, name: string): string => head.headers[name]?.toString() ?? ''

/**
 * The members of a comma-separated list, last one first, without empty ones (RFC 9110 §5.6.1.2). Quotes are not looked at:
 * what a client sent, such as a quote that it never closed, must not change how the proxy's own words after it are read.
 */
function* membersFromEnd(value: string): Generator<string, undefined> {
  let end = value.length
  while (end > 0) {
    const comma = value.lastIndexOf(',', end - 1)
    const member = value.slice(comma + 1, end).trim()
    if (member !== '') yield member
    end = comma
  }
}

const lastMember = (value: string): string => membersFromEnd(value).next().value ?? ''

/** Some proxies name the scheme of a websocket, which is asked for over http or https. */
const SCHEMES: ReadonlyMap<string, ClientOrigin['scheme']> = new Map([
  ['http', 'http'],
  ['ws', 'http'],
  ['https', 'https'],
  ['wss', 'https'],
])

const schemeOf = (text: string): ClientOrigin['scheme'] => SCHEMES.get(text.toLowerCase())

/** X-Forwarded-For has a header beside it for the scheme: the last value is the word of the proxy next to us. */
const SCHEME_BESIDE: Readonly<Record<ForwardingHeader, (head: Head) => ClientOrigin['scheme']>> = {
  'x-forwarded-for': (head) => schemeOf(lastMember(headerOf(head, 'x-forwarded-proto'))),
  forwarded: () => undefined,
}

const READERS: Readonly<Record<ForwardingHeader, (member: string) => Hop>> = {
  'x-forwarded-for': (member) => ({ address: nodeAddress(member), scheme: undefined }),
  forwarded: (member) => {
    const pairs = member.split(';').map((pair) => /^\s*(\w+)="?([^"\s]*)"?\s*$/.exec(pair))
    const valueOf = (name: string): string =>
      pairs.find((pair) => pair?.[1]?.toLowerCase() === name)?.[2] ?? ''
    return { address: nodeAddress(valueOf('for')), scheme: schemeOf(valueOf('proto')) }
  },
}

/** A node of RFC 7239 §6, also as X-Forwarded-For writes it: an address, perhaps with a port; IPv6 with or without brackets. */
function nodeAddress(node: string): string | undefined {
  const [, bracketed, dotted] = /^(?:\[([^\]]*)\]|([0-9.]+))(?::[0-9A-Za-z._-]+)?$/.exec(node) ?? []
  return plainAddress(bracketed ?? dotted ?? node)
}

/**
 * The forwarding headers that an upstream gets (C8.2), lower-case names and values in turn. Made afresh: nothing that a
 * client or a proxy sent is in them but what clientOrigin believed.
 */
export function forwardedLines({
  clientAddress,
  scheme,
  host,
}: {
  readonly clientAddress: string
  readonly scheme: 'http' | 'https'
  /** The client's Host: printable ASCII, as checkHead leaves it. */
  readonly host: string
}): readonly string[] {
  const node = clientAddress.includes(':') ? quotedString(`[${clientAddress}]`) : clientAddress
  const authority = /^[\w.~-]+$/.test(host) ? host : quotedString(host)
  return [
    ...['forwarded', `for=${node};host=${authority};proto=${scheme}`],
    ...['x-forwarded-for', clientAddress],
    ...['x-forwarded-proto', scheme],
    ...['x-forwarded-host', host],
  ]
}

function addTo(list: BlockList, entry: string): void {
  const { address, family, bits } = readNetwork(entry)
  list.addSubnet(address, checkedPrefix(entry, family, bits), family)
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
 * bits, because the others are the client's own to choose (RFC 4291 §2.5.4).
 * @param address as `clientOrigin` writes it: RFC 5952, IPv4 never as IPv6
 */
export function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address
  return groupsOfIpv6(address).slice(0, 4).join(':')
}

/** The eight groups of an IPv6 address that is written as in RFC 5952, without dots. */
export function groupsOfIpv6(address: string): readonly string[] {
  const [head = '', tail] = address.split('::')
  const before = groupsOf(head)
  if (before.length >= 8) return before
  const after = groupsOf(tail ?? '')
  const gap = Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0')
  return [...before, ...gap, ...after]
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
