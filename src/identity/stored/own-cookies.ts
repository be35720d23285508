import { LINK_COOKIE, SESSION_COOKIE } from '../../base/http/head/end-to-end-headers.ts'
import type { Head } from '../../base/http/head/head.ts'

/** A cookie of the pages (C6.2.3): a random value. */
export interface OwnCookie {
  /** The value that the browser sent; undefined if there is none of our form. */
  read(head: Head): string | undefined
  /** The Set-Cookie value that sets it. */
  write(value: string): string
  clear(): string
}

/** The form of a value of newSecret(). */
const VALUE = /^[A-Za-z0-9_-]{43}$/

/**
 * The cookie for an issuer. `__Host-` binds it to this host over TLS, so that no other host of the domain can set it
 * (session fixation). With http, browsers accept neither the prefix nor `Secure`. The port is then in the name, because
 * cookies are shared by all ports of a host, and two services may run on one machine.
 */
function ownCookie(issuer: string, ownName: string, maxAge?: number): OwnCookie {
  const { port, protocol } = new URL(issuer)
  const secure = protocol === 'https:'
  const name = secure ? `__Host-${ownName}` : `${ownName}-${port === '' ? '80' : port}`
  const attributes = `Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
  return {
    read({ headers }) {
      const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim())
      const value = pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
      return value !== undefined && VALUE.test(value) ? value : undefined
    },
    write: (value) => `${name}=${value}; ${attributes}${maxAge === undefined ? '' : `; Max-Age=${maxAge}`}`,
    clear: () => `${name}=; ${attributes}; Max-Age=0`,
  }
}

/**
 * The cookie of a session, or of a browser that is not logged in yet. The browser keeps it until it is closed; when the session
 * expires, the store knows.
 */
export const sessionCookie = (issuer: string): OwnCookie => ownCookie(issuer, SESSION_COOKIE)

/** Seconds: a link that was opened waits so long for its form. */
const LINK_KEPT = 600

/** The code of a link, so that no page behind its address has it in its own (C6.3.7). */
export const linkCookie = (issuer: string): OwnCookie => ownCookie(issuer, LINK_COOKIE, LINK_KEPT)
