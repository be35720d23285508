export interface ListenAddress {
  /** Without brackets. */
  readonly host: string
  readonly port: number
}

/** Splits `host:port` or `[v6]:port`. The configuration's schema has checked the form. */
export function splitListenAddress(address: string): ListenAddress {
  const colon = address.lastIndexOf(':')
  return { host: address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(address.slice(colon + 1)) }
}

const LOOPBACK_V4 = /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/
const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['::1', 'localhost'])

/** Whether a host, given without brackets, is a loopback address or name. */
export const isLoopback = (host: string): boolean =>
  LOOPBACK_V4.test(host) || LOOPBACK_NAMES.has(host.toLowerCase())

/** Whether a URL may be fetched whatever answers there: https, or http on this machine. */
export function isFetchable(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname.replace(/^\[|\]$/g, '')))
}

/** `localhost` becomes 127.0.0.1: for the name Fastify opens a second server for ::1, without our handlers. */
export function bindingOf(address: string): ListenAddress {
  const { host, port } = splitListenAddress(address)
  return { host: host.toLowerCase() === 'localhost' ? '127.0.0.1' : host, port }
}

/** Names the setting in the system's error of an address that cannot be listened on. */
export async function namingSetting(setting: string, listening: PromiseLike<unknown>): Promise<void> {
  try {
    await listening
  } catch (error) {
    if (error instanceof Error && 'code' in error) error.message = `${setting}: ${error.message}`
    throw error
  }
}

/** For calls from this machine: a listener on all addresses is called on loopback. `port`: the bound one. */
export function localUrl(address: string, port = splitListenAddress(address).port): string {
  const { host } = splitListenAddress(address)
  const here = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${here.includes(':') ? `[${here}]` : here}:${port}`
}
