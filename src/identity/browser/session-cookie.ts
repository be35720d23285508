import type { Head } from '../../http/head.ts'

/** The one cookie of the pages (C6.2.3): a random value, of a session or of a browser that is not logged in yet. */
export interface SessionCookie {
  /** The value that the browser sent; undefined if it sent none that could be ours. */
  read(head: Head): string | undefined
  /** The Set-Cookie line that gives a value: for as long as the browser runs; the session's own end is in the store. */
  write(value: string): string
  /** The Set-Cookie line that takes it back. */
  clear(): string
}

/** What newSecret() makes. */
const VALUE = /^[A-Za-z0-9_-]{43}$/

/**
 * `__Host-` binds the cookie to this very host over TLS, so that no other host of the domain can set it (fixation).
 * On an http loopback neither the prefix nor Secure would be accepted; there the port is in the name, since cookies
 * don't tell ports apart, and two services may run on one machine.
 */
export function sessionCookie(issuer: string): SessionCookie {
  const { port, protocol } = new URL(issuer)
  const secure = protocol === 'https:'
  const name = secure ? '__Host-postern-session' : `postern-session-${port === '' ? '80' : port}`
  const attributes = `Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
  return {
    read({ headers }) {
      const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim())
      const value = pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
      return value !== undefined && VALUE.test(value) ? value : undefined
    },
    write: (value) => `${name}=${value}; ${attributes}`,
    clear: () => `${name}=; ${attributes}; Max-Age=0`,
  }
}
