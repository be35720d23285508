import type { Client } from '../../base/contracts/people/people.ts'
import { isLoopback } from '../../base/kernel/listen-address.ts'

/** RFC 8252 §7.3: an app's loopback redirect, by address and not by name; and its port. */
const LOOPBACK = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]))(?::([1-9][0-9]{0,4}))?(?=[/?]|$)/

const withoutPort = (uri: string): string | undefined => {
  const [, host, port = '80'] = LOOPBACK.exec(uri) ?? []
  return host === undefined || Number(port) > 65_535 ? undefined : uri.replace(LOOPBACK, host)
}

/** Whether the characters are exactly the same (C6.2.1, T6). Only the port of a native app may differ: it takes a free one. */
export function isRegistered(uri: string, registered: readonly string[], { kind }: Client): boolean {
  if (registered.includes(uri)) return true
  const bare = kind === 'public' ? withoutPort(uri) : undefined
  return bare !== undefined && registered.some((each) => withoutPort(each) === bare)
}

/**
 * RFC 8252 §8.6: whether any program on the person's device could have asked under this client's name, and take the
 * code: of a public client, by a loopback address with any port, or by a scheme of the app's own.
 */
export function anyAppMayTake(uri: string, { kind }: Client): boolean {
  if (kind !== 'public') return false
  const { hostname, protocol } = new URL(uri)
  const host = hostname.replace(/^\[|\]$/g, '')
  return !/^https?:$/.test(protocol) || isLoopback(host) || host.endsWith('.localhost')
}
